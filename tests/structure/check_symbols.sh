#!/usr/bin/env bash
# check_symbols.sh: checks that each name that libfragsim exports, as an archive
# and as a shared library, begins with frag_, and that it exports each function
# and object of the public headers, under the same name for C++.
# Environment: FRAG_BUILD_DIR (default build).
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
build=${FRAG_BUILD_DIR:-$root/build}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
failures=0

cmake --install "$build" --prefix "$folder" >"$folder/log"
include=$folder/include/fragsim

# The names that the headers declare: gcc lists the functions; the objects are
# extern.
(cd "$include" && find . -name '*.h' ! -name '*_list.h' -printf '#include "%P"\n') \
    >"$folder/all.c"
gcc -std=c17 -I"$include" -fsyntax-only -aux-info "$folder/functions" \
    "$folder/all.c" 2>"$folder/words" || {
    echo "check_symbols: the headers do not compile together:"
    grep -m 5 error "$folder/words"
    exit 1
}
{
    grep -F "$include" "$folder/functions" | grep -v ' static ' |
        sed 's/ (.*//;s/.*[ *]//'
    gcc -std=c17 -I"$include" -E -P "$folder/all.c" | tr '\n' ' ' | tr ';' '\n' |
        grep -oE '\bextern const .*' | grep -v '(' |
        sed 's/.*[ *]\(frag_\w*\).*/\1/'
} | sort -u >"$folder/declared"
[ "$(wc -l <"$folder/declared")" -gt 100 ] || {
    echo "check_symbols: too few declarations found in $include"
    exit 1
}

# judge LIBRARY NM_OPTIONS...
judge() {
    local library=$1
    shift
    [ -f "$library" ] || {
        echo "check_symbols: no library ${library##*/}"
        exit 1
    }
    # A symbol of type A is the version of the others.
    nm --format=posix --extern-only --defined-only "$@" "$library" |
        awk 'NF > 2 && $2 != "A" {sub(/@.*/, "", $1); print $1}' |
        sort -u >"$folder/defined"
    {
        grep -v '^frag_' "$folder/defined" | sed 's/^/foreign name: /'
        comm -13 "$folder/defined" "$folder/declared" | sed 's/^/missing: /'
    } >"$folder/wrong" || true
    [ ! -s "$folder/wrong" ] && return
    echo "check_symbols: ${library##*/}: $(wc -l <"$folder/wrong") of" \
        "$(wc -l <"$folder/defined") names are wrong:"
    head -n 20 "$folder/wrong"
    failures=$((failures + 1))
}

for compiler in clang c++; do
    command -v $compiler >/dev/null || continue
    {
        cat "$folder/all.c"
        echo 'const void *used[] = {'
        sed 's/.*/(const void *)\&&,/' "$folder/declared"
        echo '};'
    } >"$folder/used.c"
    $compiler -x c++ -std=c++17 -I"$include" -c "$folder/used.c" \
        -o "$folder/used.o"
    nm --format=posix --undefined-only "$folder/used.o" | awk '{print $1}' |
        sort | comm -13 - "$folder/declared" >"$folder/wrong"
    [ -s "$folder/wrong" ] || break
    echo "check_symbols: C++ has other names for:"
    head -n 20 "$folder/wrong"
    failures=$((failures + 1))
    break
done

libraries=$(dirname "$(find "$folder" -name libfragsim.a)")
judge "$libraries/libfragsim.a"
judge "$libraries/libfragsim.so" --dynamic
[ $failures -eq 0 ] || exit 1
echo "$(wc -l <"$folder/declared") public names, and none but frag_*"
