/* figure.h - what a figure is: a gnuplot script of plots/ and the files of
 * tab-separated values that it reads.
 *
 * To add one: write sim/cli/figures/<name>.c with one `const struct figure` and
 * plots/<name>.gp, add FIGURE(name, "what is drawn") to list.h; `plot`, its
 * help and the man page read that table.
 */
#ifndef FRAG_SIM_CLI_FIGURES_FIGURE_H
#define FRAG_SIM_CLI_FIGURES_FIGURE_H

#include <stdio.h>

#include "sim/cli/figures/selection.h"
#include "sim/cli/output/progress.h"
#include "sim/experiments/choices.h"

/* A device of a trace, and the policy that serves it; borrowed. */
struct trace_view {
    const struct frag_device_trace *device;
    const char *name; /* of the trace */
    const struct policy_choice *policy;
    const struct frag_params *params; /* of the policy */
    frag_size capacity;
    unsigned color; /* index in FIGURE_COLORS */
    struct progress *progress;
};

/* What a map colours blocks by: --color-by. */
#define FIGURE_COLORS "lifetime|size|stream"
enum figure_color { FIGURE_LIFETIME, FIGURE_SIZE, FIGURE_STREAM };

/* Of result files, or of a trace: `files` or `trace_files`. */
struct figure {
    const char *name;
    struct figure_file {
        const char *suffix; /* of FOLDER/NAME<suffix>; NULL: no more files */
        enum frag_err (*write)(FILE *out,
                               const struct selection *s); /* NOMEM */
    } files[3];
    struct trace_file {
        const char *suffix;
        enum frag_err (*write)(FILE *out, const struct trace_view *v,
                               const void *found, struct frag_error *e);
    } trace_files[3];
    /* What the trace's files are written from, found once: *found is given to
     * them and then to release. NULL: they need nothing. */
    enum frag_err (*find)(const struct trace_view *v, void **found,
                          struct frag_error *e);
    void (*release)(void *found);
    /* Why the figure cannot be made of these runs; NULL if it can. The function
     * may be NULL: it can. */
    const char *(*lacks)(const struct selection *s);
};

#define FIGURE(name, text) extern const struct figure figure_##name;
#include "sim/cli/figures/list.h"
#undef FIGURE

extern const struct figure *const figures[];        /* ended by NULL */
const struct figure *figure_find(const char *name); /* NULL: there is none */

/* Draws to `out`, by its suffix (.svg, .png, .pdf), whole or not at all. keep:
 * the folder where script and data stay, NULL if nowhere. INVALID with the
 * reason of `lacks`; IO, NOMEM. */
enum frag_err figure_draw(const struct figure *f, const struct selection *s,
                          const char *out, const char *keep,
                          struct frag_error *e) FRAG_MUST_CHECK;

bool figure_is_of_trace(const struct figure *f);
/* The same for a figure of a trace; errors of its replay too. */
enum frag_err figure_draw_trace(const struct figure *f,
                                const struct trace_view *v, const char *out,
                                const char *keep,
                                struct frag_error *e) FRAG_MUST_CHECK;

#endif
