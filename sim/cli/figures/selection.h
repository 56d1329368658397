/* selection.h - loads result files and selects the runs that a figure or a
 * review shows. */
#ifndef FRAG_SIM_CLI_FIGURES_SELECTION_H
#define FRAG_SIM_CLI_FIGURES_SELECTION_H

#include "sim/cli/options.h"
#include "sim/cli/output/brief.h"
#include "sim/results/results.h"

/* At least one run. */
struct selection {
    const struct frag_loaded_run **runs; /* borrowed, in the order of files */
    size_t count;
    uint64_t room;  /* allocated elements of runs */
    bool one_trace; /* all runs are of the same trace */
    size_t most[2]; /* the figure's limits on what it shows; see figure.h */
    struct briefs traces, policies; /* short names, by selection_name */
};

/* Result files in memory. */
struct result_files {
    struct frag_loaded *files;
    size_t count;
};

/* A trace is known by its path and contents. Of two that have one name, the
 * name gets as many folders as tell them apart ("a/run", "b/run"), or some
 * digits of the hash; that of an edited trace has the edits in brackets. The
 * lower bounds and demands of all runs have the same quantum. Errors
 * of frag_results_load; then nothing need be freed. */
enum frag_err result_files_load(const char *const *paths, size_t count,
                                struct result_files *out,
                                struct frag_error *e) FRAG_MUST_CHECK;
void result_files_free(struct result_files *f);

/* Selects all runs, in the order of the files. INVALID if there are none;
 * NOMEM. The selection points into f. */
enum frag_err selection_choose(const struct result_files *f,
                               struct selection *out,
                               struct frag_error *e) FRAG_MUST_CHECK;
void selection_free(struct selection *s);

/* Adds a run and updates one_trace. On NOMEM s is unchanged. */
enum frag_err selection_add(struct selection *s,
                            const struct frag_loaded_run *r) FRAG_MUST_CHECK;

/* Makes the short names of the traces and policies of all runs; a name of a
 * policy has at most `letters` letters. NOMEM. */
enum frag_err selection_name(struct selection *s,
                             size_t letters) FRAG_MUST_CHECK;
/* The short name of the run's trace or policy. */
const char *selection_trace(const struct selection *s,
                            const struct frag_loaded_run *r);
const char *selection_policy(const struct selection *s,
                             const struct frag_loaded_run *r);

bool is_same_trace(const struct frag_loaded_run *a,
                   const struct frag_loaded_run *b); /* the device may differ */

#endif
