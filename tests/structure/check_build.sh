#!/usr/bin/env bash
# check_build.sh: checks that a source archive without git builds with CMake's
# default generator and with Ninja, in parallel, from an empty folder. A build
# from a checkout contains its commit, and another commit compiles only
# version.c again. A changed source is told by the version, and changed data of the
# paper are not. The tool names no file of the folder that it was built in.
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
for tool in git make ninja; do
    command -v $tool >/dev/null || exit 77
done
git -C "$root" rev-parse --git-dir >/dev/null 2>&1 || exit 77

mkdir "$folder/tree"
git -C "$root" ls-files -z --cached --others --exclude-standard |
    (cd "$root" && xargs -0 ls -d 2>/dev/null) |
    tar -C "$root" -c -T - | tar -C "$folder/tree" -x
cd "$folder"

fail() {
    printf 'check_build: %s\n' "$@"
    exit 1
}

# step LOG COMMAND...
step() {
    local log=$1
    shift
    "$@" >"$log" 2>&1 || {
        grep -E 'rror|FAILED|\*\*\*' "$log" | head -n 20
        fail "failed: $*"
    }
}

configure() { # FOLDER GENERATOR
    step configure cmake -S tree -B "$1" -G "$2" -DCMAKE_BUILD_TYPE=None \
        -DCMAKE_C_FLAGS="-O0 -g0"
}

# same WHAT FOUND WANTED
same() {
    [ "$2" = "$3" ] || fail "$1" "  found:  $2" "  wanted: $3"
}

compiled() { # LOG
    sed -n 's|.*Building C object .*/\(.*\)\.o$|\1|p' "$1"
}

commit() {
    git -C tree -c user.name=nobody -c user.email=nobody@example.org \
        commit -q --allow-empty -m "$1"
}

# A folder inside another repository is not a checkout of fragsim either.
git init -q .
configure make "Unix Makefiles"
configure ninja Ninja
step build-ninja cmake --build ninja -j 4 --target frag_version
step build-make cmake --build make -j 4 --target fragsim
same "version of an archive" "$(make/fragsim --version | head -n 1)" \
    "fragsim $(sed -n 's/^project(fragsim VERSION \([^ ]*\).*/\1/p' \
        tree/CMakeLists.txt) (unknown)"

# The assertions of the tool name relative files.
grep -qa 'traces/[a-z_/]*\.c' make/fragsim || fail "the tool has no assertion"
grep -qa "$folder/[a-z_/]*\.[ch]" make/fragsim && fail "the tool names $folder"

git init -q tree
git -C tree add -A
commit first
for generator in make ninja; do
    step build-$generator cmake --build $generator -j 4 --target frag_version
    commit "another for $generator"
    step build-$generator cmake --build $generator --target frag_version
    same "compiled by $generator after another commit" \
        "$(compiled build-$generator)" version.c
    step build-$generator cmake --build $generator --target frag_version
    same "compiled by $generator after none" \
        "$(compiled build-$generator)" ""
done
commit "the last"
step build-make cmake --build make -j 4 --target fragsim
same "compiled into the tool after another commit" \
    "$(compiled build-make)" version.c
same "version of a checkout" \
    "$(make/fragsim --version | sed -n '1s/.*(\(.*\))/\1/p')" \
    "$(git -C tree rev-parse --short=12 HEAD)"

# The version tells changed sources, and not what the tool itself makes for the paper.
version_after() { # FILE WANTED
    echo "# changed" >>"tree/$1"
    step build-make cmake --build make --target frag_commit
    same "commit after a change of $1" \
        "$(sed 's/.*"\(.*\)"/\1/' make/generated/commit.h)" "$2"
    git -C tree checkout -q -- "$1"
}
head=$(git -C tree rev-parse --short=12 HEAD)
version_after paper/data/policies.csv "$head"
version_after paper/pages/policies.md "$head"
version_after paper/tables/policy_table.py "$head-dirty"
version_after traces/base.h "$head-dirty"
version_after CMakeLists.txt "$head-dirty"
echo "built by two generators, with git and without"
