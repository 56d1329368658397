/* anchors.c - lists the recorded base addresses of segments and reservations.
 */
#include "sim/validate/anchors.h"

#include <stdlib.h>

#include "sim/replay/reservations.h"

static enum frag_err list_segments(const struct frag_recorded *r,
                                   struct frag_arena_options *arena,
                                   struct frag_error *e)
{
    frag_addr *bases = calloc(r->action_count + 1, sizeof(*bases));
    frag_size *sizes = calloc(r->action_count + 1, sizeof(*sizes));

    arena->bases = bases;
    arena->sizes = sizes;
    arena->base_count = 0;
    if (!bases || !sizes)
        return frag_no_memory(e, "the recorded addresses");
    for (uint64_t i = 0; i < r->action_count; i++) {
        if (r->actions[i].action != FRAG_SEGMENT_ALLOC)
            continue;
        bases[arena->base_count] = r->actions[i].addr;
        sizes[arena->base_count++] = r->actions[i].size;
    }
    return FRAG_OK;
}

/* The reservations that were made during the recording. */
static enum frag_err list_ranges(const struct frag_recorded *r,
                                 struct frag_arena_options *arena,
                                 struct frag_error *e)
{
    struct frag_reservation *rows = NULL;
    const frag_size page = frag_reservation_page(r);
    uint64_t count = 0;
    frag_addr *bases;
    frag_size *sizes;

    arena->range_count = 0;
    FRAG_TRY(frag_reservations(r, arena->total, &rows, &count, e));
    arena->range_bases = bases = calloc(count + 1, sizeof(*bases));
    arena->range_sizes = sizes = calloc(count + 1, sizeof(*sizes));
    for (uint64_t i = 0; bases && sizes && i < count; i++) {
        if (rows[i].held)
            continue;
        bases[arena->range_count] = rows[i].addr;
        sizes[arena->range_count++] =
            frag_reservation_size(r, arena->total, page, rows[i].is_small);
    }
    free(rows);
    return bases && sizes ? FRAG_OK
                          : frag_no_memory(e, "the recorded addresses");
}

enum frag_err frag_anchors_make(const struct frag_recorded *r,
                                struct frag_arena_options *arena,
                                struct frag_error *e)
{
    FRAG_TRY(list_segments(r, arena, e));
    return list_ranges(r, arena, e);
}

void frag_anchors_free(struct frag_arena_options *arena)
{
    free((void *)(uintptr_t)arena->bases);
    free((void *)(uintptr_t)arena->sizes);
    free((void *)(uintptr_t)arena->range_bases);
    free((void *)(uintptr_t)arena->range_sizes);
}
