/* child.c - fork, exec and wait, for every program that fragsim runs. The child
 * reports a failed exec through a pipe that a successful exec closes. */
#include "sim/cli/child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static bool redirect(const char *output)
{
    int file = open(output, O_WRONLY | O_CREAT | O_TRUNC, 0666);

    return file >= 0 && dup2(file, STDOUT_FILENO) >= 0 &&
           dup2(file, STDERR_FILENO) >= 0;
}

static void apply(const struct setting *settings)
{
    for (; settings && settings->name; settings++)
        if (settings->value)
            setenv(settings->name, settings->value, 1);
        else
            unsetenv(settings->name);
}

/* A copy of the vector: execvp expects pointers to char that is not const. NULL
 * if the host has no memory. */
static char **copy_words(const char *const *argv)
{
    size_t count = 0;
    char **copy;

    while (argv[count])
        count++;
    copy = malloc((count + 1) * sizeof(*copy));
    if (copy)
        memcpy(copy, argv, (count + 1) * sizeof(*copy));
    return copy;
}

/* Executes the program in this process; returns the errno of a failure. */
static int become(const struct child *c, char **argv)
{
    if (c->mask)
        sigprocmask(SIG_SETMASK, c->mask, NULL);
    signal(SIGXFSZ, SIG_DFL); /* main() ignores SIGXFSZ; exec would keep that */
    apply(c->settings);
    if (!c->output || redirect(c->output))
        execvp(argv[0], argv);
    return errno;
}

/* Runs in the child: executes the program, or writes the errno of the failure
 * to the pipe `report`. Does not return. */
static void execute(const struct child *c, char **argv, int report)
{
    const int error = become(c, argv);

    if (write(report, &error, sizeof(error)) < 0)
        _exit(CHILD_MISSING - 1);
    _exit(CHILD_MISSING);
}

/* The errno that the child wrote; 0 if exec succeeded and closed the child's
 * end of the pipe. */
static int read_report(int report)
{
    int error = 0;
    ssize_t got;

    do
        got = read(report, &error, sizeof(error));
    while (got < 0 && errno == EINTR);
    return got == (ssize_t)sizeof(error) ? error : 0;
}

/* False if `process` is not a child of this process. */
static bool wait_for(pid_t process, int *status)
{
    while (waitpid(process, status, 0) < 0)
        if (errno != EINTR)
            return false;
    return true;
}

/* Forks and executes. Returns the process id, or 0 with *error if fork or exec
 * failed. */
static pid_t start(const struct child *c, char **argv, const int report[2],
                   int *error)
{
    pid_t process = fork();
    int status;

    if (process == 0)
        execute(c, argv, report[1]);
    *error = process < 0 ? errno : 0;
    close(report[1]);
    if (process < 0)
        return 0;
    *error = read_report(report[0]);
    if (*error)
        (void)wait_for(process, &status);
    return *error ? 0 : process;
}

pid_t child_start(const struct child *c, int *error)
{
    char **argv = copy_words(c->argv);
    int report[2];
    pid_t process = 0;

    *error = argv ? 0 : ENOMEM;
    if (argv && pipe(report) < 0)
        *error = errno;
    if (!*error) {
        fcntl(report[0], F_SETFD, FD_CLOEXEC);
        fcntl(report[1], F_SETFD, FD_CLOEXEC);
        process = start(c, argv, report, error);
        close(report[0]);
    }
    free(argv);
    return process;
}

int child_exit_code(int status)
{
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

enum frag_err child_cannot(const struct child *c, int error,
                           struct frag_error *e)
{
    return frag_fail(e, FRAG_IO, "%s cannot be run: %s", c->argv[0],
                     strerror(error));
}

enum frag_err child_become(const struct child *c, struct frag_error *e)
{
    char **argv = copy_words(c->argv);
    const int error = argv ? become(c, argv) : ENOMEM;

    free(argv);
    return child_cannot(c, error, e);
}

static volatile sig_atomic_t running; /* of child_run; 0: no program */

void child_end(int number)
{
    enum { LOOK = 10, TIMES = 300 }; /* LOOK: milliseconds */

    if (running)
        kill((pid_t)running, number);
    for (int i = 0; running && i < TIMES; i++) {
        if (waitpid((pid_t)running, NULL, WNOHANG) != 0)
            return;
        poll(NULL, 0, LOOK);
    }
}

/* child_start() of a program that child_end() ends. All signals are blocked
 * until the child is known: a signal before that would not reach the child,
 * which would go on writing into a folder that the handler removes. */
static pid_t start_known(const struct child *c, int *error)
{
    struct child masked = *c;
    sigset_t all, mask;

    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &mask);
    if (!masked.mask)
        masked.mask = &mask;
    running = (sig_atomic_t)child_start(&masked, error);
    pthread_sigmask(SIG_SETMASK, &mask, NULL);
    return (pid_t)running;
}

enum frag_err child_run(const struct child *c, int *code, struct frag_error *e)
{
    int error, status;
    const pid_t process = start_known(c, &error);
    bool is_known;

    *code = CHILD_MISSING;
    if (!process)
        return error == ENOENT ? FRAG_OK : child_cannot(c, error, e);
    is_known = wait_for(process, &status);
    running = 0;
    if (!is_known)
        return child_cannot(c, errno, e);
    *code = child_exit_code(status);
    return FRAG_OK;
}
