/* figure.h - the description of a figure: a gnuplot script of plots/ and the
 * functions that write the script's data files (tab-separated values).
 *
 * To add a figure: write sim/cli/figures/<name>.c with one
 * `const struct figure` and plots/<name>.gp, and add FIGURE(name, "contents")
 * to figure_list.h; `plot`, its help and the man page read that table.
 */
#ifndef FRAG_SIM_CLI_FIGURES_FIGURE_H
#define FRAG_SIM_CLI_FIGURES_FIGURE_H

#include <stdio.h>

#include "sim/cli/figures/selection.h"
#include "sim/cli/output/progress.h"
#include "sim/experiments/choices.h"

/* A device of a trace, and the policy that replays it; borrowed. */
struct trace_view {
    const struct frag_device_trace *device;
    const char *name; /* of the trace */
    const struct policy_choice *policy;
    const struct frag_params *params; /* of the policy */
    struct frag_bound bound;
    unsigned color; /* index in FIGURE_COLORS */
    struct progress *progress;
};

/* Properties by which a map colours blocks: --color-by. */
#define FIGURE_COLORS "lifetime|size"
enum figure_color { FIGURE_LIFETIME, FIGURE_SIZE };

/* A figure has room for a limited number of panels, rows, columns or lines. Of
 * too many runs it shows the first; for the rest, the functions that write the
 * files leave out what has no room: selection.most has the limits. */
struct figure_limit {
    const char *what; /* in the plural: "runs"; NULL: no limit */
    const char *rule; /* which of them are shown */
    size_t usual;     /* the limit without --limit */
    size_t most;      /* the highest limit; the figure stays readable */
    /* How many there are. NOMEM. */
    enum frag_err (*count)(const struct selection *s, size_t *out);
    bool is_of_runs; /* of the runs, of which the first are shown */
};

/* The rows that a figure leaves out, for its caption; "" if it shows
 * everything. */
struct figure_note {
    char shown[192]; /* "showing 12 of 180 runs; choose with ..." */
    char rule[256];  /* "of each trace in turn ..." */
};

/* A figure of result files sets `files`; a figure of a trace sets
 * `trace_files`.
 */
struct figure {
    const char *name;
    struct figure_file {
        const char *suffix; /* of FOLDER/NAME<suffix>; NULL ends the list */
        enum frag_err (*write)(FILE *out,
                               const struct selection *s); /* NOMEM */
    } files[5];
    struct trace_file {
        const char *suffix;
        enum frag_err (*write)(FILE *out, const struct trace_view *v,
                               const void *found, struct frag_error *e);
    } trace_files[5];
    /* Computes the data that all of trace_files share. *found is passed to each
     * write and then to release. NULL: the files share no data. */
    enum frag_err (*find)(const struct trace_view *v, void **found,
                          struct frag_error *e);
    void (*release)(void *found);
    struct figure_limit limits[2]; /* --limit sets the first */
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

/* Draws to the file `out`, in the format of its suffix (.svg, .png, .pdf). The
 * file appears complete or not at all. keep: folder in which script and data
 * are kept; NULL: they are not kept. limit replaces the figure's usual limit; 0
 * keeps it. *note tells what has no room in the figure. INVALID with the reason
 * of `lacks`, and for a limit above the figure's highest one; IO, NOMEM. */
enum frag_err figure_draw(const struct figure *f, const struct selection *s,
                          const char *out, const char *keep, size_t limit,
                          struct figure_note *note,
                          struct frag_error *e) FRAG_MUST_CHECK;

bool figure_is_of_trace(const struct figure *f);
/* The same for a figure of a trace; also errors of its replay. */
enum frag_err figure_draw_trace(const struct figure *f,
                                const struct trace_view *v, const char *out,
                                const char *keep,
                                struct frag_error *e) FRAG_MUST_CHECK;

#endif
