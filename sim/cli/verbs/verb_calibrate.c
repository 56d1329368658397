/* verb_calibrate.c - the command calibrate: measures the cost of a GPU driver's
 * memory calls, or computes the cost model from times that were measured
 * before. */
#include <limits.h>
#include <string.h>
#include <time.h>

#include "real/device/calibrate.h"
#include "real/device/cuda.h"
#include "real/device/regression.h"
#include "sim/cli/cli.h"
#include "sim/cli/output/outputs.h"
#include "sim/cli/output/progress.h"
#include "sim/cli/output/table.h"
#include "traces/bytes/sink.h"

struct calibrate_values {
    struct common common;
    const char *out, *calls, *from;
    uint64_t gpu, rounds;
    bool force;
};

/* -- measuring ----------------------------------------------------------- */

/* Upper bound on the memory that is used, together with half of the free
 * memory: other programs on the machine may need the rest. With more than this
 * bound, the driver only clears more memory than in a replay. */
#define ROOM (16 * FRAG_GIB)

static enum frag_err time_device(const struct calibrate_values *v,
                                 struct progress *progress,
                                 struct frag_backend *mem,
                                 struct frag_timings *out, struct frag_error *e)
{
    time_t now = (time_t)cli_now();
    char name[FRAG_CUDA_NAME], date[16];
    frag_size bytes;

    FRAG_TRY(frag_cuda_free_bytes(mem, &bytes));
    frag_cuda_describe(mem, name);
    strftime(date, sizeof(date), "%Y-%m-%d", gmtime(&now));
    snprintf(out->about, sizeof(out->about), "device %s, %s", name, date);
    progress_step(progress, 1, 1, "rounds", 1, name);
    return frag_calibrate(
        &(const struct frag_calibration){.mem = mem,
                                         .room = bytes / 2 < ROOM ? bytes / 2
                                                                  : ROOM,
                                         .rounds = (unsigned)v->rounds,
                                         .progress = progress_tick,
                                         .user = progress},
        out, e);
}

static enum frag_err measure(const struct calibrate_values *v,
                             struct frag_timings *out, struct frag_error *e)
{
    const struct frag_cuda_options options = {.ordinal = (int)v->gpu};
    struct progress progress = progress_start(&v->common);
    struct frag_backend *mem;
    enum frag_err err;

    FRAG_TRY(frag_cuda_open(&options, &mem, e));
    cli_catch_signals();
    err = time_device(v, &progress, mem, out, e);
    progress_clear(&progress);
    if (err == FRAG_DEVICE)
        frag_fail(e, err, "%s", frag_cuda_words(mem));
    frag_cuda_close(mem);
    return err;
}

/* -- output -------------------------------------------------------------- */

static enum frag_err put_file(const char *path,
                              const struct frag_costs_regression *f,
                              const struct frag_timings *t,
                              struct frag_error *e)
{
    struct sink s = {0};

    if (!path)
        return FRAG_OK;
    FRAG_TRY(sink_open(&s, path, e));
    if (f)
        frag_costs_write(f, t->about, s.out);
    else
        frag_timings_write(t, s.out);
    return sink_commit(&s, e);
}

/* Prints the table; prints nothing if -o writes to stdout. */
static enum frag_err print(const struct calibrate_values *v,
                           const struct frag_costs_regression *f,
                           struct frag_error *e)
{
    struct table t;
    enum frag_err err;

    if (sink_is_stdout(v->out))
        return FRAG_OK;
    t = table_of("lrrrr", "call|fixed, us|us a MiB|residual|worst");
    for (int i = 0; i < FRAG_DRIVER_CALL_COUNT; i++) {
        const struct frag_cost_regression *c = &f->call[i];

        table_cell(&t, false, "%s", frag_driver_call_names[i]);
        table_cell(&t, false, "%.2f", c->cost.fixed_ns / 1e3);
        table_cell(&t, false, "%.4f", c->cost.ns_per_mib / 1e3);
        table_cell(&t, false, "%.1f %%", 100 * c->residual);
        table_cell(&t, false, "%.1f %%", 100 * c->worst);
    }
    err = table_print(&t, stdout, cli_colors(&v->common, stdout));
    return err == FRAG_OK ? err : frag_no_memory(e, "the table");
}

