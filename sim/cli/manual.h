/* manual.h - prints the manual as text and as man pages. It is made from the
 * tables of commands, options, policies, formats, columns and words. */
#ifndef FRAG_SIM_CLI_MANUAL_H
#define FRAG_SIM_CLI_MANUAL_H

#include <stdio.h>

struct verb;

/* `verbs` lists all commands, ended by NULL. manual_overview prints the text of
 * `fragsim help`; the other two print fragsim.1 and fragsim-VERB.1 as roff. */
void manual_overview(FILE *out, const struct verb *const *verbs);
void manual_page(FILE *out, const struct verb *const *verbs);
void manual_verb_page(FILE *out, const struct verb *v);

/* Prints the script with which bash completes command lines, made from the
 * tables of commands, options, topics and policies. */
void completion_bash(FILE *out, const struct verb *const *verbs);

/* A topic of `fragsim help TOPIC` that is not a command. */
struct topic {
    const char *name, *summary;
    void (*print)(FILE *out);
};
extern const struct topic topics[]; /* ended by a NULL name */

#endif
