/* verb_compare.c - the command compare: runs cells on a GPU and on the
 * simulated device, and compares the results; with --calibrate, it measures the
 * driver's calls. */
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "real/device/calibrate.h"
#include "real/device/cuda.h"
#include "sim/cli/cell_options.h"
#include "sim/cli/output/compare_report.h"
#include "sim/cli/output/inputs.h"
#include "sim/cli/output/outputs.h"
#include "sim/cli/output/progress.h"
#include "sim/cli/verbs/calibration.h"
#include "sim/experiments/recording.h"
#include "sim/results/columns.h"
#include "sim/twin.h"

struct compare_values {
    struct common common;
    struct cell_values cell;
    struct outputs outputs; /* own[0]: the times of --calibrate */
    uint64_t repeat;        /* UINT64_MAX: the default */
    bool calibrate;
};

enum { RUNS = 5, ROUNDS = 24 }; /* defaults of --repeat */

struct comparison {
    const struct call *call;
    const struct compare_values *values;
    struct policy_choice *policies;
    struct bound_choice *bounds;
    size_t policy_count, bound_count;
    struct cell_settings simulated, real;
    struct frag_backend *device; /* open during the whole command, so that its
                                    context is created once */
    frag_time dirty; /* time on the device's clock until which the device clears
                        memory */
    struct progress progress;
    struct compare_report report;
    struct unread unread;
    const struct frag_device_trace *trace;
    struct compared *cells;      /* one for each policy and capacity */
    struct frag_params **params; /* of each policy on that trace */
};

/* -- one cell ------------------------------------------------------------ */

enum { COUNT_TEXT = 24 };

static const char *count_text(uint64_t n, char text[COUNT_TEXT])
{
    if (n == UINT64_MAX)
        return "none";
    snprintf(text, COUNT_TEXT, "%" PRIu64, n);
    return text;
}

/* Every count in a row of the results must be equal; times may differ. */
static void judge(struct compared *c, const struct frag_summary *real)
{
    const struct frag_run a = {.summary = c->simulated}, b = {.summary = *real};
    const struct frag_result_row left = frag_result_row(&c->id, &a);
    const struct frag_result_row right = frag_result_row(&c->id, &b);

    for (const struct frag_column *k = frag_summary_columns; k->name; k++) {
        char text[2][COUNT_TEXT];
        const uint64_t x = frag_column_number(k, &left);
        const uint64_t y = frag_column_number(k, &right);

        if ((k->kind != FRAG_COLUMN_COUNT && k->kind != FRAG_COLUMN_OPTIONAL) ||
            c->differs || x == y)
            continue;
        c->differs = true;
        snprintf(c->difference, sizeof(c->difference), "%s %s, simulated %s",
                 k->name, count_text(y, text[0]), count_text(x, text[1]));
    }
}

static frag_time clock_of(const struct comparison *s)
{
    return s->device->ops->now(s->device);
}

/* Waits until the device has cleared the memory that the last run released, so
 * that the next run finds the device as a separate program would. */
static void wait_until_clear(const struct comparison *s)
{
    const frag_time now = clock_of(s);

    if (s->dirty > now)
        nanosleep(
            &(const struct timespec){
                .tv_sec = (time_t)((s->dirty - now) / 1000000000),
                .tv_nsec = (long)((s->dirty - now) % 1000000000)},
            NULL);
}

/* Estimates when the device will have cleared the memory that the run released.
 * The clearing begins with the first release; the start of the run stands for
 * it. */
static void note_released(struct comparison *s, const struct cell_memory *m,
                          frag_time started)
{
    const frag_size bytes =
        frag_twin_cost(m->mem, FRAG_DRIVER_SEGMENT_FREE).bytes +
        frag_twin_cost(m->mem, FRAG_DRIVER_PHYS_RELEASE).bytes;

    s->dirty = started + bytes / FRAG_MIB * FRAG_CLEAR_NS_PER_MIB;
}

