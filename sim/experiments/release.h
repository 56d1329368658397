/* release.h - compares the release of PyTorch that wrote a recording with the
 * release whose rules a run of the torch policy follows. */
#ifndef FRAG_SIM_EXPERIMENTS_RELEASE_H
#define FRAG_SIM_EXPERIMENTS_RELEASE_H

#include "sim/experiments/choices.h"

enum { RELEASE_NOTE = 1024 };

/* The oldest and the newest release of PyTorch 2 that may have written the
 * recording. False: not known; then they are untouched. */
bool release_range(const struct frag_trace *trace, unsigned *first,
                   unsigned *last);

/* The version whose rules repeat the recording: that of the recorded settings,
 * unless the newest of the recorded releases places otherwise under them. */
unsigned release_version(const struct frag_trace *trace,
                         const struct frag_device_trace *device);

/* Finds release_version, and writes a note that names it if the settings do not
 * name it themselves, or that the recorded releases differ among each other; ""
 * if there is nothing to say. NOMEM. */
enum frag_err release_recorded(const struct frag_trace *trace,
                               const struct frag_device_trace *device,
                               unsigned *version, char text[RELEASE_NOTE],
                               struct frag_error *e) FRAG_MUST_CHECK;

/* Writes a note if the policy is torch and the recorded releases (of `trace`)
 * place, or may place, otherwise than the policy's under its settings; "" if
 * not. NOMEM. */
enum frag_err release_note(const struct policy_choice *policy,
                           const struct frag_trace *trace,
                           const struct frag_device_trace *device,
                           char text[RELEASE_NOTE], struct frag_error *e);

#endif
