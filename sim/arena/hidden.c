/* hidden.c - applies the steps of hidden.h to the simulated driver. A step that
 * does not fit the run is done as the driver would do it: memory whose range is
 * in use goes elsewhere, and what is not there is not freed. */
#include "sim/arena/hidden.h"

#include <stdlib.h>

#include "sim/arena/arena_parts.h"

/* Frees the memory that the latest step before `step` took at this address. */
static void return_taken(struct arena *a, uint64_t step, int64_t at)
{
    while (step-- > 0) {
        if (!a->hidden[step] || a->opts.hidden->steps[step].at != at)
            continue;
        driver_free(a, a->hidden[step]);
        a->hidden[step] = NULL;
        return;
    }
}

enum frag_err hidden_apply(struct arena *a, uint64_t step)
{
    const struct frag_hidden_step *s = &a->opts.hidden->steps[step];
    const frag_addr at = driver_base() + (frag_addr)s->at;

    switch (s->action) {
    case FRAG_HIDDEN_TAKE:
        a->hidden[step] = driver_take_near(a, at, s->size);
        return a->hidden[step] ? FRAG_OK : FRAG_NOMEM;
    case FRAG_HIDDEN_RETURN:
        return_taken(a, step, s->at);
        break;
    case FRAG_HIDDEN_GROW:
        driver_grow_local(a);
        break;
    case FRAG_HIDDEN_OPEN:
        return driver_open_range(a, at, s->size) ? FRAG_OK : FRAG_NOMEM;
    }
    return FRAG_OK;
}

void hidden_close(struct arena *a)
{
    for (uint64_t i = 0; a->hidden && i < a->opts.hidden->count; i++)
        free(a->hidden[i]);
    free(a->hidden);
}
