/* step_notes.h - says in the notes of a trace how far its recording reaches,
 * and what its steps tell of further ones. Private to traces/steps. */
#ifndef FRAG_TRACES_STEPS_STEP_NOTES_H
#define FRAG_TRACES_STEPS_STEP_NOTES_H

#include "traces/steps/complete.h"

/* Adds the sentences about a device on which the job died. NOMEM. */
enum frag_err completion_note(struct frag_trace *t,
                              const struct frag_device_trace *d,
                              const struct frag_completion *c,
                              struct frag_error *e) FRAG_MUST_CHECK;

/* Sets c->spread and c->untold from the complete steps and from what the
 * completion found. */
void spread_find(const struct frag_steps *s, struct frag_completion *c);

/* Whether the live memory grows by more than a small share of the peak a step.
 */
bool spread_grows(const struct frag_completion *c);

#endif
