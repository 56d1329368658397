/* places.c - addresses of device memory without contents (places.h). */
#define _GNU_SOURCE
#include "real/dry/driver/places.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "real/device/gpus.h"
#include "sim/arena/arena.h"

#define GIB ((uint64_t)1 << 30)
/* The arena places segments downwards from the end of the upper space, and
 * reservations upwards from the beginning of the lower one. */
#define UPPER (16 * 1024 * GIB)
#define LOWER (60 * 1024 * GIB)

static struct frag_backend *arenas[FRAG_GPUS_MOST];
/* How far apart two devices are, in each space. */
static uint64_t apart[2];

static void fail(const char *words, uint64_t at)
{
    fprintf(stderr, "fragsim dry: %s (address 0x%llx)\n", words,
            (unsigned long long)at);
    abort();
}

static struct frag_backend *arena_of_device(int device, int count,
                                            uint64_t total)
{
    if (arenas[device])
        return arenas[device];
    apart[false] = LOWER / (uint64_t)count / GIB * GIB;
    apart[true] = UPPER / (uint64_t)count / GIB * GIB;
    arenas[device] = frag_arena_open(&(const struct frag_arena_options){
        .capacity = FRAG_UNLIMITED, .total = total});
    if (!arenas[device])
        fail("the host has no memory", 0);
    return arenas[device];
}

/* The address of a device for one of the arena, or back. */
static uint64_t shift(int device, uint64_t at, bool is_segment, bool back)
{
    const uint64_t by = (uint64_t)device * apart[is_segment];

    return is_segment != back ? at - by : at + by;
}

uint64_t place_take(int device, int count, uint64_t total, size_t size,
                    bool is_segment)
{
    struct frag_backend *arena = arena_of_device(device, count, total);
    frag_addr at = 0;
    const enum frag_err err = is_segment
                                  ? arena->ops->segment_alloc(arena, size, &at)
                                  : arena->ops->va_reserve(arena, size, &at);
    void *got;

    if (err != FRAG_OK)
        fail("the address space is full", at);
    at = shift(device, at, is_segment, false);
    got =
        mmap((void *)(uintptr_t)at, size, PROT_NONE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE,
             -1, 0);
    if (got != (void *)(uintptr_t)at)
        fail("the program uses the addresses of device memory", at);
    return at;
}

void place_return(int device, uint64_t at, size_t size, bool is_segment)
{
    struct frag_backend *arena = arenas[device];
    const frag_addr there = shift(device, at, is_segment, true);

    munmap((void *)(uintptr_t)at, size);
    if ((is_segment ? arena->ops->segment_free
                    : arena->ops->va_free)(arena, there, size) != FRAG_OK)
        fail("memory was freed that the arena does not have", at);
}

void place_stream(int device, int count, uint64_t total)
{
    struct frag_backend *arena = arena_of_device(device, count, total);

    frag_backend_stream_used(arena, 1);
}
