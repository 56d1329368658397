/* figure_steps.c - the picture of the command steps: the peaks of each step,
 * and what is live where it begins. */
#include <inttypes.h>
#include <stdlib.h>

#include "sim/answers/steps/growth.h"
#include "sim/cli/answers/figures/draw.h"
#include "sim/cli/answers/figures/figure_data.h"
#include "sim/cli/figures/cells.h"

/* More bars than these have no room; a bar then shows several steps. */
enum { MOST_BARS = 500 };

struct plotted {
    const struct steps_subject *on;
    const struct step_table *table;
    uint64_t stride;      /* parts that a bar shows */
    frag_size *live;      /* where each complete step begins */
    uint64_t count, from; /* of live; the first that is examined */
    struct growth growth; /* of live from `from` on */
};

static void add_live(struct plotted *p)
{
    for (uint64_t i = 0; i < p->table->count; i++)
        if (p->table->items[i].kind == STEP_COMPLETE)
            p->live[p->count++] = p->table->items[i].live;
}

/* As `fragsim leaks': the second half of marked steps. */
static enum frag_err find_growth(struct plotted *p, struct frag_error *e)
{
    p->live = calloc(p->table->count + 1, sizeof(*p->live));
    if (!p->live)
        return frag_no_memory(e, "the picture of the steps");
    add_live(p);
    p->from = p->count / 2;
    if (p->count && p->table->steps.mark)
        p->growth = growth_judge(p->live, p->count, p->from);
    return FRAG_OK;
}

/* The steps after the last complete one until the largest examined peak of the
 * requested memory, which grows at the rate of the live bytes, exceeds the
 * capacity; -1: never, or no capacity was given. */
static int64_t steps_left(const struct plotted *p)
{
    frag_size peak = 0;

    if (p->on->bound.bytes == FRAG_UNLIMITED || !p->growth.grows)
        return -1;
    for (uint64_t i = 0; i < p->table->count; i++) {
        const struct step_part *s = &p->table->items[i];

        if (s->kind == STEP_COMPLETE && s->step > p->from &&
            s->peak_requested > peak)
            peak = s->peak_requested;
    }
    return peak >= p->on->bound.bytes
               ? 0
               : (int64_t)((double)(p->on->bound.bytes - peak) /
                           p->growth.slope);
}

static void facts(FILE *out, const void *user)
{
    const struct plotted *p = user;

    fputs("trace\tpolicy\tsteps\tstride\tcapacity\tslope\tbase\tfrom\tleft\n",
          out);
    put_short(out, p->on->in->name, 40);
    fputc('\t', out);
    put_short(out, p->on->policy, 56);
    if (p->on->bound.bytes != FRAG_UNLIMITED)
        fprintf(out, " on %s", FRAG_SHOW_BOUND(p->on->bound));
    fprintf(out, "\t%" PRIu64 "\t%" PRIu64, p->count, p->stride);
    fprintf(out, "\t%.0f\t%.17g\t%.17g\t%" PRIu64 "\t%" PRId64 "\n",
            p->on->bound.bytes == FRAG_UNLIMITED ? -1.0
                                                 : (double)p->on->bound.bytes,
            p->growth.grows ? p->growth.slope : 0.0,
            p->growth.grows ? plot_base(p->live + p->from, p->count - p->from,
                                        p->from + 1, p->growth.slope)
                            : 0.0,
            p->from + 1, steps_left(p));
}

static frag_size larger(frag_size a, frag_size b)
{
    return a > b ? a : b;
}

/* The place of a part on the axis: that of its step; the parts before and after
 * the steps lie beside them. */
static double place(const struct plotted *p, const struct step_part *s)
{
    return s->kind == STEP_BEFORE  ? 0
           : s->kind == STEP_AFTER ? (double)p->count + 1
                                   : (double)s->step;
}

/* One bar: the largest values of its parts. */
static void put_bar(FILE *out, const struct plotted *p,
                    const struct step_part *s, uint64_t n)
{
    frag_size live = 0, requested = 0, reserved = 0;
    uint64_t ooms = 0;

    for (uint64_t i = 0; i < n; i++) {
        live = larger(live, s[i].live);
        requested = larger(requested, s[i].peak_requested);
        reserved = larger(reserved, s[i].peak_reserved);
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
    struct plotted p = {
        .on = on, .table = t, .stride = (t->count + MOST_BARS - 1) / MOST_BARS};
    enum frag_err err = find_growth(&p, e);

    FRAG_THEN(err, gnuplot_draw("steps", files, &p, d, e));
    free(p.live);
    return err;
}
