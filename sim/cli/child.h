/* child.h - a program run in a child process: started, waited for, and its end
 * as a shell reports it. The module catches no signal.
 */
#ifndef FRAG_SIM_CLI_CHILD_H
#define FRAG_SIM_CLI_CHILD_H

#include <signal.h>
#include <sys/types.h>

#include "traces/base.h"

/* The exit code that a shell reports for a program that does not exist. */
enum { CHILD_MISSING = 127 };

/* A variable of the environment; a NULL value takes it out. */
struct setting {
    const char *name, *value;
};

struct child {
    const char *const *argv;        /* ended by NULL; argv[0] is searched on the
                                       PATH */
    const struct setting *settings; /* ended by a NULL name; NULL: none */
    const char *output;   /* file that takes stdout and stderr; NULL: they are
                             inherited */
    const sigset_t *mask; /* signals that the program blocks; NULL: as here */
};

/* Starts the program and returns its process once it is executed. 0 where it
 * is not: *error is the errno that says why. */
pid_t child_start(const struct child *c, int *error);

/* The exit code of what wait() reported: 128 + N after signal N. */
int child_exit_code(int status);

/* "NAME cannot be run: ..." after such an errno: IO. */
enum frag_err child_cannot(const struct child *c, int error,
                           struct frag_error *e);

/* Starts the program and waits for its end. *code is its exit code,
 * CHILD_MISSING where there is no such program. IO where it cannot be run for
 * another reason. */
enum frag_err child_run(const struct child *c, int *code,
                        struct frag_error *e) FRAG_MUST_CHECK;

#endif
