#!/usr/bin/env bash
# check_install.sh: checks that the files of `cmake --install` are enough to
# build and run a program with its own policy: through pkg-config and through
# CMake's find_package, with the archive and with the shared library, from a
# folder that was moved after the installation. A program that uses the archive
# contains only the parts of fragsim that it uses.
# Environment: FRAG_BUILD_DIR (default build), FRAG_INSTALL_CFLAGS.
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
build=${FRAG_BUILD_DIR:-$root/build}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

cmake --install "$build" --prefix "$folder/first" >"$folder/log"
mv "$folder/first" "$folder/prefix"
cd "$folder"
export PKG_CONFIG_PATH
PKG_CONFIG_PATH=$(dirname "$(find "$folder/prefix" -name fragsim.pc)")

cat >mine.c <<'END'
#include <stdio.h>

#include "policies/policy.h"
#include "sim/arena/arena.h"

static enum frag_err take(struct frag_heap *heap,
                          const struct frag_request *req,
                          struct frag_block *out)
{
    out->size = (req->size + 511) / 512 * 512;
    return heap->mem->ops->segment_alloc(heap->mem, out->size, &out->addr);
}

static void give(struct frag_heap *heap, const struct frag_block *block)
{
    (void)heap->mem->ops->segment_free(heap->mem, block->addr, block->size);
}

static const struct frag_policy mine = {
    .name = "mine",
    .summary = "a policy outside the tree",
    .source = "this test",
    .quantum = FRAG_QUANTUM,
    .alloc = take,
    .free = give,
};

int main(void)
{
    const struct frag_arena_options opts = {.capacity = FRAG_GIB};
    struct frag_backend *arena = frag_arena_open(&opts);
    const struct frag_request req = {.size = 1000, .frees_at = FRAG_NEVER};
    struct frag_block block = {0};
    struct frag_heap heap;
    struct frag_error e;

    if (!arena || frag_heap_open(&heap, &mine, arena, NULL, &e) ||
        mine.alloc(&heap, &req, &block))
        return 1;
    mine.free(&heap, &block);
    printf("%u\n", (unsigned)block.size);
    frag_heap_close(&heap);
    frag_arena_close(arena);
    return block.size == 1024 ? 0 : 1;
}
END
flags=${FRAG_INSTALL_CFLAGS:-}
libraries=$(pkg-config --variable=libdir fragsim)
export LD_LIBRARY_PATH=$libraries
# shellcheck disable=SC2046,SC2086
cc $flags mine.c -o mine_shared $(pkg-config --cflags --libs fragsim)
# shellcheck disable=SC2046,SC2086
cc $flags mine.c -o mine_static $(pkg-config --static --cflags --libs fragsim |
    sed 's/-lfragsim/-l:libfragsim.a/')

mkdir package
cat >package/CMakeLists.txt <<'END'
cmake_minimum_required(VERSION 3.25)
project(mine C)
find_package(fragsim 0.1 REQUIRED)
add_executable(cmake_static ../mine.c)
target_link_libraries(cmake_static PRIVATE fragsim::fragsim)
add_executable(cmake_shared ../mine.c)
target_link_libraries(cmake_shared PRIVATE fragsim::fragsim_shared)
END
{
    cmake -G Ninja -S package -B package/build -DCMAKE_C_FLAGS="$flags" \
        -DCMAKE_PREFIX_PATH="$folder/prefix" &&
        cmake --build package/build
} >>log 2>&1 || {
    cat log
    exit 1
}
cp package/build/cmake_* .

# runs PROGRAM LIBRARIES: runs PROGRAM, which must be linked to that number of
# fragsim's shared libraries.
runs() {
    [ "$(./"$1")" = 1024 ] || {
        echo "$1 does not run"
        exit 1
    }
    [ "$(readelf -d "$1" | grep -c 'NEEDED.*libfragsim.so.0')" = "$2" ] || {
        echo "$1: expected $2 shared libraries of fragsim, found:"
        readelf -d "$1" | grep NEEDED
        exit 1
    }
}

runs mine_shared 1
runs mine_static 0
runs cmake_shared 1
runs cmake_static 0
unset LD_LIBRARY_PATH
nm mine_static | grep ' [DdRr] frag_policy_' && {
    echo "a program with a policy of its own has these of fragsim's"
    exit 1
}
nm mine_static | grep -q ' frag_heap_open$'

# The installed tool finds the scripts of its figures and has a manual.
"$folder/prefix/bin/fragsim" --version >/dev/null
page=$folder/prefix/share/man/man1/fragsim.1
[ -s "$page" ]
if command -v man >/dev/null; then
    LC_ALL=C man --warnings -l "$page" 2>&1 >/dev/null | tee warnings
    [ ! -s warnings ]
fi
ls "$folder"/prefix/share/fragsim/plots/*.gp >/dev/null
# The installed recorder runs too: its only complaint is that the program makes
# no CUDA calls.
"$folder/prefix/bin/fragsim" record -o none.h5 -- true 2>words && exit 1
grep -q 'made no CUDA memory calls' words
[ -x "$folder/prefix/share/fragsim/pytorch_record.py" ]
# The installed command run puts the stand-in for PyTorch, which has no CUDA, on
# its policy: that is refused. What fragsim_torch.py compiles is beside it.
# A Python without sanitizers loads the library, which may have them.
code=0
sanitizer=$(ldd "$(find "$folder/prefix" -name 'libfragsim_torch.so')" |
    awk '/libasan/ {print $3}')
LD_PRELOAD=$sanitizer ASAN_OPTIONS=detect_leaks=0 \
STANDIN_CUDA='' PYTHONPATH=$root/tests/gpu/python PYTHONDONTWRITEBYTECODE=1 \
    "$folder/prefix/bin/fragsim" run -p remap -- python3 -c 'import torch' \
    2>words || code=$?
[ $code = 5 ] || {
    cat words
    exit 1
}
grep -q 'was built without CUDA' words
for file in allocator.cpp service.h; do
    [ -e "$folder/prefix/share/fragsim/$file" ]
done
echo "installed, moved, and used by pkg-config and by CMake"
