/* calibration.c - measures a GPU driver's memory calls, and writes the costs.
 * real/device/calibrate.h measures, regression.h computes. */
#include "sim/cli/verbs/calibration.h"

#include <time.h>

#include "real/device/calibrate.h"
#include "real/device/cuda.h"
#include "real/device/regression.h"
#include "sim/cli/output/progress.h"
#include "sim/cli/output/table.h"
#include "traces/bytes/sink.h"

/* -- measuring ----------------------------------------------------------- */

/* Upper bound on the memory that is used, together with half of the free
 * memory: other programs on the machine may need the rest. With more than this
 * bound, the driver only clears more memory than in a replay. */
#define ROOM (16 * FRAG_GIB)

static enum frag_err time_device(const struct calibration *v,
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

static enum frag_err measure(const struct calibration *v,
                             struct frag_timings *out, struct frag_error *e)
{
    const struct frag_cuda_options options = {.ordinal = (int)v->gpu};
    struct progress progress = progress_start(v->common);
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
static enum frag_err print(const struct calibration *v,
                           const struct frag_costs_regression *f)
{
    struct table t;

    if (sink_is_stdout(v->costs))
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
    return table_print(&t, stdout, cli_colors(v->common, stdout));
}

enum frag_err calibration_run(const struct calibration *v, struct frag_error *e)
{
    struct frag_timings timings = {0};
    struct frag_costs_regression fit;
    enum frag_err err = v->from ? frag_timings_read(v->from, &timings, e)
                                : measure(v, &timings, e);

    FRAG_THEN(err, put_file(v->calls, NULL, &timings, e));
    FRAG_THEN(err, frag_costs_regress(&timings, &fit, e));
    FRAG_THEN(err, put_file(v->costs, &fit, &timings, e));
    FRAG_THEN(err, print(v, &fit));
    frag_timings_free(&timings);
    return err;
}
