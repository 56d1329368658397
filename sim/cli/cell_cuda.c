/* The cuda backend of a cell: a GPU, the arena that it keeps to, and the check
 * of what blocks hold. */
#include "real/device/cuda.h"
#include "real/device/pattern.h"
#include "sim/arena/arena.h"
#include "sim/experiments/cell.h"
#include "sim/twin.h"

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
                                frag_size capacity, struct cell_memory *m,
                                struct frag_error *e)
{
    const struct frag_cuda_options options = {.ordinal = s->gpu};

    FRAG_TRY(frag_cuda_open(&options, &m->device, e));
    FRAG_TRY(cell_arena(s, capacity, s->total ? s->total : m->device->total,
                        &m->arena, e));
    if (frag_twin_open(m->device, m->arena, &m->twin) != FRAG_OK)
        return frag_fail(e, FRAG_NOMEM, "no memory for the device's books");
    m->mem = m->twin;
    if (!s->check)
        return FRAG_OK;
    FRAG_TRY(frag_pattern_open(m->device, &m->pattern, e));
    m->checks = (struct frag_contents){m->pattern, fill, verify};
    m->contents = &m->checks;
    return FRAG_OK;
}

enum frag_err cell_cuda_open(const struct cell_settings *s, frag_size capacity,
                             struct cell_memory *out, struct frag_error *e)
{
    enum frag_err err;

    *out = (struct cell_memory){0};
    err = open_parts(s, capacity, out, e);
    if (err != FRAG_OK)
        cell_cuda_close(out);
    return err;
}

void cell_cuda_close(struct cell_memory *m)
{
    frag_pattern_close(m->pattern);
    frag_twin_close(m->twin);
    frag_arena_close(m->arena);
    frag_cuda_close(m->device);
}
