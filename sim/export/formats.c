/* formats.c - the table of the formats, and the notes on what a format does not
 * hold of a trace. */
#include "sim/export/formats.h"

#include <inttypes.h>

#include "sim/export/export_parts.h"
#include "traces/facts.h"
#include "traces/text.h"

const struct export_format export_formats[EXPORT_FORMATS] = {
#define FORMAT(name, about, holds, policies) \
    {#name, about, (holds), (policies), export_##name},
#include "sim/export/export_list.h"
#undef FORMAT
};

/* -- losses -------------------------------------------------------------- */

static uint64_t ops(const struct frag_device_trace *d, enum frag_op op)
{
    uint64_t count = 0;

    for (uint64_t i = 0; i < d->count; i++)
        count += d->op[i] == op;
    return count;
}

/* Requests that the recorded allocator could not meet. */
static uint64_t failed(const struct frag_device_trace *d)
{
    uint64_t count = 0;

    for (uint64_t i = 0; i < d->count; i++)
        count += facts_has_failed(d, i);
    return count;
}

/* Frees on another stream than that of the allocation. */
static uint64_t free_streams(const struct frag_device_trace *d)
{
    uint64_t count = 0;

    for (uint64_t i = 0; d->free_streams && i < d->count; i++)
        count += d->op[i] == FRAG_FREE && d->stream[i];
    return count;
}

static uint64_t odd_sizes(const struct frag_device_trace *d)
{
    uint64_t count = 0;

    for (uint64_t i = 0; i < d->count; i++)
        count += d->op[i] == FRAG_ALLOC && d->bytes[i] % FRAG_QUANTUM;
    return count;
}

static uint64_t more_than_one(uint64_t count)
{
    return count > 1 ? count : 0;
}

/* How much of what the bit names is in the trace. */
static uint64_t count_of(enum export_holds what, const struct frag_trace *t,
                         const struct frag_device_trace *d)
{
    switch ((unsigned)what) {
    case HOLDS_STREAMS:
        return more_than_one(d->stream_count);
    case HOLDS_POOLS:
        return more_than_one(d->pool_count);
    case HOLDS_TIMES:
        return d->time ? d->count : 0;
    case HOLDS_STACKS:
        return d->stack && t->stack_count ? t->stack_count - 1 : 0;
    case HOLDS_MARKS:
        return d->mark_count;
    case HOLDS_LATE_FREES:
        return ops(d, FRAG_FREE_REQUESTED);
    case HOLDS_RECORD_STREAM:
        return ops(d, FRAG_RECORD_STREAM);
    case HOLDS_EMPTY_CACHE:
        return ops(d, FRAG_EMPTY_CACHE);
    case HOLDS_FAILED:
        return failed(d);
    case HOLDS_SIZES:
        return odd_sizes(d);
    case HOLDS_FREE_STREAMS:
        return free_streams(d);
    case HOLDS_LIVE:
        return ops(d, FRAG_ALLOC) - ops(d, FRAG_FREE);
    default:
        return 0;
    }
}

static const struct loss {
    enum export_holds holds;
    const char *name; /* in the plural */
} losses[] = {
    {HOLDS_STREAMS, "streams"},
    {HOLDS_POOLS, "pools"},
    {HOLDS_TIMES, "times"},
    {HOLDS_STACKS, "stacks"},
    {HOLDS_MARKS, "marks"},
    {HOLDS_LATE_FREES, "free_requested events"},
    {HOLDS_RECORD_STREAM, "record_stream events"},
    {HOLDS_EMPTY_CACHE, "empty_cache events"},
    {HOLDS_FAILED, "failed requests (written like all others)"},
    {HOLDS_SIZES, "sizes that are no multiple of 512 bytes (rounded up)"},
    {HOLDS_FREE_STREAMS,
     "streams of frees that are not those of the allocations"},
    {HOLDS_LIVE, "blocks that are never freed (they end with the trace)"},
};

/* Notes what the format does not hold of the trace. NOMEM. */
static enum frag_err note_losses(const struct export_format *f,
                                 const struct frag_trace *trace,
                                 const struct frag_device_trace *device,
                                 struct export_notes *notes)
{
    char text[400] = "";

    for (size_t i = 0; i < sizeof(losses) / sizeof(*losses); i++) {
        const struct loss *l = &losses[i];
        const uint64_t count =
            f->holds & l->holds ? 0 : count_of(l->holds, trace, device);

        if (count)
            text_add(text, sizeof(text), ", ", "%" PRIu64 " %s", count,
                     l->name);
    }
    return *text ? export_note(notes,
                               "%s has no place for these parts of the "
                               "trace: %s",
                               f->name, text)
                 : FRAG_OK;
}

/* -- writing ------------------------------------------------------------- */

static enum frag_err check_policies(const struct export_format *f,
                                    const struct export_job *job,
                                    struct frag_error *e)
{
    if (job->policy_count <= f->policy_max)
        return FRAG_OK;
    if (!f->policy_max)
        return frag_fail(e, FRAG_INVALID,
                         "%s holds the trace and no run of a policy: expected "
                         "no -p, found -p %s",
                         f->name, job->policies[0].text);
    return frag_fail(e, FRAG_INVALID,
                     "%s holds one run: expected one -p, found %zu; write one "
                     "file for each policy",
                     f->name, job->policy_count);
}

enum frag_err export_csv(const struct export_job *job, const char *path,
                         struct export_notes *notes, struct frag_error *e)
{
    (void)notes;
    return frag_trace_write_csv(job->trace, job->device->device, path, e);
}

enum frag_err export_write(enum export_format_number format,
                           const struct export_job *job, const char *path,
                           struct export_notes *notes, struct frag_error *e)
{
    const struct export_format *f = &export_formats[format];

    FRAG_TRY(check_policies(f, job, e));
    FRAG_TRY(note_losses(f, job->trace, job->device, notes));
    return f->write(job, path, notes, e);
}
