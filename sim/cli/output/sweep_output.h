/* sweep_output.h - the files of a sweep: the results as HDF5, JSON and CSV, and
 * the journal OUTPUT.journal beside the HDF5 file. The journal is removed after
 * a complete sweep.
 */
#ifndef FRAG_SIM_CLI_OUTPUT_SWEEP_OUTPUT_H
#define FRAG_SIM_CLI_OUTPUT_SWEEP_OUTPUT_H

#include "sim/cli/output/outputs.h"
#include "sim/cli/output/report.h"
#include "sim/experiments/sweep/sweep.h"

struct sweep_output {
    const struct outputs *to; /* borrowed; hdf5 is not NULL */
    bool resume;              /* an unfinished sweep may be continued */
    char *command;            /* command line that the results store; owned */
    char *shards;             /* the same with --shard; owned */
    char *settings;           /* cell_settings_text; owned */
    char *identity;           /* of the journal: version, commit and settings */
    char *journal_path;
    struct cell_note_list
        *notes; /* borrowed; the notes of the cells are added */
};

/* Takes ownership of command and settings; NULL in either means that the caller
 * had no memory for it: NOMEM. sweep_output_free is due on success and on
 * error.
 */
enum frag_err sweep_output_name(struct sweep_output *out,
                                const struct outputs *to, bool resume,
                                char *command, char *settings,
                                const struct shard *shard,
                                struct frag_error *e) FRAG_MUST_CHECK;
void sweep_output_free(struct sweep_output *out); /* a zeroed struct is valid */

/* Sets *complete if `resume` is set and the result file already holds all
 * results of exactly this sweep, so that nothing is left to do. False also if
 * there is no result file, or a journal, or --force. IO if the file is the
 * result of another command; errors of frag_results_load. */
enum frag_err sweep_output_is_complete(const struct sweep_output *out,
                                       bool *complete,
                                       struct frag_error *e) FRAG_MUST_CHECK;

/* As outputs_exist; the files of an interrupted sweep that is resumed are its
 * own. */
int sweep_output_exists(const struct call *call,
                        const struct sweep_output *out);

/* Opens the journal and passes its entries to the sweep. Errors of
 * journal_open.
 */
enum frag_err sweep_output_journal(const struct sweep_output *out,
                                   struct sweep *sweep, struct journal **j,
                                   struct frag_error *e) FRAG_MUST_CHECK;

/* Writes all results of the journal to the outputs, and the notes of the cells
 * to `notes`; JSON has them in `cell_notes'. `missing` (may be NULL) lists the
 * cells without a result, one a line. Errors of sweep_write and report_commit.
 */
enum frag_err sweep_output_write(struct sweep_output *out,
                                 const struct sweep *sweep,
                                 const struct journal *j, const char *missing,
                                 struct frag_error *e) FRAG_MUST_CHECK;

#endif
