/* figure_steps.c - the picture of the command steps: the peaks of each step,
 * and what is live where it begins. */
#include <inttypes.h>

#include "sim/cli/answers/figures/draw.h"
#include "sim/cli/figures/cells.h"
#include "sim/cli/gnuplot/gnuplot.h"

/* More bars than these have no room; a bar then shows several steps. */
enum { MOST_BARS = 500 };

struct plotted {
    const struct steps_subject *on;
    const struct step_table *table;
    uint64_t stride; /* parts that a bar shows */
};

static void facts(FILE *out, const void *user)
{
    const struct plotted *p = user;
    const frag_size bound = p->on->bound.bytes;

    fputs("trace\tpolicy\tsteps\tstride\tcapacity\n", out);
    put_short(out, p->on->in->name, 40);
    fputc('\t', out);
    put_short(out, p->on->policy, 56);
    if (bound != FRAG_UNLIMITED)
        fprintf(out, " on %s", FRAG_SHOW_BOUND(p->on->bound));
    fprintf(out, "\t%" PRIu64 "\t%" PRIu64 "\t%.0f\n", p->table->steps.count,
            p->stride, bound == FRAG_UNLIMITED ? -1.0 : (double)bound);
}

/* The place of a part on the axis: that of its step; the parts before and after
 * the steps lie beside them. */
static double place(const struct plotted *p, const struct step_part *s)
{
    return s->kind == STEP_BEFORE  ? 0
           : s->kind == STEP_AFTER ? (double)p->table->steps.count + 1
                                   : (double)s->step;
}

/* One bar: the largest values of its parts. */
static void put_bar(FILE *out, const struct plotted *p,
                    const struct step_part *s, uint64_t n)
{
    frag_size live = 0, requested = 0, reserved = 0;
    uint64_t ooms = 0;

    for (uint64_t i = 0; i < n; i++) {
        live = frag_larger(live, s[i].live);
        requested = frag_larger(requested, s[i].peak_requested);
        reserved = frag_larger(reserved, s[i].peak_reserved);
        ooms += s[i].ooms;
    }
    fprintf(out,
            "%.1f\t%s\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64 "\n",
            (place(p, &s[0]) + place(p, &s[n - 1])) / 2,
            step_part_names[s->kind], live, requested, reserved, ooms);
}

static void bars(FILE *out, const void *user)
{
    const struct plotted *p = user;
    const struct step_part *items = p->table->items;

    fputs("step\tpart\tlive_at_begin\tpeak_requested\tpeak_reserved\tooms\n",
          out);
    for (uint64_t i = 0, n; i < p->table->count; i += n) {
        for (n = 1; n < p->stride && i + n < p->table->count &&
                    items[i + n].kind == items[i].kind;)
            n++;
        put_bar(out, p, &items[i], n);
    }
}

enum frag_err draw_steps(const struct steps_subject *on,
                         const struct step_table *t, const struct drawing *d,
                         struct frag_error *e)
{
    static const struct gnuplot_file files[] = {
        {".facts.tsv", facts}, {".tsv", bars}, {NULL, NULL}};
    const struct plotted p = {on, t, (t->count + MOST_BARS - 1) / MOST_BARS};

    return gnuplot_draw("steps", files, &p, d, e);
}
