/* found.h - finds the changes of settings that a snapshot does not tell: it has
 * those of its end only.
 *
 * The judge is sim/validate: settings are tried where the replay differs from
 * the recording first, until it differs nowhere. What does not explain the
 * whole recording is dropped, so nothing is found in a recording that is exact,
 * and nothing where something else is wrong. */
#ifndef FRAG_SIM_EXPERIMENTS_FOUND_H
#define FRAG_SIM_EXPERIMENTS_FOUND_H

#include "traces/trace.h"

/* Replaces *t, which was read from `path` with these options, by the trace with
 * the changes that were found, and notes where each lies, and what else would
 * explain the recording; *t is as it was if there are none. It is not a trace
 * file nor edited. CANCELLED by the progress of the options; NOMEM. */
enum frag_err found_changes(const char *path,
                            const struct frag_read_options *options,
                            struct frag_trace **t,
                            struct frag_error *e) FRAG_MUST_CHECK;

#endif
