/* notes.h - says in the notes of a trace how far its recording reaches. Private
 * to traces/steps. */
#ifndef FRAG_TRACES_STEPS_NOTES_H
#define FRAG_TRACES_STEPS_NOTES_H

#include "traces/steps/complete.h"

/* Adds the sentences about a device on which the job died. NOMEM. */
enum frag_err completion_note(struct frag_trace *t,
                              const struct frag_device_trace *d,
                              const struct frag_completion *c,
                              struct frag_error *e) FRAG_MUST_CHECK;

#endif
