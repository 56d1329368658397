/* ranks_text.h - prints the ranks of a job for people. */
#ifndef FRAG_SIM_CLI_ANSWERS_TEXT_RANKS_TEXT_H
#define FRAG_SIM_CLI_ANSWERS_TEXT_RANKS_TEXT_H

#include <stdio.h>

#include "sim/answers/ranks/ranks.h"

/* Prints the table of the ranks, and below it the imbalance and which rank dies
 * first. NOMEM; then nothing is printed. */
enum frag_err ranks_text(const struct ranks *r, FILE *out,
                         bool color) FRAG_MUST_CHECK;

#endif
