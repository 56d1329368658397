# libraries.cmake - builds the libraries that the tool links, from the sources of
# Debian's packages, which build.sh unpacks into FRAG_BROWSER_SOURCES. Only the
# parts that the tool uses are compiled. HDF5 is not among them: without_hdf5.c.
foreach(package zlib xz-utils libzstd yajl gsl openssl gnulib)
    file(GLOB folder LIST_DIRECTORIES true ${FRAG_BROWSER_SOURCES}/${package}-*)
    if(NOT IS_DIRECTORY "${folder}")
        message(FATAL_ERROR "the source of ${package} is not in "
            "\"${FRAG_BROWSER_SOURCES}\"; use sim/browser/build.sh")
    endif()
    set(${package} ${folder})
endforeach()

# frag_source(TARGET NAME INCLUDES SOURCES...): a static library, whose headers
# have no warnings.
function(frag_source target name includes)
    add_library(${name} STATIC ${ARGN})
    target_include_directories(${name} SYSTEM PUBLIC ${includes})
    target_compile_options(${name} PRIVATE -w)
    set_target_properties(${name} PROPERTIES C_EXTENSIONS ON)
    add_library(${target} ALIAS ${name})
endfunction()

file(GLOB sources ${zlib}/*.c)
list(FILTER sources EXCLUDE REGEX "/gz[a-z]+\\.c$")
frag_source(ZLIB::ZLIB browser_z ${zlib} ${sources})

file(GLOB sources ${libzstd}/lib/common/*.c ${libzstd}/lib/decompress/*.c)
frag_source(PkgConfig::ZSTD browser_zstd ${libzstd}/lib ${sources})
target_compile_definitions(browser_zstd PRIVATE ZSTD_DISABLE_ASM)

set(lzma ${xz-utils}/src/liblzma)
file(GLOB sources ${lzma}/check/*.c ${lzma}/common/*.c ${lzma}/lz/*.c
     ${lzma}/lzma/*.c ${lzma}/simple/*.c ${lzma}/delta/*.c)
list(FILTER sources EXCLUDE REGEX
     "encoder|tablegen|fastpos|_small|_mt\\.c|easy|outqueue|cputhreads|physmem|string_")
frag_source(LibLZMA::LibLZMA browser_lzma ${lzma}/api ${sources})
foreach(part check common lz lzma simple delta rangecoder ../common)
    target_include_directories(browser_lzma PRIVATE ${lzma}/${part})
endforeach()
set(has CHECK_CRC32 CHECK_CRC64 CHECK_SHA256 DECODERS STDBOOL_H STDINT_H INTTYPES_H
    STRING_H LIMITS_H)
foreach(filter LZMA1 LZMA2 DELTA X86 POWERPC IA64 ARM ARMTHUMB ARM64 SPARC)
    list(APPEND has DECODER_${filter})
endforeach()
list(TRANSFORM has PREPEND HAVE_)
target_compile_definitions(browser_lzma PRIVATE ${has} SIZEOF_SIZE_T=4)

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
frag_source(PkgConfig::YAJL browser_yajl ${PROJECT_BINARY_DIR}/yajl ${sources})

# Of libcrypto, the tool uses SHA-256 only. build.sh made its headers.
frag_source(PkgConfig::CRYPTO browser_crypto ${openssl}/include
            ${openssl}/crypto/sha/sha256.c ${openssl}/crypto/mem_clr.c)
target_include_directories(browser_crypto PRIVATE ${openssl})

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
frag_source(GSL::gsl browser_gsl ${PROJECT_BINARY_DIR}/gsl ${sources})
target_include_directories(browser_gsl PRIVATE ${gsl})

add_library(frag_hdf5 INTERFACE)
add_library(Threads::Threads INTERFACE IMPORTED) # pthread_create always fails

# argp, which emscripten's C library lacks, is in gnulib as in glibc; some of its
# words are newer than those of Debian's glibc.
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
configure_file(${lib}/getopt.in.h ${argp}/getopt.h @ONLY)
configure_file(${lib}/getopt-cdefs.in.h ${argp}/getopt-cdefs.h @ONLY)
file(COPY ${lib}/getopt_int.h ${lib}/getopt-core.h ${lib}/getopt-ext.h
     ${lib}/getopt-pfx-core.h ${lib}/getopt-pfx-ext.h DESTINATION ${argp})
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
frag_source(browser::argp browser_argp ${argp} ${argp}/argp-parse.c
            ${argp}/argp-help.c ${sources})
target_include_directories(browser_argp PRIVATE ${lib})
target_compile_definitions(browser_argp PRIVATE HAVE_CONFIG_H)
