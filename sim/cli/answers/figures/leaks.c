/* leaks.c - the picture of the command leaks: what each leak holds where each
 * step begins, and the peaks of the steps. */
#include <inttypes.h>

#include "sim/answers/sites.h"
#include "sim/cli/answers/figures/draw.h"
#include "sim/cli/answers/figures/plot.h"
#include "sim/cli/figures/cells.h"

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

static void facts(FILE *out, const void *user)
{
    const struct plotted *p = user;
    const struct leaks *l = p->leaks;
    const bool has_reach = p->reach->policy && l->verdict == LEAKS_FOUND;

    fputs("trace\tpolicy\tverdict\tsteps\tfrom\tleaks\tshown\trate\tcapacity\t"
          "least\tmost\n",
          out);
    put_short(out, p->in->name, 40);
    fputc('\t', out);
    put_short(out, has_reach ? p->reach->policy : "", 40);
    fprintf(out,
            "\t%s\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64 "\t%.17g",
            leaks_verdict_names[l->verdict], l->steps.count, l->from + 1,
            l->count, shown(l), l->bytes_per_step);
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

static void sites(FILE *out, const void *user)
{
    const struct plotted *p = user;
    const uint64_t from = p->leaks->from;

    fputs("label\tslope\tbase\tlast\n", out);
    for (uint64_t i = 0; i < shown(p->leaks); i++) {
        const struct leak *leak = &p->leaks->items[i];
        const double base =
            plot_base(leak->values + from, leak->value_count - from, from + 1,
                      leak->growth.slope);
        char slope[FRAG_SIZE_TEXT];

        put_name(out, p, leak);
        fprintf(out, ": %s a step, %s\t%.17g\t%.17g\t%" PRIu64 "\n",
                frag_size_format((frag_size)leak->growth.slope, slope),
                leak->replaced ? "replaced" : "kept", leak->growth.slope, base,
                leak->value_count);
    }
}

/* One block of rows for each leak, separated by two empty lines. */
static void values(FILE *out, const void *user)
{
    const struct plotted *p = user;

    fputs("# step\theld\n", out);
    for (uint64_t i = 0; i < shown(p->leaks); i++) {
        const struct leak *leak = &p->leaks->items[i];

        for (uint64_t k = 0; k < leak->value_count; k++)
            fprintf(out, "%" PRIu64 "\t%" PRIu64 "\n", k + 1, leak->values[k]);
        fputs("\n\n", out);
    }
}

static void peaks(FILE *out, const void *user)
{
    const struct frag_steps *s = &((const struct plotted *)user)->leaks->steps;

    fputs("step\tlive_at_begin\tpeak_requested\n", out);
    for (uint64_t i = 0; i < s->count; i++)
        fprintf(out, "%" PRIu64 "\t%" PRIu64 "\t%" PRIu64 "\n", i + 1,
                s->items[i].live, s->items[i].peak);
}

enum frag_err draw_leaks(const struct input *in, const struct leaks *l,
                         const struct leaks_reach *reach, const char *out,
                         const char *keep, struct frag_error *e)
{
    static const struct plot_file files[] = {{".facts.tsv", facts},
                                             {".sites.tsv", sites},
                                             {".tsv", values},
                                             {".steps.tsv", peaks},
                                             {NULL, NULL}};

    return plot_draw("leaks", files, &(const struct plotted){in, l, reach}, out,
                     keep, e);
}
