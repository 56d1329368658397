#!/bin/sh
# tool.sh TARGET [FOLDER]: builds the tool alone for a target of zig, as
# x86_64-linux-musl, in FOLDER/TARGET (default: build-wheel/TARGET).
set -eu

root=$(cd "$(dirname "$0")/../.." && pwd)
target=$1
folder=${2:-$root/build-wheel}
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
"$root/sim/libraries/fetch.sh" "$folder/sources"
"$root/sim/libraries/zig.sh" "$folder" "$target" sh -c '
    cmake -G Ninja -S "$1" -B "$2" -DCMAKE_BUILD_TYPE=Release -DFRAG_SOURCES="$3" \
        -DCMAKE_TOOLCHAIN_FILE="$1/sim/libraries/zig.cmake" > "$2.log" || {
        cat "$2.log" >&2
        exit 1
    }
    cmake --build "$2" --target fragsim' - "$root" "$folder/$target" "$folder/sources"
