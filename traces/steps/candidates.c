/* candidates.c - the list of candidates for the boundaries of steps. */
#include <math.h>
#include <stdlib.h>

#include "traces/grow.h"
#include "traces/steps/step_parts.h"

struct bounds *candidates_add(struct search *s)
{
    struct candidates *c = &s->found;

    if (!GROW(c->items, c->room, c->count + 1))
        return NULL;
    c->items[c->count] = (struct bounds){.likeness = NAN};
    return &c->items[c->count++];
}

bool bounds_push(struct bounds *b, uint64_t event)
{
    if (!GROW(b->at, b->room, b->count + 1))
        return false;
    b->at[b->count++] = event;
    return true;
}

void candidates_close(struct candidates *c)
{
    for (uint64_t i = 0; i < c->count; i++)
        free(c->items[i].at);
    free(c->items);
}
