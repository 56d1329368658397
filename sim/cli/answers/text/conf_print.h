/* conf_print.h - the answer of the command conf as text and as JSON. */
#ifndef FRAG_SIM_CLI_ANSWERS_TEXT_CONF_PRINT_H
#define FRAG_SIM_CLI_ANSWERS_TEXT_CONF_PRINT_H

#include <stdio.h>

#include "sim/answers/conf/conf.h"
#include "sim/results/json.h"

/* `source` is the variable that held the text; NULL: an argument. */
void conf_put_text(FILE *out, const struct conf_answer *a, const char *source);
/* Writes one result; the caller closes its object with frag_json_end. */
void conf_put_json(struct frag_json *j, const struct conf_answer *a,
                   const char *source);

/* All settings, with the versions that know them: as text to out if j is NULL,
 * else as results. */
void conf_put_keys(FILE *out, struct frag_json *j);

#endif
