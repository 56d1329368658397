/* cli.c - the services that all commands share: error messages, exit codes,
 * signals, threads, the time, checks of output paths, quoting. */
#include "sim/cli/cli.h"

#include <errno.h>
#include <gsl/gsl_version.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <zlib.h>

#include "sim/cli/child.h"
#include "sim/cli/cli_versions.h"
#include "sim/version.h"
#include "traces/bytes/temporary.h"
#include "traces/printable.h"
#include "traces/storage.h"

const struct alias aliases[] = {
    {"edit", "import", "change a trace: cut, scale, free earlier, merge, ..."},
    {"conf", "policies", "policies torch:SETTINGS: what PyTorch makes of them"},
    {0},
};

const struct verb *verb_find(const struct verb *const *verbs, const char *name)
{
    for (const struct alias *a = aliases; a->name; a++)
        if (!strcmp(a->name, name))
            name = a->verb;
    for (; *verbs; verbs++)
        if (!strcmp((*verbs)->name, name))
            return *verbs;
    return NULL;
}

#define OF_PROGRAM "or the exit code of the program"

const struct exit_case exit_cases[] = {
    {"record", EXIT_DONE, OF_PROGRAM},
    {"run", EXIT_DONE, OF_PROGRAM},
    {"dry", EXIT_DONE, OF_PROGRAM},
    {"triage", EXIT_NO,
     "neither the recorded settings nor others are known to be enough"},
    {"triage", EXIT_INPUT, "too little was recorded: the answer says so"},
    {"tune", EXIT_NO, "no setting is known to be enough"},
    {"fit", EXIT_NO,
     "a policy does not fit the size that was named, or breaks its contract"},
    {"replay", EXIT_NO, "a policy breaks its contract"},
    {"sweep", EXIT_NO, "a policy breaks its contract"},
    {"merge", EXIT_NO, "shards of the sweep are missing"},
    {"leaks", EXIT_NO, "with --fail: a trace has a leak"},
    {"diff", EXIT_NO, "there is more growth than --fail-over allows"},
    {"validate", EXIT_NO, "the replay differs from what was recorded"},
    {"validate", EXIT_UNKNOWN,
     "a trace holds too little to judge, and no other one differs"},
    {"dry", EXIT_NO, "the program does not fit the GPU that was named"},
    {"dry", EXIT_UNKNOWN, "the traces lack a part of the memory"},
    {"compare", EXIT_NO,
     "a run on the GPU differs from the simulation, or leaves memory on it"},
    {"policies", EXIT_NO,
     "PyTorch refuses or ignores a setting, or with --test: the policy breaks "
     "its contract"},
    {NULL, EXIT_DONE, NULL},
};

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
    char words[PRINTABLE_LINE];
    va_list args;

    va_start(args, format);
    vsnprintf(words, sizeof(words), format, args);
    va_end(args);
    printable_line(stderr, "fragsim %s: %s", call->name, words);
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
static atomic_bool interrupted; /* worker threads read it */

/* Seconds between a signal and the end of a program that does not end by
 * itself. */
enum { GRACE = 5 };

/* The signals that end the program. */
static const struct ending {
    int number;
    bool asks; /* a command may end its work first: cli_interrupted */
} endings[] = {
    {SIGINT, true},   {SIGTERM, true},  {SIGHUP, true},
    {SIGQUIT, false}, {SIGPIPE, false}, {SIGXCPU, false},
    {SIGALRM, false}, {SIGUSR1, false}, {SIGUSR2, false},
};

enum { ENDINGS = sizeof(endings) / sizeof(*endings) };

/* Prints words and a text that may hold any bytes; a signal handler may. */
static void say(const char *before, const char *text, const char *after)
{
    const char *const parts[] = {before, text, after};
    char line[512];
    size_t n = 0;

    for (int i = 0; i < 3; i++)
        for (const char *at = parts[i]; *at && n < sizeof(line) - 1; at++)
            line[n++] = (*at >= ' ' && *at <= '~') ? *at : '?';
    line[n++] = '\n';
    (void)!write(STDERR_FILENO, line, n);
}

