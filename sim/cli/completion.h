/* completion.h - prints the script with which bash completes fragsim's command
 * lines. It is made from the tables of commands, options, topics and
 * policies. */
#ifndef FRAG_SIM_CLI_COMPLETION_H
#define FRAG_SIM_CLI_COMPLETION_H

#include <stdio.h>

struct verb;

/* `verbs` lists all commands, ended by NULL. */
void completion_bash(FILE *out, const struct verb *const *verbs);

#endif
