/* snapshot_run.h - the snapshot of a policy's run. Private to sim/export/. */
#ifndef FRAG_SIM_EXPORT_SNAPSHOT_RUN_H
#define FRAG_SIM_EXPORT_SNAPSHOT_RUN_H

#include "sim/export/formats.h"

/* Replays the first policy of the job and writes its snapshot. UNSUPPORTED if
 * the policy maps one piece of memory at two addresses; the errors of
 * frag_replay. */
enum frag_err snapshot_run(const struct export_job *job, FILE *out,
                           struct export_notes *notes,
                           struct frag_error *e) FRAG_MUST_CHECK;

#endif