static void keep_quickest(struct compared *c, const struct cell_memory *m,
                          double pace, const struct frag_summary *real)
{
    struct frag_twin_cost calls[FRAG_DRIVER_CALL_COUNT];
    frag_time measured = 0;

    for (int i = 0; i < FRAG_DRIVER_CALL_COUNT; i++) {
        calls[i] = frag_twin_cost(m->mem, (enum frag_driver_call)i);
        measured += calls[i].measured;
    }
    if (measured >= c->measured)
        return;
    c->measured = measured;
    c->pace = pace;
    c->real = *real;
    memcpy(c->calls, calls, sizeof(calls));
}

/* Runs the cell on memory that is already open. */
static enum frag_err run_on(struct comparison *s, struct compared *c,
                            const struct cell_settings *settings,
                            const struct cell_memory *m,
                            const struct frag_params *params,
                            struct frag_summary *out, struct frag_error *e)
{
    struct frag_run run;

    FRAG_TRY(cell_replay(settings, m, s->trace, params, progress_tick,
                         &s->progress, &run, e));
    judge(c, &run.summary);
    *out = run.summary;
    frag_run_free(&run);
    c->runs++;
    return FRAG_OK;
}

/* Runs the cell, and measures the machine's pace before and after. With --check
 * nothing is timed: filling and checking the contents is no cost of the policy.
 */
static enum frag_err run_and_time(struct comparison *s, struct compared *c,
                                  const struct cell_settings *settings,
                                  const struct cell_memory *m,
                                  const struct frag_params *params,
                                  frag_size room, struct frag_error *e)
{
    const bool is_timed = settings->check == CELL_CHECK_NONE;
    struct frag_summary summary;
    double before = 0, after = 0;
    frag_time started;

    if (is_timed)
        FRAG_TRY(frag_pace(s->device, room, &settings->costs, &before, e));
    started = clock_of(s);
    FRAG_TRY(run_on(s, c, settings, m, params, &summary, e));
    note_released(s, m, started);
    if (!is_timed)
        return FRAG_OK;
    FRAG_TRY(frag_pace(s->device, room, &settings->costs, &after, e));
    keep_quickest(c, m, (before + after) / 2, &summary);
    return FRAG_OK;
}

static enum frag_err run_real(struct comparison *s, struct compared *c,
                              const struct frag_params *params, bool check,
                              struct frag_error *e)
{
    struct cell_settings settings = s->real;
    frag_size before, after;
    struct cell_memory m;
    enum frag_err err;

    settings.check = check ? CELL_CHECK_ALL : CELL_CHECK_NONE;
    wait_until_clear(s);
    FRAG_TRY(frag_cuda_free_bytes(s->device, &before));
    FRAG_TRY(settings.backend->open(&settings, c->id.bound, &m, e));
    err = run_and_time(s, c, &settings, &m, params, before / 2, e);
    settings.backend->close(&m);
    FRAG_TRY(err);
    FRAG_TRY(frag_cuda_free_bytes(s->device, &after));
    if (after < before && before - after > c->leaked)
        c->leaked = before - after;
    return FRAG_OK;
}

static enum frag_err run_simulated(struct comparison *s, struct compared *c,
                                   const struct frag_params *params,
                                   struct frag_error *e)
{
    struct frag_run run;

    FRAG_TRY(cell_run(&s->simulated, s->trace, &c->id, params, progress_tick,
                      &s->progress, &run, e));
    c->simulated = run.summary;
    frag_run_free(&run);
    return FRAG_OK;
}

/* -- the cells of a trace ------------------------------------------------ */

static struct compared *cell_at(struct comparison *s, size_t policy,
                                size_t capacity)
{
    return &s->cells[policy * s->bound_count + capacity];
}

/* Round 0 is the simulation. With --check, round 1 checks contents and the
 * later rounds are timed. Each round runs all cells, so that a temporary
 * disturbance of the machine does not affect all runs of one cell. */
static enum frag_err run_round(struct comparison *s, uint64_t round,
                               struct frag_error *e)
{
    const bool check = s->values->cell.check && round == 1;

    for (size_t p = 0; p < s->policy_count; p++)
        for (size_t i = 0; i < s->bound_count; i++) {
            struct compared *c = cell_at(s, p, i);
            char label[64];

            snprintf(label, sizeof(label), "%.24s %.24s", c->id.trace.name,
                     c->id.policy);
            progress_step(&s->progress, p * s->bound_count + i + 1,
                          s->policy_count * s->bound_count, " events", 1,
                          label);
            if (round == 0)
                FRAG_TRY(run_simulated(s, c, s->params[p], e));
            else
                FRAG_TRY(run_real(s, c, s->params[p], check, e));
            if (cli_interrupted())
                return FRAG_CANCELLED;
        }
    return FRAG_OK;
}

