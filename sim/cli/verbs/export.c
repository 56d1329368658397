/* export.c - the command export: writes the events of one device as CSV. */
#include "sim/cli/cli.h"
#include "sim/cli/output/inputs.h"

struct values {
    struct common common;
    const char *out;
    uint64_t device;
    frag_size limit;
    bool force;
};

static enum frag_err convert(const struct values *v, struct frag_error *e)
{
    const struct trace_reading raw = {READING_RAW, .limit = v->limit};
    struct progress progress = progress_start(&v->common);
    const struct frag_device_trace *device;
    struct frag_trace *t;
    enum frag_err err;

    FRAG_TRY(input_open(v->common.args.items[0], &raw, &progress, &t, e));
    err = input_device(t, v->device, &device, e);
    if (err == FRAG_OK)
        err = frag_trace_write_csv(t, device->device, v->out, e);
    frag_trace_close(t);
    return err;
}

static int export_run(const struct call *call, const void *values)
{
    const struct values *v = values;
    struct frag_error e = {""};
    int code = cli_may_write(call, v->out, v->force);

    if (code != EXIT_DONE)
        return code;
    cli_catch_signals();
    return cli_fail(call, convert(v, &e), &e);
}

static const struct option_row options[] = {
    {"output", 'o', "FILE", "the CSV file; - is stdout (default)", OPTION_TEXT,
     offsetof(struct values, out), NULL},
    {"force", 'f', NULL, "overwrite an existing file", OPTION_SWITCH,
     offsetof(struct values, force), NULL},
    {"device", 0, "N", "number of the device (default: the only one)",
     OPTION_NUMBER, offsetof(struct values, device), NULL},
    {"limit", 0, "SIZE",
     "memory limit that was set in the recorded allocator, if there was one",
     OPTION_SIZE, offsetof(struct values, limit), NULL},
    {0},
};

const struct verb verb_export = {
    .name = "export",
    .args = "TRACE",
    .summary = "write the events of a device as CSV",
    .about = "The header line is op,id,bytes,stream. Every command can read "
             "the file again.",
    .example = "fragsim export snapshot.pickle -o events.csv",
    .options = options,
    .size = sizeof(struct values),
    .defaults = &(const struct values){.out = "-", .device = INPUT_ANY_DEVICE},
    .args_min = 1,
    .args_max = 1,
    .run = export_run,
};
