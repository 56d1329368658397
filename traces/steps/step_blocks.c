/* step_blocks.c - fills the table of lifetimes in one pass over the events. */
#include "traces/steps/step_blocks.h"

#include <stdlib.h>

static void fill(const struct frag_device_trace *d, uint32_t *holder,
                 struct blocks *b)
{
    frag_size live = 0;

    for (uint64_t i = 0; i < b->events; i++) {
        b->live[i] = live;
        b->of[i] = UINT32_MAX;
        if (d->op[i] == FRAG_EMPTY_CACHE)
            continue;
        if (d->op[i] == FRAG_ALLOC) {
            holder[d->id[i]] = (uint32_t)b->count;
            b->lives[b->count++] = (struct block_life){i, FRAG_NEVER};
            live += d->bytes[i];
        }
        b->of[i] = holder[d->id[i]];
        if (d->op[i] == FRAG_FREE) {
            b->lives[b->of[i]].free = i;
            live -= d->bytes[b->lives[b->of[i]].alloc];
        }
    }
    b->live[b->events] = live;
}

static uint64_t count_allocs(const struct frag_device_trace *d, uint64_t events)
{
    uint64_t n = 0;

    for (uint64_t i = 0; i < events; i++)
        n += d->op[i] == FRAG_ALLOC;
    return n;
}

enum frag_err blocks_open(const struct frag_device_trace *d, uint64_t events,
                          struct blocks *out, struct frag_error *e)
{
    const uint64_t allocs = count_allocs(d, events);
    uint32_t *holder = calloc((size_t)d->slots + 1, sizeof(*holder));
    struct blocks b = {
        .events = events,
        .of = calloc((size_t)events + 1, sizeof(*b.of)),
        .lives = calloc((size_t)allocs + 1, sizeof(*b.lives)),
        .live = calloc((size_t)events + 1, sizeof(*b.live)),
    };

    if (!holder || !b.of || !b.lives || !b.live || allocs >= UINT32_MAX) {
        blocks_close(&b);
        free(holder);
        return frag_no_memory(e, "the lifetimes of the blocks");
    }
    fill(d, holder, &b);
    free(holder);
    *out = b;
    return FRAG_OK;
}

void blocks_close(struct blocks *b)
{
    free(b->of);
    free(b->lives);
    free(b->live);
    *b = (struct blocks){0};
}
