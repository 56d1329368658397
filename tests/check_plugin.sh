#!/usr/bin/env bash
# check_plugin.sh: checks that the policy in tests/plugin, built with the files
# of `cmake --install`, is replayed by the installed tool, and that a file which
# is not a policy is refused with its reason.
# Environment: FRAG_BUILD_DIR (default build), FRAG_INSTALL_CFLAGS.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
build=${FRAG_BUILD_DIR:-$root/build}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

cmake --install "$build" --prefix "$folder/prefix" >"$folder/log"
cp -r "$root/tests/plugin" "$folder/plugin"
cp "$root/tests/cli/small.csv" "$folder"
cd "$folder"
fragsim=$folder/prefix/bin/fragsim
flags=${FRAG_INSTALL_CFLAGS:-}

[ "$(wc -l <plugin/bump.c)" -lt 60 ] || {
    echo "the example has grown to 60 lines"
    exit 1
}
{
    cmake -G Ninja -S plugin -B plugin/build -DCMAKE_PREFIX_PATH="$folder/prefix" \
        -DCMAKE_C_FLAGS="$flags -Wall -Wextra -Werror" &&
        cmake --build plugin/build
} >>log 2>&1 || {
    cat log
    exit 1
}
cp plugin/build/libbump.so bump.so

# same WHAT FOUND WANTED
same() {
    [ "$2" = "$3" ] || {
        printf '%s\n  found:  %s\n  wanted: %s\n' "$1" "$2" "$3"
        exit 1
    }
}

# columns NAMES: prints these columns of the CSV on stdin.
columns() {
    awk -F, -v names="$1" 'NR == 1 {
            for (i = 1; i <= NF; i++) at[$i] = i
            n = split(names, name)
        }
        {
            line = $at[name[1]]
            for (i = 2; i <= n; i++) line = line "," $at[name[i]]
            print line
        }'
}

# The first four blocks need 29,001,216 bytes in whole quanta, and no memory is
# reused while a block lives. So 40 MiB have no room for the last block, event
# 6.
same "rows of the policy" \
    "$("$fragsim" replay small.csv -q --check -p ./bump.so \
        -p bump.so:region=40MiB -p "$folder/bump.so:region=40MiB" --csv - |
        columns params,peak_reserved_bytes,num_ooms,first_oom_event)" \
    "params,peak_reserved_bytes,num_ooms,first_oom_event
region=64MiB,67108864,0,
region=40MiB,41943040,1,6
region=40MiB,41943040,1,6"
same "its parameters" \
    "$("$fragsim" policies ./bump.so | sed -n '1p;3p')" \
    "bump         one region, emptied as a whole
    region=64MiB"

# refused POLICY WORDS...: fragsim exits for wrong use, and prints only WORDS.
refused() {
    local policy=$1 said code=0
    shift
    said=$("$fragsim" replay small.csv -p "$policy" 2>&1) || code=$?
    same "exit code of -p $policy" "$code" 2
    same "words of -p $policy" "$said" "fragsim replay: $*"
}

refused ./bump.so:region=1B \
    "bump: region=1B is out of range; expected 512 to 1TiB"
refused ./bump.so:regoin=1GiB \
    "bump: unknown parameter regoin; expected one of region"
refused ./none.so "the policy cannot be loaded: ./none.so: cannot open" \
    "shared object file: No such file or directory"
refused none.so "the policy cannot be loaded: ./none.so: cannot open" \
    "shared object file: No such file or directory"
refused ./small.csv "the policy cannot be loaded: ./small.csv: invalid ELF header"

echo 'int nothing;' >empty.c
# shellcheck disable=SC2086
cc $flags -shared -fPIC empty.c -o empty.so
refused ./empty.so "./empty.so is not a policy: expected the symbol" \
    "frag_policy_plugin, found none"

sed 's/\(FRAG_POLICY_ABI = \)[0-9]*,/\1999,/' \
    prefix/include/fragsim/policies/policy.h >policy.h
{
    cat policy.h
    sed '/#include/d' plugin/bump.c
} >other.c
# shellcheck disable=SC2086
cc $flags -shared -fPIC -Iprefix/include/fragsim other.c -o other.so
refused ./other.so "./other.so was built for version 999 of the policy" \
    "interface, but this fragsim has version 2: build the plugin again"

echo '#include <policies/policy.h>
static const struct frag_policy half = {.name = "half"};
FRAG_POLICY_PLUGIN(half);' >half.c
# shellcheck disable=SC2086
cc $flags -shared -fPIC -Iprefix/include/fragsim half.c -o half.so
refused ./half.so "./half.so: expected a policy with a name, summary, source," \
    "alloc and free; at least one of them is missing"

# Only the part before the colon is the name of a file.
code=0
said=$("$fragsim" replay small.csv -p torch:a/b.so 2>&1) || code=$?
same "exit code of torch:a/b.so" "$code" 2
case $said in
*dlopen* | *"shared object"*) same "torch:a/b.so" "$said" "PyTorch's words" ;;
esac
echo "built by the installed package, replayed, and impostors refused"
