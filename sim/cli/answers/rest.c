/* rest.c - runs the program of a dead job without a GPU (rest.h). */
#include "sim/cli/answers/rest.h"

#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "sim/cli/child.h"
#include "sim/cli/output/inputs.h"
#include "traces/steps/complete.h"
#include "traces/text.h"

/* ---- the run ---- */

/* PAGE without its suffix, and "-dry.pickle". */
static char *name_trace(const char *page)
{
    const char *dot = strrchr(page, '.'); /* triage refuses other names */

    return text_make("%.*s-dry.pickle", (int)(dot - page), page);
}

static enum frag_err run(const struct rest_spec *spec, const char *trace,
                         struct frag_error *e)
{
    const char *argv[] = {
        "/proc/self/exe", "dry", "-q", "-f", "-o",          trace, "--gpu",
        spec->gpu,        "--",  "sh", "-c", spec->program, NULL};
    int code;

    if (!spec->gpu)
        memmove(&argv[6], &argv[8], 5 * sizeof(*argv));
    FRAG_TRY(child_run(&(const struct child){.argv = argv}, &code, e));
    /* 1 is also the answer that the program does not fit the GPU. */
    if (code > 1 || access(trace, R_OK) != 0)
        return frag_fail(e, FRAG_INVALID,
                         "--dry: expected a program of which one process uses "
                         "a GPU, and which ends with exit code 0; \"%s\" ended "
                         "with %d under `fragsim dry', whose output is above",
                         spec->program, code);
    return FRAG_OK;
}

/* ---- the comparison ---- */

/* The next ALLOC at or after the event, or the number of events. */
static uint64_t next(const struct frag_device_trace *d, uint64_t at,
                     uint64_t end)
{
    while (at < end && d->op[at] != FRAG_ALLOC)
        at++;
    return at;
}

/* The events up to the request of which the job died; the completed trace keeps
 * them. 0: the job did not die on the device. */
static uint64_t recorded(const struct frag_device_trace *d)
{
    const uint64_t fatal = frag_fatal_request(d);

    if (d->added)
        return d->count - d->added;
    return fatal == FRAG_NEVER ? 0 : fatal + 1;
}

static const struct frag_device_trace *dead_device(const struct frag_trace *t)
{
    for (uint32_t i = 0; i < t->device_count; i++)
        if (recorded(&t->devices[i]))
            return &t->devices[i];
    return NULL;
}

static const struct frag_device_trace *same_device(const struct frag_trace *t,
                                                   uint32_t device)
{
    for (uint32_t i = 0; i < t->device_count; i++)
        if (t->devices[i].device == device)
            return &t->devices[i];
    return NULL;
}

/* Compares the bytes of the requests in their order. */
static void compare(const struct frag_device_trace *was,
                    const struct frag_device_trace *now, struct rest *out)
{
    const uint64_t end = recorded(was);
    uint64_t i = next(was, 0, end), k = next(now, 0, now->count), n = 0;

    while (i < end && k < now->count && was->bytes[i] == now->bytes[k]) {
        i = next(was, i + 1, end);
        k = next(now, k + 1, now->count);
        n++;
    }
    if (i == end)
        snprintf(out->alike, sizeof(out->alike),
                 "It begins as the recording does: all %" PRIu64
                 " requests up to the death have the same sizes in the same "
                 "order.",
                 n);
    else
        snprintf(out->alike, sizeof(out->alike),
                 "It does not begin as the recording does, so the answers may "
                 "be those of another job: the first %" PRIu64
                 " requests have the same sizes, then the recording has one of "
                 "%s and the run without a GPU %s%s.%s",
                 n, FRAG_SHOW_SIZE(was->bytes[i]),
                 k < now->count ? "one of " : "ends",
                 k < now->count ? FRAG_SHOW_SIZE(now->bytes[k]) : "",
                 was->initial
                     ? " The recording lacks the beginning of the job, "
                       "which the run without a GPU has."
                     : "");
}

enum frag_err rest_run(const struct rest_spec *spec,
                       const struct frag_trace *recording, struct rest *out,
                       struct frag_error *e)
{
    const struct frag_device_trace *was = dead_device(recording), *now;
    const struct trace_reading reading = {READING_RAW, .limit = 0};
    struct frag_trace *t;

    if (!was)
        return frag_fail(e, FRAG_INVALID,
                         "%s: expected the recording of a job that died of a "
                         "failed request, for which --dry runs the rest",
                         recording->path);
    out->path = name_trace(spec->page);
    if (!out->path)
        return frag_no_memory(e, "the name of the trace");
    if (access(out->path, F_OK) == 0 && !spec->force)
        return frag_fail(e, FRAG_IO, "%s exists; -f overwrites it", out->path);
    unlink(out->path);
    FRAG_TRY(run(spec, out->path, e));
    FRAG_TRY(input_open(out->path, &reading, spec->progress, &t, e));
    now = same_device(t, was->device);
    if (now)
        compare(was, now, out);
    frag_trace_close(t);
    return now ? FRAG_OK
               : frag_fail(e, FRAG_INVALID,
                           "--dry: expected a program that uses device %" PRIu32
                           ", on which the recorded job died",
                           was->device);
}
