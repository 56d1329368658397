/* cell_cuda.c - the cuda backend of a cell: the GPU, the arena whose capacity
 * limits it, and the check of block contents (real/device/pattern.h). */
#include <stdlib.h>

#include "real/device/cuda.h"
#include "real/device/pattern.h"
#include "sim/arena/arena.h"
#include "sim/cli/cell_options.h"
#include "sim/twin.h"

/* The target of cell_memory.parts; a member that is not used is NULL. */
struct parts {
    struct frag_backend *device, *arena, *twin;
    struct frag_pattern *pattern;
    struct frag_contents checks;
};

static enum frag_err fill(void *user, frag_addr addr, frag_size size,
                          uint64_t seed)
{
    return frag_pattern_fill(user, addr, size, seed);
}

static enum frag_err verify(void *user, frag_addr addr, frag_size size,
                            uint64_t seed, frag_size *wrong)
{
    return frag_pattern_verify(user, addr, size, seed, wrong);
}

static enum frag_err open_parts(const struct cell_settings *s,
                                struct frag_bound bound, struct parts *p,
                                struct frag_error *e)
{
    const struct frag_cuda_options options = {.ordinal = s->gpu};

    FRAG_TRY(frag_cuda_open(&options, &p->device, e));
    FRAG_TRY(cell_arena(s, bound, s->total ? s->total : p->device->total,
                        &p->arena, e));
    if (frag_twin_open(p->device, p->arena, &p->twin) != FRAG_OK)
        return frag_no_memory(e, "the device's books");
    p->twin->limit = p->arena->limit;
    if (s->check != CELL_CHECK_ALL)
        return FRAG_OK;
    FRAG_TRY(frag_pattern_open(p->device, &p->pattern, e));
    p->checks = (struct frag_contents){p->pattern, fill, verify};
    return FRAG_OK;
}

static void cuda_close(struct cell_memory *m)
{
    struct parts *p = m->parts;

    frag_pattern_close(p->pattern);
    frag_twin_close(p->twin);
    frag_arena_close(p->arena);
    frag_cuda_close(p->device);
    free(p);
}

static enum frag_err cuda_open(const struct cell_settings *s,
                               struct frag_bound bound, struct cell_memory *out,
                               struct frag_error *e)
{
    struct parts *p = calloc(1, sizeof(*p));
    enum frag_err err;

    if (!p)
        return frag_no_memory(e, "the device's books");
    err = open_parts(s, bound, p, e);
    *out = (struct cell_memory){p->twin, p->pattern ? &p->checks : NULL, p};
    if (err != FRAG_OK)
        cuda_close(out);
    return err;
}

static const char *cuda_fault(const struct cell_memory *m)
{
    const struct parts *p = m->parts;

    return frag_cuda_words(p->device);
}

const struct cell_backend cell_cuda_backend = {
    .name = "cuda",
    .open = cuda_open,
    .fault = cuda_fault,
    .close = cuda_close,
};
