# libraries.cmake - builds the libraries that the tool links, as archives with hidden
# symbols, from the sources of Debian's packages in FRAG_SOURCES (fetch.sh). Only the
# parts that the tool uses are compiled.
foreach(package zlib xz-utils libzstd yajl gsl nettle hdf5 gnulib)
    file(GLOB folder LIST_DIRECTORIES true ${FRAG_SOURCES}/${package}-*)
    if(NOT IS_DIRECTORY "${folder}")
        message(FATAL_ERROR "the source of ${package} is not in "
            "\"${FRAG_SOURCES}\"; use sim/libraries/fetch.sh")
    endif()
    set(${package} ${folder})
    if(NOT package STREQUAL "gnulib") # glibc has what is used of it
        file(GLOB texts ${folder}/COPYING ${folder}/COPYING.LESSERv3
             ${folder}/debian/copyright)
        install(FILES ${texts}
                DESTINATION ${CMAKE_INSTALL_DATADIR}/fragsim/licenses/${package})
    endif()
endforeach()

# frag_source(TARGET NAME INCLUDES SOURCES...): a static library, whose headers
# have no warnings.
function(frag_source target name includes)
    add_library(${name} STATIC ${ARGN})
    target_include_directories(${name} SYSTEM PUBLIC ${includes})
    target_compile_options(${name} PRIVATE -w)
    set_target_properties(${name} PROPERTIES C_EXTENSIONS ON
        C_VISIBILITY_PRESET hidden POSITION_INDEPENDENT_CODE ON
        INTERPROCEDURAL_OPTIMIZATION OFF)
    add_library(${target} ALIAS ${name})
endfunction()

