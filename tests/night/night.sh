#!/usr/bin/env bash
# night.sh RUNS [FIRST]: RUNS random runs of the whole tool with AddressSanitizer
# and UBSan, on all processors, beginning with number FIRST (default 0). Prints
# the runs of each verb and format, and exits with 1 if a run failed. The faults
# are in build-fuzz/night/out/found; move one to tests/night/kept when it is mended.
#
# build-fuzz/night holds the program, its libraries and its seeds. It can be
# copied to another machine, where ./night RUNS [FIRST] does the same.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/../.."
[ $# -gt 0 ] || { sed -n '2,/^set/{/^set/d;s/^# \?//;p}' tests/night/night.sh >&2; exit 2; }

build=build-fuzz
pack=$build/night
cmake --preset fuzz >/dev/null
cmake --build $build --target fragsim night >/dev/null
rm -rf $pack/lib $pack/seeds $pack/plots
mkdir -p $pack/lib/libc
FRAGSIM=$PWD/$build/fragsim tests/fuzz/fuzz_seeds.py $pack/seeds
cp -r plots $pack/plots
cp $build/tests/night $pack/lib/night
for library in $(ldd $pack/lib/night | grep -o '/[^ ]*'); do
    case $library in
    */ld-linux* | */libc.so* | */libm.so*) cp -L "$library" $pack/lib/libc ;;
    *) cp -L "$library" $pack/lib ;;
    esac
done
# Under a loader of its own the program cannot name functions in reports.
cat >$pack/night <<'END'
#!/bin/sh
here=$(dirname "$(readlink -f "$0")")
mkdir -p "$here/out"
export FRAG_PLOTS="$here/plots" LD_LIBRARY_PATH="$here/lib"
"$here/lib/night" 2>/dev/null
[ $? -eq 2 ] || loader="$here/lib/libc/ld-linux-x86-64.so.2 --library-path
    $here/lib:$here/lib/libc"
exec $loader "$here/lib/night" "$here/seeds" "$here/out" "$1" "$(nproc)" \
    "${2:-0}"
END
chmod +x $pack/night
exec nice -n 19 $pack/night "$@"
