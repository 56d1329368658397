/* state.c - the segments and blocks of the allocator at one moment. */
#include <stdlib.h>

#include "sim/answers/explain/explain_parts.h"
#include "traces/grow.h"

void state_close(struct state *s)
{
    free(s->blocks);
    *s = (struct state){0};
}

static void add(struct state *s, const struct explain_block *b)
{
    if (GROW(s->blocks, s->room, s->count + 1))
        s->blocks[s->count++] = *b;
    else
        s->nomem = true;
}

static void take(void *user, const struct frag_torch_block *b)
{
    add(user, &(const struct explain_block){
                  .segment = b->segment,
                  .addr = b->addr,
                  .size = b->size,
                  .requested = b->requested,
                  .stream = b->stream,
                  .pool = b->pool,
                  .is_small = b->is_small,
                  .is_expandable = b->is_expandable,
                  .live = b->allocated,
                  .pending = b->pending,
                  .event = UINT64_MAX,
              });
}

void state_take(struct state *s, const struct frag_heap *heap)
{
    frag_torch_snapshot(heap, take, s);
}

enum frag_err state_from_layout(struct state *s, const struct frag_layout *l,
                                struct frag_error *e)
{
    for (uint64_t i = 0; i < l->segment_count; i++) {
        const struct frag_recorded_segment *g = &l->segments[i];

        for (uint64_t k = 0; k < g->block_count; k++) {
            const struct frag_recorded_block *b =
                &l->blocks[g->first_block + k];

            add(s, &(const struct explain_block){
                       .segment = g->addr,
                       .addr = b->addr,
                       .size = b->size,
                       .requested = b->requested,
                       .stream = (frag_stream)g->stream,
                       .pool = (frag_pool)g->pool,
                       .is_small = g->is_small,
                       .is_expandable = g->is_expandable,
                       .live = b->state == FRAG_ACTIVE_ALLOCATED,
                       .pending = b->state == FRAG_ACTIVE_PENDING_FREE,
                       .event = UINT64_MAX,
                   });
        }
    }
    return s->nomem ? frag_no_memory(e, "the blocks of the snapshot") : FRAG_OK;
}

static int blocks_by_address(const void *left, const void *right)
{
    const struct explain_block *a = left, *b = right;

    return a->addr < b->addr ? -1 : a->addr > b->addr;
}

static int placed_by_address(const void *left, const void *right)
{
    const struct placed *a = left, *b = right;

    return a->addr < b->addr ? -1 : a->addr > b->addr;
}

void state_name(struct state *s, struct placed *placed, uint32_t slots)
{
    if (s->count)
        qsort(s->blocks, s->count, sizeof(*s->blocks), blocks_by_address);
    if (!placed || !slots)
        return;
    qsort(placed, slots, sizeof(*placed), placed_by_address);
    for (uint64_t i = 0; i < s->count; i++) {
        const struct placed key = {.addr = s->blocks[i].addr};
        const struct placed *found;

        if (!s->blocks[i].live && !s->blocks[i].pending)
            continue;
        found =
            bsearch(&key, placed, slots, sizeof(*placed), placed_by_address);
        if (found)
            s->blocks[i].event = found->event;
    }
}

uint64_t state_segment_end(const struct state *s, uint64_t i)
{
    const frag_addr segment = s->blocks[i].segment;

    while (i < s->count && s->blocks[i].segment == segment)
        i++;
    return i;
}
