/* figure_sweep.c - figure: peak reserved over the values of one parameter.
 *
 * The policy is the first one that has runs with several settings. The x axis
 * is its parameter with the most values; runs that differ in anything else are
 * on separate lines. A parameter that a run does not set has its default.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/cli/figures/cells.h"
#include "sim/cli/figures/figure.h"
#include "sim/cli/figures/ranking.h"

/* Part of a string, without a terminating 0. */
struct sweep_part {
    const char *text;
    size_t size;
};

/* A run as a point of the figure; points with equal `line` are connected. */
struct point {
    const struct ranked_entry *entry;
    struct sweep_part value;
    size_t line;
};

struct sweep {
    struct ranking ranking;
    struct sweep_part policy, key;
    struct sweep_part *values; /* of the key, sorted */
    struct point *points;      /* by line, then value */
    size_t value_count, count, lines;
    struct label {
        char *text;
        const char *params; /* distinguish lines with equal texts */
    } * texts;              /* [lines] */
    struct briefs labels;   /* their short forms */
};

static bool equal(struct sweep_part a, struct sweep_part b)
{
    return a.size == b.size && !memcmp(a.text, b.text, a.size);
}

/* "torch" of "torch:max_split_size_mb:128". */
static struct sweep_part name_of(const struct frag_loaded_run *r)
{
    return (struct sweep_part){r->policy, strcspn(r->policy, ":@")};
}

/* Reads the setting at *at, "key:value" or "key=value", and advances *at.
 * Commas inside square brackets belong to the value. False at the end of the
 * text. */
static bool next(const char **at, struct sweep_part *key,
                 struct sweep_part *value)
{
    const char *from = *at, *end = from;
    int depth = 0;

    if (!*from)
        return false;
    for (; *end && (depth || *end != ','); end++)
        depth += (*end == '[') - (*end == ']');
    *key = (struct sweep_part){from, strcspn(from, ":=")};
    if (from + key->size > end)
        key->size = (size_t)(end - from);
    from += key->size + (from + key->size < end);
    *value = (struct sweep_part){from, (size_t)(end - from)};
    *at = end + (*end == ',');
    return true;
}

static struct sweep_part value_of(const struct frag_loaded_run *r,
                                  struct sweep_part key)
{
    const char *at = r->run.params;
    struct sweep_part k, v;

    while (next(&at, &k, &v))
        if (equal(k, key))
            return v;
    return (struct sweep_part){"default", strlen("default")};
}

/* A key for sorting: the default first, then numbers and sizes by their amount,
 * then words. */
static double amount(struct sweep_part value)
{
    static const char units[] = "KMGT";
    char *end = NULL;
    double x = strtod(value.text, &end);
    const char *unit = end && *end ? strchr(units, *end) : NULL;

    if (end == value.text)
        return value.size && *value.text == 'd' ? -INFINITY : INFINITY;
    return unit ? ldexp(x, 10 * (int)(unit - units + 1)) : x;
}

static int compare_values(struct sweep_part a, struct sweep_part b)
{
    double x = amount(a), y = amount(b);
    size_t size = a.size < b.size ? a.size : b.size;
    int order = memcmp(a.text, b.text, size);

    if (x < y || x > y)
        return x < y ? -1 : 1;
    return order ? order : (a.size > b.size) - (a.size < b.size);
}

static int by_value(const void *left, const void *right)
{
    return compare_values(*(const struct sweep_part *)left,
                          *(const struct sweep_part *)right);
}

/* -- the policy and the parameter that vary ------------------------------- */

/* The first run whose policy also has a run with other parameters; NULL if
 * there is none. */
static const struct frag_loaded_run *swept(const struct selection *s)
{
    for (size_t i = 0; i < s->count; i++)
        for (size_t k = 0; k < i; k++)
            if (equal(name_of(s->runs[k]), name_of(s->runs[i])) &&
                strcmp(s->runs[k]->run.params, s->runs[i]->run.params) != 0)
                return s->runs[k];
    return NULL;
}

/* The distinct values of `key` in the policy's runs, sorted; to be freed. NULL
 * if the host has no memory. */
static struct sweep_part *values(const struct selection *s,
                                 struct sweep_part policy,
                                 struct sweep_part key, size_t *count)
{
    struct sweep_part *list = calloc(s->count, sizeof(*list));
    size_t n = 0;

    *count = 0;
    for (size_t i = 0; list && i < s->count; i++)
        if (equal(name_of(s->runs[i]), policy))
            list[n++] = value_of(s->runs[i], key);
    if (list)
        qsort(list, n, sizeof(*list), by_value);
    for (size_t i = 0; i < n; i++)
        if (!i || !equal(list[i], list[*count - 1]))
            list[(*count)++] = list[i];
    return list;
}

