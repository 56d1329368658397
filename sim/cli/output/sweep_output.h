/* sweep_output.h - the files of a sweep: the results as HDF5, JSON and CSV, and
 * the folder OUTPUT.part beside the HDF5 file, with the finished cells of an
 * unfinished sweep.
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
    char *folder;
    struct frag_provenance made_by; /* of the results and of the chunks */
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
 * there is no result file, or a folder, or --force. IO if the file is the
 * result of another command; errors of frag_results_load. */
enum frag_err sweep_output_is_complete(const struct sweep_output *out,
                                       bool *complete,
                                       struct frag_error *e) FRAG_MUST_CHECK;

/* As outputs_exist; the files of an interrupted sweep that is resumed are its
 * own. */
int sweep_output_exists(const struct call *call,
                        const struct sweep_output *out);

/* Errors of chunks_open; chunks_close is due on success and on error. */
enum frag_err sweep_output_chunks(const struct sweep_output *out,
                                  struct chunks *chunks,
                                  struct frag_error *e) FRAG_MUST_CHECK;

/* Writes all results of the sweep to the outputs, and the notes of the cells
 * to `notes`; JSON has them in `cell_notes'. `missing` (may be NULL) lists the
 * cells without a result, one a line. Errors of sweep_write and report_commit.
 */
enum frag_err sweep_output_write(struct sweep_output *out,
                                 const struct sweep *sweep, const char *missing,
                                 struct frag_error *e) FRAG_MUST_CHECK;

#endif