/* The program is inside a call that does not return. Outputs are renamed into
 * place when they are complete, so none is changed. */
static void on_alarm(int number)
{
    child_end(number);
    temporary_remove_all();
    say("fragsim: interrupted", "", "");
    _exit(EXIT_INTERRUPTED);
}

/* A mapped file has no such page any more. */
static void on_bus(int number, siginfo_t *info, void *context)
{
    const char *name = storage_mapped(info->si_addr);

    (void)context;
    if (!name) { /* a fault of this program: it comes again */
        signal(number, SIG_DFL);
        return;
    }
    temporary_remove_all();
    say("fragsim: ", name,
        ": cannot read it: it became shorter while it was read, or its disk "
        "failed; copy it again, and repeat the command");
    _exit(EXIT_FILES);
}

/* The signal is blocked, so that raise() ends the process after the return. */
static void on_end(int number)
{
    child_end(number);
    temporary_remove_all();
    signal(number, SIG_DFL);
    raise(number);
}

/* Sets the handler of a signal, unless the caller of the program ignores it, as
 * nohup does. */
static void catch_signal(int number, void (*handler)(int))
{
    struct sigaction action = {.sa_handler = handler}, before;

    sigfillset(&action.sa_mask);
    if (sigaction(number, NULL, &before) == 0 && before.sa_handler != SIG_IGN)
        sigaction(number, &action, NULL);
}

void cli_clean_signals(void)
{
    struct sigaction action = {.sa_sigaction = on_bus, .sa_flags = SA_SIGINFO};

    sigfillset(&action.sa_mask);
    sigaction(SIGBUS, &action, NULL);
    for (int i = 0; i < ENDINGS; i++)
        catch_signal(endings[i].number, on_end);
}

/* Closes stdin so that a read() that waits for it ends: the interrupted read()
 * fails, and the next read() finds stdin closed. */
static void on_signal(int number)
{
    const int error = errno; /* of the code that the signal interrupts */

    catch_signal(number, on_end); /* the second one ends the process */
    alarm(GRACE); /* before `interrupted`, which lets cli_interrupted end it */
    interrupted = true;
    close(STDIN_FILENO);
    errno = error;
}

void cli_catch_signals(void)
{
    for (int i = 0; i < ENDINGS; i++)
        if (endings[i].asks)
            catch_signal(endings[i].number, on_signal);
    catch_signal(SIGALRM, on_alarm);
}

bool cli_interrupted(void)
{
    if (interrupted)
        alarm(0);
    return interrupted;
}

void cli_put_failure(FILE *out, const char *name, enum frag_err err,
                     const struct frag_error *e)
{
    printable_line(out, "fragsim %s: %s", name,
                   e && *e->text ? e->text : frag_err_text(err));
}

int cli_fail(const struct call *call, enum frag_err err,
             const struct frag_error *e)
{
    static const struct frag_error interruption = {"interrupted"};

    /* A system call that the signal interrupted may have set another error. */
    if (err == FRAG_CANCELLED || (err != FRAG_OK && interrupted)) {
        err = FRAG_CANCELLED;
        e = &interruption;
    }
    if (err != FRAG_OK)
        cli_put_failure(stderr, call->name, err, e);
    return exit_code(err);
}

static bool is_interrupted(void *user)
{
    (void)user;
    return cli_interrupted();
}

struct parallel cli_threads(const struct call *call, uint64_t wanted,
                            bool quiet)
{
    const struct parallel_room room = parallel_room(wanted);

    if (room.threads < room.wanted && !quiet)
        fprintf(stderr,
                "fragsim %s: %zu of %zu threads: the address space is limited "
                "to %s (ulimit -v)\n",
                call->name, room.threads, room.wanted,
                FRAG_SHOW_SIZE(room.limit));
    return (struct parallel){room.threads, {is_interrupted, NULL}};
}

