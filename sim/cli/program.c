/* program.c - the wait for a program and its descendants, the signal handler
 * that forwards signals, and the search beside the tool. */
#include "sim/cli/program.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- the files that are installed with the tool ---- */

/* The folder of this executable; "" if it is unknown. */
static void find_tool(char folder[PATH_MAX])
{
    const ssize_t length = readlink("/proc/self/exe", folder, PATH_MAX - 1);

    folder[length < 0 ? 0 : length] = '\0';
    if (length > 0)
        *strrchr(folder, '/') = '\0';
}

bool program_find(const char *name, const char *const *places,
                  char path[PATH_MAX])
{
    char tool[PATH_MAX], file[PATH_MAX + 512];

    find_tool(tool);
    for (; *places; places++) {
        const char *from = **places == '/' ? "" : tool;

        snprintf(file, sizeof(file), "%s/%s/%s", from, *places, name);
        if (realpath(file, path) && access(path, R_OK) == 0)
            return true;
    }
    return false;
}

enum frag_err program_library(const char *name, char path[PATH_MAX],
                              struct frag_error *e)
{
    static const char *const places[] = {".", FRAG_LIBRARIES_FROM_TOOL, NULL};
    char tool[PATH_MAX];

    if (program_find(name, places, path))
        return FRAG_OK;
    find_tool(tool);
    return frag_fail(e, FRAG_IO,
                     "expected %s in %s or in %s relative to it, found none: "
                     "build it, or install fragsim again",
                     name, tool, FRAG_LIBRARIES_FROM_TOOL);
}

/* ---- the program ---- */

/* Globals, because a signal handler has no other access to state. */
static volatile sig_atomic_t
    running; /* process id of the program; 0: it ended */
static volatile sig_atomic_t
    stopped; /* a signal came after the program ended */

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

/* Blocks the signals until the handlers are installed: after fork the program
 * may already run, and a user may already send a signal, before this process
 * continues. */
static void block_signals(sigset_t *before)
{
    sigset_t blocked;

    sigemptyset(&blocked);
    for (int i = 0; i < SIGNALS; i++)
        sigaddset(&blocked, signals[i]);
    sigprocmask(SIG_BLOCK, &blocked, before);
}

/* Waits for all children; sets *status to the exit code of `program`. */
static void wait_for_all(pid_t program, int *status)
{
    for (;;) {
        int how;
        const pid_t ended = wait(&how);

        if (ended == program) {
            *status = child_exit_code(how);
            running = 0;
        } else if (ended < 0 && (errno != EINTR || (!running && stopped))) {
            return;
        }
    }
}

static enum frag_err run(const struct child *c, const sigset_t *mask,
                         int *status, struct frag_error *e)
{
    struct sigaction before[SIGNALS];
    int error;
    pid_t process = child_start(c, &error);

    if (process) {
        running = process;
        stopped = 0;
        catch_signals(before);
    }
    sigprocmask(SIG_SETMASK, mask, NULL);
    if (!process)
        return child_cannot(c, error, e);
    wait_for_all(process, status);
    restore_signals(before);
    return FRAG_OK;
}

enum frag_err program_run(const struct texts *command,
                          const struct setting *settings, const char *output,
                          int *status, struct frag_error *e)
{
    const char **argv = calloc(command->count + 1, sizeof(*argv));
    sigset_t mask;
    enum frag_err err;

    if (!argv)
        return FRAG_NOMEM;
    memcpy(argv, command->items, command->count * sizeof(*argv));
    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0,
          0); /* orphans of the program turn into children of this process */
    block_signals(&mask);
    err = run(&(const struct child){.argv = argv,
                                    .settings = settings,
                                    .output = output,
                                    .mask = &mask},
              &mask, status, e);
    free(argv);
    return err;
}
