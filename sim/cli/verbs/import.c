/* import.c - the command import: converts any input to a trace file. */
#include "sim/cli/cli.h"
#include "sim/cli/output/inputs.h"
#include "traces/bytes/sink.h"

struct values {
    struct common common;
    const char *out;
    uint64_t repeat;
    frag_size limit;
    bool complete;
    bool force;
};

static enum frag_err convert(const struct values *v, struct frag_error *e)
{
    const char *path = v->common.args.items[0];
    const struct trace_reading reading = {
        v->complete ? READING_COMPLETED : READING_RAW, .limit = v->limit};
    struct progress progress = progress_start(&v->common);
    struct frag_trace *t;
    enum frag_err err;

    FRAG_TRY(input_open(path, &reading, &progress, &t, e));
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
        return cli_misuse(call, "expected -o FILE: a trace file is HDF5 and "
                                "cannot go to stdout");
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
    {"force", 'f', NULL, "overwrite an existing file", OPTION_SWITCH,
     offsetof(struct values, force), NULL},
    {"repeat", 0, "N",
     "write the events N times; live blocks are freed between two "
     "repetitions, and the recorded answers are left out",
     OPTION_NUMBER, offsetof(struct values, repeat), NULL},
    {"limit", 0, "SIZE",
     "memory limit that was set in the recorded allocator; it helps to "
     "distinguish an empty_cache call from a retry",
     OPTION_SIZE, offsetof(struct values, limit), NULL},
    {"complete", 0, NULL,
     "complete the trace of a job that died, as replay, fit, sweep and tune do",
     OPTION_SWITCH, offsetof(struct values, complete), NULL},
    {0},
};

const struct verb verb_import = {
    .name = "import",
    .args = "TRACE -o FILE",
    .summary = "convert an input to a trace file, which opens faster",
    .about = "Every command can read every input directly; a trace file saves "
             "time for an input that is read often. A trace file is HDF5; "
             "h5py can read its columns.",
    .example = "fragsim import snapshot.pickle.xz -o trace.h5",
    .options = options,
    .size = sizeof(struct values),
    .defaults = &(const struct values){.repeat = 1},
    .args_min = 1,
    .args_max = 1,
    .run = import_run,
};
