/* verb_merge.c - the command merge: joins result files into one, for example
 * the shards of a sweep. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/cli/cli.h"
#include "traces/printable.h"
#include "traces/text.h"

struct merge_values {
    struct common common;
    bool force;
};

/* A run of an input as a row of the output; its texts are borrowed from the
 * loaded file. */
struct merge_row {
    const char *file;
    struct frag_loaded_run *run;
};

struct merge {
    const struct texts *paths; /* the first is the output */
    struct frag_loaded *loaded;
    size_t loaded_count;
    struct merge_row *rows;
    size_t row_count;
    size_t partial; /* number of sweeps of which the inputs lack parts */
};

/* -- reading ------------------------------------------------------------- */

static bool same(const char *a, const char *b)
{
    return a == b || (a && b && !strcmp(a, b));
}

/* Only runs of one version and with one set of settings may be in one table. */
static enum frag_err check_kin(const struct merge *m, size_t i,
                               struct frag_error *e)
{
    const struct frag_loaded *a = &m->loaded[0], *b = &m->loaded[i];
    const char *const first = m->paths->items[1],
                      *path = m->paths->items[i + 1];

    if (!same(a->version, b->version) || !same(a->commit, b->commit))
        return frag_fail(e, FRAG_CORRUPT,
                         "%s was made by fragsim %s (%s), but %s by %s (%s); "
                         "their numbers must not be in one table",
                         path, b->version, b->commit, first, a->version,
                         a->commit);
    if (!same(a->settings, b->settings))
        return frag_fail(e, FRAG_CORRUPT,
                         "%s was made with the settings \"%s\", but %s with "
                         "\"%s\"",
                         path, b->settings ? b->settings : "", first,
                         a->settings ? a->settings : "");
    return FRAG_OK;
}

static enum frag_err load_all(struct merge *m, struct frag_error *e)
{
    const size_t count = m->paths->count - 1;

    m->loaded = calloc(count, sizeof(*m->loaded));
    if (!m->loaded)
        return frag_no_memory(e, "a merge");
    while (m->loaded_count < count) {
        size_t i = m->loaded_count;

        FRAG_TRY(frag_results_load(m->paths->items[i + 1], &m->loaded[i], e));
        m->loaded_count++;
        FRAG_TRY(check_kin(m, i, e));
        if (cli_interrupted())
            return FRAG_CANCELLED;
    }
    return FRAG_OK;
}

static enum frag_err make_rows(struct merge *m, struct frag_error *e)
{
    size_t count = 0;

    for (size_t i = 0; i < m->loaded_count; i++)
        count += m->loaded[i].count;
    m->rows = calloc(count + 1, sizeof(*m->rows));
    if (!m->rows)
        return frag_no_memory(e, "a merge");
    for (size_t i = 0; i < m->loaded_count; i++)
        for (uint64_t k = 0; k < m->loaded[i].count; k++)
            m->rows[m->row_count++] = (struct merge_row){m->paths->items[i + 1],
                                                         &m->loaded[i].runs[k]};
    return FRAG_OK;
}

/* -- choosing ------------------------------------------------------------ */

/* Orders runs. Copies of one run are neighbours: a copy with details comes
 * first, and then the copy with the shorter time. The choice does not depend on
 * the order of the files. */
static int by_identity(const void *a, const void *b)
{
    const struct merge_row *const *x = a, *const *y = b;
    const struct frag_run *r = &(*x)->run->run, *s = &(*y)->run->run;
    int order = frag_results_order(&(*x)->run->id, r->params, &(*y)->run->id,
                                   s->params);
    double fast = r->summary.ns_per_event, other = s->summary.ns_per_event;

    if (order)
        return order;
    if ((*x)->run->id.bare != (*y)->run->id.bare)
        return (*x)->run->id.bare - (*y)->run->id.bare;
    if (isnan(fast) != isnan(other))
        return isnan(fast) - isnan(other);
    return (fast > other) - (fast < other);
}

static bool agree(const struct merge_row *a, const struct merge_row *b)
{
    struct frag_summary x = a->run->run.summary, y = b->run->run.summary;

    x.ns_per_event = y.ns_per_event =
        0; /* the wall clock differs between equal runs */
    return !memcmp(&x, &y, sizeof(x));
}

