# zig.cmake - a toolchain for CMake: zig cc, with which one machine compiles for many.
# Environment: FRAG_ZIG, a folder with the programs cc, ar and ranlib (zig.sh makes
# it); FRAG_TARGET, as x86_64-linux-gnu.2.17; FRAG_EMULATOR, what runs the target's
# programs.
string(REGEX MATCH "^([a-z0-9_]+)-([a-z]+)" target "$ENV{FRAG_TARGET}")
set(CMAKE_SYSTEM_PROCESSOR ${CMAKE_MATCH_1})
set(CMAKE_SYSTEM_NAME Linux)
if(CMAKE_MATCH_2 STREQUAL "macos")
    set(CMAKE_SYSTEM_NAME Darwin)
endif()
set(CMAKE_C_COMPILER $ENV{FRAG_ZIG}/cc)
set(CMAKE_AR $ENV{FRAG_ZIG}/ar)
set(CMAKE_RANLIB $ENV{FRAG_ZIG}/ranlib)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
add_link_options(-s -Wl,--gc-sections
                 $<$<STREQUAL:$<TARGET_PROPERTY:TYPE>,EXECUTABLE>:-pie>)
set(CMAKE_CROSSCOMPILING_EMULATOR $ENV{FRAG_EMULATOR})
