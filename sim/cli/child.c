/* child.c - fork, exec and wait, for every program that fragsim runs. The child
 * reports a failed exec through a pipe that a successful exec closes. A copy of
 * this process executes nothing. */
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

enum { CHILDREN = 16 };
static volatile sig_atomic_t running[CHILDREN]; /* 0: no child */

static void replace(pid_t old, pid_t process)
{
    for (size_t i = 0; i < CHILDREN; i++)
        if (running[i] == (sig_atomic_t)old) {
            running[i] = (sig_atomic_t)process;
            return;
        }
}

/* A copy waits for its programs, and this process for its copies, so this one
 * waits longer. */
enum { LOOK = 10, TIMES = 300, COPY_TIMES = 100 }; /* LOOK: milliseconds */
static int patience = TIMES;

void child_end(int number)
{
    int times = patience;

    for (size_t k = 0; k < CHILDREN; k++)
        if (running[k])
            kill((pid_t)running[k], number);
    for (size_t k = 0; k < CHILDREN; k++)
        while (running[k] && times-- > 0 &&
               waitpid((pid_t)running[k], NULL, WNOHANG) == 0)
            poll(NULL, 0, LOOK);
}

/* Blocks all signals from before a fork until the child is listed: a signal in
 * between would not reach the child, which would go on writing into a folder
 * that the handler removes. */
static void block_signals(sigset_t *before)
{
    sigset_t all;

    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, before);
}

static void unblock_signals(const sigset_t *before)
{
    pthread_sigmask(SIG_SETMASK, before, NULL);
}

/* child_start() of a program that child_end() ends. */
static pid_t start_listed(const struct child *c, int *error)
{
    struct child masked = *c;
    sigset_t mask;
    pid_t process;

    block_signals(&mask);
    if (!masked.mask)
        masked.mask = &mask;
    process = child_start(&masked, error);
    if (process)
        replace(0, process);
    unblock_signals(&mask);
    return process;
}

enum frag_err child_run(const struct child *c, int *code, struct frag_error *e)
{
    int error, status;
    pid_t process = start_listed(c, &error);

    *code = CHILD_MISSING;
    if (!process)
        return error == ENOENT ? FRAG_OK : child_cannot(c, error, e);
    if (!wait_for(process, &status))
        return child_cannot(c, errno, e);
    replace(process, 0);
    *code = child_exit_code(status);
    return FRAG_OK;
}

/* fork(), and the lists of both processes; 0 in the copy. */
static pid_t fork_listed(void)
{
    sigset_t mask;
    pid_t process;

    block_signals(&mask);
    process = fork();
    if (process > 0) {
        replace(0, process);
    } else if (process == 0) {
        memset((void *)(uintptr_t)running, 0, sizeof(running));
        patience = COPY_TIMES;
    }
    unblock_signals(&mask);
    return process;
}

enum frag_err child_copy(const struct child_work *w, pid_t *process,
                         struct frag_error *e)
{
    int code;

    fflush(NULL); /* or both processes would write what is not written yet */
    *process = fork_listed();
    if (*process < 0)
        return frag_fail(e, FRAG_IO, "a child process: %s", strerror(errno));
    if (*process)
        return FRAG_OK;
    apply(w->settings);
    if (!redirect(w->output))
        _exit(CHILD_MISSING - 1);
    code = w->work(w->user);
    _exit(fflush(stdout) == 0 ? code : CHILD_MISSING - 1);
}

bool child_copy_is_apart(void)
{
    return true;
}

enum frag_err child_wait(pid_t process, int *code, struct frag_error *e)
{
    int status;

    if (!wait_for(process, &status))
        return frag_fail(e, FRAG_IO, "a child process: %s", strerror(errno));
    replace(process, 0);
    *code = child_exit_code(status);
    return FRAG_OK;
}
