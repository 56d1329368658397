/* manual.h - the manual, made from the tables of commands, options, policies,
 * formats and columns. */
#ifndef FRAG_SIM_CLI_MANUAL_H
#define FRAG_SIM_CLI_MANUAL_H

#include <stdio.h>

struct verb;

/* `verbs` are all commands, ended by NULL. What `fragsim help` prints; then
 * fragsim.1 and fragsim-VERB.1 in roff. */
void manual_overview(FILE *out, const struct verb *const *verbs);
void manual_page(FILE *out, const struct verb *const *verbs);
void manual_verb_page(FILE *out, const struct verb *v);

/* A topic of `fragsim help TOPIC` that is no command. */
struct topic {
    const char *name, *summary;
    void (*print)(FILE *out);
};
extern const struct topic topics[]; /* ended by a NULL name */

#endif
