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

/* Writes a note if a recording has settings, or a release, that this fragsim
 * does not know; "" if not. reading_open adds it to the notes of the trace. */
void release_unknown(const struct frag_trace *trace, char text[RELEASE_NOTE]);

/* The settings `chosen` as a replay of the trace uses them, with the release
 * that wrote it (torch_settings_for). The caller frees the text; NULL if the
 * host has no memory. */
char *release_settings(const struct frag_trace *trace, const char *chosen);

/* Writes a note if the policy is torch and the recorded releases (of `trace`)
 * place, or may place, otherwise than the release that the run follows
 * (release_settings), or if the run leaves out settings that a user gives or
 * that the policy does not model; "" if not. NOMEM. */
enum frag_err release_note(const struct policy_choice *policy,
                           const struct frag_trace *trace,
                           const struct frag_device_trace *device,
                           char text[RELEASE_NOTE], struct frag_error *e);

#endif
