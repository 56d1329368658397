#!/bin/sh
# wheel.sh [FOLDER [MACHINE...]]: builds the Python package as wheels that run on Linux
# with glibc 2.17 or later, whatever else is installed there: in FOLDER (default:
# build-wheel), for x86_64 and aarch64. sim/libraries/README.md says how and with what.
# portable.py judges each wheel; one that asks a system for more is not kept.
set -eu

root=$(cd "$(dirname "$0")/../.." && pwd)
folder=${1:-$root/build-wheel}
[ $# -eq 0 ] || shift
[ $# -gt 0 ] || set -- x86_64 aarch64
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
"$root/sim/libraries/fetch.sh" "$folder/sources"

for machine; do
    rm -rf "$folder/built"
    # manylinux2014 is the name of glibc 2.17 that a pip before 20.3 knows.
    "$root/sim/libraries/zig.sh" "$folder" "$machine-linux-gnu.2.17" \
        "$folder/tools/bin/pip" wheel -q --no-deps --no-build-isolation \
        -w "$folder/built" "$root" -C build-dir="$folder/$machine" \
        -C wheel.tags="py3-none-manylinux_2_17_$machine;py3-none-manylinux2014_$machine" \
        -C install.strip=false \
        -C cmake.define.CMAKE_TOOLCHAIN_FILE="$root/sim/libraries/zig.cmake" \
        -C cmake.define.FRAG_SOURCES="$folder/sources" > "$folder/log" 2>&1 || {
        tail -n 60 "$folder/log" >&2
        exit 1
    }
    "$folder/tools/bin/python" "$root/sim/python/portable.py" "$folder"/built/*.whl
    mv "$folder"/built/*.whl "$folder"
done
