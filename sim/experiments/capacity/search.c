/* search.c - divides the capacities into slices, walks them on threads, and
 * joins the spans. */
#include "sim/experiments/capacity/search.h"

#include <pthread.h>
#include <stdlib.h>

#include "traces/grow.h"

#define SLICE (16 * FRAG_CAPACITY_STEP)

struct slice {
    struct frag_capacity_spans spans;
    frag_size reach; /* end of the spans of a finished slice; 0: not finished,
                        or without spans */
};

struct search {
    const struct frag_capacity_spec *spec;
    frag_size from, to;
    bool first;
    size_t count;
    struct slice *slices;

    pthread_mutex_t lock; /* protects every reach, and best */
    size_t best;          /* the lowest slice with a span that survives */
};

/* The end of the spans of the nearest finished slice below slice i; 0 if there
 * is none. A slice above i may be finished first, but its spans tell nothing
 * about slice i. */
static frag_size reach_below(const struct search *s, size_t i)
{
    while (i > 0 && !s->slices[i - 1].reach)
        i--;
    return i > 0 ? s->slices[i - 1].reach : 0;
}

/* The first capacity of slice i that is not known yet; `end` if all of it is
 * known, or if the search for the first survivor does not need it. */
static frag_size start_of(struct search *s, size_t i, frag_size end)
{
    frag_size from = s->from + i * SLICE, reach;

    pthread_mutex_lock(&s->lock);
    reach = reach_below(s, i);
    from = reach > from ? reach : from;
    from = from > end || (s->first && i > s->best) ? end : from;
    pthread_mutex_unlock(&s->lock);
    return from;
}

static void note(struct search *s, size_t i)
{
    const struct frag_capacity_spans *mine = &s->slices[i].spans;
    const struct frag_capacity_span *last = &mine->items[mine->count - 1];

    pthread_mutex_lock(&s->lock);
    s->slices[i].reach = last->to;
    if (frag_capacity_survives(last) && i < s->best)
        s->best = i;
    pthread_mutex_unlock(&s->lock);
}

static enum frag_err walk_slice(void *user, size_t i, struct frag_error *e)
{
    struct search *s = user;
    frag_size end = s->from + (i + 1) * SLICE;
    frag_size from;

    end = end < s->to ? end : s->to;
    from = start_of(s, i, end);
    FRAG_TRY(frag_capacity_walk(s->spec, from, end, s->first,
                                &s->slices[i].spans, e));
    if (s->slices[i].spans.count)
        note(s, i);
    return FRAG_OK;
}

static bool append(struct frag_capacity_spans *to,
                   const struct frag_capacity_span *span)
{
    if (!GROW(to->items, to->room, to->count + 1))
        return false;
    to->items[to->count++] = *span;
    return true;
}

/* Joins the spans of all slices, ascending. A span that several slices found is
 * added once. */
static enum frag_err join(const struct search *s,
                          struct frag_capacity_spans *spans)
{
    frag_size reach = 0;

    for (size_t i = 0; i < s->count; i++)
        for (size_t k = 0; k < s->slices[i].spans.count; k++) {
            const struct frag_capacity_span *span =
                &s->slices[i].spans.items[k];

            if (span->from < reach)
                continue;
            if (!append(spans, span))
                return FRAG_NOMEM;
            if (s->first && frag_capacity_survives(span))
                return FRAG_OK;
            reach = span->to;
        }
    return FRAG_OK;
}

enum frag_err capacity_search(const struct frag_capacity_spec *spec,
                              frag_size from, frag_size to, bool first,
                              const struct parallel *on,
                              struct frag_capacity_spans *spans,
                              struct frag_error *e)
{
    struct search s = {.spec = spec, .from = from, .to = to, .first = first};
    enum frag_err err;

    if (from >= to)
        return FRAG_OK;
    s.count = s.best = (size_t)((to - from - 1) / SLICE + 1);
    s.slices = calloc(s.count, sizeof(*s.slices));
    if (!s.slices)
        return frag_no_memory(e, "the capacities");
    pthread_mutex_init(&s.lock, NULL);
    err = parallel_run(on, s.count, walk_slice, &s, e);
    FRAG_THEN(err, join(&s, spans));
    pthread_mutex_destroy(&s.lock);
    for (size_t i = 0; i < s.count; i++)
        free(s.slices[i].spans.items);
    free(s.slices);
    return err;
}
