/* sweep_output.h - the files of a sweep: results as HDF5, JSON and CSV, and
 * beside the first the journal, OUTPUT.journal, which ends with the sweep.
 */
#ifndef FRAG_SIM_CLI_OUTPUT_SWEEP_OUTPUT_H
#define FRAG_SIM_CLI_OUTPUT_SWEEP_OUTPUT_H

#include "sim/cli/output/outputs.h"
#include "sim/experiments/sweep/sweep.h"

struct sweep_output {
    const struct outputs *to; /* borrowed; hdf5 is wanted */
    bool resume;              /* what is there may be gone on with */
    char *command;            /* what results say made them; owned */
    char *settings;           /* cell_settings_text; owned */
    char *identity;           /* of a journal: version and settings */
    char *journal_path;
};

/* Takes over command and settings, each NULL if there was no memory for it.
 * NOMEM. To be freed either way. */
enum frag_err sweep_output_name(struct sweep_output *out,
                                const struct outputs *to, bool resume,
                                char *command, char *settings,
                                struct frag_error *e) FRAG_MUST_CHECK;
void sweep_output_free(struct sweep_output *out); /* zeroed is fine */

/* Whether the result file is there, and the whole of what is asked for, by a
 * sweep that is to be resumed. IO if it is something else's, errors of
 * frag_results_load. */
enum frag_err sweep_output_is_complete(const struct sweep_output *out,
                                       bool *complete,
                                       struct frag_error *e) FRAG_MUST_CHECK;

/* As outputs_exist: what a sweep that is resumed left behind is its own. */
int sweep_output_exists(const struct call *call,
                        const struct sweep_output *out);

/* The journal, what it held told to the sweep. Errors of journal_open. */
enum frag_err sweep_output_journal(const struct sweep_output *out,
                                   struct sweep *sweep, struct journal **j,
                                   struct frag_error *e) FRAG_MUST_CHECK;

/* Writes all results that the journal holds; missing (may be NULL) is what they
 * lack. Errors of sweep_write. */
enum frag_err sweep_output_write(const struct sweep_output *out,
                                 struct sweep *sweep, const struct journal *j,
                                 const char *missing,
                                 struct frag_error *e) FRAG_MUST_CHECK;

#endif
