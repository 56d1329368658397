/* release.h - compares the release of PyTorch that wrote a recording with the
 * release whose rules a run of the torch policy follows. */
#ifndef FRAG_SIM_EXPERIMENTS_RELEASE_H
#define FRAG_SIM_EXPERIMENTS_RELEASE_H

#include "sim/experiments/choices.h"

enum { RELEASE_NOTE = 1024 };

/* Writes a note if the policy is torch and the recorded releases (of `trace`)
 * place, or may place, otherwise than the policy's under its settings; "" if
 * not. NOMEM. */
enum frag_err release_note(const struct policy_choice *policy,
                           const struct frag_trace *trace,
                           const struct frag_device_trace *device,
                           char text[RELEASE_NOTE], struct frag_error *e);

#endif
