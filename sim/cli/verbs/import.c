/* import.c - any input to a trace file. */
#include "sim/cli/cli.h"
#include "sim/cli/output/inputs.h"
#include "traces/bytes/sink.h"

struct values {
    struct common common;
    const char *out;
    uint64_t repeat;
    frag_size limit;
    bool force;
};

static enum frag_err convert(const struct values *v, struct frag_error *e)
{
    const char *path = v->common.args.items[0];
    struct progress progress = progress_start(&v->common);
    struct frag_trace *t;
    enum frag_err err;

    FRAG_TRY(input_open(path, v->limit, &progress, &t, e));
    if (!v->common.quiet)
        input_say_notes(path, t);
    err = cli_interrupted() ? FRAG_CANCELLED
                            : frag_trace_write(t, v->out, v->repeat, e);
    frag_trace_close(t);
    return err;
}

static int import_run(const struct call *call, const void *values)
{
    const struct values *v = values;
    struct frag_error e = {""};
    int code;

    if (!v->out || sink_is_stdout(v->out))
        return cli_misuse(call, "expected -o FILE: a trace file is HDF5");
    if (!v->repeat)
        return cli_misuse(call, "--repeat: expected a number above 0");
    code = cli_may_replace(call, v->out, v->force);
    if (code != EXIT_DONE)
        return code;
    cli_catch_signals();
    return cli_fail(call, convert(v, &e), &e);
}

static const struct option_row options[] = {
    {"output", 'o', "FILE", "the trace file", OPTION_TEXT,
     offsetof(struct values, out), NULL},
    {"force", 'f', NULL, "write over a file that exists", OPTION_SWITCH,
     offsetof(struct values, force), NULL},
    {"repeat", 0, "N",
     "write the stream N times, what is still live freed in between; the "
     "recorded answers are then left out",
     OPTION_NUMBER, offsetof(struct values, repeat), NULL},
    {"limit", 0, "SIZE",
     "memory limit inside the recorded allocator, if it had one; helps to tell "
     "an empty_cache call from a retry",
     OPTION_SIZE, offsetof(struct values, limit), NULL},
    {0},
};

const struct verb verb_import = {
    .name = "import",
    .args = "TRACE -o FILE",
    .summary = "convert an input to a trace file, which opens at once",
    .about = "Every command reads every input directly; a trace file is for "
             "what is read often. It is HDF5: columns that h5py reads.",
    .example = "fragsim import snapshot.pickle.xz -o trace.h5",
    .options = options,
    .size = sizeof(struct values),
    .defaults = &(const struct values){.repeat = 1},
    .args_min = 1,
    .args_max = 1,
    .run = import_run,
};
