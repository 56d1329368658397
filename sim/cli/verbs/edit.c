/* edit.c - the command edit: writes a trace that differs from its input in
 * chosen requests. The edits themselves are in traces/edit/. */
#include "sim/cli/cli.h"
#include "sim/cli/output/inputs.h"
#include "traces/bytes/sink.h"

struct values {
    struct common common;
    struct texts edits;
    const char *out;
    frag_size limit;
    bool complete;
    bool force;
};

static enum frag_err write_edited(const struct values *v,
                                  const struct frag_edits *edits,
                                  struct frag_error *e)
{
    const char *path = v->common.args.items[0];
    const struct trace_reading reading = {v->complete ? READING_COMPLETED
                                                      : READING_RAW,
                                          .limit = v->limit, .edits = edits};
    struct progress progress = progress_start(&v->common);
    struct frag_trace *t;
    enum frag_err err;

    FRAG_TRY(input_open(path, &reading, &progress, &t, e));
    if (!v->common.quiet)
        input_say_notes(path, t);
    err =
        cli_interrupted() ? FRAG_CANCELLED : frag_trace_write(t, v->out, 1, e);
    frag_trace_close(t);
    return err;
}

static int edit_run(const struct call *call, const void *values)
{
    const struct values *v = values;
    struct frag_edits *edits;
    struct frag_error e = {""};
    enum frag_err err;
    int code;

    if (!v->edits.count)
        return cli_misuse(call, "expected -e EDIT; `fragsim help edits' lists "
                                "the edits");
    err = frag_edits_read(v->edits.items, v->edits.count, &edits, &e);
    if (err != FRAG_OK)
        return cli_fail(call, err, &e);
    if (!v->out || sink_is_stdout(v->out))
        code = cli_misuse(call, "expected -o FILE: a trace file is HDF5 and "
                                "cannot go to stdout");
    else
        code = cli_may_replace(call, v->out, v->force);
    if (code == EXIT_DONE) {
        cli_catch_signals();
        code = cli_fail(call, write_edited(v, edits, &e), &e);
    }
    frag_edits_free(edits);
    return code;
}

static const struct option_row options[] = {
    {"edit", 'e', "EDIT",
     "an edit, or several that are separated by semicolons; repeat the option "
     "for more, which are applied in their order (see `fragsim help edits')",
     OPTION_LIST, offsetof(struct values, edits), NULL},
    {"output", 'o', "FILE", "the trace file", OPTION_TEXT,
     offsetof(struct values, out), NULL},
    {"force", 'f', NULL, "overwrite an existing file", OPTION_SWITCH,
     offsetof(struct values, force), NULL},
    {"limit", 0, "SIZE",
     "memory limit that was set in the recorded allocator; it helps to "
     "distinguish an empty_cache call from a retry",
     OPTION_SIZE, offsetof(struct values, limit), NULL},
    {"complete", 0, NULL,
     "complete the trace of a job that died, as replay, fit, sweep and tune "
     "do, before it is edited",
     OPTION_SWITCH, offsetof(struct values, complete), NULL},
    {0},
};

const struct verb verb_edit = {
    .name = "edit",
    .args = "TRACE -e EDIT... -o FILE",
    .summary = "change a trace: cut, scale, free earlier, merge two jobs, ...",
    .about =
        "The command answers what a job would have needed if a part of it were "
        "different: if a block were freed earlier, if sizes were larger, if "
        "empty_cache were called, if a second job ran on the same device. It "
        "applies the edits in the order of the command line and writes a "
        "trace file for all other commands. `fragsim help edits' describes "
        "each edit.\n\n"
        "Times, marks and call stacks are kept. The answers of the recorded "
        "allocator (segments, addresses, failed requests) are left out, "
        "because the allocator did not serve these requests; `fragsim "
        "validate' therefore refuses an edited trace. Each edit adds a note "
        "to the trace that says what it changed, and every answer repeats the "
        "notes. The file also keeps the path and the SHA-256 of its input.\n\n"
        "The memory is that of two traces and 64 bytes for each event.",
    .example = "fragsim edit run.pickle.xz -e slice:steps=3..5 -e "
               "scale:factor=1.5,min=1MiB -o edited.h5",
    .options = options,
    .size = sizeof(struct values),
    .defaults = &(const struct values){.out = NULL},
    .args_min = 1,
    .args_max = 1,
    .run = edit_run,
};
