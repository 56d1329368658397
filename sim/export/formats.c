/* formats.c - the table of the formats, and the notes on what a format does not
 * hold of a trace. */
#include "sim/export/formats.h"

#include <inttypes.h>
#include <stdio.h>

#include "sim/export/parts.h"
#include "traces/facts.h"
#include "traces/text.h"

const struct export_format export_formats[EXPORT_FORMATS] = {
#define FORMAT(name, holds, policies, trace, runs) \
    {#name, (holds), (policies), (trace), (runs)},
#include "sim/export/list.h"
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

static uint64_t streams(const struct frag_trace *t,
                        const struct frag_device_trace *d)
{
    (void)t;
    return d->stream_count > 1 ? d->stream_count : 0;
}

static uint64_t pools(const struct frag_trace *t,
                      const struct frag_device_trace *d)
{
    (void)t;
    return d->pool_count > 1 ? d->pool_count : 0;
}

static uint64_t times(const struct frag_trace *t,
                      const struct frag_device_trace *d)
{
    (void)t;
    return d->time ? d->count : 0;
}

static uint64_t stacks(const struct frag_trace *t,
                       const struct frag_device_trace *d)
{
    return d->stack && t->stack_count > 1 ? t->stack_count - 1 : 0;
}

static uint64_t marks(const struct frag_trace *t,
                      const struct frag_device_trace *d)
{
    (void)t;
    return d->mark_count;
}

static uint64_t late_frees(const struct frag_trace *t,
                           const struct frag_device_trace *d)
{
    (void)t;
    return ops(d, FRAG_FREE_REQUESTED);
}

static uint64_t record_streams(const struct frag_trace *t,
                               const struct frag_device_trace *d)
{
    (void)t;
    return ops(d, FRAG_RECORD_STREAM);
}

static uint64_t empty_caches(const struct frag_trace *t,
                             const struct frag_device_trace *d)
{
    (void)t;
    return ops(d, FRAG_EMPTY_CACHE);
}

/* Requests that the recorded allocator could not meet. */
static uint64_t failed(const struct frag_trace *t,
                       const struct frag_device_trace *d)
{
    uint64_t count = 0;

    (void)t;
    for (uint64_t i = 0; i < d->count; i++)
        count += facts_has_failed(d, i);
    return count;
}

/* Frees on another stream than that of the allocation. */
static uint64_t free_streams(const struct frag_trace *t,
                             const struct frag_device_trace *d)
{
    uint64_t count = 0;

    (void)t;
    for (uint64_t i = 0; d->free_streams && i < d->count; i++)
        count += d->op[i] == FRAG_FREE && d->stream[i];
    return count;
}

static uint64_t odd_sizes(const struct frag_trace *t,
                          const struct frag_device_trace *d)
{
    uint64_t count = 0;

    (void)t;
    for (uint64_t i = 0; i < d->count; i++)
        count += d->op[i] == FRAG_ALLOC && d->bytes[i] % FRAG_QUANTUM;
    return count;
}

static uint64_t never_freed(const struct frag_trace *t,
                            const struct frag_device_trace *d)
{
    (void)t;
    return ops(d, FRAG_ALLOC) - ops(d, FRAG_FREE);
}

static const struct loss {
    enum export_holds holds;
    uint64_t (*count)(const struct frag_trace *t,
                      const struct frag_device_trace *d);
    const char *name; /* in the plural */
} losses[] = {
    {HOLDS_STREAMS, streams, "streams"},
    {HOLDS_POOLS, pools, "pools"},
    {HOLDS_TIMES, times, "times"},
    {HOLDS_STACKS, stacks, "stacks"},
    {HOLDS_MARKS, marks, "marks"},
    {HOLDS_LATE_FREES, late_frees, "free_requested events"},
    {HOLDS_RECORD_STREAM, record_streams, "record_stream events"},
    {HOLDS_EMPTY_CACHE, empty_caches, "empty_cache events"},
    {HOLDS_FAILED, failed, "failed requests (written like all others)"},
    {HOLDS_SIZES, odd_sizes,
     "sizes that are no multiple of 512 bytes (rounded up)"},
    {HOLDS_FREE_STREAMS, free_streams,
     "streams of frees that are not those of the allocations"},
    {HOLDS_LIVE, never_freed,
     "blocks that are never freed (they end with the trace)"},
};

enum frag_err export_losses(const struct export_format *f,
                            const struct frag_trace *trace,
                            const struct frag_device_trace *device,
                            struct export_notes *notes)
{
    char text[400] = "";

    for (size_t i = 0; i < sizeof(losses) / sizeof(*losses); i++) {
        const struct loss *l = &losses[i];
        const uint64_t count =
            f->holds & l->holds ? 0 : l->count(trace, device);

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
    return frag_trace_write_csv(job->trace, job->device->device, path,
                                job->repeat ? job->repeat : 1, e);
}

enum frag_err export_write(enum export_format_number format,
                           const struct export_job *job, const char *path,
                           struct export_notes *notes, struct frag_error *e)
{
    const struct export_format *f = &export_formats[format];

    FRAG_TRY(check_policies(f, job, e));
    if (job->repeat > 1 && !(f->holds & HOLDS_REPETITIONS))
        return frag_fail(e, FRAG_INVALID,
                         "%s holds the events once: expected no --repeat, "
                         "found --repeat %" PRIu64 "; csv can repeat them",
                         f->name, job->repeat);
    FRAG_TRY(export_losses(f, job->trace, job->device, notes));
    if (f->write_trace)
        return f->write_trace(job->trace, job->device->device, path, e);
    return f->write_runs(job, path, notes, e);
}
