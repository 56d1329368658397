/* program.h - runs the program that the user wants to record, waits for it and
 * all its descendants, and forwards signals to it. child.h starts the process.
 */
#ifndef FRAG_SIM_CLI_PROGRAM_H
#define FRAG_SIM_CLI_PROGRAM_H

#include "sim/cli/child.h"
#include "sim/cli/options.h"

/* Runs `command` (searched for on the PATH) with `settings` (ended by a NULL
 * name) in its environment, and waits until the program and every process that
 * it left behind have ended. *status is the program's exit code, or 128 + N
 * after signal N, as a shell reports it.
 *
 * SIGINT and SIGQUIT reach the program from the terminal and are ignored here;
 * SIGTERM and SIGHUP are forwarded to the program. After the program has ended,
 * any of the four signals ends the wait for its descendants. IO if the program
 * cannot be run; NOMEM. */
enum frag_err program_run(const struct texts *command,
                          const struct setting *settings, int *status,
                          struct frag_error *e);

#endif