static enum frag_err add_rows(struct merge_row *const *rows, size_t count,
                              struct frag_results *out, struct frag_error *e)
{
    for (size_t i = 0; i < count; i++) {
        const struct merge_row *r = rows[i], *last = i ? rows[i - 1] : NULL;

        if (last && !frag_results_order(&last->run->id, last->run->run.params,
                                        &r->run->id, r->run->run.params)) {
            if (agree(last, r))
                continue;
            return frag_fail(e, FRAG_CORRUPT,
                             "%s and %s have different results for %s with %s; "
                             "one of the files does not contain what it states",
                             last->file, r->file, r->run->id.trace.name,
                             r->run->id.policy);
        }
        if (cli_interrupted())
            return FRAG_CANCELLED;
        FRAG_TRY(frag_results_add(out, &r->run->id, &r->run->run, e));
    }
    return FRAG_OK;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* A line of frag_loaded.shards. */
struct merge_part {
    size_t command; /* length of the command before " --shard I/N" */
    unsigned index, count;
};

static struct merge_part part_of(const char *line)
{
    struct merge_part p = {0, 0, 0};

    for (const char *at = line; (at = strstr(at, " --shard ")); at++)
        p.command = (size_t)(at - line);
    (void)sscanf(line + p.command, " --shard %6u/%6u", &p.index, &p.count);
    return p;
}

static bool same_sweep(const char *a, const char *b)
{
    const size_t length = part_of(a).command;

    return length == part_of(b).command && !memcmp(a, b, length);
}

/* Makes the line "--shard 1/1" if all N parts of the sweep in N are there. */
static void join_parts(char **lines, size_t count, size_t i)
{
    const struct merge_part p = part_of(lines[i]);
    unsigned parts = 0;

    for (size_t k = 0; k < count; k++)
        parts += part_of(lines[k]).count == p.count &&
                 same_sweep(lines[i], lines[k]);
    if (parts == p.count)
        memcpy(lines[i] + p.command, " --shard 1/1", sizeof(" --shard 1/1"));
}

/* Whether line i stays: not if the whole sweep is another line. Counts and
 * names the sweeps of which a part is not among the lines. */
static bool keep_part(struct merge *m, char *const *lines, size_t count,
                      size_t i)
{
    const struct merge_part p = part_of(lines[i]);
    char found[200] = "";
    bool first = true;

    for (size_t k = 0; k < count; k++) {
        const struct merge_part q = part_of(lines[k]);

        if (!same_sweep(lines[i], lines[k]))
            continue;
        if (q.count == 1)
            return k == i;
        if (q.count == p.count) {
            first = first && k >= i;
            text_add(found, sizeof(found), ", ", "%u", q.index);
        }
    }
    if (first) {
        m->partial++;
        printable_line(stderr, "%s has only part %s of %u of %.*s",
                       m->paths->items[0], found, p.count, (int)p.command,
                       lines[i]);
    }
    return true;
}

/* Sorts the lines and keeps each once; returns their number. */
static size_t sort_lines(char **lines, size_t count)
{
    size_t kept = 0;

    qsort(lines, count, sizeof(*lines), by_text);
    for (size_t i = 0; i < count; i++)
        if (!kept || strcmp(lines[i], lines[kept - 1]) != 0)
            lines[kept++] = lines[i];
    return kept;
}

/* Joins the lines of all texts, each line once, sorted; the caller frees the
 * text. "" if there are no lines; NULL if the host has no memory. */
static char *unite(struct merge *m, size_t offset, bool has_parts)
{
    char *all = NULL, **lines = NULL, *text = NULL;
    size_t size, count = 0;
    FILE *out = open_memstream(&all, &size);

    for (size_t i = 0; out && i < m->loaded_count; i++) {
        const char *one;

        memcpy(&one, (const char *)&m->loaded[i] + offset, sizeof(one));
        if (one)
            fprintf(out, "%s\n", one);
    }
    if (out && fclose(out) == 0)
        lines = malloc((size + 1) * sizeof(*lines));
    for (char *at = all; lines && *at; at = strchr(at, '\0') + 1) {
        lines[count++] = at;
        at[strcspn(at, "\n")] = '\0';
    }
    count = lines ? sort_lines(lines, count) : 0;
    text = lines ? calloc(1, size + 1) : NULL;
    for (size_t i = 0; has_parts && i < count; i++)
        join_parts(lines, count, i);
    for (size_t i = 0, used = 0; text && i < count; i++)
        if (!has_parts || keep_part(m, lines, count, i))
            used += (size_t)sprintf(text + used, "%s%s", used ? "\n" : "",
                                    lines[i]);
    free(lines);
    free(all);
    return text;
}

/* -- writing ------------------------------------------------------------- */

static enum frag_err write_sorted(const struct merge *m,
                                  const struct frag_provenance *p,
                                  struct frag_error *e)
{
    struct merge_row **rows =
        calloc(m->row_count + 1, sizeof(struct merge_row *));
    struct frag_results *out;
    enum frag_err err;

