/* folded.c - the stacks of the blocks that are live at the peak, as flame
 * graphs take them: the same text as `fragsim top --folded`. */
#include "sim/answers/held/holders.h"
#include "sim/export/export_parts.h"
#include "traces/bytes/sink.h"

static enum frag_err put(const struct holders *h, const char *path,
                         struct frag_error *e)
{
    struct sink sink;

    FRAG_TRY(sink_open(&sink, path, e));
    holders_put_folded(h, sink.out);
    return sink_commit(&sink, e);
}

enum frag_err export_folded(const struct export_job *job, const char *path,
                            struct export_notes *notes, struct frag_error *e)
{
    const struct holders_options options = {.by = HOLDERS_BY_STACK};
    struct holders h;
    uint64_t event;
    enum frag_err err;

    FRAG_TRY(moment_read(job->trace, job->device, "peak", &event, e));
    FRAG_TRY(holders_find(job->trace, job->device, event, &options, &h, e));
    err = export_note(notes,
                      "the weights are the requested bytes of the blocks "
                      "that are live at the peak, event %llu: %s",
                      (unsigned long long)event, FRAG_SHOW_SIZE(h.bytes));
    FRAG_THEN(err, put(&h, path, e));
    holders_close(&h);
    return err;
}