file(GLOB sources ${zlib}/*.c)
list(FILTER sources EXCLUDE REGEX "/gz[a-z]+\\.c$")
frag_source(ZLIB::ZLIB source_z ${zlib} ${sources})

file(GLOB sources ${libzstd}/lib/common/*.c ${libzstd}/lib/decompress/*.c)
frag_source(PkgConfig::ZSTD source_zstd ${libzstd}/lib ${sources})
target_compile_definitions(source_zstd PRIVATE ZSTD_DISABLE_ASM)

set(lzma ${xz-utils}/src/liblzma)
file(GLOB sources ${lzma}/check/*.c ${lzma}/common/*.c ${lzma}/lz/*.c
     ${lzma}/lzma/*.c ${lzma}/simple/*.c ${lzma}/delta/*.c)
list(FILTER sources EXCLUDE REGEX
     "encoder|tablegen|fastpos|_small|_mt\\.c|easy|outqueue|cputhreads|physmem|string_")
frag_source(LibLZMA::LibLZMA source_lzma ${lzma}/api ${sources})
foreach(part check common lz lzma simple delta rangecoder ../common)
    target_include_directories(source_lzma PRIVATE ${lzma}/${part})
endforeach()
set(has CHECK_CRC32 CHECK_CRC64 CHECK_SHA256 DECODERS STDBOOL_H STDINT_H INTTYPES_H
    STRING_H LIMITS_H)
foreach(filter LZMA1 LZMA2 DELTA X86 POWERPC IA64 ARM ARMTHUMB ARM64 SPARC)
    list(APPEND has DECODER_${filter})
endforeach()
list(TRANSFORM has PREPEND HAVE_)
target_compile_definitions(source_lzma PRIVATE ${has} SIZEOF_SIZE_T=${CMAKE_SIZEOF_VOID_P})

file(COPY ${yajl}/src/api/ DESTINATION ${PROJECT_BINARY_DIR}/yajl/yajl
     FILES_MATCHING PATTERN "*.h")
file(STRINGS ${yajl}/CMakeLists.txt lines REGEX "SET \\(YAJL_(MAJOR|MINOR|MICRO) ")
foreach(line ${lines})
    string(REGEX REPLACE ".*(YAJL_[A-Z]+) ([0-9]+).*" "\\1;\\2" line ${line})
    set(${line})
endforeach()
configure_file(${yajl}/src/api/yajl_version.h.cmake
               ${PROJECT_BINARY_DIR}/yajl/yajl/yajl_version.h)
file(GLOB sources ${yajl}/src/*.c)
frag_source(PkgConfig::YAJL source_yajl ${PROJECT_BINARY_DIR}/yajl ${sources})

# Of nettle, the tool uses SHA-256 only. Its configure chooses code for the processor's
# own instructions at run time, which are four times as fast as the C code.
file(COPY ${nettle}/sha2.h ${nettle}/nettle-types.h
     DESTINATION ${PROJECT_BINARY_DIR}/nettle/nettle)
if(CMAKE_SYSTEM_NAME STREQUAL "Linux"
   AND CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|aarch64)$")
    include(ExternalProject)
    set(folder ${PROJECT_BINARY_DIR}/nettle/build)
    ExternalProject_Add(source_nettle_build
        SOURCE_DIR ${nettle} BINARY_DIR ${folder}
        CONFIGURE_COMMAND ${nettle}/configure --quiet
            --host=${CMAKE_SYSTEM_PROCESSOR}-linux-gnu --disable-shared
            --disable-public-key --disable-documentation --disable-openssl
            CC=${CMAKE_C_COMPILER} AR=${CMAKE_AR} RANLIB=${CMAKE_RANLIB}
            CC_FOR_BUILD=cc "CFLAGS=-O2 -w -fPIC -fvisibility=hidden"
        BUILD_COMMAND make -s -o configure -o stamp-h.in libnettle.a
        BUILD_BYPRODUCTS ${folder}/libnettle.a
        INSTALL_COMMAND "" LOG_CONFIGURE ON LOG_BUILD ON)
    add_library(source_nettle INTERFACE)
    add_library(PkgConfig::NETTLE ALIAS source_nettle)
    add_dependencies(source_nettle source_nettle_build)
    target_include_directories(source_nettle SYSTEM INTERFACE
                               ${PROJECT_BINARY_DIR}/nettle)
    target_link_libraries(source_nettle INTERFACE ${folder}/libnettle.a)
else()
    frag_source(PkgConfig::NETTLE source_nettle ${PROJECT_BINARY_DIR}/nettle
        ${nettle}/sha256.c ${nettle}/sha256-compress.c ${nettle}/write-be32.c)
    target_include_directories(source_nettle PRIVATE ${nettle})
endif()

# What the tool uses of GSL, and what that uses: whole folders, whose Makefiles list
# their files, and files. The definitions are what its configure finds.
set(sources ${gsl}/version.c)
foreach(part err sys block vector matrix sort blas cblas)
    file(STRINGS ${gsl}/${part}/Makefile.am lines REGEX "_la_SOURCES *=")
    string(REGEX MATCHALL "[a-z0-9A-Z_]+\\.c" files "${lines}")
    list(TRANSFORM files PREPEND ${gsl}/${part}/)
    list(APPEND sources ${files})
endforeach()
foreach(file rng/rng rng/inline rng/mt randist/exponential randist/lognormal randist/pareto
        histogram/add histogram/get histogram/init histogram/oper histogram/stat
        statistics/mean statistics/variance statistics/median statistics/minmax
        statistics/select linalg/balance linalg/bidiag linalg/cholesky
        linalg/condest linalg/exponential linalg/householder linalg/invtri linalg/qr
        linalg/svd linalg/trimult multifit/multilinear multifit/multireg
        multifit/multirobust multifit/multiwlinear multifit/robust_wfun multifit/work)
    list(APPEND sources ${gsl}/${file}.c)
endforeach()
file(GLOB headers ${gsl}/gsl_*.h ${gsl}/*/gsl_*.h)
file(COPY ${headers} DESTINATION ${PROJECT_BINARY_DIR}/gsl/gsl)
file(READ ${gsl}/config.h.in config)
foreach(name DECL_ACOSH DECL_ASINH DECL_ATANH DECL_EXPM1 DECL_FREXP DECL_HYPOT
        DECL_ISFINITE DECL_ISINF DECL_ISNAN DECL_LDEXP DECL_LOG1P COMPLEX_H
        IEEE_COMPARISONS INLINE C99_INLINE PRINTF_LONGDOUBLE STRDUP
        EXIT_SUCCESS_AND_FAILURE DECL_FINITE)
    string(REGEX REPLACE "#undef HAVE_${name}\n" "#define HAVE_${name} 1\n" config
           "${config}")
endforeach()
file(CONFIGURE OUTPUT gsl/config.h CONTENT "${config}" @ONLY)
frag_source(GSL::gsl source_gsl ${PROJECT_BINARY_DIR}/gsl ${sources})
target_include_directories(source_gsl PRIVATE ${gsl})

# HDF5 with its deflate filter, and without the network, szip and MPI. Where there is
# no HDF5, sim/browser/without_hdf5.c stands in its place. Its types are those that
# H5detect finds, a program of HDF5 that runs as the target does.
if(FRAG_BROWSER)
    add_library(frag_hdf5 INTERFACE)
    add_library(Threads::Threads INTERFACE IMPORTED) # pthread_create always fails
