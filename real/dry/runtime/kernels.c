/* kernels.c - reads what code a library has for its kernels (kernels.h).
 *
 * Machine code runs on GPUs of the same major capability and the same or a
 * higher minor one; code for one GPU only (sm_90a) runs there alone; PTX is
 * compiled for every GPU that is not older.
 * Source: CUDA C++ Programming Guide 13.0, section Compute Capabilities. The
 * layout of the code in a library was read from PyTorch's libraries.
 */
#include "real/dry/runtime/kernels.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "real/device/gpus.h"

enum {
    MAGIC = (int)0xBA55ED50,
    PTX = 1,
    ONLY_THERE = 0x100000,
    ROOM = 1 << 12
};

struct image {
    int magic, version;
    const char *code;
};

struct header { /* of all code */
    uint32_t magic;
    uint16_t version, bytes;
    uint64_t rest;
};

struct kernel_part { /* the code for one capability */
    uint16_t kind, version;
    uint32_t bytes;
    uint64_t rest;
    uint32_t unused[3], capability;
    uint64_t more, flags;
};

struct kernels {
    struct kernel_code code;
};

/* All functions: a hash table of open addresses. */
static struct row {
    const void *function;
    struct kernel_code code;
} * rows;
static size_t room, count;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* ---- the code of a library ---- */

static void consider(const struct kernel_part *p, const struct frag_gpu *gpu,
                     struct kernel_code *best)
{
    const int own = 10 * gpu->major + gpu->minor, of = (int)p->capability;
    const bool runs =
        p->flags & ONLY_THERE
            ? of == own
            : of <= own && (p->kind == PTX || of / 10 == own / 10);
    const bool is_binary = p->kind != PTX;

    if (!runs || (best->binary && best->binary == best->ptx && !is_binary))
        return;
    if (is_binary && (best->binary != best->ptx || of >= best->binary))
        *best = (struct kernel_code){of, of};
    else if (!is_binary && of >= best->ptx)
        *best = (struct kernel_code){own, of};
}

struct kernels *kernels_add(const void *image, const struct frag_gpu *gpu)
{
    const char *code = ((const struct image *)image)->code;
    struct kernels *out = calloc(1, sizeof(*out));
    struct header all;
    struct kernel_part part;

    if (!out)
        return NULL;
    memcpy(&all, code, sizeof(all));
    if (all.magic != (uint32_t)MAGIC) {
        out->code = (struct kernel_code){10 * gpu->major + gpu->minor,
                                         10 * gpu->major + gpu->minor};
        return out;
    }
    for (uint64_t at = all.bytes; at + sizeof(part) <= all.bytes + all.rest;
         at += part.bytes + part.rest) {
        memcpy(&part, code + at, sizeof(part));
        consider(&part, gpu, &out->code);
    }
    return out;
}

/* ---- the functions ---- */

static struct row *slot(struct row *in, size_t size, const void *function)
{
    size_t at = (size_t)((uintptr_t)function * 0x9E3779B97F4A7C15u >> 20);

    while (in[at % size].function && in[at % size].function != function)
        at++;
    return &in[at % size];
}

static void grow(void)
{
    const size_t size = room ? 2 * room : ROOM;
    struct row *made = calloc(size, sizeof(*made));

    if (!made)
        abort();
    for (size_t i = 0; i < room; i++)
        if (rows[i].function)
            *slot(made, size, rows[i].function) = rows[i];
    free(rows);
    rows = made;
    room = size;
}

void kernels_name(const struct kernels *k, const void *function)
{
    struct row *row;

    pthread_mutex_lock(&lock);
    if (2 * count >= room)
        grow();
    row = slot(rows, room, function);
    count += !row->function;
    *row = (struct row){function, k->code};
    pthread_mutex_unlock(&lock);
}

struct kernel_code kernels_find(const void *function,
                                const struct frag_gpu *gpu)
{
    const int own = 10 * gpu->major + gpu->minor;
    struct kernel_code found = {own, own};
    const struct row *row;

    pthread_mutex_lock(&lock);
    row = room ? slot(rows, room, function) : NULL;
    if (row && row->function)
        found = row->code;
    pthread_mutex_unlock(&lock);
    return found;
}
