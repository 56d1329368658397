/* child.h - starts a program in a child process, waits for it, and reports its
 * end as a shell does; or executes it in place of this process. The module
 * catches no signal; program.h does.
 */
#ifndef FRAG_SIM_CLI_CHILD_H
#define FRAG_SIM_CLI_CHILD_H

#include <signal.h>
#include <sys/types.h>

#include "traces/base.h"

/* The exit code that a shell reports for a program that does not exist. */
enum { CHILD_MISSING = 127 };

/* A variable of the child's environment; a NULL value removes it. */
struct setting {
    const char *name, *value;
};

struct child {
    const char *const *argv;        /* ended by NULL; argv[0] is searched for on
                                       the PATH */
    const struct setting *settings; /* ended by a NULL name; NULL: none */
    const char *output;   /* file for stdout and stderr; NULL: both are
                             inherited */
    const sigset_t *mask; /* signal mask of the program; NULL: the mask of this
                             process */
};

/* Starts the program and returns its process id as soon as exec has succeeded.
 * On failure returns 0 and sets *error to the errno. */
pid_t child_start(const struct child *c, int *error);

/* The exit code for a status of wait(), as a shell reports it: 128 + N after
 * signal N. */
int child_exit_code(int status);

/* Sets the error "NAME cannot be run: ..." for an errno of child_start; returns
 * FRAG_IO. */
enum frag_err child_cannot(const struct child *c, int error,
                           struct frag_error *e);

/* Starts the program and waits for its end; one program runs at a time. *code
 * is the exit code, or CHILD_MISSING if the program does not exist; both return
 * OK. IO if the program cannot be run for another reason. */
enum frag_err child_run(const struct child *c, int *code,
                        struct frag_error *e) FRAG_MUST_CHECK;

/* Sends a signal to the program of child_run, if one runs, and waits up to
 * three seconds for its end: it may write into a folder that will be removed.
 * For a signal handler that ends this process. */
void child_end(int number);

/* Executes the program in place of this process, so that its signals and its
 * exit code are those of this process. Returns only if that fails: IO. The
 * environment and the signal for files that are too large then are those of the
 * program, so the caller should end. */
enum frag_err child_become(const struct child *c,
                           struct frag_error *e) FRAG_MUST_CHECK;

#endif
