/* subject_text.h - says where the trace of a job that died ends. */
#ifndef FRAG_SIM_CLI_ANSWERS_TEXT_SUBJECT_TEXT_H
#define FRAG_SIM_CLI_ANSWERS_TEXT_SUBJECT_TEXT_H

#include <stdio.h>

#include "sim/answers/subject.h"

/* Prints a line if the job died on the device, else nothing. */
void subject_say_death(const struct subject *s, FILE *out);

#endif