static enum frag_err begin(struct comparison *s, const struct input *in,
                           struct frag_error *e)
{
    struct bound_facts facts;

    s->trace = in->device;
    FRAG_TRY(recording_facts(in->trace, in->device, &facts, e));
    for (size_t p = 0; p < s->policy_count; p++) {
        FRAG_TRY(policy_choice_params_of(&s->policies[p], in->trace, in->device,
                                         &s->params[p], e));
        for (size_t i = 0; i < s->bound_count; i++)
            *cell_at(s, p, i) = (struct compared){
                .id = {.trace =
                           frag_trace_identify(in->trace, in->device, in->name),
                       .policy = s->policies[p].text,
                       .policy_used = s->policies[p].policy,
                       .bound = bound_choice_of(&s->bounds[i], &s->policies[p],
                                                &facts),
                       .capacity = bound_choice_capacity(&s->bounds[i])},
                .measured = UINT64_MAX};
    }
    return FRAG_OK;
}

static enum frag_err compare_device(void *user, const struct input *in,
                                    struct frag_error *e)
{
    struct comparison *s = user;
    const uint64_t repeat = s->values->repeat;
    const uint64_t rounds =
        (repeat == UINT64_MAX ? RUNS : repeat) + s->values->cell.check;
    enum frag_err err = begin(s, in, e);

    for (uint64_t r = 0; err == FRAG_OK && r <= rounds; r++)
        err = run_round(s, r, e);
    for (size_t i = 0; err == FRAG_OK && i < s->policy_count * s->bound_count;
         i++)
        compare_report_add(&s->report, &s->cells[i]);
    for (size_t p = 0; p < s->policy_count; p++) {
        free(s->params[p]);
        s->params[p] = NULL;
    }
    return err;
}

/* -- the command --------------------------------------------------------- */

/* Without --costs, the costs are those of the GPU's kind. If they were not
 * measured, the default stands for them. */
static void choose_costs(struct comparison *s)
{
    char gpu[FRAG_CUDA_NAME];
    const struct frag_measured_costs *own;

    s->report.costs = s->values->cell.costs;
    if (s->report.costs)
        return;
    frag_cuda_describe(s->device, gpu);
    own = frag_costs_of_device(gpu);
    if (!own) {
        own = frag_measured_costs;
        gpu[strcspn(gpu, ",")] = '\0';
        if (!s->values->common.quiet)
            fprintf(stderr,
                    "fragsim compare: note: the costs of calls are those of an "
                    "%s; this GPU (%s) was not measured, see `fragsim "
                    "compare --calibrate'\n",
                    own->device, gpu);
    }
    s->real.costs = *own->costs;
    s->report.costs = own->name;
}

/* Reads the options and opens the GPU. The simulated device reports the same
 * total as the GPU. */
static enum frag_err prepare(struct comparison *s, struct frag_error *e)
{
    const struct cell_values *v = &s->values->cell;
    struct frag_cuda_options options;

    FRAG_TRY(
        policy_choices_read(&v->policies, &s->policies, &s->policy_count, e));
    FRAG_TRY(bound_choices_read(v->bounds, &s->bounds, &s->bound_count, e));
    FRAG_TRY(cell_settings_read(v, &s->real, e));
    options = (struct frag_cuda_options){.ordinal = s->real.gpu};
    FRAG_TRY(frag_cuda_open(&options, &s->device, e));
    choose_costs(s);
    if (!s->real.total)
        s->real.total = s->device->total;
    s->simulated = s->real;
    s->simulated.from_requests = true; /* as the GPU's runs start */
    s->real.backend = &cell_cuda_backend;
    s->cells = calloc(s->policy_count * s->bound_count, sizeof(*s->cells));
    s->params = calloc(s->policy_count, sizeof(*s->params));
    if (!s->cells || !s->params)
        return frag_no_memory(e, "the cells");
    return FRAG_OK;
}

