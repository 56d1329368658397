/* verb_sweep.c - the command sweep: reads a grid of traces, policies and
 * capacities, and runs it on threads. The sweep itself is in
 * sim/experiments/sweep/. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sim/cli/cell_options.h"
#include "sim/cli/cli.h"
#include "sim/cli/output/inputs.h"
#include "sim/cli/output/outputs.h"
#include "sim/cli/output/progress.h"
#include "sim/cli/output/report.h"
#include "sim/experiments/sweep/sweep.h"
#include "sim/version.h"
#include "traces/bytes/atomic_file.h"
#include "traces/printable.h"
#include "traces/text.h"

enum { FAULTS_SHOWN = 20 };

struct sweep_values {
    struct common common;
    struct cell_values cell;
    struct texts edits;
    struct outputs outputs;
    const char *grid, *shard;
    uint64_t threads, points, need;
    bool resume, list;
};

/* Everything between the options and the result file. */
struct plan {
    const struct call *call;
    const struct sweep_values *values;
    struct grid grid;
    struct shard shard;
    struct trace_reading reading;
    struct cell_settings settings;
    char *command, *settings_text, *shards;
    struct frag_provenance by; /* of the results and the chunks */
    char *folder; /* OUTPUT.part, the chunks of an unfinished sweep */
    struct sweep *sweep;
    struct chunks chunks;
    struct progress progress;
    struct cell_note_list notes;
};

/* -- preparing ----------------------------------------------------------- */

static void put_word(FILE *out, const char *option, const char *text)
{
    char *quoted = text ? cli_quoted(text) : NULL;

    if (quoted)
        fprintf(out, " %s%s", option, quoted);
    free(quoted);
}

static void put_words(FILE *out, const char *option, const struct texts *list)
{
    for (size_t i = 0; i < list->count; i++)
        put_word(out, option, list->items[i]);
}

/* The command in the provenance of the result. It contains the options that
 * define the results, but not those that only change how they are computed, so
 * that threads, shards and a resumed run do not change the file. NULL if the
 * host has no memory. */
static char *make_command(const struct sweep_values *v)
{
    static const char *const rules[] = {"", " --address-rule hostile",
                                        " --address-rule exact"};
    const struct cell_values *c = &v->cell;
    char *text = NULL, bytes[FRAG_SIZE_TEXT];
    size_t size;
    FILE *out = open_memstream(&text, &size);

    if (!out)
        return NULL;
    fputs("fragsim sweep", out);
    put_words(out, "", &v->common.args);
    put_words(out, "-p ", &c->policies);
    put_words(out, "--edit ", &v->edits);
    put_words(out, "-c ", &c->bounds[FRAG_BOUND_CAPACITY]);
    put_words(out, "--process-limit ", &c->bounds[FRAG_BOUND_LIMIT]);
    put_word(out, "--grid ", v->grid);
    put_word(out, "--costs ", c->costs);
    if (c->device != INPUT_ANY_DEVICE)
        fprintf(out, " --device %" PRIu64, c->device);
    if (c->total)
        fprintf(out, " --total %s", frag_size_argument(c->total, bytes));
    if (c->limit)
        fprintf(out, " --recorded-limit %s",
                frag_size_argument(c->limit, bytes));
    fputs(c->as_recorded ? " --as-recorded" : "", out);
    if (c->further)
        fprintf(out, " --further-steps %" PRIu64, c->further);
    put_word(out, "--step-mark ", c->mark);
    fputs(rules[c->rule], out);
    fputs(c->stop_at_oom ? " --stop-at-oom" : "", out);
    fputs(c->check ? " --check" : "", out);
    if (v->need)
        fprintf(out, " --need %s", v->need == 1 ? "capacity" : "limit");
    if (v->points)
        fprintf(out, " --points %" PRIu64, v->points);
    if (fclose(out) == 0)
        return text;
    free(text);
    return NULL;
}

/* A trace that does not exist is a fault of its cells; a name that cannot be
 * that of a trace is one of the command. */
static enum frag_err check_names(const struct grid *grid, struct frag_error *e)
{
    for (size_t i = 0; i < grid->traces.count; i++)
        if (input_check_name(grid->traces.items[i], e) == FRAG_INVALID)
            return FRAG_INVALID;
    return FRAG_OK;
}

