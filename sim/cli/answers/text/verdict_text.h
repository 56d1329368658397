/* verdict_text.h - a verdict in the terminal and as JSON, and the GPUs of the
 * table of `fragsim dry' that have the memory. */
#ifndef FRAG_SIM_CLI_ANSWERS_TEXT_VERDICT_TEXT_H
#define FRAG_SIM_CLI_ANSWERS_TEXT_VERDICT_TEXT_H

#include <stdio.h>

#include "sim/answers/verdict/verdict.h"

/* The headings of the three parts. */
#define VERDICT_ABOUT    "For"
#define VERDICT_HAPPENED "What happened"
#define VERDICT_TODO     "What to do now"
#define VERDICT_SURE     "How sure"

enum { VERDICT_LINE = TUNE_TEXT + 64 };

/* The line for a shell that sets the setting of the verdict, a comment if it is
 * only worth trying; "" if there is none. Returns text. */
const char *verdict_export(const struct verdict *v, char text[VERDICT_LINE]);

/* What the job needs, with which setting, and the smallest GPU that has it: a
 * sentence for each need that is known; "" if none is, or the job leaks, so
 * that no GPU has it for long. Returns text. */
const char *verdict_fits(const struct verdict *v, char text[VERDICT_TEXT]);

/* The bound, the three parts, and what fits. */
void verdict_put_text(const struct verdict *v, FILE *out);
/* The trace and the device, what explain found, and what to do; v NULL: that is
 * not known. */
void verdict_put_explained(const struct explain *x, const struct verdict *v,
                           FILE *out);
/* Adds one object to the open list of results. */
void verdict_put_json(const struct verdict *v, struct frag_json *j);
/* Adds the member "advice", which is what to do, to the open object. */
void verdict_put_json_action(const struct verdict *v, struct frag_json *j);

#endif
