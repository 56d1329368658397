/* bars.c - sorts the bars of a figure and writes them for gnuplot. */
#include "sim/cli/figures/bars.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/cli/figures/cells.h"

static uint64_t ooms_of(const struct bar *b)
{
    return b->run->run.summary.num_ooms;
}

static int by_number(double a, double b)
{
    return (a > b) - (a < b);
}

static int by_value(const void *left, const void *right)
{
    const struct bar *a = left, *b = right;
    const int orders[] = {
        by_number((double)a->group, (double)b->group),
        (ooms_of(a) > 0) - (ooms_of(b) > 0),
        isnan(a->value) - isnan(b->value),
        by_number(a->value, b->value),
        by_number((double)a->order, (double)b->order),
    };

    for (size_t i = 0; i < sizeof(orders) / sizeof(*orders); i++)
        if (orders[i])
            return orders[i];
    return 0;
}

void bars_sort(struct bars *b)
{
    qsort(b->items, b->count, sizeof(*b->items), by_value);
}

enum frag_err bars_begin(struct bars *b, const struct selection *s)
{
    b->items = calloc(s->count, sizeof(*b->items));
    return b->items ? FRAG_OK : FRAG_NOMEM;
}

void bars_release(void *found)
{
    free(((struct bars *)found)->items);
}

/* -- the files ----------------------------------------------------------- */

static bool is_bytes(const struct bars *b)
{
    return !strcmp(b->units, "byte");
}

void bars_facts(FILE *out, const void *user)
{
    const struct figure_source *s = user;
    const struct bars *b = s->found;

    fputs("title\tvalue\tmark\tunits\troomy\n", out);
    fprintf(out, "%c%s: ", toupper(*b->title), b->title + 1);
    put_trace(out, s->runs);
    fprintf(out, "\t%s\t%s\t%s\t%d\n", b->value, b->mark ? b->mark : "",
            strcmp(b->units, "1") != 0 ? b->units : "", BARS_ROOMY);
}

static void put_number(FILE *out, double x)
{
    fprintf(out, "\t%.15g", isnan(x) ? 0.0 : x);
}

/* The value in words, and its ratio to the mark. */
static void put_note(FILE *out, const struct bars *b, const struct bar *bar)
{
    if (isnan(bar->value))
        fputs(b->absent, out);
    else if (is_bytes(b))
        put_size(out, (frag_size)bar->value);
    else
        fprintf(out, "%.4g%s%s", bar->value,
                strcmp(b->units, "1") != 0 ? " " : "",
                strcmp(b->units, "1") != 0 ? b->units : "");
    if (bar->value >= 0 && bar->mark > 0)
        fprintf(out, ", %.2fx", bar->value / bar->mark);
    put_ooms(out, ooms_of(bar));
}

void bars_rows(FILE *out, const void *user)
{
    const struct figure_source *s = user;
    const struct bars *b = s->found;

    fputs("label\tnote\tvalue\tmark\tooms\tknown\n", out);
    for (size_t i = 0; i < b->count && i < s->runs->most[0]; i++) {
        put_label(out, s->runs, b->items[i].run);
        fputc('\t', out);
        put_note(out, b, &b->items[i]);
        put_number(out, b->items[i].value);
        put_number(out, b->items[i].mark);
        fprintf(out, "\t%d\t%d\n", ooms_of(&b->items[i]) > 0,
                !isnan(b->items[i].value));
    }
}