static enum frag_err compare_all(struct comparison *s, struct frag_error *e)
{
    const struct compare_values *v = s->values;
    const struct inputs inputs = {&v->common.args,        v->cell.device,
                                  cell_reading(&v->cell), false,
                                  &s->progress,           &s->unread};
    enum frag_err err;

    FRAG_TRY(prepare(s, e));
    FRAG_TRY(compare_report_open(&s->report, s->call, &v->outputs, e));
    err = inputs_each(&inputs, compare_device, s, e);
    if (err == FRAG_OK)
        return report_texts_commit(&s->report.texts,
                                   cli_colors(&v->common, stdout), e);
    report_texts_abort(&s->report.texts);
    return err;
}

static int say_wrong(const struct comparison *s)
{
    if (!s->report.wrong)
        return EXIT_DONE;
    fprintf(stderr,
            "fragsim compare: %" PRIu64 " of %" PRIu64
            " differ from the simulation or leave memory on the device\n",
            s->report.wrong, s->report.rows);
    return EXIT_NO;
}

/* Refuses result files, which the user may want to compare. */
static int refuse_results(const struct call *call, const struct texts *args)
{
    for (size_t i = 0; i < args->count; i++)
        if (frag_results_is(args->items[i]))
            return cli_misuse(
                call,
                "expected traces, which are run on a GPU and in the "
                "simulation, found the result file %s; `fragsim diff' "
                "compares two result files, and `fragsim plot FILE... compare "
                "-o compare.svg' draws them",
                args->items[i]);
    return EXIT_DONE;
}

/* Whether an option of a comparison was given that --calibrate has no use for.
 */
static bool has_cell_options(const struct call *call,
                             const struct compare_values *v)
{
    const struct compare_values *unset = call->verb->defaults;
    struct cell_values cell = v->cell;

    cell.gpu = unset->cell.gpu;
    return v->outputs.json || memcmp(&cell, &unset->cell, sizeof(cell)) != 0;
}

/* Wrong use that the options alone show; EXIT_DONE if there is none. */
static int check_use(const struct call *call, const struct compare_values *v)
{
    const uint64_t most = v->calibrate ? 10000 : 1000;

    if (!v->repeat || (v->repeat > most && v->repeat != UINT64_MAX))
        return cli_misuse(call, "--repeat: expected 1 to %" PRIu64, most);
    if (!v->calibrate && v->outputs.own[0])
        return cli_misuse(call, "--calls is for --calibrate");
    if (!v->calibrate && !call->args->count)
        return cli_misuse(call, "expected TRACE... or --calibrate");
    if (!v->calibrate)
        return refuse_results(call, call->args);
    if (call->args->count > 1 || has_cell_options(call, v))
        return cli_misuse(call,
                          "--calibrate replays nothing: it takes no trace, but "
                          "one file of times, and of the options only --csv, "
                          "--calls, --device-number, --repeat and --force");
    if (call->args->count && v->outputs.own[0])
        return cli_misuse(call, "--calls writes times that are measured now; "
                                "it cannot be combined with a file of times");
    return v->cell.gpu > INT_MAX
               ? cli_misuse(
                     call,
                     "--device-number: expected the number of a GPU, found "
                     "a larger number")
               : EXIT_DONE;
}

static int calibrate(const struct call *call, const struct compare_values *v)
{
    const struct calibration c = {
        .common = &v->common,
        .costs = v->outputs.csv,
        .calls = v->outputs.own[0],
        .from = call->args->count ? *call->args->items : NULL,
        .gpu = v->cell.gpu,
        .rounds = v->repeat == UINT64_MAX ? ROUNDS : v->repeat,
    };
    struct frag_error e = {""};

    return cli_fail(call, calibration_run(&c, &e), &e);
}

static int compare_run(const struct call *call, const void *values)
{
    struct comparison s = {.call = call, .values = values};
    struct frag_error e = {""};
    enum frag_err err;
    int code = check_use(call, s.values);

    if (code == EXIT_DONE)
        code = outputs_check(call, &s.values->outputs);
    if (code != EXIT_DONE)
        return code;
    if (s.values->calibrate)
        return calibrate(call, s.values);
    s.progress = progress_start(&s.values->common);
    s.unread = unread_of(call, &s.values->common);
    cli_catch_signals();
    err = compare_all(&s, &e);
    progress_clear(&s.progress);
    frag_cuda_close(s.device);
    free(s.cells);
    free(s.params);
    policy_choices_free(s.policies, s.policy_count);
    free(s.bounds);
    return unread_exit(&s.unread, err == FRAG_OK ? say_wrong(&s)
                                                 : cli_fail(call, err, &e));
}

