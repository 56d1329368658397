/* check_text.h - prints the outcome of checks for people. */
#ifndef FRAG_SIM_CLI_ANSWERS_TEXT_CHECK_TEXT_H
#define FRAG_SIM_CLI_ANSWERS_TEXT_CHECK_TEXT_H

#include <stdio.h>

#include "sim/answers/check/checks.h"

/* Prints a table of the rules and how many failed, and a table of what monitors
 * would have seen. NOMEM. */
enum frag_err check_text(const struct checks *c, FILE *out,
                         bool color) FRAG_MUST_CHECK;

#endif
