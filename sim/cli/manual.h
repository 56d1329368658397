/* manual.h - the manual, made from the tables of commands, options, policies,
 * formats and columns. */
#ifndef FRAG_SIM_CLI_MANUAL_H
#define FRAG_SIM_CLI_MANUAL_H

#include <stdio.h>

void manual_overview(FILE *out); /* what `fragsim help` prints */
void manual_page(FILE *out);     /* fragsim.1, roff */

struct verb;
void manual_verb_page(FILE *out, const struct verb *v); /* fragsim-VERB.1 */

/* A topic of `fragsim help TOPIC` that is no command. */
struct topic {
    const char *name, *summary;
    void (*print)(FILE *out);
};
extern const struct topic topics[]; /* ended by a NULL name */

#endif
