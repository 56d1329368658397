/* bars.h - figures that compare one number of each run as a bar, with a mark at
 * another one: the data of plots/compare.gp. */
#ifndef FRAG_SIM_CLI_FIGURES_BARS_H
#define FRAG_SIM_CLI_FIGURES_BARS_H

#include "sim/cli/figures/figure.h"

enum {
    BARS_ROOMY = 24, /* up to these, a bar has a line for its label, and the
                        bars keep the order of the runs */
    BARS_MOST = 1000,
};

struct bar {
    const struct frag_loaded_run *run;
    double value, mark; /* NAN: none */
    size_t group;       /* bars are sorted inside of their group */
    size_t order;       /* place of the run in the selection */
};

struct bars {
    struct bar *items;
    size_t count;
    const char *title;  /* without the name of the trace */
    const char *value;  /* what a bar is, such as "peak reserved" */
    const char *mark;   /* what a mark is; NULL: there are none */
    const char *units;  /* of both, as a column has them: "byte", "s", ... */
    const char *absent; /* words for a run without a value */
};

/* Sorts by group, runs without an OOM first, then by value, the least first and
 * runs without a value last. */
void bars_sort(struct bars *b);

/* The files of the script; `user` is a struct figure_source whose `found`
 * begins with a struct bars. */
void bars_facts(FILE *out, const void *user);
void bars_rows(FILE *out, const void *user);

#define BARS_FILES                  \
    {                               \
        {".facts.tsv", bars_facts}, \
        {                           \
            ".tsv", bars_rows       \
        }                           \
    }

/* Allocates room for a bar of each run. NOMEM. */
enum frag_err bars_begin(struct bars *b, const struct selection *s);
void bars_release(void *found);

#endif
