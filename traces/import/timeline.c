/* timeline.c - passes memory events to the builder in the order of time. The
 * sum of live bytes that the recorded allocator stated with each event checks
 * that no event is missing. */
#include "traces/import/timeline.h"

#include <inttypes.h>

#include "traces/build/build.h"
#include "traces/grow.h"
#include "traces/live.h"

enum frag_err timeline_add(struct timeline *t, const struct timeline_event *ev)
{
    if (!GROW(t->events, t->room, t->count + 1))
        return FRAG_NOMEM;
    t->events[t->count++] = *ev;
    return FRAG_OK;
}

void timeline_fini(struct timeline *t)
{
    free(t->events);
    *t = (struct timeline){.count = 0};
}

/* ---- one device ---- */

enum { LIVE, FREED }; /* states of an address */

struct device {
    const struct timeline *t;
    struct frag_build *build;
    struct frag_error *e;
    uint32_t device;
    struct live seen; /* every address of an event, by its state. The slot is
                         the index of the last alloc in t->events */
    uint64_t vanished, unknown, contradictions, other_size; /* for notes */
    frag_size before; /* bytes live before the first event and never freed */
};

static enum frag_err put(const struct device *d, enum frag_entry_kind kind,
                         const struct timeline_event *ev, frag_size size)
{
    const struct frag_entry entry = {
        .kind = kind, .addr = ev->addr, .size = size, .time = ev->time};

    return frag_build_entry(d->build, d->device, &entry, ev->where, d->e);
}

static enum frag_err put_alloc(struct device *d,
                               const struct timeline_event *ev, uint32_t index)
{
    struct live_row *row = live_find(&d->seen, ev->addr);

    if (row && row->state == LIVE) {
        d->vanished++;
        FRAG_TRY(put(d, FRAG_ENTRY_FREE_COMPLETED, ev, 1));
    }
    if (row)
        row->slot = index, row->state = LIVE;
    else if (!live_put(&d->seen, ev->addr, index))
        return FRAG_NOMEM;
    return put(d, FRAG_ENTRY_ALLOC, ev, (frag_size)ev->bytes);
}

/* The builder adds a block to the initial state if no alloc had its address. */
static enum frag_err put_free(struct device *d, const struct timeline_event *ev)
{
    struct live_row *row = live_find(&d->seen, ev->addr);
    const frag_size size = (frag_size)-ev->bytes;

    if (row && row->state == FREED) {
        d->unknown++;
        return FRAG_OK;
    }
    if (row) {
        row->state = FREED;
        d->other_size += (frag_size)d->t->events[row->slot].bytes != size;
    } else {
        if (!live_put(&d->seen, ev->addr, 0))
            return FRAG_NOMEM;
        live_find(&d->seen, ev->addr)->state = FREED;
        d->before -= size < d->before ? size : d->before;
    }
    return put(d, FRAG_ENTRY_FREE_COMPLETED, ev, size);
}

static enum frag_err put_event(struct device *d,
                               const struct timeline_event *ev, uint32_t index)
{
    if (ev->failed)
        return put(d, FRAG_ENTRY_FAILED, ev, (frag_size)ev->bytes);
    return ev->bytes > 0 ? put_alloc(d, ev, index) : put_free(d, ev);
}

/* Returns what the total must have been before the event. */
static frag_size total_before(const struct timeline_event *ev)
{
    return ev->total - (ev->failed ? 0 : (frag_size)ev->bytes);
}

static enum frag_err note_count(const struct device *d, uint64_t count,
                                const char *words)
{
    if (!count)
        return FRAG_OK;
    return frag_build_note(d->build, "device %" PRIu32 ": %" PRIu64 " %s",
                           d->device, count, words);
}

/* The blocks that were live before the first event. Those that are freed later
 * are in the trace already; the builder writes a note about all of them. */
static enum frag_err put_before(const struct device *d, uint64_t where)
{
    if (!d->before)
        return FRAG_OK;
    FRAG_TRY(frag_build_before(d->build, d->device, d->before, where, d->e));
    return frag_build_note(
        d->build,
        "device %" PRIu32 ": %s were live before the profiler began and are "
        "never freed; the file has their sum alone, so they are one block that "
        "is allocated first, and what they and the free memory between them "
        "do to fragmentation is not known",
        d->device, FRAG_SHOW_SIZE(d->before));
}

static enum frag_err note_device(const struct device *d)
{
    FRAG_TRY(note_count(d, d->contradictions,
                        "memory events contradict the sum of the allocated "
                        "bytes that PyTorch stated with them; events before "
                        "them are missing or in the wrong order"));
    FRAG_TRY(note_count(d, d->vanished,
                        "addresses were allocated again without a free; each "
                        "was freed at its next alloc"));
    FRAG_TRY(note_count(d, d->other_size,
                        "blocks were freed with another size than that of "
                        "their alloc, which counts"));
    return note_count(d, d->unknown,
                      "frees of addresses that were free already are left out");
}

/* Passes the marks, the events and the notes of one device to the builder. */
static enum frag_err put_events(struct device *d, uint64_t first, uint64_t end)
{
    const struct timeline *t = d->t;

    for (uint64_t i = first; i < end; i++) {
        const struct timeline_event *ev = &t->events[i];
        const struct timeline_event *last = i > first ? ev - 1 : NULL;

        if (!last)
            d->before = ev->has_total && (int64_t)total_before(ev) > 0
                            ? total_before(ev)
                            : 0;
        else if (ev->has_total && last->has_total)
            d->contradictions += total_before(ev) != last->total;
        FRAG_TRY(put_event(d, ev, (uint32_t)i));
    }
    FRAG_TRY(put_before(d, t->events[first].where));
    return note_device(d);
}

/* ---- all devices ---- */

static int by_time(const void *a, const void *b)
{
    const struct timeline_event *x = a, *y = b;

    if (x->device != y->device)
        return x->device < y->device ? -1 : 1;
    if (x->time != y->time)
        return x->time < y->time ? -1 : 1;
    return (x->where > y->where) - (x->where < y->where);
}

enum frag_err timeline_build(struct timeline *t, struct frag_build *build,
                             struct frag_error *e)
{
    enum frag_err err = FRAG_OK;
    uint64_t end;

    if (t->count > UINT32_MAX)
        return FRAG_NOMEM;
    if (t->count)
        qsort(t->events, (size_t)t->count, sizeof(*t->events), by_time);
    for (uint64_t i = 0; i < t->count && err == FRAG_OK; i = end) {
        struct device d = {
            .t = t, .build = build, .e = e, .device = t->events[i].device};

        for (end = i; end < t->count && t->events[end].device == d.device;)
            end++;
        err = put_events(&d, i, end);
        live_fini(&d.seen);
    }
    return err;
}
