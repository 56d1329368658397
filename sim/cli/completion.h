/* completion.h - what a shell needs to complete fragsim's command lines, made
 * from the tables of commands, options and policies. */
#ifndef FRAG_SIM_CLI_COMPLETION_H
#define FRAG_SIM_CLI_COMPLETION_H

#include <stdio.h>

struct verb;

/* `verbs` are all commands, ended by NULL. */
void completion_bash(FILE *out, const struct verb *const *verbs);
void completion_zsh(FILE *out, const struct verb *const *verbs);

#endif
