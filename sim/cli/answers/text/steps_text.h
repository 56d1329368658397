/* steps_text.h - prints the steps of a trace. */
#ifndef FRAG_SIM_CLI_ANSWERS_TEXT_STEPS_TEXT_H
#define FRAG_SIM_CLI_ANSWERS_TEXT_STEPS_TEXT_H

#include "sim/answers/steps/step_table.h"
#include "sim/experiments/devices.h"

/* The replayed run; borrowed. */
struct steps_subject {
    const struct input *in;
    const char *policy;
    struct frag_bound bound;
};

/* Prints how the steps were found, and the table. NOMEM. */
enum frag_err steps_text_put(const struct steps_subject *on,
                             const struct step_table *t, FILE *out,
                             bool color) FRAG_MUST_CHECK;
/* Writes the same as one object of an open array. */
void steps_json_put(const struct steps_subject *on, const struct step_table *t,
                    struct frag_json *j);

#endif