/* The need is a column of runs without a bound. */
static enum frag_err check_need(const struct plan *plan, struct frag_error *e)
{
    const struct grid *g = &plan->grid;

    for (size_t i = 0; i < g->bound_count; i++)
        if (g->bounds[i].fixed.bytes == FRAG_UNLIMITED &&
            g->bounds[i].kind != BOUND_SHARE &&
            g->bounds[i].kind != BOUND_RECORDED)
            return FRAG_OK;
    if (!plan->settings.need)
        return FRAG_OK;
    return frag_fail(e, FRAG_INVALID,
                     "--need: expected a run without a bound, whose row holds "
                     "the need; found bounds only: add -c inf");
}

static enum frag_err read_options(struct plan *plan, struct frag_error *e)
{
    const struct sweep_values *v = plan->values;

    plan->shard = (struct shard){1, 1};
    if (v->shard)
        FRAG_TRY(shard_read(v->shard, &plan->shard, e));
    FRAG_TRY(cell_settings_read(&v->cell, &plan->settings, e));
    plan->reading = cell_reading(&v->cell);
    plan->settings.timed = false; /* times differ between equal runs */
    plan->settings.points = v->points;
    plan->settings.ooms = v->points ? CELL_OOMS : 0;
    plan->settings.need = (unsigned)v->need;
    FRAG_TRY(grid_read(
        &(const struct grid_source){&v->common.args, &v->cell.policies,
                                    v->cell.bounds, v->grid, &v->edits},
        &plan->grid, e));
    plan->settings.quantum =
        policy_choices_quantum(plan->grid.policies, plan->grid.policy_count);
    FRAG_TRY(check_need(plan, e));
    return check_names(&plan->grid, e);
}

/* -- --list -------------------------------------------------------------- */

static void list_bound(const struct bound_choice *c,
                       const struct policy_choice *policy, const char *edit)
{
    if (c->kind == BOUND_SHARE)
        printf("%s%gx",
               c->fixed.kind == FRAG_BOUND_LIMIT ? "process limit " : "",
               c->share);
    else if (c->kind == BOUND_RECORDED ||
             (c->kind == BOUND_DEFAULT && policy->recorded))
        fputs("recorded", stdout);
    else
        printf("%s", c->fixed.bytes == FRAG_UNLIMITED
                         ? "inf"
                         : FRAG_SHOW_BOUND(c->fixed));
    if (edit) {
        putchar('\t');
        printable_put(stdout, edit);
    }
    putchar('\n');
}

static void list_cells(const struct plan *plan)
{
    const struct grid *g = &plan->grid;
    uint64_t i = shard_first(&plan->shard, grid_cells(g));

    for (; i < shard_end(&plan->shard, grid_cells(g)); i++) {
        struct grid_cell c = grid_cell(g, i);

        printf("%" PRIu64 "\t", i + 1);
        printable_put(stdout, g->traces.items[c.trace]);
        putchar('\t');
        printable_put(stdout, g->policies[c.policy].text);
        putchar('\t');
        list_bound(&g->bounds[c.bound], &g->policies[c.policy],
                   g->edits[c.edit].text);
    }
}

/* -- the files ----------------------------------------------------------- */

/* What identifies the sweep in its results and its chunks. */
static enum frag_err identify(struct plan *plan, struct frag_error *e)
{
    const char *out = plan->values->outputs.hdf5;

    plan->command = make_command(plan->values);
    plan->settings_text = cell_settings_text(&plan->settings, &plan->reading);
    plan->folder = text_make("%s.part", out);
    if (plan->command)
        plan->shards =
            text_make("%s --shard %" PRIu64 "/%" PRIu64, plan->command,
                      plan->shard.index, plan->shard.count);
    plan->by = (struct frag_provenance){
        .version = frag_version,
        .commit = frag_commit,
        .command = plan->command,
        .started = FRAG_NO_TIME,
        .settings = plan->settings_text,
        .shards = plan->shards,
    };
    return plan->shards && plan->folder && plan->settings_text
               ? FRAG_OK
               : frag_no_memory(e, "a sweep");
}

