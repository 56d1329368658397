/* cli.c - the services that all commands share: error messages, exit codes,
 * signals, the time, checks of output paths, quoting. */
#include "sim/cli/cli.h"

#include <gsl/gsl_version.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <zlib.h>

#include "sim/version.h"

const struct verb *verb_find(const struct verb *const *verbs, const char *name)
{
    for (; *verbs; verbs++)
        if (!strcmp((*verbs)->name, name))
            return *verbs;
    return NULL;
}

static int exit_code(enum frag_err err)
{
    static const int codes[] = {
        [FRAG_OK] = EXIT_DONE,         [FRAG_OOM] = EXIT_NO,
        [FRAG_NOMEM] = EXIT_FILES,     [FRAG_INVALID] = EXIT_USE,
        [FRAG_CORRUPT] = EXIT_INPUT,   [FRAG_IO] = EXIT_FILES,
        [FRAG_UNSUPPORTED] = EXIT_USE, [FRAG_DEVICE] = EXIT_DEVICE,
        [FRAG_CONTRACT] = EXIT_NO,     [FRAG_CANCELLED] = EXIT_INTERRUPTED,
    };

    return codes[err];
}

int cli_misuse(const struct call *call, const char *format, ...)
{
    va_list args;

    fprintf(stderr, "fragsim %s: ", call->verb->name);
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
    return EXIT_USE;
}

bool cli_is_reproducible(void)
{
    const char *epoch = getenv("SOURCE_DATE_EPOCH");

    return epoch && *epoch;
}

int64_t cli_now(void)
{
    if (cli_is_reproducible())
        return strtoll(getenv("SOURCE_DATE_EPOCH"), NULL, 10);
    return (int64_t)time(NULL);
}

/* A global, because a signal handler has no other access to state. */
static volatile sig_atomic_t interrupted;

/* Closes stdin so that a read() that waits for it ends: the interrupted read()
 * fails, and the next read() finds stdin closed. */
static void on_signal(int number)
{
    (void)number;
    interrupted = 1;
    close(STDIN_FILENO);
}

void cli_catch_signals(void)
{
    struct sigaction action = {.sa_handler = on_signal};

    /* The second signal ends the process by its default action. */
    action.sa_flags = (int)SA_RESETHAND;
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

bool cli_interrupted(void)
{
    return interrupted;
}

int cli_fail(const struct call *call, enum frag_err err,
             const struct frag_error *e)
{
    const char *words = e && *e->text ? e->text : frag_err_text(err);

    /* A system call that the signal interrupted may have set another error. */
    if (err == FRAG_CANCELLED || (err != FRAG_OK && interrupted)) {
        err = FRAG_CANCELLED;
        words = "interrupted";
    }
    if (err != FRAG_OK)
        fprintf(stderr, "fragsim %s: %s\n", call->verb->name, words);
    return exit_code(err);
}

bool cli_colors(const struct common *common, FILE *out)
{
    const char *no = getenv("NO_COLOR"), *term = getenv("TERM");

    if (common->color != COLOR_AUTO)
        return common->color == COLOR_ALWAYS;
    return !(no && *no) && term && strcmp(term, "dumb") != 0 &&
           isatty(fileno(out));
}

int cli_may_write(const struct call *call, const char *path, bool force)
{
    struct stat at;

    if (!path || force || stat(path, &at) < 0 || !S_ISREG(at.st_mode))
        return EXIT_DONE;
    fprintf(stderr, "fragsim %s: %s exists; -f overwrites it\n",
            call->verb->name, path);
    return EXIT_FILES;
}

int cli_may_replace(const struct call *call, const char *path, bool force)
{
    struct stat at;

    if (!path || stat(path, &at) < 0 || S_ISREG(at.st_mode))
        return cli_may_write(call, path, force);
    fprintf(stderr, "fragsim %s: %s: expected a regular file\n",
            call->verb->name, path);
    return EXIT_FILES;
}

size_t cli_quote(const char *arg, char *out)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRST"
                                "UVWXYZ0123456789_-./:=,@+%";
    size_t n = 0;

    if (*arg && !arg[strspn(arg, plain)]) {
        if (out)
            memcpy(out, arg, strlen(arg));
        return strlen(arg);
    }
#define PUT(c) ((void)(out ? (out[n] = (c)) : 0), n++)
    PUT('\'');
    for (; *arg; arg++) {
        PUT(*arg);
        if (*arg == '\'') {
            PUT('\\');
            PUT('\'');
            PUT('\'');
        }
    }
    PUT('\'');
#undef PUT
    return n;
}

void cli_json_open(const struct call *call, struct frag_json *j, FILE *out)
{
    frag_results_json_open(
        j, out,
        &(const struct frag_provenance){.version = frag_version,
                                        .commit = frag_commit,
                                        .command = call->command});
}

void cli_version(FILE *out)
{
    char hdf5[32];

    fprintf(out, "fragsim %s (%s)\n", frag_version, frag_commit);
    fprintf(out, "HDF5 %s, GSL %s, zlib %s\n", frag_results_library(hdf5),
            gsl_version, zlibVersion());
}
