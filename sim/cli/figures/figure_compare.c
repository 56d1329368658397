/* figure_compare.c - figure: one number of each run, by default peak reserved
 * beside peak requested. More runs than have room for two lines each are
 * sorted.
 */
#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/cli/figures/cells.h"
#include "sim/cli/figures/figure.h"
#include "sim/results/columns.h"
#include "traces/nearest.h"

enum {
    ROOMY = 24, /* up to these, a bar has a line for its label, and the bars
                   keep the order of the runs */
    MOST = 1000,
};

struct bar {
    const struct frag_loaded_run *run;
    double value; /* NAN: none */
    size_t order; /* place of the run in the selection */
};

struct compared {
    struct bar *items;
    size_t count;
    const struct frag_column *column;
    const char *units; /* of the values: "byte", "s", ...; "" if none */
    bool is_bytes;     /* then the marks are peak requested */
    char words[64];    /* of the measure */
};

/* -- the values ---------------------------------------------------------- */

/* The bytes of a column in the summary of a run. */
static const void *cell(const struct frag_loaded_run *r,
                        const struct frag_column *c)
{
    return (const char *)&r->run.summary + c->offset -
           offsetof(struct frag_result_row, summary);
}

static bool is_measure(const struct frag_column *c)
{
    return c->offset >= offsetof(struct frag_result_row, summary) &&
           (c->kind == FRAG_COLUMN_COUNT || c->kind == FRAG_COLUMN_OPTIONAL ||
            c->kind == FRAG_COLUMN_REAL);
}

static double value_of(const struct frag_loaded_run *r,
                       const struct frag_column *c)
{
    uint64_t count;
    double real;

    if (c->kind == FRAG_COLUMN_REAL) {
        memcpy(&real, cell(r, c), sizeof(real));
        return real;
    }
    memcpy(&count, cell(r, c), sizeof(count));
    return c->kind == FRAG_COLUMN_OPTIONAL ? frag_optional_real(count)
                                           : (double)count;
}

static enum frag_err find_measure(const char *name,
                                  const struct frag_column **out,
                                  struct frag_error *e)
{
    struct nearest near = nearest_to(name);
    char names[NEAREST_NAMES];

    for (const struct frag_column *c = frag_summary_columns;
         c->kind != FRAG_COLUMN_END; c++) {
        if (!is_measure(c))
            continue;
        nearest_try(&near, c->name);
        if (!strcmp(c->name, name)) {
            *out = c;
            return FRAG_OK;
        }
    }
    return frag_fail(e, FRAG_INVALID,
                     "--measure: no result has the number \"%s\"%s", name,
                     nearest_names(&near, "numbers", names));
}

/* "peak reserved" of "peak_reserved_bytes". */
static void put_words(const char *name, char words[64])
{
    char *units;

    snprintf(words, 64, "%s", name);
    units = strstr(words, "_bytes");
    if (units)
        *units = '\0';
    for (char *c = words; *c; c++)
        *c = *c == '_' ? ' ' : *c;
}

/* Runs without an OOM first, then by value, the least first and runs without a
 * value last. */
static int by_value(const void *left, const void *right)
{
    const struct bar *a = left, *b = right;
    const bool a_fails = a->run->run.summary.num_ooms,
               b_fails = b->run->run.summary.num_ooms;

    if (a_fails != b_fails)
        return a_fails ? 1 : -1;
    if (isnan(a->value) != isnan(b->value))
        return isnan(a->value) ? 1 : -1;
    if (a->value < b->value || a->value > b->value)
        return a->value < b->value ? -1 : 1;
    return a->order < b->order ? -1 : a->order > b->order;
}

static enum frag_err find(const struct figure_source *s, struct frag_error *e)
{
    struct compared *c = s->found;

    FRAG_TRY(find_measure(s->measure ? s->measure : "peak_reserved_bytes",
                          &c->column, e));
    c->items = calloc(s->runs->count, sizeof(*c->items));
    if (!c->items)
        return FRAG_NOMEM;
    put_words(c->column->name, c->words);
    c->units = strcmp(c->column->units, "1") != 0 ? c->column->units : "";
    c->is_bytes = !strcmp(c->units, "byte");
    for (; c->count < s->runs->count; c->count++) {
        const struct frag_loaded_run *r = s->runs->runs[c->count];

        c->items[c->count] = (struct bar){r, value_of(r, c->column), c->count};
    }
    if (c->count > ROOMY)
        qsort(c->items, c->count, sizeof(*c->items), by_value);
    return FRAG_OK;
}

static void release(void *found)
{
    free(((struct compared *)found)->items);
}

/* -- the files ----------------------------------------------------------- */

static void facts(FILE *out, const void *user)
{
    const struct figure_source *s = user;
    const struct compared *c = s->found;

    fputs("title\tvalue\tmark\tunits\troomy\n", out);
    fprintf(out, "%c%s: ", toupper(*c->words), c->words + 1);
    put_trace(out, s->runs);
    fprintf(out, "\t%s\t%s\t%s\t%d\n", c->words,
            c->is_bytes ? "peak requested" : "", c->units, ROOMY);
}

/* The value in words, and its ratio to the mark. */
static void put_note(FILE *out, const struct compared *c, const struct bar *bar,
                     double mark)
{
    if (isnan(bar->value))
        fputs("none", out);
    else if (c->is_bytes)
        put_size(out, (frag_size)bar->value);
    else
        fprintf(out, "%.4g%s%s", bar->value, *c->units ? " " : "", c->units);
    if (bar->value >= 0 && mark > 0)
        fprintf(out, ", %.2fx", bar->value / mark);
    put_ooms(out, bar->run->run.summary.num_ooms);
}

static void rows(FILE *out, const void *user)
{
    const struct figure_source *s = user;
    const struct compared *c = s->found;

    fputs("label\tnote\tvalue\tmark\tooms\tknown\n", out);
    for (size_t i = 0; i < c->count && i < s->runs->most[0]; i++) {
        const struct bar *bar = &c->items[i];
        const struct frag_summary *m = &bar->run->run.summary;
        const double mark = c->is_bytes ? (double)m->peak_requested : 0;

        put_label(out, s->runs, bar->run);
        fputc('\t', out);
        put_note(out, c, bar, mark);
        fprintf(out, "\t%.15g\t%.15g\t%d\t%d\n",
                isnan(bar->value) ? 0.0 : bar->value, mark, m->num_ooms > 0,
                !isnan(bar->value));
    }
}

const struct figure figure_compare = {
    .name = "compare",
    .has_measure = true,
    .files = {{".facts.tsv", facts}, {".tsv", rows}},
    .size = sizeof(struct compared),
    .find = find,
    .release = release,
    .limits = LIMIT_OF_RUNS(400, MOST),
};