static bool has_folder(const struct plan *plan)
{
    return access(plan->folder, F_OK) == 0;
}

/* Sets *complete if the sweep is resumed and the result file already holds all
 * its results. IO if the file is the result of another command. */
static enum frag_err find_complete(const struct plan *plan, bool *complete,
                                   struct frag_error *e)
{
    const char *path = plan->values->outputs.hdf5;
    struct frag_loaded found;

    *complete = false;
    if (!plan->values->resume || plan->values->outputs.force ||
        has_folder(plan) || access(path, F_OK) < 0)
        return FRAG_OK;
    FRAG_TRY(frag_results_load(path, &found, e));
    *complete = !found.missing && found.settings &&
                !strcmp(found.settings, plan->settings_text) && found.shards &&
                !strcmp(found.shards, plan->shards) &&
                !strcmp(found.version, frag_version) &&
                !strcmp(found.commit, frag_commit);
    frag_results_unload(&found);
    if (*complete)
        return FRAG_OK;
    return frag_fail(e, FRAG_IO,
                     "%s is the result of another command, or of a part of "
                     "this one, and there is no %s to resume from; -f "
                     "overwrites it",
                     path, plan->folder);
}

/* HDF5's environment variable for file systems without locks. */
static bool locking_is_off(void)
{
    const char *wish = getenv("HDF5_USE_FILE_LOCKING");

    return wish && (!strcmp(wish, "FALSE") || !strcmp(wish, "0"));
}

static enum frag_err open_chunks(struct plan *plan, struct frag_error *e)
{
    const struct outputs *to = &plan->values->outputs;
    const char *const paths[] = {to->hdf5, to->json, to->csv};
    const enum chunks_mode mode = plan->values->resume ? CHUNKS_RESUME
                                  : to->force          ? CHUNKS_REPLACE
                                                       : CHUNKS_NEW;

    FRAG_TRY(chunks_open(plan->folder, mode, locking_is_off(), &plan->by,
                         &plan->chunks, e));
    /* The lock of the folder shows that no other sweep writes these. */
    for (int i = 0; i < 3; i++)
        if (paths[i])
            atomic_file_remove_dead(paths[i]);
    if (*plan->chunks.damaged.text && !plan->values->common.quiet)
        printable_line(stderr, "%s; the cells of this file run again",
                       plan->chunks.damaged.text);
    return FRAG_OK;
}

/* Adds a cell to a note. */
static enum frag_err gather(struct report *r,
                            const struct frag_run_identity *id, uint32_t device,
                            const char *text, struct frag_error *e)
{
    char place[CELL_PLACE];

    cell_place(id->policy, id->bound, place);
    return cell_note_add(r->texts.notes, id->trace.path, device, text, place)
               ? FRAG_OK
               : frag_no_memory(e, "the notes");
}

/* Gathers the notes: in a sweep, many cells have the same. */
static enum frag_err
add_to_report(void *user, const struct frag_run_identity *id, const char *notes,
              const struct frag_run *run, struct frag_error *e)
{
    struct report *r = user;

    for (uint32_t i = 0; i < id->trace.note_count; i++)
        FRAG_TRY(gather(r, id, CELL_NOTE_TRACE, id->trace.notes[i], e));
    for (size_t n; *notes; notes += n + (notes[n] == '\n')) {
        char text[RELEASE_NOTE];

        n = strcspn(notes, "\n");
        snprintf(text, sizeof(text), "%.*s", (int)n, notes);
        FRAG_TRY(gather(r, id, id->trace.device, text, e));
    }
    return report_add(r, id, run, e);
}

/* `missing` (may be NULL) lists the cells without a result, one a line. */
static enum frag_err write_results(struct plan *plan, const char *missing,
                                   struct frag_error *e)
{
    struct report report;
    enum frag_err err;

    plan->by.missing = missing;
    FRAG_TRY(report_open(&report, &plan->by, &plan->values->outputs, e));
    report.texts.has_table = false;
    report.texts.notes = &plan->notes;
    err = sweep_write(plan->sweep, add_to_report, &report, e);
    if (err == FRAG_OK)
        err = report_commit(&report, false, e);
    else
        report_abort(&report);
    plan->by.missing = NULL;
    return err;
}

