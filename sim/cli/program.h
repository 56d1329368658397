/* program.h - runs the program that the user wants to record, waits for it and
 * all its descendants, and forwards signals to it; finds the files that are
 * installed with the tool. child.h starts the process.
 */
#ifndef FRAG_SIM_CLI_PROGRAM_H
#define FRAG_SIM_CLI_PROGRAM_H

#include <limits.h>

#include "sim/cli/child.h"
#include "sim/cli/options.h"

/* Finds the file in the first of the places (ended by NULL) that has it and
 * lets this process read it, and writes its real path. A place is a folder:
 * absolute, or relative to the folder of this executable. False if no place has
 * it. */
bool program_find(const char *name, const char *const *places,
                  char path[PATH_MAX]);
/* Finds a library of fragsim: beside the tool in a build tree, or in the folder
 * of the libraries after `cmake --install`. IO if it is in neither. */
enum frag_err program_library(const char *name, char path[PATH_MAX],
                              struct frag_error *e) FRAG_MUST_CHECK;

/* Runs `command` (searched for on the PATH) with `settings` (ended by a NULL
 * name) in its environment, its output in the file `output` (NULL: inherited),
 * and waits until the program and every process that
 * it left behind have ended. *status is the program's exit code, or 128 + N
 * after signal N, as a shell reports it.
 *
 * SIGINT and SIGQUIT reach the program from the terminal and are ignored here;
 * SIGTERM and SIGHUP are forwarded to the program. After the program has ended,
 * any of the four signals ends the wait for its descendants. IO if the program
 * cannot be run; NOMEM. */
enum frag_err program_run(const struct texts *command,
                          const struct setting *settings, const char *output,
                          int *status, struct frag_error *e);

#endif
