/* selection.h - the runs of result files that a figure or a review shows. */
#ifndef FRAG_SIM_CLI_FIGURES_SELECTION_H
#define FRAG_SIM_CLI_FIGURES_SELECTION_H

#include "sim/cli/options.h"
#include "sim/results/results.h"

/* At least one run. */
struct selection {
    const struct frag_loaded_run **runs; /* borrowed, in the files' order */
    size_t count;
    uint64_t room;  /* of runs */
    bool one_trace; /* all are of the same trace */
};

/* Result files in memory. */
struct result_files {
    struct frag_loaded *files;
    size_t count;
};

/* Errors of frag_results_load. On error nothing need be freed. */
enum frag_err result_files_load(const char *const *paths, size_t count,
                                struct result_files *out,
                                struct frag_error *e) FRAG_MUST_CHECK;
void result_files_free(struct result_files *f);

/* All runs, or those that `wanted` names as "0,2", numbered as in /runs and on
 * over the files. INVALID for a number that is none or where there are no runs,
 * NOMEM. Borrows from f. */
enum frag_err selection_choose(const struct result_files *f,
                               const struct texts *wanted,
                               struct selection *out,
                               struct frag_error *e) FRAG_MUST_CHECK;
void selection_free(struct selection *s);

/* One more run; settles one_trace. NOMEM: s is as it was. */
enum frag_err selection_add(struct selection *s,
                            const struct frag_loaded_run *r) FRAG_MUST_CHECK;

bool is_same_trace(const struct frag_loaded_run *a,
                   const struct frag_loaded_run *b); /* of any device */

#endif
