/* trace.c - the names of operations and actions, the search for a device, and
 * the check of the event columns. The other tables of a trace file are checked
 * in traces/file/file_check.c. */
#include "traces/trace.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const frag_op_names[FRAG_OP_COUNT] = {
#define X(name, text) [FRAG_##name] = text,
    FRAG_OPS(X)
#undef X
};

const char *const frag_action_names[FRAG_ACTION_COUNT] = {
#define X(name, text) [FRAG_##name] = text,
    FRAG_ACTIONS(X)
#undef X
};

const char *frag_device_name(uint32_t device, char text[FRAG_DEVICE_TEXT])
{
    snprintf(text, FRAG_DEVICE_TEXT,
             device == FRAG_HOST_DEVICE ? "host memory" : "device %" PRIu32,
             device);
    return text;
}

/* A trace file that was made from a snapshot has its settings. */
static bool is_of_pytorch(const struct frag_trace *t)
{
    return t->settings || t->releases || frag_trace_is_snapshot(t);
}

const char *frag_pool_name(const struct frag_trace *t,
                           const struct frag_device_trace *d, frag_pool pool,
                           char text[FRAG_POOL_NAME])
{
    const struct frag_pool_id id = d->pools[pool];
    const char *kind = !is_of_pytorch(t) ? "pool"
                       : id.owner        ? "graph"
                                         : "MemPool";

    if (!pool)
        return strcpy(text, "default pool");
    snprintf(text, FRAG_POOL_NAME, "%s %" PRIu64 ":%" PRIu64, kind, id.owner,
             id.number);
    return text;
}

bool frag_trace_is_snapshot(const struct frag_trace *t)
{
    return !strcmp(t->format, "torch");
}

const struct frag_device_trace *frag_trace_device(const struct frag_trace *t,
                                                  uint32_t device)
{
    for (uint32_t i = 0; i < t->device_count; i++)
        if (t->devices[i].device == device)
            return &t->devices[i];
    return NULL;
}

/* The check. A slot is vacant, live, or live with its free requested. */

enum slot_state { VACANT, LIVE, REQUESTED };

static const char *fault_of_alloc(const struct frag_device_trace *d, uint64_t i,
                                  uint8_t *slot)
{
    if (!d->bytes[i] || d->bytes[i] >> 63)
        return "an alloc of 1 to 2^63 - 1 bytes";
    if (d->stream[i] >= d->stream_count)
        return "a row of the table of streams";
    if (d->pool[i] >= d->pool_count)
        return "a row of the table of pools";
    if (*slot != VACANT)
        return "an alloc of an id that is not live";
    *slot = LIVE;
    return NULL;
}

static const char *fault_of_use(const struct frag_device_trace *d, uint64_t i,
                                uint8_t *slot)
{
    if (*slot == VACANT)
        return "an id that is live";
    if (d->op[i] == FRAG_FREE) {
        *slot = VACANT;
        return d->free_streams && d->stream[i] > d->stream_count
                   ? "0, or 1 + a row of the table of streams"
                   : NULL;
    }
    if (*slot == REQUESTED)
        return "an id whose free was not requested yet";
    if (d->op[i] == FRAG_FREE_REQUESTED)
        *slot = REQUESTED;
    else if (d->stream[i] >= d->stream_count)
        return "a row of the table of streams";
    return NULL;
}

/* Returns NULL if event i breaks no rule, otherwise a description of a correct
 * event, for the error message. Updates the state of the event's slot. */
static const char *fault_of(const struct frag_device_trace *d, uint64_t i,
                            uint8_t *slots)
{
    if (d->op[i] >= FRAG_OP_COUNT)
        return "a known op";
    if (i < d->initial && d->op[i] != FRAG_ALLOC)
        return "only allocs among the initial events";
    if (d->op[i] != FRAG_ALLOC && d->bytes[i])
        return "0 bytes for an op other than alloc";
    if (d->op[i] == FRAG_EMPTY_CACHE)
        return NULL;
    if (d->id[i] >= d->slots)
        return "an id below the number of slots";
    if (d->op[i] == FRAG_ALLOC)
        return fault_of_alloc(d, i, &slots[d->id[i]]);
    return fault_of_use(d, i, &slots[d->id[i]]);
}

static enum frag_err check_events(const struct frag_device_trace *d,
                                  uint8_t *slots, const char *path,
                                  struct frag_error *e)
{
    for (uint64_t i = 0; i < d->count; i++) {
        const char *expected = fault_of(d, i, slots);

        if (expected)
            return frag_fail(e, FRAG_CORRUPT,
                             "%s: %s, event %" PRIu64
                             ": expected %s, found op %u, id %" PRIu32
                             ", %" PRIu64 " bytes, stream %u, pool %u",
                             path, FRAG_DEVICE_NAME(d->device), i, expected,
                             d->op[i], d->id[i], d->bytes[i], d->stream[i],
                             d->pool[i]);
        if ((i + 1) % FRAG_PASSED_EVENTS == 0)
            frag_trace_passed(d, i, i + 1);
    }
    return FRAG_OK;
}

enum frag_err frag_trace_check(const struct frag_device_trace *d,
                               const char *path, struct frag_error *e)
{
    uint8_t *slots;
    enum frag_err err;

    if (d->initial > d->count)
        return frag_fail(e, FRAG_CORRUPT,
                         "%s: %s: expected at most %" PRIu64
                         " initial events, found %" PRIu64,
                         path, FRAG_DEVICE_NAME(d->device), d->count,
                         d->initial);
    slots = calloc((size_t)d->slots + 1, 1);
    if (!slots)
        return FRAG_NOMEM;
    err = check_events(d, slots, path, e);
    free(slots);
    return err;
}
