/* figure.h - the description of a figure: a gnuplot script of plots/ and the
 * functions that write the script's data files (tab-separated values).
 *
 * To add a figure: write sim/cli/figures/figure_<name>.c with one
 * `const struct figure` and plots/<name>.gp, and add FIGURE(name, "contents")
 * to figure_list.h; `plot`, its help and the man page read that table.
 */
#ifndef FRAG_SIM_CLI_FIGURES_FIGURE_H
#define FRAG_SIM_CLI_FIGURES_FIGURE_H

#include "sim/cli/figures/selection.h"
#include "sim/cli/gnuplot/gnuplot.h"

struct figure_note;

/* What a figure shows: runs of result files. */
struct figure_source {
    const struct selection *runs;
    void *found; /* by the figure's `find` */
    const struct figure_note *note;
    const char *measure; /* see figure_wish */
};

/* A figure has room for a limited number of panels, rows, columns or lines. Of
 * too many it shows the first; the functions that write the files leave out
 * what has no room: selection.most has the limits. */
struct figure_limit {
    const char *what; /* in the plural: "runs"; NULL: no limit */
    const char *rule; /* which of them are shown */
    size_t usual;     /* the limit without --rows */
    size_t most;      /* the highest limit; the figure stays readable */
    /* How many of them `found` holds (figure.find). NULL: the limit is one of
     * runs. */
    size_t (*count)(const void *found);
};

#define LIMIT_OF_RUNS(usual, most)                                       \
    {                                                                    \
        {                                                                \
            "runs", "the first runs of the files", (usual), (most), NULL \
        }                                                                \
    }

/* The rows that a figure leaves out, for its caption; "" if it shows
 * everything. */
struct figure_note {
    char shown[192]; /* "showing 12 of 180 runs; choose with ..." */
    char rule[256];  /* "of each trace in turn ..." */
};

/* What the user wants of a figure of runs; all zero: the figure as it is. */
struct figure_wish {
    size_t limit;        /* replaces the figure's usual limit */
    const char *measure; /* the column of /summary that it compares; NULL: peak
                            reserved. Only for a figure that has_measure. */
};

struct figure {
    const char *name; /* also of its script in plots/ */
    bool has_measure;
    struct gnuplot_file files[5]; /* `user` of their functions is a struct
                                     figure_source */
    /* Computes what the files share, in `size` bytes at s->found that are
     * zeroed; release is called on error too. NULL: the files share nothing. */
    size_t size;
    enum frag_err (*find)(const struct figure_source *s, struct frag_error *e);
    void (*release)(void *found);
    struct figure_limit limits[2]; /* --rows sets the first */
    size_t policy_letters; /* of a policy's short name; 0: 56 with one trace,
                              36 with several */
    /* Returns the reason why the figure cannot be drawn from these runs; NULL
     * if it can. A NULL function: it always can. */
    const char *(*lacks)(const struct selection *s);
};

#define FIGURE(name, text) extern const struct figure figure_##name;
#include "sim/cli/figures/figure_list.h"
#undef FIGURE

extern const struct figure *const figures[];        /* ended by NULL */
const struct figure *figure_find(const char *name); /* NULL if unknown */

/* Draws as gnuplot_draw does. *note tells what has no room in the figure.
 * INVALID with the reason of `lacks`, and for a wish that the figure cannot
 * fulfil; IO, NOMEM. */
enum frag_err figure_draw(const struct figure *f, const struct selection *s,
                          const struct figure_wish *wish,
                          const struct drawing *d, struct figure_note *note,
                          struct frag_error *e) FRAG_MUST_CHECK;

#endif
