/* moment.c - replays the events of a trace without an allocator up to a moment.
 */
#include "sim/answers/moment.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "traces/facts.h"

static void step(const struct frag_device_trace *d, uint64_t i,
                 struct moment_block *held)
{
    struct moment_block *b = &held[d->id[i]];

    if (facts_has_failed(d, i))
        return;
    if (d->op[i] == FRAG_ALLOC)
        *b = (struct moment_block){
            .slot = d->id[i],
            .event = i,
            .bytes = d->bytes[i],
            .stream = d->stream[i],
            .pool = d->pool[i],
            .stack = d->stack ? d->stack[i] : 0,
            .time = d->time ? d->time[i] : 0,
        };
    else if (d->op[i] == FRAG_FREE_REQUESTED)
        b->pending = true;
    else if (d->op[i] == FRAG_FREE)
        b->bytes = 0;
}

static int by_event(const void *a, const void *b)
{
    const struct moment_block *x = a, *y = b;

    return x->event < y->event ? -1 : x->event > y->event;
}

enum frag_err moment_open(const struct frag_device_trace *d, uint64_t event,
                          struct moment *out, struct frag_error *e)
{
    struct moment m = {.event = event};

    if (event >= d->count)
        return frag_fail(e, FRAG_INVALID,
                         "expected an event below %" PRIu64 ", found %" PRIu64,
                         d->count, event);
    m.blocks = calloc((size_t)d->slots + 1, sizeof(*m.blocks));
    if (!m.blocks)
        return frag_no_memory(e, "the live blocks");
    for (uint64_t i = 0; i <= event; i++)
        step(d, i, m.blocks);
    for (uint32_t slot = 0; slot < d->slots; slot++) {
        const struct moment_block b = m.blocks[slot];

        if (!b.bytes)
            continue;
        m.blocks[m.count++] = b;
        *(b.pending ? &m.pending : &m.requested) += b.bytes;
    }
    qsort(m.blocks, m.count, sizeof(*m.blocks), by_event);
    *out = m;
    return FRAG_OK;
}

void moment_close(struct moment *m)
{
    free(m->blocks);
    *m = (struct moment){0};
}

static enum frag_err find_peak(const struct frag_device_trace *d,
                               uint64_t *event, struct frag_error *e)
{
    frag_size *held = calloc((size_t)d->slots + 1, sizeof(*held));
    frag_size live = 0, peak = 0;

    if (!held)
        return frag_no_memory(e, "the live blocks");
    *event = 0;
    for (uint64_t i = 0; i < d->count; i++) {
        if (d->op[i] == FRAG_ALLOC && !facts_has_failed(d, i))
            live += held[d->id[i]] = d->bytes[i];
        if (frag_op_frees(d->op[i])) {
            live -= held[d->id[i]];
            held[d->id[i]] = 0;
        }
        if (live > peak) {
            peak = live;
            *event = i;
        }
    }
    free(held);
    return FRAG_OK;
}

static enum frag_err find_oom(const struct frag_trace *t,
                              const struct frag_device_trace *d,
                              uint64_t *event, struct frag_error *e)
{
    const struct frag_recorded *r = &d->recorded;

    for (uint64_t i = r->action_count; i-- > 0;)
        if (r->actions[i].action == FRAG_OOM_REPORTED) {
            *event = r->actions[i].event;
            return FRAG_OK;
        }
    return frag_fail(e, FRAG_INVALID,
                     "%s: %s: the recording reports no OOM; "
                     "--at peak is the event at which most is requested",
                     t->path, FRAG_DEVICE_NAME(d->device));
}

static bool read_number(const char *text, uint64_t *number)
{
    char *end;

    errno = 0;
    *number = strtoull(text, &end, 10);
    return *text >= '0' && *text <= '9' && !*end && !errno;
}

enum frag_err moment_read(const struct frag_trace *t,
                          const struct frag_device_trace *d, const char *text,
                          uint64_t *event, struct frag_error *e)
{
    if (!d->count)
        return frag_fail(e, FRAG_CORRUPT,
                         "%s: %s has no events: nothing was recorded on it",
                         t->path, FRAG_DEVICE_NAME(d->device));
    if (!strcmp(text, "peak"))
        return find_peak(d, event, e);
    if (!strcmp(text, "oom"))
        return find_oom(t, d, event, e);
    if (!strcmp(text, "end"))
        *event = d->count - 1;
    else if (!read_number(text, event) || *event >= d->count)
        return frag_fail(e, FRAG_INVALID,
                         "%s: %s: --at: expected peak, oom, "
                         "end or an event below %" PRIu64 ", found \"%.40s\"",
                         t->path, FRAG_DEVICE_NAME(d->device), d->count, text);
    return FRAG_OK;
}