bool cli_colors(const struct common *common, FILE *out)
{
    const char *no = getenv("NO_COLOR"), *term = getenv("TERM");

    if (common->color != COLOR_AUTO)
        return common->color == COLOR_ALWAYS;
    return !(no && *no) && term && strcmp(term, "dumb") != 0 &&
           isatty(fileno(out));
}

/* Whether an argument, or its part after "=", names the file `at`. A command
 * whose output is an argument reads only results, and may add to them. */
static bool is_input(const struct call *call, const char *path,
                     const struct stat *at)
{
    for (size_t i = 0; i < call->args->count; i++) {
        const char *arg = call->args->items[i], *value = strchr(arg, '=');
        struct stat found;

        if (arg == path)
            return false;
        if (stat(arg, &found) < 0 && !(value && stat(value + 1, &found) == 0))
            continue;
        if (found.st_dev == at->st_dev && found.st_ino == at->st_ino)
            return true;
    }
    return false;
}

int cli_may_write(const struct call *call, const char *path, bool force)
{
    struct stat at;

    if (!path || stat(path, &at) < 0 || !S_ISREG(at.st_mode))
        return EXIT_DONE;
    if (is_input(call, path, &at))
        return cli_misuse(call,
                          "%s: expected another file for the output, found the "
                          "input, which it would replace",
                          path);
    if (force)
        return EXIT_DONE;
    printable_line(stderr, "fragsim %s: %s exists; -f overwrites it",
                   call->name, path);
    return EXIT_FILES;
}

int cli_may_replace(const struct call *call, const char *path, bool force)
{
    struct stat at;

    if (!path || stat(path, &at) < 0 || S_ISREG(at.st_mode))
        return cli_may_write(call, path, force);
    printable_line(stderr, "fragsim %s: %s: expected a regular file",
                   call->name, path);
    return EXIT_FILES;
}

/* A writer of characters that may only count them. */
struct quoted {
    char *out; /* NULL: the characters are only counted */
    size_t n;
};

static void put(struct quoted *q, const char *text, size_t n)
{
    if (q->out)
        memcpy(q->out + q->n, text, n);
    q->n += n;
}

/* Between single quotes, where only a single quote is special. */
static void quote_plainly(struct quoted *q, const char *arg)
{
    for (; *arg; arg++)
        put(q, *arg == '\'' ? "'\\''" : arg, *arg == '\'' ? 4 : 1);
}

/* Between $' and ', where a backslash and three octal digits are a byte. */
static void quote_bytes(struct quoted *q, const char *arg)
{
    for (; *arg; arg++) {
        const unsigned char c = (unsigned char)*arg;
        char octal[8];

        snprintf(octal, sizeof(octal), "\\%03o", c);
        if (c < 0x20 || c >= 0x7f || c == '\'' || c == '\\')
            put(q, octal, 4);
        else
            put(q, arg, 1);
    }
}

size_t cli_quote(const char *arg, char *out)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRST"
                                "UVWXYZ0123456789_-./:=,@+%";
    struct quoted q = {.out = out};

    if (*arg && !arg[strspn(arg, plain)]) {
        put(&q, arg, strlen(arg));
    } else if (printable_is(arg)) {
        put(&q, "'", 1);
        quote_plainly(&q, arg);
        put(&q, "'", 1);
    } else {
        put(&q, "$'", 2);
        quote_bytes(&q, arg);
        put(&q, "'", 1);
    }
    return q.n;
}

char *cli_quoted(const char *arg)
{
    const size_t n = cli_quote(arg, NULL);
    char *quoted = malloc(n + 1);

    if (quoted) {
        cli_quote(arg, quoted);
        quoted[n] = '\0';
    }
    return quoted;
}

struct frag_provenance cli_provenance(const struct call *call)
{
    return (struct frag_provenance){.version = frag_version,
                                    .commit = frag_commit,
                                    .command = call->command};
}

void cli_version(FILE *out)
{
    char hdf5[32];

    fprintf(out, "fragsim %s (%s)\n", frag_version, frag_commit);
    fprintf(out, "HDF5 %s, GSL %s, zlib %s\n", frag_results_library(hdf5),
            gsl_version, zlibVersion());
    versions_line(out);
}