/* -- running ------------------------------------------------------------- */

static void say_totals(const struct plan *plan, uint64_t started)
{
    const struct sweep_counts n = sweep_counts(plan->sweep);
    const double seconds = (double)(progress_clock() - started) / 1e9;

    if (plan->values->common.quiet)
        return;
    printable_line(
        stderr,
        "%" PRIu64 " cell%s, %" PRIu64 " of them found in unfinished work; "
        "%.1f M events in %.2f s; written to %s",
        n.done + n.recalled, n.done + n.recalled == 1 ? "" : "s", n.recalled,
        (double)n.events / 1e6, seconds, plan->values->outputs.hdf5);
}

static bool has_results(const struct plan *plan)
{
    const struct sweep_counts n = sweep_counts(plan->sweep);

    return n.done + n.recalled > 0;
}

/* Prints the errors; returns the exit code of the first one. */
static int say_faults(const struct plan *plan, const char *faults,
                      enum frag_err first)
{
    const struct sweep_counts n = sweep_counts(plan->sweep);
    char kept[512] = "no cell has a result, so nothing is written";
    struct frag_error e;
    const char *at = faults;

    for (int i = 0; at && i < FAULTS_SHOWN; i++) {
        printable_line(stderr, "%.*s", (int)strcspn(at, "\n"), at);
        at = strchr(at, '\n');
        at = at ? at + 1 : NULL;
    }
    if (has_results(plan))
        snprintf(kept, sizeof(kept),
                 "the others are in %s; --resume tries the failed ones again",
                 plan->values->outputs.hdf5);
    first = frag_fail(
        &e, first, "%" PRIu64 " trace%s or cell%s failed%s; %s%s", n.faults,
        n.faults == 1 ? "" : "s", n.faults == 1 ? "" : "s",
        n.faults > FAULTS_SHOWN ? " (the first ones are above)" : "", kept,
        first == FRAG_NOMEM ? ", best with more memory or fewer threads (-j)"
                            : "");
    return cli_fail(plan->call, first, &e);
}

static int stopped(const struct plan *plan, enum frag_err err,
                   const struct frag_error *e)
{
    const int code = cli_fail(plan->call, err, e);
    const struct sweep_counts n = sweep_counts(plan->sweep);

    printable_line(stderr,
                   "%" PRIu64 " of %" PRIu64 " cells are kept in %s; --resume "
                   "continues",
                   n.kept + n.recalled, n.cells, plan->folder);
    return code;
}

static void show(void *user, const struct sweep_counts *so_far)
{
    struct progress *progress = user;
    const uint64_t kept = so_far->done + so_far->recalled;

    progress->scale = (double)so_far->events / (double)kept;
    progress_tick(progress, kept, so_far->cells);
}

static int run_cells(struct plan *plan)
{
    struct frag_error e = {""};
    const uint64_t started = progress_clock();
    enum frag_err first, err;
    char *faults;
    bool keeps;
    int code;

    progress_step(&plan->progress, 0, 0, " events", 1, "sweep");
    err = sweep_run(plan->sweep, &e);
    progress_clear(&plan->progress);
    if (err != FRAG_OK) {
        (void)!sweep_keep(plan->sweep, NULL);
        return stopped(plan, err, &e);
    }
    faults = sweep_faults(plan->sweep, &first);
    keeps = first == FRAG_OK || has_results(plan);
    if (keeps)
        err = write_results(plan, faults, &e);
    if (err == FRAG_OK && !plan->values->common.quiet)
        input_say_cells(&plan->notes);
    if (err != FRAG_OK)
        (void)!sweep_keep(plan->sweep, NULL);
    else if (first != FRAG_OK)
        err = sweep_keep(plan->sweep, &e);
    if (err != FRAG_OK) {
        code = stopped(plan, err, &e);
    } else if (first != FRAG_OK) {
        code = say_faults(plan, faults, first);
    } else {
        say_totals(plan, started);
        code = EXIT_DONE;
    }
    if (err == FRAG_OK && (first == FRAG_OK || !keeps))
        chunks_remove(&plan->chunks);
    free(faults);
    return code;
}

