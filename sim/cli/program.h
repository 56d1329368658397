/* program.h - runs a program of the user's, and all that it starts. child.h
 * starts it; this module waits for its descendants and hands signals on. */
#ifndef FRAG_SIM_CLI_PROGRAM_H
#define FRAG_SIM_CLI_PROGRAM_H

#include "sim/cli/child.h"
#include "sim/cli/options.h"

/* Runs a command (searched on the PATH) with the settings (ended by a
 * NULL name), and waits until it and every process that it left behind have
 * ended. *status is its exit code, of a signal 128 + its number, as a shell has
 * it. An interrupt from the terminal is the program's to answer; SIGTERM and
 * SIGHUP are handed on to it; what outlives it is not waited for after
 * another. IO if it cannot be run, NOMEM. */
enum frag_err program_run(const struct texts *command,
                          const struct setting *settings, int *status,
                          struct frag_error *e);

#endif
