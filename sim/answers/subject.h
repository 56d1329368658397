/* subject.h - what an answer is about: a device of a trace under a policy, with
 * the notes of the trace. It remains when the trace is closed. */
#ifndef FRAG_SIM_ANSWERS_SUBJECT_H
#define FRAG_SIM_ANSWERS_SUBJECT_H

#include "sim/experiments/devices.h"
#include "sim/results/json.h"

struct subject {
    char *trace;  /* name without folders and suffixes */
    char *path;   /* as the user wrote it */
    char *policy; /* as the user wrote it */
    uint32_t device;
    uint64_t died_at; /* the request of which the job died on the device, as in
                         traces/steps/complete.h; FRAG_NEVER: it did not */
    uint32_t note_count;
    char **notes; /* [note_count] */
};

/* Copies the texts. The caller frees *out, on error too. NOMEM. */
enum frag_err subject_copy(const struct input *in, const char *policy,
                           struct subject *out,
                           struct frag_error *e) FRAG_MUST_CHECK;
void subject_free(struct subject *s); /* zeroed is fine */

/* Write members of the object that is open. */
void subject_json(struct frag_json *j, const struct subject *s);
void subject_json_notes(struct frag_json *j, const struct subject *s);

#endif
