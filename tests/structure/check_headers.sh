#!/usr/bin/env bash
# check_headers.sh: checks the installed headers: each compiles alone, and all
# compile together, as C17 and as C++17. None includes a header that is not
# installed, and each name that they declare has fragsim's prefix.
# Environment: FRAG_BUILD_DIR (default build).
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
build=${FRAG_BUILD_DIR:-$root/build}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
failures=0

fail() {
    printf 'check_headers: %s\n' "$@"
    failures=$((failures + 1))
}

cmake --install "$build" --prefix "$folder" >"$folder/log"
cd "$folder/include/fragsim"
# A *_list.h is skipped: the header that includes it defines the macro of its
# lines.
find . -name '*.h' -printf '%P\n' | sort >"$folder/all"
grep -v '_list\.h$' "$folder/all" >"$folder/headers"

# The C++ compiler may be installed without its library, which no header
# includes.
languages=("cc -std=c17")
for compiler in "clang -x c++" "c++ -x c++"; do
    command -v "${compiler%% *}" >/dev/null || continue
    languages+=("$compiler -std=c++17")
    break
done
[ ${#languages[@]} -eq 2 ] || {
    echo "check_headers: no compiler for C++"
    exit 77
}

# compiles WHAT: compiles the includes on standard input, in both languages.
compiles() {
    local language
    cat >"$folder/includes.c"
    for language in "${languages[@]}"; do
        $language -I. -Wall -Wextra -Werror -fsyntax-only "$folder/includes.c" \
            >"$folder/words" 2>&1 ||
            fail "$1 does not compile as $language:" \
                "$(grep -m 5 -E 'error|warning' "$folder/words")"
    done
}

while read -r header; do
    compiles "$header" <<<"#include \"$header\""
done <"$folder/headers"
sed 's/.*/#include "&"/' "$folder/headers" >"$folder/together"
compiles "all headers together" <"$folder/together"

while IFS=: read -r header line; do
    included=${line#*\"} included=${included%%\"*}
    [ -f "$included" ] || fail "$header includes $included, not installed"
done < <(xargs grep -H '#include "' <"$folder/all")

while read -r guard; do
    fail "two headers have the guard $guard:" \
        "$(xargs grep -l "#ifndef $guard\$" <"$folder/all" | xargs)"
done < <(xargs sed -n 's/^#ifndef \(FRAG_[A-Z0-9_]*_H\)$/\1/p' <"$folder/all" |
    sort | uniq -d)

# Checks the names of types, and the macros that are still defined at the end.
while read -r word; do
    fail "the name of the type $word does not begin with frag_"
done < <(cc -std=c17 -I. -E -x c "$folder/together" 2>"$folder/words" |
    awk '/^# /{ours = $3 !~ /^"\/usr|<built-in>|<command-line>/; next} ours' |
    tr '\n' ' ' | sed 's/; */;\n/g' |
    grep -oE '\b(struct|union|enum) [A-Za-z_]\w*|^typedef .*' |
    sed 's/^typedef .*[ *]\(\w*\)[;(].*/typedef \1/' |
    awk '$2 !~ /^frag_/' | sort -u)
while read -r word; do
    fail "the name of the macro $word does not begin with FRAG_"
done < <(comm -13 \
    <(printf '#include <%s>\n' stdio.h stdint.h stddef.h stdbool.h |
        cc -std=c17 -dM -E -x c - | awk '{print $2}' | sort) \
    <(cc -std=c17 -I. -dM -E -x c "$folder/together" 2>"$folder/words" |
        awk '{print $2}' | sort) | grep -v '^FRAG_')

[ $failures -eq 0 ] || exit 1
echo "$(wc -l <"$folder/headers") headers, alone and together, as C and as C++"
