#!/bin/sh
# build.sh - builds build-browser/fragsim.html, the tool as one page, with
# Debian's emscripten (apt-get install emscripten dpkg-dev cmake ninja-build).
# The sources of the libraries are fetched once, from Debian's archive, by
# apt-get with lists of its own, so that neither root nor a change of the system
# is needed.
set -eu

root=$(cd "$(dirname "$0")/../.." && pwd)
build=${1:-$root/build-browser}
sources=$build/sources
# Debian's acorn is there, whichever node is first on the PATH.
export NODE_PATH="${NODE_PATH:+$NODE_PATH:}/usr/share/nodejs"

for program in emcmake apt-get dpkg-source cmake ninja python3 perl; do
    command -v "$program" > /dev/null || {
        echo "build.sh: expected $program, found none (Debian: apt-get install" \
             "emscripten dpkg-dev cmake ninja-build perl)" >&2
        exit 2
    }
done

fetch()
{
    rm -rf "$sources.partial"
    mkdir -p "$sources.partial/apt/lists/partial" "$sources.partial/apt/cache" \
             "$sources.partial/apt/parts"
    cd "$sources.partial"
    # The archives of the system, asked for sources.
    for list in /etc/apt/sources.list /etc/apt/sources.list.d/*.list \
                /etc/apt/sources.list.d/*.sources; do
        [ ! -f "$list" ] ||
            sed 's/^deb /deb-src /; s/^Types: deb$/Types: deb-src/' "$list" \
                > "apt/parts/${list##*/}"
    done
    cat > apt/apt.conf <<END
Dir::Etc::SourceList "/dev/null";
Dir::Etc::SourceParts "$PWD/apt/parts";
Dir::State::Lists "$PWD/apt/lists";
Dir::Cache "$PWD/apt/cache";
APT::Sandbox::User "";
END
    export APT_CONFIG="$PWD/apt/apt.conf"
    apt-get -qq update
    apt-get -qq source zlib xz-utils libzstd yajl gsl openssl gnulib > apt/log
    # The headers of libcrypto that SHA-256 needs.
    (cd openssl-*/ &&
     perl Configure linux-generic32 no-asm no-shared no-threads > /dev/null &&
     make -s include/openssl/configuration.h include/openssl/opensslv.h \
          include/openssl/crypto.h include/openssl/safestack.h)
    rm -rf apt
    mv "$sources.partial" "$sources"
}

[ -d "$sources" ] || fetch
cd "$root"
emcmake cmake -G Ninja -B "$build" -DCMAKE_BUILD_TYPE=Release -DFRAG_BROWSER=ON \
    -DFRAG_BROWSER_SOURCES="$sources" > "$build/configure.log" || {
    cat "$build/configure.log" >&2
    exit 1
}
cmake --build "$build" --target page
