/* anchors.c - lists the recorded base addresses of segments. */
#include "sim/validate/anchors.h"

#include <stdlib.h>

enum frag_err frag_anchors_make(const struct frag_recorded *r,
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

void frag_anchors_free(struct frag_arena_options *arena)
{
    free((void *)(uintptr_t)arena->bases);
    free((void *)(uintptr_t)arena->sizes);
}