    if (!rows)
        return frag_no_memory(e, "a merge");
    for (size_t i = 0; i < m->row_count; i++)
        rows[i] = &m->rows[i];
    qsort(rows, m->row_count, sizeof(struct merge_row *), by_identity);
    err = frag_results_open(m->paths->items[0], p, &out, e);
    if (err == FRAG_OK) {
        err = add_rows(rows, m->row_count, out, e);
        if (err == FRAG_OK)
            err = frag_results_commit(out, FRAG_NO_TIME, e);
        else
            frag_results_abort(out);
    }
    free(rows);
    return err;
}

static enum frag_err write_all(struct merge *m, struct frag_error *e)
{
    char *command = unite(m, offsetof(struct frag_loaded, command), false);
    char *missing = unite(m, offsetof(struct frag_loaded, missing), false);
    char *shards = unite(m, offsetof(struct frag_loaded, shards), true);
    enum frag_err err = frag_no_memory(e, "a merge");

    if (command && missing && shards)
        err = write_sorted(m,
                           &(const struct frag_provenance){
                               .version = m->loaded[0].version,
                               .commit = m->loaded[0].commit,
                               .command = command,
                               .started = FRAG_NO_TIME,
                               .settings = m->loaded[0].settings,
                               .missing = *missing ? missing : NULL,
                               .shards = *shards ? shards : NULL,
                           },
                           e);
    free(command);
    free(missing);
    free(shards);
    return err;
}

static int merge_run(const struct call *call, const void *values)
{
    const struct merge_values *v = values;
    struct merge m = {.paths = &v->common.args};
    struct frag_error e = {""};
    enum frag_err err;
    int code = cli_may_replace(call, m.paths->items[0], v->force);

    if (code != EXIT_DONE)
        return code;
    cli_catch_signals();
    err = load_all(&m, &e);
    FRAG_THEN(err, make_rows(&m, &e));
    FRAG_THEN(err, write_all(&m, &e));
    if (err == FRAG_OK && !v->common.quiet)
        printable_line(stderr, "%zu runs of %zu files; written to %s",
                       m.row_count, m.loaded_count, m.paths->items[0]);
    free(m.rows);
    for (size_t i = 0; i < m.loaded_count; i++)
        frag_results_unload(&m.loaded[i]);
    free(m.loaded);
    return err == FRAG_OK && m.partial ? EXIT_NO : cli_fail(call, err, &e);
}

/* clang-format off */
static const struct option_row options[] = {
    FORCE_OPTION(offsetof(struct merge_values, force)),
    {0},
};
/* clang-format on */

const struct verb verb_merge = {
    .name = "merge",
    .args = "OUT IN...",
    .summary = "join result files, such as the shards of a sweep",
    .about =
        "The command writes every run of the inputs to OUT once, sorted by "
        "trace, device, policy, parameters and capacity. The order of the "
        "inputs does not change the output, and merging a file twice does not "
        "either. The shards of a sweep make the same file as the whole sweep; "
        "if some are not among the inputs, the command names those that are, "
        "and the exit code is 1. All inputs must have one version and the "
        "same settings, and two inputs with different results for the same "
        "run are an error. The command needs memory for all inputs and for "
        "twice the output.",
    .example = "fragsim merge grid.h5 shards/*.h5",
    .options = options,
    .size = sizeof(struct merge_values),
    .defaults = &(const struct merge_values){.force = false},
    .args_min = 2,
    .args_max = SIZE_MAX,
    .run = merge_run,
};