static int run_plan(struct plan *plan, struct frag_error *e)
{
    const struct sweep_values *v = plan->values;
    const struct sweep_spec spec = {
        .grid = &plan->grid,
        .shard = plan->shard,
        .settings = &plan->settings,
        .chunks = &plan->chunks,
        .device = v->cell.device,
        .reading = plan->reading,
        .on = cli_threads(plan->call, v->threads, v->common.quiet),
        .show = show,
        .user = &plan->progress,
    };
    enum frag_err err;
    int code = EXIT_FILES;

    err = open_chunks(plan, e);
    FRAG_THEN(err, sweep_open(&spec, &plan->sweep, e));
    code = err == FRAG_OK ? run_cells(plan) : cli_fail(plan->call, err, e);
    sweep_close(plan->sweep);
    chunks_close(&plan->chunks);
    return code;
}

static bool is_lacking(const char *path)
{
    return path && (sink_is_stdout(path) || access(path, F_OK) < 0);
}

/* The rows of a complete sweep are not made again for a text output. */
static int say_complete(const struct plan *plan)
{
    const struct outputs *to = &plan->values->outputs;
    struct frag_error e;

    if (is_lacking(to->json) || is_lacking(to->csv))
        return cli_fail(plan->call,
                        frag_fail(&e, FRAG_IO,
                                  "%s is complete, so --resume writes no JSON "
                                  "and no CSV; -f runs the sweep again",
                                  to->hdf5),
                        &e);
    if (!plan->values->common.quiet)
        printable_line(stderr, "%s is complete", to->hdf5);
    return EXIT_DONE;
}

static int prepare_and_run(struct plan *plan)
{
    const struct sweep_values *v = plan->values;
    struct frag_error e = {""};
    enum frag_err err = read_options(plan, &e);
    bool complete;
    int code;

    if (err == FRAG_OK && v->list) {
        list_cells(plan);
        return EXIT_DONE;
    }
    FRAG_THEN(err, identify(plan, &e));
    FRAG_THEN(err, find_complete(plan, &complete, &e));
    if (err != FRAG_OK)
        return cli_fail(plan->call, err, &e);
    if (complete)
        return say_complete(plan);
    code =
        outputs_exist(plan->call, &v->outputs, v->resume && has_folder(plan));
    return code == EXIT_DONE ? run_plan(plan, &e) : code;
}

static int sweep_verb(const struct call *call, const void *values)
{
    const struct sweep_values *v = values;
    struct plan plan = {.call = call, .values = v};
    int code;

    if (!v->outputs.hdf5 && !v->list)
        return cli_misuse(call, "expected -o FILE, the file for the results");
    if (v->list && (v->outputs.json || v->outputs.csv))
        return cli_misuse(call, "--list prints no JSON and no CSV: leave out "
                                "--json and --csv");
    code = outputs_misused(call, &v->outputs);
    if (code != EXIT_DONE)
        return code;
    if (v->threads > 4096)
        return cli_misuse(call, "--jobs: expected at most 4096");
    for (size_t i = 0; i < v->common.args.count; i++)
        if (!strcmp(v->common.args.items[i], "-"))
            return cli_misuse(call, "expected files, found \"-\": a sweep "
                                    "that reads stdin cannot be resumed");
    plan.progress = progress_start(&v->common);
    cli_catch_signals();
    code = prepare_and_run(&plan);
    grid_free(&plan.grid);
    free(plan.command);
    free(plan.settings_text);
    free(plan.shards);
    free(plan.folder);
    cell_note_free(&plan.notes);
    return code;
}

