#!/usr/bin/env bash
# check_loads.sh: checks that the tool loads only the shared libraries that it
# calls. The shared HDF5 of some distributions loads 27 others at every start;
# the tool is linked with HDF5's archive instead, where CMake finds that it links.
# Environment: FRAGSIM, FRAG_BUILD_DIR (default build).
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
build=${FRAG_BUILD_DIR:-$root/build}
tool=${FRAGSIM:-$build/fragsim}
grep -qs '^FRAG_HDF5_ARCHIVE:BOOL=ON' "$build/CMakeCache.txt" &&
    grep -qs '^FRAG_HDF5_ARCHIVE_LINKS:INTERNAL=1' "$build/CMakeCache.txt" || {
    echo "check_loads: this build uses the shared HDF5"
    exit 77
}

others=$(LD_TRACE_LOADED_OBJECTS=1 "$tool" | awk '{ print $1 }' | sed 's|.*/||' |
    grep -vE '^(linux-(vdso|gate)|ld-linux.*|libc|libm|libdl|libpthread|librt|libgcc_s|libstdc\+\+|lib(a|ub|t)san|libgsl|libgslcblas|libz|liblzma|libzstd|libyajl|libnettle|libsz|libaec)\.so' || true)
[ -z "$others" ] || {
    printf 'check_loads: the tool loads libraries that it does not call:\n%s\n' "$others"
    exit 1
}
"$tool" --version | grep -Eq '^HDF5 [0-9]+\.[0-9]+\.[0-9]+, ' || {
    echo "check_loads: --version does not name HDF5's version"
    exit 1
}
