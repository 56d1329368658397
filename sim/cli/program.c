#include "sim/cli/program.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* A signal handler has nowhere else to look. */
static volatile sig_atomic_t running; /* the program's process, 0 if none */
static volatile sig_atomic_t stopped;

enum { SIGNALS = 4 };
static const int signals[SIGNALS] = {SIGINT, SIGQUIT, SIGTERM, SIGHUP};

static void on_signal(int number)
{
    if (!running)
        stopped = 1;
    else if (number == SIGTERM || number == SIGHUP)
        kill((pid_t)running, number);
}

static void catch_signals(struct sigaction before[SIGNALS])
{
    struct sigaction action = {.sa_handler = on_signal};

    sigemptyset(&action.sa_mask);
    for (int i = 0; i < SIGNALS; i++)
        sigaction(signals[i], &action, &before[i]);
}

static void restore_signals(const struct sigaction before[SIGNALS])
{
    for (int i = 0; i < SIGNALS; i++)
        sigaction(signals[i], &before[i], NULL);
}

/* Until they are caught they wait: the program may run, and whoever ends it may
 * know of it, before this process goes on after its fork. */
static void hold_signals(sigset_t *before)
{
    sigset_t held;

    sigemptyset(&held);
    for (int i = 0; i < SIGNALS; i++)
        sigaddset(&held, signals[i]);
    sigprocmask(SIG_BLOCK, &held, before);
}

/* In the child: executes the program, or says through the pipe why not. */
static void execute(char *const *argv, const struct setting *settings,
                    const sigset_t *mask, int report)
{
    int error;

    sigprocmask(SIG_SETMASK, mask, NULL);
    signal(SIGXFSZ, SIG_DFL); /* main() ignores it, and exec keeps that */
    for (; settings->name; settings++)
        setenv(settings->name, settings->value, 1);
    execvp(argv[0], argv);
    error = errno;
    if (write(report, &error, sizeof(error)) < 0)
        _exit(126);
    _exit(127);
}

/* Waits for every process there is; what became of `program` in *status. */
static void wait_for_all(pid_t program, int *status)
{
    for (;;) {
        int how;
        const pid_t ended = wait(&how);

        if (ended == program) {
            *status = WIFEXITED(how) ? WEXITSTATUS(how) : 128 + WTERMSIG(how);
            running = 0;
        } else if (ended < 0 && (errno != EINTR || (!running && stopped))) {
            return;
        }
    }
}

static enum frag_err cannot(const char *name, int error, struct frag_error *e)
{
    return frag_fail(e, FRAG_IO, "%s cannot be run: %s", name, strerror(error));
}

/* Why the program was not executed, 0 if it was: its end of the pipe closes. */
static int read_report(int report)
{
    int error = 0;
    ssize_t got;

    do
        got = read(report, &error, sizeof(error));
    while (got < 0 && errno == EINTR);
    return got == (ssize_t)sizeof(error) ? error : 0;
}

static enum frag_err run(char **argv, const struct setting *settings,
                         int *status, struct frag_error *e)
{
    struct sigaction before[SIGNALS];
    sigset_t mask;
    int report[2], error;
    pid_t child;

    if (pipe(report) < 0)
        return cannot(argv[0], errno, e);
    fcntl(report[0], F_SETFD, FD_CLOEXEC);
    fcntl(report[1], F_SETFD, FD_CLOEXEC);
    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); /* what it leaves is ours */
    hold_signals(&mask);
    child = fork();
    if (child == 0)
        execute(argv, settings, &mask, report[1]);
    error = child < 0 ? errno : 0;
    close(report[1]);
    if (child > 0) {
        running = child;
        stopped = 0;
        catch_signals(before);
    }
    sigprocmask(SIG_SETMASK, &mask, NULL);
    if (child > 0) {
        error = read_report(report[0]);
        wait_for_all(child, status);
        restore_signals(before);
    }
    close(report[0]);
    return error ? cannot(argv[0], error, e) : FRAG_OK;
}

enum frag_err program_run(const struct texts *command,
                          const struct setting *settings, int *status,
                          struct frag_error *e)
{
    char **argv = calloc(command->count + 1, sizeof(*argv));
    enum frag_err err;

    if (!argv)
        return FRAG_NOMEM;
    memcpy(argv, command->items, command->count * sizeof(*argv));
    err = run(argv, settings, status, e);
    free(argv);
    return err;
}
