/* figure_leaks.c - the picture of the command leaks: what each leak holds where
 * each step begins, and the peaks of the steps. */
#include <gsl/gsl_sort.h>
#include <gsl/gsl_statistics_double.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "sim/answers/sites.h"
#include "sim/cli/answers/figures/draw.h"
#include "sim/cli/figures/cells.h"
#include "sim/cli/gnuplot/gnuplot.h"

enum { LINES = 6 }; /* leaks that have room; the others are counted */

struct plotted {
    const struct input *in;
    const struct leaks *leaks;
    const struct leaks_reach *reach;
};

static uint64_t shown(const struct leaks *l)
{
    return l->count < LINES ? l->count : LINES;
}

/* The place on the axis: steps or thousands of events before it. */
static double unit_at(const struct windows *w, uint64_t place)
{
    if (!w->count)
        return 0;
    return w->at[place < w->count ? place : w->count - 1].units;
}

static void facts(FILE *out, const void *user)
{
    const struct plotted *p = user;
    const struct leaks *l = p->leaks;
    const struct windows *w = &l->windows;
    const bool has_reach = p->reach->policy && l->verdict == LEAKS_FOUND;

    fputs(
        "trace\tpolicy\tverdict\treason\tunit\tbegin\tend\tfrom\tleaks\tshown\t"
        "rate\tcapacity\tleast\tmost\n",
        out);
    put_short(out, p->in->name, 40);
    fputc('\t', out);
    put_short(out, has_reach ? p->reach->policy : "", 40);
    fprintf(out, "\t%s\t%s\t%s\t%.17g\t%.17g\t%.17g",
            leaks_verdict_names[l->verdict],
            l->reason ? leaks_reasons[l->reason].word : "",
            w->by_steps ? "step" : "1000 events", unit_at(w, 0),
            unit_at(w, w->count), unit_at(w, l->from));
    fprintf(out, "\t%" PRIu64 "\t%" PRIu64 "\t%.17g", l->count, shown(l),
            l->rate);
    fprintf(out, "\t%.0f\t%.0f\t%.0f\n",
            has_reach ? (double)p->reach->capacity : -1.0,
            has_reach ? (double)p->reach->least : -1.0,
            has_reach ? (double)p->reach->most : -1.0);
}

/* "f (train.py:12)"; without stacks, the sizes of its blocks. */
static void put_name(FILE *out, const struct plotted *p,
                     const struct leak *leak)
{
    char site[SITE_TEXT], least[FRAG_SIZE_TEXT], most[FRAG_SIZE_TEXT];

    if (leak->stack) {
        put_short(out, site_text(p->in->trace, leak->stack, site), 64);
        return;
    }
    frag_size_format(leak->least, least);
    frag_size_format(leak->most, most);
    if (leak->least == leak->most)
        fprintf(out, "blocks of %s", least);
    else
        fprintf(out, "blocks of %s to %s", least, most);
    fprintf(out, ", stream 0x%" PRIx64, p->in->device->streams[leak->stream]);
}

/* The line of a growth, bytes = base + slope * place, goes through the examined
 * places: returns its base, the median of what each value asks for. NAN if the
 * host has no memory. */
static double base_of(const struct leak *leak)
{
    const uint64_t count = leak->value_count - leak->from;
    double *rest = malloc((size_t)(count + 1) * sizeof(*rest)), middle = NAN;

    for (uint64_t i = 0; rest && i < count; i++)
        rest[i] = (double)leak->values[leak->from + i] -
                  leak->growth.slope * (double)i;
    if (rest && count) {
        gsl_sort(rest, 1, count);
        middle = gsl_stats_median_from_sorted_data(rest, 1, count);
    }
    free(rest);
    return middle;
}

static void sites(FILE *out, const void *user)
{
    const struct plotted *p = user;
    const struct windows *w = &p->leaks->windows;

    fputs("label\trate\tfrom\tbase\tlast\n", out);
    for (uint64_t i = 0; i < shown(p->leaks); i++) {
        const struct leak *leak = &p->leaks->items[i];

        put_name(out, p, leak);
        fprintf(out, ": %s %s, %s\t%.17g\t%.17g\t%.17g\t%.17g\n",
                FRAG_SHOW_SIZE((frag_size)leak->rate),
                w->by_steps ? "a step" : "in 1000 events",
                leak->replaced ? "replaced" : "kept", leak->rate,
                unit_at(w, leak->from), base_of(leak),
                unit_at(w, leak->value_count - 1));
    }
}

/* One block of rows for each leak, separated by two empty lines. */
static void values(FILE *out, const void *user)
{
    const struct plotted *p = user;
    const struct leaks *l = p->leaks;

    fputs("# unit\theld\n", out);
    for (uint64_t i = 0; i < shown(l); i++) {
        for (uint64_t k = 0; k < l->items[i].value_count; k++)
            fprintf(out, "%.17g\t%" PRIu64 "\n", unit_at(&l->windows, k),
                    l->items[i].values[k]);
        fputs("\n\n", out);
    }
}

static void peaks(FILE *out, const void *user)
{
    const struct windows *w = &((const struct plotted *)user)->leaks->windows;

    fputs("unit\tto\tlive_at_begin\tpeak_requested\n", out);
    for (uint64_t k = 0; k + 1 < w->count; k++)
        fprintf(out, "%.17g\t%.17g\t%" PRIu64 "\t%" PRIu64 "\n", unit_at(w, k),
                unit_at(w, k + 1), w->at[k].live, w->at[k].peak);
}

enum frag_err draw_leaks(const struct input *in, const struct leaks *l,
                         const struct leaks_reach *reach,
                         const struct drawing *d, struct frag_error *e)
{
    static const struct gnuplot_file files[] = {{".facts.tsv", facts},
                                                {".sites.tsv", sites},
                                                {".tsv", values},
                                                {".windows.tsv", peaks},
                                                {NULL, NULL}};

    return gnuplot_draw("leaks", files, &(const struct plotted){in, l, reach},
                        d, e);
}
