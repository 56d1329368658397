#!/usr/bin/env bash
# check_install.sh: what `cmake --install` puts down is enough to build and run
# a program with a policy of its own, through pkg-config and through CMake's
# find_package, from a folder that was moved after the installation.
# Environment: FRAG_BUILD_DIR (default build), FRAG_INSTALL_CFLAGS.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
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
# shellcheck disable=SC2046,SC2086
cc $flags mine.c -o mine $(pkg-config --static --cflags --libs fragsim)
[ "$(./mine)" = 1024 ]

# One policy is linked without the others: nothing refers to the registry.
alone() {
    if nm "$1" | grep -E ' frag_policies$'; then
        echo "$1 contains the registry and with it every policy"
        exit 1
    fi
}
alone mine

mkdir package
cat >package/CMakeLists.txt <<'END'
cmake_minimum_required(VERSION 3.25)
project(mine C)
find_package(fragsim 0.1 REQUIRED)
add_executable(mine ../mine.c)
target_link_libraries(mine PRIVATE fragsim::fragsim)
END
{
    cmake -G Ninja -S package -B package/build -DCMAKE_C_FLAGS="$flags" \
        -DCMAKE_PREFIX_PATH="$folder/prefix" &&
        cmake --build package/build
} >>log 2>&1 || {
    cat log
    exit 1
}
[ "$(package/build/mine)" = 1024 ]
alone package/build/mine

# The tool finds its pictures beside itself and has a manual.
"$folder/prefix/bin/fragsim" --version >/dev/null
page=$folder/prefix/share/man/man1/fragsim.1
[ -s "$page" ]
if command -v man >/dev/null; then
    LC_ALL=C man --warnings -l "$page" 2>&1 >/dev/null | tee warnings
    [ ! -s warnings ]
fi
ls "$folder"/prefix/share/fragsim/plots/*.gp >/dev/null
# The recorder, too: a program without CUDA is all that it has to complain of.
"$folder/prefix/bin/fragsim" record -o none.h5 -- true 2>words && exit 1
grep -q 'made no CUDA memory calls' words
[ -x "$folder/prefix/share/fragsim/pytorch_record.py" ]
echo "installed, moved, and used by pkg-config and by CMake"