/* clang-format off */
#define AT(field) offsetof(struct compare_values, field)
static const struct option_row options[] = {
    CELL_GRID_OPTIONS(AT),
    {"repeat", 0, "N", OPTION_NUMBER, AT(repeat), NULL,
     "number of timed runs on the GPU; the fastest run counts (default: 5); "
     "with --calibrate, of rounds through all calls and sizes (default: 24)"},
    {"calibrate", 0, NULL, OPTION_SWITCH, AT(calibrate), NULL,
     "take no trace: measure the costs of the driver's calls, or compute them, "
     "without a GPU, from FILE, which --calls wrote; --csv writes them, for "
     "--costs"},
    {"calls", 0, "FILE", OPTION_TEXT, AT(outputs.own[0]), NULL,
     "with --calibrate: write the time of every call as CSV; - is stdout"},
    {"check", 0, NULL, OPTION_SWITCH, AT(cell.check), NULL,
     "add a run on the GPU that verifies every block that the policy "
     "allocates, and that blocks keep their contents"},
    {"stop-at-oom", 0, NULL, OPTION_SWITCH, AT(cell.stop_at_oom), NULL,
     "end a run at the first request that cannot be met"},
    {"device-number", 0, "N", OPTION_NUMBER, AT(cell.gpu), NULL,
     "number of the GPU (default: 0)"},
    OUTPUT_JSON_OPTION(AT, "rows as JSON, with the seconds of each call; - is "
                           "stdout"),
    OUTPUT_CSV_OPTION(AT),
    OUTPUT_FORCE_OPTION(AT, OUTPUT_FORCE_ALL),
    CELL_MODEL_OPTIONS(AT),
    {0},
};
/* clang-format on */

const struct verb verb_compare = {
    .name = "compare",
    .args = "TRACE...|--calibrate [FILE]",
    .summary = "compare replays on a GPU with replays on the simulated device, "
               "or measure its driver's calls",
    .about =
        "Every count of a run (reserved bytes, OOMs and the first of them, "
        "driver calls, segments) must be the same on the GPU of this machine "
        "and on the simulated device, and every run must leave the GPU's free "
        "memory as it was. Otherwise the exit code is 1. Many policies take "
        "the lowest of several free blocks of equal size; such a run is the "
        "same only where the GPU's driver orders segments by the address rule "
        "of the simulated device.\n\n"
        "The table also compares seconds: the time of the driver's calls, "
        "until all memory is freed, and the time by the cost model (--costs, "
        "see --calibrate). The speed of a machine varies: before and after "
        "each timed run a fixed series of calls is timed, and `paced' is the "
        "ratio of modelled to measured seconds at that speed. Between two "
        "runs the device has time to clear freed memory.\n\n"
        "Without a capacity, a run that requests too much ends when the GPU's "
        "own memory is full; the simulation does not know that limit.\n\n"
        "With --calibrate the command times each memory call of the driver "
        "for sizes from 512 B up, and prints the cost model: a robust "
        "straight line through these times, with a fixed time for each call, "
        "and a time for each MiB. Several allocations exist at once, as in a "
        "replay. The calls are timed in rounds; the first round only warms up "
        "the device. The time for a size is the mean of a round without its "
        "slowest sixteenth, and then the smallest of all rounds, because a "
        "disturbance only makes a call slower. `residual' is the relative "
        "distance between line and time, as the median over the sizes; "
        "`worst' is the largest distance. At most 16 GiB and at most half of "
        "the device's free memory are allocated, and all of it is freed.",
    .example = "fragsim compare snapshot.pickle -p torch -p remap -c inf,0.9x "
               "--check",
    .options = options,
    .size = sizeof(struct compare_values),
    .defaults = &(const struct compare_values){.cell = CELL_DEFAULTS,
                                               .repeat = UINT64_MAX},
    .args_max = SIZE_MAX,
    .run = compare_run,
};
