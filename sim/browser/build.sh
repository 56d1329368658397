#!/bin/sh
# build.sh - builds build-browser/fragsim.html, the tool as one page, with
# Debian's emscripten (apt-get install emscripten dpkg-dev cmake ninja-build). The
# libraries are built from their sources: sim/libraries/.
set -eu

root=$(cd "$(dirname "$0")/../.." && pwd)
build=${1:-$root/build-browser}
sources=$build/sources
# Debian's acorn is there, whichever node is first on the PATH.
export NODE_PATH="${NODE_PATH:+$NODE_PATH:}/usr/share/nodejs"

for program in emcmake cmake ninja python3; do
    command -v "$program" > /dev/null || {
        echo "build.sh: expected $program, found none (Debian: apt-get install" \
             "emscripten dpkg-dev cmake ninja-build)" >&2
        exit 2
    }
done

"$root/sim/libraries/fetch.sh" "$sources"
cd "$root"
emcmake cmake -G Ninja -B "$build" -DCMAKE_BUILD_TYPE=Release -DFRAG_BROWSER=ON \
    -DFRAG_SOURCES="$sources" > "$build/configure.log" || {
    cat "$build/configure.log" >&2
    exit 1
}
cmake --build "$build" --target page
