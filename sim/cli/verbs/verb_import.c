/* verb_import.c - the command import, which writes a trace file of any input,
 * as it is or changed in chosen requests. The edits are in traces/edit/. */
#include <string.h>

#include "sim/cli/cli.h"
#include "sim/cli/output/inputs.h"
#include "traces/bytes/sink.h"

struct import_values {
    struct common common;
    struct texts edits;
    const char *out;
    frag_size limit;
    bool force;
};

/* edits may be NULL. */
static enum frag_err convert(const struct import_values *v,
                             const struct frag_edits *edits,
                             struct frag_error *e)
{
    const char *path = v->common.args.items[0];
    const struct trace_reading reading = {READING_RAW, .limit = v->limit,
                                          .edits = edits};
    struct progress progress = progress_start(&v->common);
    struct frag_trace *t;
    enum frag_err err;

    FRAG_TRY(input_open(path, &reading, &progress, &t, e));
    if (!v->common.quiet)
        input_say_notes(path, t);
    err = cli_interrupted() ? FRAG_CANCELLED : frag_trace_write(t, v->out, e);
    frag_trace_close(t);
    return err;
}

static int write_trace(const struct call *call, const struct import_values *v,
                       const struct frag_edits *edits)
{
    struct frag_error e = {""};
    int code;

    if (!v->out || sink_is_stdout(v->out))
        return cli_misuse(call, "expected -o FILE: a trace file is HDF5 and "
                                "cannot go to stdout");
    code = cli_may_replace(call, v->out, v->force);
    if (code != EXIT_DONE)
        return code;
    cli_catch_signals();
    return cli_fail(call, convert(v, edits, &e), &e);
}

static int run(const struct call *call, const void *values)
{
    const struct import_values *v = values;
    struct frag_edits *edits = NULL;
    struct frag_error e = {""};
    enum frag_err err = FRAG_OK;
    int code;

    if (!v->edits.count && strcmp(call->name, verb_import.name) != 0)
        return cli_misuse(call, "expected -e EDIT; `fragsim help edits' lists "
                                "the edits");
    if (v->edits.count)
        err = frag_edits_read(v->edits.items, v->edits.count, &edits, &e);
    if (err != FRAG_OK)
        return cli_fail(call, err, &e);
    code = write_trace(call, v, edits);
    frag_edits_free(edits);
    return code;
}

#define AT(field) offsetof(struct import_values, field)
static const struct option_row options[] = {
    {"output", 'o', "FILE", OPTION_TEXT, AT(out), NULL, "the trace file"},
    FORCE_OPTION(AT(force)),
    {"edit", 'e', "EDIT", OPTION_LIST, AT(edits), NULL,
     "an edit, or several that are separated by semicolons; repeat the option "
     "for more, which are applied in their order (see `fragsim help edits')"},
    RECORDED_LIMIT_OPTION(AT(limit)),
    {0},
};

const struct verb verb_import = {
    .name = "import",
    .args = "TRACE -o FILE",
    .summary = "convert an input to a trace file, as it is or changed by edits",
    .about =
        "Every command can read every input directly; a trace file saves time "
        "for an input that is read often. A trace file is HDF5; h5py can read "
        "its columns.\n\n"
        "With -e it answers what a job would have needed if a part of it were "
        "different: if a block were freed earlier, if sizes were larger, if "
        "empty_cache were called, if a second job ran on the same device. "
        "`fragsim help edits' describes each edit. Times, marks and call "
        "stacks are kept. The answers of the recorded allocator (segments, "
        "addresses, failed requests) are left out, because the allocator did "
        "not serve these requests; `fragsim validate' therefore refuses an "
        "edited trace. The segments at the start are kept if the edits leave "
        "the blocks that were live then as they are; a note says if not. Each "
        "edit adds a note to the trace that says what it changed, and every "
        "answer repeats the notes. The file also keeps the path and the "
        "SHA-256 of its input. The memory is that of two traces and 64 bytes "
        "for each event.",
    .example = "fragsim import run.pickle.xz -e slice:steps=3..5 -e "
               "scale:factor=1.5,min=1MiB -o edited.h5",
    .options = options,
    .size = sizeof(struct import_values),
    .defaults = &(const struct import_values){.limit = 0},
    .args_min = 1,
    .args_max = 1,
    .run = run,
};
