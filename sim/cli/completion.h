/* completion.h - what a shell needs to complete fragsim's command lines, made
 * from the tables of commands, options and policies. */
#ifndef FRAG_SIM_CLI_COMPLETION_H
#define FRAG_SIM_CLI_COMPLETION_H

#include <stdio.h>

void completion_bash(FILE *out);
void completion_zsh(FILE *out);

#endif
