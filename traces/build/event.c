/* event.c - adds the events of scripts: CSV and generators. Nothing is inferred
 * for them; recorded entries are in build.c. */
#include <inttypes.h>

#include "traces/build/build_device.h"

struct script {
    struct frag_build *b;
    struct device_build *d;
    uint64_t id, where;
    struct frag_error *e;
};

static enum frag_err wrong(const struct script *s, const char *expected)
{
    return frag_fail(s->e, FRAG_CORRUPT,
                     "%s:%" PRIu64 ": expected %s, found id %" PRIu64,
                     s->b->path, s->where, expected, s->id);
}

static enum frag_err script_alloc(const struct script *s, struct event *ev)
{
    struct device_build *d = s->d;

    if (!ev->bytes || ev->bytes >> 63)
        return frag_fail(s->e, FRAG_CORRUPT,
                         "%s:%" PRIu64 ": expected a size from 1 to 2^63 - 1, "
                         "found %" PRIu64,
                         s->b->path, s->where, ev->bytes);
    if (live_find(&d->live, s->id))
        return wrong(s, "an id that is not live");
    FRAG_TRY(build_acquire_slot(d, &ev->id));
    if (live_put(&d->live, s->id, ev->id))
        return FRAG_OK;
    build_return_slot(d, ev->id);
    return FRAG_NOMEM;
}

/* Finds the slot of an id, which must be live, and updates its state. */
static enum frag_err script_use(const struct script *s, struct event *ev)
{
    struct device_build *d = s->d;
    struct live_row *row = live_find(&d->live, s->id);

    if (!row)
        return wrong(s, "an id that is live");
    ev->id = row->slot;
    if (ev->op == FRAG_FREE) {
        build_return_slot(d, row->slot);
        live_remove(&d->live, row);
    } else if (row->state == LIVE_FREE_REQUESTED) {
        return wrong(s, "an id whose free was not requested yet");
    } else if (ev->op == FRAG_FREE_REQUESTED) {
        row->state = LIVE_FREE_REQUESTED;
    }
    return FRAG_OK;
}

enum frag_err frag_build_event(struct frag_build *b, uint32_t device,
                               enum frag_op op, uint64_t id, frag_size bytes,
                               uint64_t stream, uint64_t where,
                               struct frag_error *e)
{
    struct event ev = {.op = (uint8_t)op};
    struct script s = {.b = b, .id = id, .where = where, .e = e};
    uint32_t index;

    FRAG_TRY(build_device(b, device, &s.d, e));
    if (op == FRAG_ALLOC || op == FRAG_RECORD_STREAM) {
        FRAG_TRY(build_stream(b, s.d, stream, &index, e));
        ev.stream = (frag_stream)index;
    }
    if (op == FRAG_ALLOC) {
        ev.bytes = bytes;
        FRAG_TRY(script_alloc(&s, &ev));
    } else if (op != FRAG_EMPTY_CACHE) {
        FRAG_TRY(script_use(&s, &ev));
    }
    return build_push(s.d, &ev);
}
