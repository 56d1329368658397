/* split.c - cuts a trace into two parts; the second part begins with the blocks
 * that are live at the cut. */
#include "sim/experiments/tune/split.h"

#include <stdlib.h>

#include "traces/torch_sizes.h"

static uint64_t distance(uint64_t a, uint64_t b)
{
    return a < b ? b - a : a - b;
}

static uint64_t cut_of(const struct frag_device_trace *t)
{
    const uint64_t middle = t->initial + (t->count - t->initial) / 2;
    uint64_t cut = middle;
    bool marked = false;

    for (uint64_t i = 0; i < t->mark_count; i++) {
        const struct frag_mark *m = &t->marks[i];

        if (m->kind != FRAG_MARK_BEGIN || m->event <= t->initial ||
            m->event >= t->count)
            continue;
        if (!marked || distance(m->event, middle) < distance(cut, middle))
            cut = m->event;
        marked = true;
    }
    return cut;
}

struct columns {
    uint64_t *bytes;
    uint32_t *id;
    frag_stream *stream;
    frag_pool *pool;
    uint8_t *op;
};

/* Allocates columns of `rows` rows in one block of host memory, which begins
 * with the column bytes. */
static bool make_columns(struct columns *c, uint64_t rows)
{
    size_t n = (size_t)rows + 1;
    char *at =
        malloc(n * (sizeof(*c->bytes) + sizeof(*c->id) + sizeof(*c->stream) +
                    sizeof(*c->pool) + sizeof(*c->op)));

    if (!at)
        return false;
    c->bytes = (uint64_t *)at;
    c->id = (uint32_t *)(at += n * sizeof(*c->bytes));
    c->stream = (frag_stream *)(at += n * sizeof(*c->id));
    c->pool = (frag_pool *)(at += n * sizeof(*c->stream));
    c->op = (uint8_t *)(at + n * sizeof(*c->pool));
    return true;
}

static void copy_event(const struct columns *c, uint64_t k,
                       const struct frag_device_trace *from, uint64_t i)
{
    c->op[k] = from->op[i];
    c->id[k] = from->id[i];
    c->bytes[k] = from->bytes[i];
    c->stream[k] = from->stream[i];
    c->pool[k] = from->pool[i];
}

static void point_to(struct frag_device_trace *t, const struct columns *c)
{
    t->op = c->op;
    t->id = c->id;
    t->bytes = c->bytes;
    t->stream = c->stream;
    t->pool = c->pool;
}

/* Counts the blocks that are live at the cut, and finds the event that
 * allocated each; FRAG_NEVER for a slot that is not live. */
static uint64_t find_live(const struct frag_device_trace *t, uint64_t cut,
                          uint64_t *born)
{
    uint64_t live = 0;

    for (uint32_t id = 0; id < t->slots; id++)
        born[id] = FRAG_NEVER;
    for (uint64_t i = 0; i < cut; i++) {
        if (t->op[i] != FRAG_ALLOC && t->op[i] != FRAG_FREE)
            continue;
        live += t->op[i] == FRAG_ALLOC ? 1 : (uint64_t)-1;
        born[t->id[i]] = t->op[i] == FRAG_ALLOC ? i : FRAG_NEVER;
    }
    return live;
}

/* Makes the second part: the allocations of the live blocks, in their order,
 * and then the events after the cut. */
static enum frag_err make_rest(const struct frag_device_trace *whole,
                               uint64_t cut, struct tune_halves *h)
{
    uint64_t *born = calloc((size_t)whole->slots + 1, sizeof(*born));
    struct columns c;
    uint64_t live, k = 0;

    if (!born)
        return FRAG_NOMEM;
    live = find_live(whole, cut, born);
    if (!make_columns(&c, live + whole->count - cut)) {
        free(born);
        return FRAG_NOMEM;
    }
    for (uint64_t i = 0; i < cut; i++)
        if (whole->op[i] == FRAG_ALLOC && born[whole->id[i]] == i)
            copy_event(&c, k++, whole, i);
    for (uint64_t i = cut; i < whole->count; i++)
        copy_event(&c, k++, whole, i);
    free(born);
    h->columns = c.bytes;
    h->rest.count = k;
    h->rest.initial = live;
    point_to(&h->rest, &c);
    return FRAG_OK;
}

enum frag_err tune_split(const struct frag_device_trace *whole,
                         struct tune_halves *out, struct frag_error *e)
{
    const uint64_t cut = cut_of(whole);
    struct tune_halves h = {.first = *whole};

    if (whole->count < whole->initial + 2)
        return frag_fail(e, FRAG_UNSUPPORTED,
                         "the trace has too few events to hold some of them "
                         "out");
    h.first.count = cut;
    h.first.time = NULL;
    h.first.stack = NULL;
    h.first.mark_count = 0;
    h.first.recorded = (struct frag_recorded){0};
    h.rest = h.first;
    if (make_rest(whole, cut, &h) != FRAG_OK)
        return frag_no_memory(e, "a part of the trace");
    *out = h;
    return FRAG_OK;
}

void tune_halves_close(struct tune_halves *halves)
{
    free(halves->columns);
    halves->columns = NULL;
}

/* ---- the large pools ---- */

/* Counts the events that concern the large pools and, if c is not NULL, copies
 * them. is_large is by slot; a trace allocates a slot before it names it
 * otherwise. */
static uint64_t count_large(const struct frag_device_trace *t, bool *is_large,
                            const struct columns *c, uint64_t *event)
{
    uint64_t k = 0;

    for (uint64_t i = 0; i < t->count; i++) {
        if (t->op[i] == FRAG_ALLOC)
            is_large[t->id[i]] = t->bytes[i] > TORCH_SMALL_SIZE;
        if (t->op[i] != FRAG_EMPTY_CACHE && !is_large[t->id[i]])
            continue;
        if (c) {
            copy_event(c, k, t, i);
            event[k] = i;
        }
        k++;
    }
    return k;
}

enum frag_err tune_large_split(const struct frag_device_trace *whole,
                               struct tune_large *out, struct frag_error *e)
{
    bool *is_large = calloc((size_t)whole->slots + 1, sizeof(*is_large));
    struct tune_large l = {.trace = *whole};
    struct columns c;

    if (!is_large)
        return frag_no_memory(e, "a part of the trace");
    l.trace.count = count_large(whole, is_large, NULL, NULL);
    l.event = calloc(l.trace.count + 1, sizeof(*l.event));
    if (!l.event || !make_columns(&c, l.trace.count)) {
        free(l.event);
        free(is_large);
        return frag_no_memory(e, "a part of the trace");
    }
    (void)count_large(whole, is_large, &c, l.event);
    free(is_large);
    point_to(&l.trace, &c);
    l.columns = c.bytes;
    l.trace.initial = l.trace.added = 0;
    l.trace.time = NULL;
    l.trace.stack = NULL;
    l.trace.mark_count = 0;
    l.trace.recorded = (struct frag_recorded){0};
    *out = l;
    return FRAG_OK;
}

void tune_large_close(struct tune_large *large)
{
    free(large->columns);
    free(large->event);
    *large = (struct tune_large){0};
}
