/* tune_files.c - writes the jobs file and the event streams of `tune
 * --verify-with`; each file appears complete or not at all. */
#include "sim/cli/output/tune_report.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "sim/experiments/tune/verify.h"
#include "traces/bytes/sink.h"
#include "traces/text.h"

static enum frag_err write_events(const char *path, const struct tune_case *of,
                                  struct frag_error *e)
{
    struct sink sink;

    FRAG_TRY(sink_open(&sink, path, e));
    tune_verify_events(of, sink.out);
    return sink_commit(&sink, e);
}

static enum frag_err write_case(FILE *jobs, const char *path,
                                const struct tune_ladder *l,
                                const struct tune_rung *rung, size_t i,
                                struct frag_error *e)
{
    const struct tune_case *c = &l->cases[i];
    char *events =
        text_make("%s.%s.%" PRIu32 ".events", path, c->name, c->device->device);
    enum frag_err err;

    if (!events)
        return frag_no_memory(e, "%s", path);
    err = write_events(events, c, e);
    if (err == FRAG_OK)
        tune_verify_jobs(l, rung, i, events, jobs);
    free(events);
    return err;
}

enum frag_err tune_files_write(const char *path, const struct tune_ladder *l,
                               const struct tune_rung *rung,
                               struct frag_error *e)
{
    enum frag_err err = FRAG_OK;
    struct sink jobs;

    FRAG_TRY(tune_verify_check(l, e));
    FRAG_TRY(sink_open(&jobs, path, e));
    for (size_t i = 0; err == FRAG_OK && i < l->case_count; i++)
        err = write_case(jobs.out, path, l, rung, i, e);
    if (err == FRAG_OK)
        return sink_commit(&jobs, e);
    sink_abort(&jobs);
    return err;
}
