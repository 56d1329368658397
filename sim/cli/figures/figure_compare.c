/* figure_compare.c - figure: one number of each run, by default peak reserved
 * beside peak requested. More runs than have room for two lines each are
 * sorted.
 */
#include <math.h>
#include <string.h>

#include "sim/cli/figures/bars.h"
#include "sim/results/columns.h"
#include "traces/nearest.h"

struct compared {
    struct bars bars;
    char words[64]; /* of the measure */
};

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

static enum frag_err find(const struct figure_source *s, struct frag_error *e)
{
    struct compared *c = s->found;
    const struct frag_column *column;
    struct bars *b = &c->bars;

    FRAG_TRY(find_measure(s->measure ? s->measure : "peak_reserved_bytes",
                          &column, e));
    FRAG_TRY(bars_begin(b, s->runs));
    put_words(column->name, c->words);
    b->title = b->value = c->words;
    b->units = column->units;
    b->mark = strcmp(column->units, "byte") != 0 ? NULL : "peak requested";
    b->absent = "none";
    for (size_t i = 0; i < s->runs->count; i++) {
        const struct frag_loaded_run *r = s->runs->runs[i];

        b->items[b->count++] = (struct bar){
            .run = r,
            .value = value_of(r, column),
            .mark = b->mark ? (double)r->run.summary.peak_requested : NAN,
            .order = i,
        };
    }
    if (b->count > BARS_ROOMY)
        bars_sort(b);
    return FRAG_OK;
}

const struct figure figure_compare = {
    .name = "compare",
    .has_measure = true,
    .files = BARS_FILES,
    .size = sizeof(struct compared),
    .find = find,
    .release = bars_release,
    .limits = LIMIT_OF_RUNS(400, BARS_MOST),
};
