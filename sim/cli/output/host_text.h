/* host_text.h - shows the answer about pinned host memory, for the commands
 * that answer for each device of a trace. */
#ifndef FRAG_SIM_CLI_OUTPUT_HOST_TEXT_H
#define FRAG_SIM_CLI_OUTPUT_HOST_TEXT_H

#include "sim/answers/host_answer.h"

/* Makes the answer and writes it, as JSON if j is not NULL. *is_first: nothing
 * was written before; it is false afterwards. Errors of host_answer_make. */
enum frag_err host_text_show(const struct input *in, FILE *out,
                             struct frag_json *j, bool *is_first,
                             struct frag_error *e) FRAG_MUST_CHECK;

#endif