/* Finds the parameter with the most values; the first of equal ones. */
static enum frag_err find_key(const struct selection *s,
                              struct sweep_part policy, struct sweep_part *out)
{
    size_t most = 0;

    for (size_t i = 0; i < s->count; i++) {
        const char *at = s->runs[i]->run.params;
        struct sweep_part key, value;

        while (equal(name_of(s->runs[i]), policy) && next(&at, &key, &value)) {
            size_t count;
            struct sweep_part *list = values(s, policy, key, &count);

            if (!list)
                return FRAG_NOMEM;
            free(list);
            if (count > most) {
                most = count;
                *out = key;
            }
        }
    }
    return FRAG_OK;
}

/* -- lines --------------------------------------------------------------- */

/* Whether every setting of a, except `key`, has the same value in b. */
static bool same_but(const struct frag_loaded_run *a,
                     const struct frag_loaded_run *b, struct sweep_part key)
{
    const char *at = a->run.params;
    struct sweep_part k, v;

    while (next(&at, &k, &v))
        if (!equal(k, key) && !equal(v, value_of(b, k)))
            return false;
    return true;
}

static bool on_one_line(const struct sweep *w, const struct point *a,
                        const struct point *b)
{
    const struct frag_loaded_run *x = a->entry->run, *y = b->entry->run;

    return a->entry->subject == b->entry->subject &&
           !frag_bound_order(x->bound, y->bound) && same_but(x, y, w->key) &&
           same_but(y, x, w->key);
}

static void add(struct sweep *w, const struct ranked_entry *e)
{
    struct point p = {e, value_of(e->run, w->key), 0};
    size_t i = 0;

    while (i < w->count && !on_one_line(w, &w->points[i], &p))
        i++;
    p.line = i < w->count ? w->points[i].line : w->lines++;
    w->points[w->count++] = p;
}

static int by_line(const void *left, const void *right)
{
    const struct point *a = left, *b = right;
    int order = compare_values(a->value, b->value);

    if (a->line != b->line)
        return a->line < b->line ? -1 : 1;
    if (order)
        return order;
    return a->entry->order < b->entry->order ? -1 : 1;
}

/* The y value: bytes with one subject, and peak reserved over the lower bound
 * with several. */
static double height(const struct sweep *w, const struct point *p)
{
    return w->ranking.subject_count == 1
               ? (double)p->entry->run->run.summary.peak_reserved
               : peak_over_bound(p->entry->run);
}

static void release(void *found)
{
    struct sweep *w = found;

    for (size_t i = 0; w->texts && i < w->lines; i++)
        free(w->texts[i].text);
    free(w->texts);
    briefs_free(&w->labels);
    ranking_free(&w->ranking);
    free(w->values);
    free(w->points);
}

/* -- files --------------------------------------------------------------- */

static void put_part(FILE *out, struct sweep_part p)
{
    fprintf(out, "%.*s", (int)(p.size < 60 ? p.size : 60), p.text);
}

/* Whether a run is on a limited device. */
static bool is_limited(const struct sweep *w)
{
    for (size_t i = 0; i < w->count; i++)
        if (w->points[i].entry->run->bound.bytes != FRAG_UNLIMITED)
            return true;
    return false;
}

/* The properties that distinguish the line of r: trace, capacity, settings
 * other than those of the first line. */
static void put_line(FILE *out, const struct sweep *w,
                     const struct selection *s, const struct frag_loaded_run *r)
{
    const struct frag_loaded_run *first = w->points[0].entry->run;
    const char *at = r->run.params, *gap = "";
    struct sweep_part key, value;

    if (w->ranking.subject_count > 1) {
        put_cell(out, selection_trace(s, r));
        if (r->device)
            fprintf(out, ", device %" PRIu64, r->device);
        gap = ", ";
    }
    if (r->bound.bytes != FRAG_UNLIMITED) {
        fprintf(out, "%son %s", gap, FRAG_SHOW_BOUND(r->bound));
        gap = ", ";
    } else if (is_limited(w)) {
        fprintf(out, "%sunlimited", gap);
        gap = ", ";
    }
    while (next(&at, &key, &value))
        if (!equal(key, w->key) && !same_but(r, first, w->key) &&
            !equal(value, value_of(first, key))) {
            fprintf(out, "%s%.*s:%.*s", gap, (int)key.size, key.text,
                    (int)value.size, value.text);
            gap = ", ";
        }
}

static size_t index_of(const struct sweep *w, struct sweep_part value)
{
    size_t i = 0;

    while (i < w->value_count && !equal(w->values[i], value))
        i++;
    return i;
}

