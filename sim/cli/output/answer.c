/* answer.c - opens the output of an answer, has it written, and completes or
 * discards it. */
#include "sim/cli/output/answer.h"

#include "traces/bytes/sink.h"

static enum frag_err put_json(const struct call *call, const struct answer *a,
                              FILE *out, struct frag_error *e)
{
    const struct frag_provenance by = cli_provenance(call);
    struct frag_json j;

    frag_results_json_open(&j, out, &by);
    FRAG_TRY(a->put(a->user, out, &j, e));
    frag_json_line(&j, 1);
    frag_json_end(&j);
    if (a->put_after)
        a->put_after(a->user, &j);
    frag_json_end(&j);
    fputc('\n', out);
    return FRAG_OK;
}

enum frag_err answer_write(const struct call *call, const struct answer *a,
                           const char *json, struct frag_error *e)
{
    struct sink sink;
    enum frag_err err;

    FRAG_TRY(sink_open(&sink, json ? json : "-", e));
    err = json ? put_json(call, a, sink.out, e)
               : a->put(a->user, sink.out, NULL, e);
    if (err == FRAG_OK)
        return sink_commit(&sink, e);
    sink_abort(&sink);
    return err;
}