/* clang-format off */
#define AT(field) offsetof(struct sweep_values, field)
static const struct option_row options[] = {
    CELL_GRID_OPTIONS(AT),
    {"edit", 'e', "EDIT", OPTION_LIST, AT(edits), NULL,
     "an edit of every trace, or several that are separated by semicolons (see "
     "`fragsim help edits'); repeat the option for more values of this axis; "
     "none is the trace as it is. A capacity such as 0.9x is a share of the "
     "edited trace's peak requested"},
    {"grid", 0, "FILE", OPTION_TEXT, AT(grid), NULL,
     "file that adds to the grid, one line each: trace PATH, policy TEXT, "
     "capacity LIST, edit TEXT; # begins a comment"},
    {"need", 0, "KIND", OPTION_CHOICE, AT(need), "none|capacity|limit",
     "also find what each policy needs (see `fragsim fit'): the least capacity "
     "of the device, or limit of the process, from which on nothing fails; it "
     "is the column need_bytes of the rows without a bound (default: none)"},
    OUTPUT_HDF5_OPTION(AT),
    OUTPUT_JSON_OPTION(AT, "rows as JSON; - is stdout"),
    OUTPUT_CSV_OPTION(AT),
    OUTPUT_FORCE_OPTION(AT, "overwrite existing outputs, and discard "
                            "unfinished work"),
    JOBS_OPTION(AT(threads)),
    {"resume", 0, NULL, OPTION_SWITCH, AT(resume), NULL,
     "continue an unfinished sweep to this output; begin one if there is none"},
    {"shard", 0, "I/N", OPTION_TEXT, AT(shard), NULL,
     "run only part I of N (from 1), whose cells are neighbours, and write it "
     "to its own output; `fragsim merge` joins the parts"},
    {"list", 0, NULL, OPTION_SWITCH, AT(list), NULL,
     "only print the cells: number, trace, policy, capacity and edit, "
     "separated by tabs"},
    {"points", 0, "N", OPTION_NUMBER, AT(points), NULL,
     "keep the series of every cell, of N points, and its OOMs and segments, "
     "as replay does; files are a hundred times larger (default: 0, none)"},
    CELL_RUN_OPTIONS(AT, ""),
    CELL_MODEL_OPTIONS(AT),
    {0},
};
/* clang-format on */

const struct verb verb_sweep = {
    .name = "sweep",
    .args = "[TRACE...]",
    .summary = "replay a grid of traces, edits, policies and capacities",
    .about =
        "The command runs every trace, with every edit, every policy and every "
        "capacity, on all processors, and writes one result file. One such run "
        "is a cell of the grid. The shell makes several policies of braces: "
        "--policy=tlsf:segment={2,8,32}MiB. The rows are sorted by trace, "
        "edit, device, policy, parameters and capacity. "
        "The file contains no timestamps, so the same grid always makes an "
        "identical file, for any number of threads, shards and attempts.\n\n"
        "Finished cells are written to result files in the folder OUTPUT.part "
        "beside the output, every 1,000 cells or 20 seconds. After a kill or "
        "the loss of the node, only the cells since then are lost, and "
        "--resume continues. --resume recognizes a finished cell by the "
        "SHA-256 of its trace, and by its policy, parameters, capacity, "
        "settings and version. The folder is removed when the output is "
        "complete.\n\n"
        "A trace that cannot be read, or a cell that fails, does not end the "
        "sweep. The other cells are written. The missing ones are listed at "
        "the end and in the attribute `missing' of the file, and the exit code "
        "is that of the first error (3 for a malformed trace, 4 for a trace "
        "that does not exist). If no cell has a result, nothing is written.\n\n"
        "Each distinct note of the cells is printed once, with the number of "
        "its cells; JSON has these notes in `cell_notes'.\n\n"
        "An open trace needs 96 bytes of memory for each event; while it is "
        "read, 6 times the size of its file, or 32 times if the file is "
        "compressed, and twice that if it is edited. A trace waits if the sum "
        "of the open ones would exceed three quarters of the available memory, "
        "or of the limit of the cgroup or the shell. A running cell needs 512 "
        "bytes for each block that is live at the peak, and, if the policy "
        "knows the future, 96 bytes for each event; fewer threads (-j) need "
        "less. The results of all cells stay in memory, and at the end the "
        "sweep also needs twice the size of the result file.",
    .example =
        "fragsim sweep traces/*.h5 -p torch "
        "--policy=best_fit:segment={2,8,32}MiB -c 0.9x,1.1x,inf -o grid.h5",
    .options = options,
    .size = sizeof(struct sweep_values),
    .defaults = &(const struct sweep_values){.cell = CELL_DEFAULTS},
    .args_max = SIZE_MAX,
    .run = sweep_verb,
};