/* -- the command --------------------------------------------------------- */

static enum frag_err calibrate(const struct calibrate_values *v,
                               struct frag_timings *t, struct frag_error *e)
{
    struct frag_costs_regression fit;

    FRAG_TRY(v->from ? frag_timings_read(v->from, t, e) : measure(v, t, e));
    FRAG_TRY(put_file(v->calls, NULL, t, e));
    FRAG_TRY(frag_costs_regress(t, &fit, e));
    FRAG_TRY(put_file(v->out, &fit, t, e));
    return print(v, &fit, e);
}

/* Wrong use that the options alone show; EXIT_DONE if there is none. */
static int check(const struct call *call, const struct calibrate_values *v)
{
    const struct outputs outputs = {
        .csv = v->out, .own = {v->calls}, .force = v->force};

    if (v->from && v->calls)
        return cli_misuse(call, "--calls writes times that are measured now; "
                                "it cannot be combined with --from");
    if (!v->rounds || v->rounds > 10000)
        return cli_misuse(call, "--rounds: expected 1 to 10000");
    if (v->gpu > INT_MAX)
        return cli_misuse(call, "--gpu: expected the number of a GPU, found a "
                                "larger number");
    return outputs_check(call, &outputs);
}

static int calibrate_run(const struct call *call, const void *values)
{
    const struct calibrate_values *v = values;
    struct frag_timings timings = {0};
    struct frag_error e = {""};
    enum frag_err err;
    int code = check(call, v);

    if (code != EXIT_DONE)
        return code;
    err = calibrate(v, &timings, &e);
    frag_timings_free(&timings);
    return cli_fail(call, err, &e);
}

/* clang-format off */
#define AT(field) offsetof(struct calibrate_values, field)
static const struct option_row options[] = {
    {"output", 'o', "FILE", "write the costs as CSV, for --costs; - is stdout",
     OPTION_TEXT, AT(out), NULL},
    {"calls", 0, "FILE", "write the time of every call as CSV; - is stdout",
     OPTION_TEXT, AT(calls), NULL},
    {"from", 0, "FILE", "compute the costs from such a CSV file, without a GPU",
     OPTION_TEXT, AT(from), NULL},
    {"gpu", 0, "N", "number of the GPU (default: 0)",
     OPTION_NUMBER, AT(gpu), NULL},
    {"rounds", 0, "N", "number of rounds through all calls and sizes "
                       "(default: 24)",
     OPTION_NUMBER, AT(rounds), NULL},
    {"force", 'f', NULL, "overwrite existing outputs", OPTION_SWITCH,
     AT(force), NULL},
    {0},
};
/* clang-format on */

const struct verb verb_calibrate = {
    .name = "calibrate",
    .args = "",
    .summary = "measure the cost of a GPU driver's memory calls",
    .about =
        "The command times each memory call of the driver for sizes from 512 "
        "B up. Several allocations exist at once, as in a replay. The calls "
        "are timed in rounds; the first round only warms up the device. The "
        "time for a size is the mean of a round without its slowest "
        "sixteenth, and then the smallest of all rounds, because a "
        "disturbance only makes a call slower. The cost model is a robust "
        "straight line through these times: a fixed time for each call, and a "
        "time for each MiB. `residual' is the relative distance between line "
        "and time, as the median over the sizes; `worst' is the largest "
        "distance.\n\n"
        "The command allocates at most 16 GiB and at most half of the "
        "device's free memory, and frees all of it.",
    .example = "fragsim calibrate -o costs.csv --calls calls.csv",
    .options = options,
    .size = sizeof(struct calibrate_values),
    .defaults = &(const struct calibrate_values){.rounds = 24},
    .args_min = 0,
    .args_max = 0,
    .run = calibrate_run,
};
