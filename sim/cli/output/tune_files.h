/* tune_files.h - writes the files of `tune --verify-with`. Their format is that
 * of sim/experiments/tune/verify.h. */
#ifndef FRAG_SIM_CLI_OUTPUT_TUNE_FILES_H
#define FRAG_SIM_CLI_OUTPUT_TUNE_FILES_H

#include "sim/experiments/tune/ladder.h"

/* Writes the jobs of all cases, of the recorded settings and of `rung`, to
 * `path`, and the event stream of each case to PATH.TRACE.DEVICE.events. Errors
 * of tune_verify_check; IO, NOMEM. */
enum frag_err tune_files_write(const char *path, const struct tune_ladder *l,
                               const struct tune_rung *rung,
                               struct frag_error *e) FRAG_MUST_CHECK;

#endif
