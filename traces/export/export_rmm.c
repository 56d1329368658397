/* export_rmm.c - writes the events of one device as the log of RMM's
 * logging_resource_adaptor. The format is described in
 * traces/import/import_rmm.c, which reads it; RMM's replay benchmark reads it,
 * too. */
#include <inttypes.h>
#include <stdlib.h>

#include "traces/export/export_text.h"
#include "traces/facts.h"

static const frag_addr invented_base = 0x7f0000000000;

/* The block in a slot. */
struct slot {
    frag_addr invented; /* its address if the trace has none */
    frag_addr addr;     /* 0: the request failed */
    frag_size bytes;
    frag_stream stream; /* row of the stream of the ALLOC */
};

static bool needs_address(const struct frag_device_trace *d, uint64_t i)
{
    return d->op[i] == FRAG_ALLOC && !facts_has_failed(d, i) &&
           (!d->recorded.addr || !d->recorded.addr[i]);
}

/* The end of the recorded addresses. */
static frag_addr recorded_end(const struct frag_device_trace *d)
{
    frag_addr end = invented_base;

    for (uint64_t i = 0; d->recorded.addr && i < d->count; i++)
        if (d->recorded.addr[i] && d->recorded.addr[i] + d->bytes[i] > end)
            end = d->recorded.addr[i] + d->bytes[i];
    return end;
}

/* Rounds up to a multiple of FRAG_ALIGNMENT and adds; false: overflow. */
static bool advance(frag_addr *at, frag_size bytes)
{
    enum { UNIT = 256 }; /* bytes, RMM's alignment */

    return !__builtin_add_overflow(*at, bytes, at) &&
           !__builtin_add_overflow(*at, (UNIT - *at % UNIT) % UNIT, at);
}

/* Each slot has a range of its own, as long as the largest block that needs it.
 * Returns false if the ranges need more than 2^64 addresses. */
static bool invent_addresses(const struct frag_device_trace *d,
                             struct slot *slots)
{
    frag_addr next = recorded_end(d);

    for (uint64_t i = 0; i < d->count; i++)
        if (needs_address(d, i) && d->bytes[i] > slots[d->id[i]].bytes)
            slots[d->id[i]].bytes = d->bytes[i];
    if (!advance(&next, 0))
        return false;
    for (uint32_t id = 0; id < d->slots; id++) {
        slots[id].invented = next;
        if (!advance(&next, slots[id].bytes))
            return false;
    }
    return true;
}

static void put_row(FILE *out, const struct frag_device_trace *d, uint64_t i,
                    const char *action, const struct slot *slot,
                    frag_stream stream)
{
    const uint64_t us = d->time ? (uint64_t)d->time[i] / 1000 : i;
    const uint64_t s = us / 1000000;

    fprintf(out,
            "0,%02" PRIu64 ":%02" PRIu64 ":%02" PRIu64 ".%06" PRIu64 ",%s,",
            s / 3600 % 24, s / 60 % 60, s % 60, us % 1000000, action);
    fprintf(out, slot->addr ? "0x%" PRIx64 : "(nil)", slot->addr);
    fprintf(out,
            d->streams[stream] ? ",%" PRIu64 ",0x%" PRIx64 "\n"
                               : ",%" PRIu64 ",0\n",
            slot->bytes, d->streams[stream]);
}

static void put_alloc(FILE *out, const struct frag_device_trace *d, uint64_t i,
                      struct slot *slot)
{
    const bool failed = facts_has_failed(d, i);

    slot->addr = failed                ? 0
                 : needs_address(d, i) ? slot->invented
                                       : d->recorded.addr[i];
    slot->bytes = d->bytes[i];
    slot->stream = d->stream[i];
    put_row(out, d, i, failed ? "allocate failure" : "allocate", slot,
            slot->stream);
}

static void put_events(FILE *out, const struct frag_device_trace *d, void *user)
{
    struct slot *slots = user;

    fputs("Thread,Time,Action,Pointer,Size,Stream\n", out);
    for (uint64_t i = 0; i < d->count && !ferror(out); i++) {
        struct slot *slot = &slots[d->id[i]];

        if (d->op[i] == FRAG_ALLOC)
            put_alloc(out, d, i, slot);
        else if (d->op[i] == FRAG_FREE && slot->addr)
            put_row(out, d, i, "free", slot,
                    d->free_streams && d->stream[i]
                        ? (frag_stream)(d->stream[i] - 1)
                        : slot->stream);
    }
}

enum frag_err frag_trace_write_rmm(const struct frag_trace *trace,
                                   uint32_t device, const char *path,
                                   struct frag_error *e)
{
    const struct frag_device_trace *d;
    struct slot *slots;
    enum frag_err err;

    FRAG_TRY(text_device(trace, device, &d, e));
    slots = calloc((size_t)d->slots + 1, sizeof(*slots));
    if (!slots)
        return frag_no_memory(e, "the log of %s", trace->path);
    err = invent_addresses(d, slots)
              ? text_write(path, d, put_events, slots, e)
              : frag_fail(e, FRAG_INVALID,
                          "%s: its blocks need more than 2^64 addresses",
                          trace->path);
    free(slots);
    return err;
}