enum { LABEL = 44 }; /* letters */

/* The number of points on the lines that have room: the first lines. */
static size_t shown(const struct sweep *w, const struct selection *s)
{
    size_t n = 0;

    while (n < w->count && w->points[n].line < s->most[0])
        n++;
    return n;
}

/* Makes the short labels of the lines, which differ. */
static enum frag_err name_lines(struct sweep *w, const struct selection *s)
{
    w->texts = calloc(w->lines, sizeof(*w->texts));
    if (!w->texts)
        return FRAG_NOMEM;
    for (size_t i = 0; i < w->count; i++) {
        const struct frag_loaded_run *r = w->points[i].entry->run;
        struct label *l = &w->texts[w->points[i].line];
        size_t size;
        FILE *out;

        if (l->text)
            continue;
        out = open_memstream(&l->text, &size);
        if (!out)
            return FRAG_NOMEM;
        put_line(out, w, s, r);
        if (fclose(out))
            return FRAG_NOMEM;
        l->params = r->run.params;
        FRAG_TRY(briefs_add(&w->labels, l->text, l->params));
    }
    briefs_make(&w->labels, LABEL);
    return FRAG_OK;
}

static enum frag_err find(const struct figure_source *s, struct frag_error *e)
{
    const struct selection *runs = s->runs;
    struct sweep *w = s->found;

    (void)e;
    w->policy = name_of(swept(runs));
    w->points = calloc(runs->count, sizeof(*w->points));
    if (!w->points)
        return FRAG_NOMEM;
    FRAG_TRY(find_key(runs, w->policy, &w->key));
    FRAG_TRY(ranking_make(runs, &w->ranking));
    w->values = values(runs, w->policy, w->key, &w->value_count);
    if (!w->values)
        return FRAG_NOMEM;
    for (size_t i = 0; i < w->ranking.run_count; i++)
        if (equal(name_of(w->ranking.entries[i].run), w->policy))
            add(w, &w->ranking.entries[i]);
    qsort(w->points, w->count, sizeof(*w->points), by_line);
    return name_lines(w, runs);
}

static void put_point(FILE *out, const struct sweep *w, const struct point *p)
{
    const struct frag_loaded_run *r = p->entry->run;
    const struct label *l = &w->texts[p->line];
    bool one = w->ranking.subject_count == 1;

    fprintf(out, "%zu\t%zu\t%.15g\t%" PRIu64 "\t%" PRIu64 "\t", p->line,
            index_of(w, p->value), height(w, p), r->run.summary.num_ooms,
            one ? r->run.summary.lower_bound : (frag_size)0);
    put_cell(out, briefs_text(&w->labels, l->text, l->params));
    fputc('\n', out);
}

static bool has_oom(const struct point *p)
{
    return p->entry->run->run.summary.num_ooms > 0;
}

/* An empty line stands between a run with an OOM and its neighbours: what such
 * a run reserved is no point of the line of the others. */
static void points(FILE *out, const void *user)
{
    const struct figure_source *s = user;
    struct sweep *w = s->found;

    fputs("line\tvalue\treserved\tooms\tbound\tlabel\n", out);
    for (size_t i = 0; i < shown(w, s->runs); i++) {
        if (i && (has_oom(&w->points[i]) || has_oom(&w->points[i - 1])))
            fputc('\n', out);
        put_point(out, w, &w->points[i]);
    }
}

static void ticks(FILE *out, const void *user)
{
    const struct figure_source *s = user;
    const struct sweep *w = s->found;

    fputs("value\ttext\tpolicy\tparameter\ttrace\n", out);
    for (size_t i = 0; i < w->value_count; i++) {
        fprintf(out, "%zu\t", i);
        put_part(out, w->values[i]);
        fputc('\t', out);
        put_part(out, w->policy);
        fputc('\t', out);
        put_part(out, w->key);
        fputc('\t', out);
        put_trace(out, s->runs);
        fputc('\n', out);
    }
}

static size_t count_lines(const void *found)
{
    return ((const struct sweep *)found)->lines;
}

static const char *lacks(const struct selection *s)
{
    return swept(s) ? NULL
                    : "it needs one policy with several values of a "
                      "parameter, such as fragsim replay -p "
                      "tlsf:segment=20MiB -p tlsf:segment=64MiB";
}

const struct figure figure_sweep = {
    .name = "sweep",
    .files = {{".tsv", points}, {".values.tsv", ticks}},
    .size = sizeof(struct sweep),
    .find = find,
    .release = release,
    .limits = {{"lines", "the first lines", 12, 36, count_lines}},
    .lacks = lacks,
};
