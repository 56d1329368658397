/* split.c - cuts a trace into two parts; the second part begins with the blocks
 * that are live at the cut. */
#include "sim/experiments/tune/split.h"

#include <stdlib.h>

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
    h->rest.op = c.op;
    h->rest.id = c.id;
    h->rest.bytes = c.bytes;
    h->rest.stream = c.stream;
    h->rest.pool = c.pool;
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