else()
    find_package(Threads REQUIRED)
    file(STRINGS ${hdf5}/src/H5public.h version REGEX "define H5_VERS_INFO")
    string(REGEX MATCH "[0-9]+\\.[0-9]+\\.[0-9]+" HDF5_PACKAGE_VERSION_STRING "${version}")
    set(has ALARM ASPRINTF ATTRIBUTE C99_DESIGNATED_INITIALIZER C99_FUNC CLOCK_GETTIME
        DIFFTIME DIRENT_H DLFCN_H FCNTL FILTER_DEFLATE FLOCK FORK FREXPF FREXPL FUNCTION
        GETHOSTNAME GETPWUID GETRUSAGE GETTIMEOFDAY INLINE INTTYPES_H IOCTL LIBDL LIBM
        LIBPTHREAD LIBZ LLROUND LLROUNDF LONGJMP LROUND LROUNDF LSTAT PREADWRITE
        PTHREAD_H PWD_H RANDOM RAND_R ROUND ROUNDF SETJMP SETJMP_H SIGLONGJMP SIGNAL
        SIGPROCMASK SNPRINTF SRANDOM STAT_ST_BLOCKS STDBOOL_H STDDEF_H STDINT_H STRDUP
        STRTOLL STRTOULL SYMLINK SYS_FILE_H SYS_IOCTL_H SYS_RESOURCE_H SYS_SOCKET_H
        SYS_STAT_H SYS_TIME_H SYS_TYPES_H THREADSAFE TIMEZONE TMPFILE TM_GMTOFF UNISTD_H
        VASPRINTF VSNPRINTF WAITPID ZLIB_H __INLINE __INLINE__)
    list(TRANSFORM has PREPEND HAVE_)
    foreach(name ${has} DEV_T_IS_SCALAR IGNORE_DISABLED_FILE_LOCKS INCLUDE_HL
            LDOUBLE_TO_LLONG_ACCURATE LLONG_TO_LDOUBLE_CORRECT STDC_HEADERS
            SYSTEM_SCOPE_THREADS TIME_WITH_SYS_TIME USE_18_API_DEFAULT USE_FILE_LOCKING
            WANT_DATA_ACCURACY WANT_DCONV_EXCEPTION)
        set(H5_${name} 1)
    endforeach()
    foreach(size CHAR=1 BOOL=1 SHORT=2 INT=4 UNSIGNED=4 LONG=8 LONG_LONG=8 FLOAT=4
            DOUBLE=8 SIZE_T=8 SSIZE_T=8 PTRDIFF_T=8 OFF_T=8 TIME_T=8 LONG_DOUBLE=16
            _QUAD=0 __FLOAT128=0 __INT64=0)
        string(REGEX MATCH "(.*)=(.*)" all ${size})
        set(H5_SIZEOF_${CMAKE_MATCH_1} ${CMAKE_MATCH_2})
    endforeach()
    foreach(bits 8 16 32 64)
        math(EXPR bytes "${bits} / 8")
        foreach(type INT INT_LEAST INT_FAST UINT UINT_LEAST UINT_FAST)
            set(H5_SIZEOF_${type}${bits}_T ${bytes})
        endforeach()
    endforeach()
    set(H5_DEFAULT_PLUGINDIR /nowhere)
    set(H5_FC_FUNC "H5_FC_FUNC(name, NAME) name")
    set(H5_FC_FUNC_ "H5_FC_FUNC_(name, NAME) name")
    set(H5_PRINTF_LL_WIDTH "\"ll\"")
    set(config ${PROJECT_BINARY_DIR}/hdf5)
    configure_file(${hdf5}/config/cmake/H5pubconf.h.in ${config}/H5pubconf.h)
    set(includes ${config} ${hdf5}/src)
    foreach(generated H5Tinit:H5detect H5lib_settings:H5make_libsettings)
        string(REGEX MATCH "(.*):(.*)" all ${generated})
        add_executable(${CMAKE_MATCH_2} ${hdf5}/src/${CMAKE_MATCH_2}.c)
        target_include_directories(${CMAKE_MATCH_2} PRIVATE ${includes})
        target_compile_options(${CMAKE_MATCH_2} PRIVATE -w)
        set_target_properties(${CMAKE_MATCH_2} PROPERTIES
            C_EXTENSIONS ON INTERPROCEDURAL_OPTIMIZATION OFF)
        add_custom_command(OUTPUT hdf5/${CMAKE_MATCH_1}.c
            COMMAND ${CMAKE_MATCH_2} ${config}/${CMAKE_MATCH_1}.c VERBATIM)
    endforeach()
    file(GLOB sources ${hdf5}/src/*.c ${hdf5}/hl/src/*.c)
    list(FILTER sources EXCLUDE REGEX "/(H5detect|H5make_libsettings|H5mpi|H5FDmpi.*)\\.c$")
    frag_source(source::hdf5 source_hdf5 "${includes};${hdf5}/hl/src" ${sources}
                ${config}/H5Tinit.c ${config}/H5lib_settings.c)
    # Parts of HDF5 that nobody calls are left out by the linker. -Wno: H5HL.c.
    target_compile_options(source_hdf5 PRIVATE -Os -ffunction-sections -fdata-sections
        -fno-asynchronous-unwind-tables -Wno-implicit-int)
    target_link_libraries(source_hdf5 PRIVATE ZLIB::ZLIB PUBLIC Threads::Threads m
                          ${CMAKE_DL_LIBS})
    add_library(frag_hdf5 INTERFACE)
    target_link_libraries(frag_hdf5 INTERFACE source_hdf5)
endif()

# argp, which C libraries other than glibc lack, is in gnulib as in glibc; some of its
# words are newer than those of Debian's glibc.
check_include_file(argp.h FRAG_HAS_ARGP)
if(FRAG_HAS_ARGP)
    return()
endif()
set(lib ${gnulib}/lib)
set(argp ${PROJECT_BINARY_DIR}/argp)
set(config [[
#ifndef ARGP_CONFIG
#define ARGP_CONFIG
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <stdalign.h>
#include <stdbool.h>
#define __GETOPT_PREFIX rpl_
#define _GL_INLINE_HEADER_BEGIN
#define _GL_INLINE_HEADER_END
#define _GL_INLINE inline
#define _GL_EXTERN_INLINE extern inline
#define _GL_ARG_NONNULL(which)
#define _GL_ATTRIBUTE_FORMAT(what)
#define _GL_ATTRIBUTE_DEALLOC(free, which)
#define _GL_ATTRIBUTE_DEALLOC_FREE
#define _GL_ATTRIBUTE_MALLOC
#define _GL_ATTRIBUTE_PURE
#define _GL_UNUSED
#define FLEXIBLE_ARRAY_MEMBER
#define GNULIB_ARGP_DISABLE_DIRNAME 1
#define HAVE_DECL_PROGRAM_INVOCATION_SHORT_NAME 1
#define HAVE_DECL_PROGRAM_INVOCATION_NAME 1
#endif
]])
file(CONFIGURE OUTPUT argp/config.h CONTENT "${config}" @ONLY)
file(READ ${lib}/argp.h text)
file(CONFIGURE OUTPUT argp/argp.h CONTENT "${config}${text}" @ONLY)
set(HAVE_GETOPT_H 0)
set(HAVE_SYS_CDEFS_H 0)
set(GUARD_PREFIX GL)
configure_file(${lib}/getopt.in.h ${argp}/own/getopt.h @ONLY)
configure_file(${lib}/getopt-cdefs.in.h ${argp}/own/getopt-cdefs.h @ONLY)
file(COPY ${lib}/getopt_int.h ${lib}/getopt-core.h ${lib}/getopt-ext.h
     ${lib}/getopt-pfx-core.h ${lib}/getopt-pfx-ext.h DESTINATION ${argp}/own)
file(READ ${lib}/argp-parse.c text)
string(REPLACE "(\"give " "(\"Give " text "${text}")
file(CONFIGURE OUTPUT argp/argp-parse.c CONTENT "${text}" @ONLY)
file(READ ${lib}/argp-help.c text)
string(REPLACE "Try '%s --help' or '%s --usage'" "Try `%s --help' or `%s --usage'" text
       "${text}")
file(CONFIGURE OUTPUT argp/argp-help.c CONTENT "${text}" @ONLY)
set(sources argp-ba argp-eexst argp-fmtstream argp-fs-xinl argp-pv argp-pvh argp-xinl
    getopt getopt1)
list(TRANSFORM sources PREPEND ${lib}/)
list(TRANSFORM sources APPEND .c)
frag_source(source::argp source_argp ${argp} ${argp}/argp-parse.c
            ${argp}/argp-help.c ${sources})
target_include_directories(source_argp BEFORE PRIVATE ${argp}/own ${lib}) # before the C library
target_compile_definitions(source_argp PRIVATE HAVE_CONFIG_H)
