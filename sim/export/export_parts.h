/* export_parts.h - the writers of the formats, and the replay that they share.
 * Private to sim/export/. */
#ifndef FRAG_SIM_EXPORT_EXPORT_PARTS_H
#define FRAG_SIM_EXPORT_EXPORT_PARTS_H

#include "sim/export/formats.h"
#include "sim/export/tap.h"

/* The writers, with the contract of export_format.write. */
#define FORMAT(name, ...)                                                     \
    enum frag_err export_##name(const struct export_job *job,                 \
                                const char *path, struct export_notes *notes, \
                                struct frag_error *e);
#include "sim/export/export_list.h"
#undef FORMAT

/* Replays the device of the job under a policy while the listener hears every
 * placement. Errors of frag_replay; CANCELLED also if *listener->stop was true.
 * The caller frees *out with frag_run_free. */
enum frag_err export_replay(const struct export_job *job,
                            const struct policy_choice *policy,
                            const struct tap_listener *listener,
                            struct frag_run *out,
                            struct frag_error *e) FRAG_MUST_CHECK;

#endif
