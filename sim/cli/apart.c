/* apart.c - forks, limits the child, forwards signals to it, and judges its
 * end. */
#define _GNU_SOURCE
#include "sim/cli/apart.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sim/experiments/sweep/host_memory.h"
#include "sim/replay/place.h"
#include "traces/bytes/temporary.h"
#include "traces/printable.h"

/* A looping policy gets this many seconds to end after SIGXCPU, before SIGKILL.
 */
enum { GRACE = 2 };

struct limits {
    uint64_t seconds; /* without the end of an event; 0: no limit */
    frag_size memory; /* of the host, in bytes */
};

/* Replaces the limits that the environment has. */
static enum frag_err limits_read(struct limits *l, struct frag_error *e)
{
    const char *seconds = getenv(APART_SECONDS), *memory = getenv(APART_MEMORY);
    char *end = NULL;

    if (seconds)
        l->seconds = strtoull(seconds, &end, 10);
    if (seconds && (*seconds < '0' || *seconds > '9' || *end))
        return frag_fail(e, FRAG_INVALID,
                         APART_SECONDS ": expected a number, found \"%s\"",
                         seconds);
    if (memory && frag_size_parse(memory, &l->memory) != FRAG_OK)
        return frag_fail(e, FRAG_INVALID,
                         APART_MEMORY ": expected a size, found \"%s\"",
                         memory);
    return FRAG_OK;
}

/* -- the child ------------------------------------------------------------- */

/* Bytes of writable memory that this process has. Sanitizers reserve much. */
static frag_size used_data(void)
{
    FILE *in = fopen("/proc/self/statm", "r");
    unsigned long pages = 0;

    if (!in)
        return 0;
    if (fscanf(in, "%*u %*u %*u %*u %*u %lu", &pages) != 1)
        pages = 0;
    fclose(in);
    return pages * (frag_size)sysconf(_SC_PAGESIZE);
}

static void restrain(frag_size memory)
{
    const frag_size most = used_data() + memory;
    struct rlimit limit;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (memory == FRAG_UNLIMITED || getrlimit(RLIMIT_DATA, &limit) < 0 ||
        limit.rlim_cur <= most)
        return;
    limit.rlim_cur = most;
    (void)setrlimit(RLIMIT_DATA, &limit);
}

/* -- the parent ------------------------------------------------------------ */

/* How the child ended. */
struct end {
    int status;
    struct rusage used;
    bool is_stuck; /* it was ended, because no event ended for too long */
    bool is_asked; /* a user asked for the end by a signal */
};

static const int passed_on[] = {SIGINT, SIGQUIT, SIGTERM, SIGHUP};
enum { PASSED_ON = sizeof(passed_on) / sizeof(*passed_on) };

static bool is_passed_on(int number)
{
    for (int i = 0; i < PASSED_ON; i++)
        if (passed_on[i] == number)
            return true;
    return false;
}

static void waited_signals(sigset_t *set)
{
    sigemptyset(set);
    sigaddset(set, SIGCHLD);
    for (int i = 0; i < PASSED_ON; i++)
        sigaddset(set, passed_on[i]);
}

/* Seconds without progress. */
struct idle {
    uint64_t seconds, progress;
};

/* A second has passed. Ends a child that makes no progress. */
static void tick(pid_t child, uint64_t most, struct idle *idle, struct end *end)
{
    uint64_t progress;
    const bool is_taken = place_is_taken(&progress);

    idle->seconds =
        is_taken && progress == idle->progress ? idle->seconds + 1 : 0;
    idle->progress = progress;
    if (!most || idle->seconds < most)
        return;
    end->is_stuck = true;
    kill(child, idle->seconds < most + GRACE ? SIGXCPU : SIGKILL);
}

/* The kernel sends the signals of a terminal to the child too. */
static struct end await(pid_t child, uint64_t seconds)
{
    const struct timespec second = {.tv_sec = 1};
    struct end end = {0};
    struct idle idle = {0};
    sigset_t set;

    waited_signals(&set);
    while (wait4(child, &end.status, WNOHANG, &end.used) == 0) {
        siginfo_t info;
        const int number = sigtimedwait(&set, &info, &second);

        if (number < 0 && errno == EAGAIN)
            tick(child, seconds, &idle, &end);
        if (!is_passed_on(number))
            continue;
        end.is_asked = true;
        if (info.si_code <= 0)
            kill(child, number);
    }
    return end;
}

/* Ends this process as the child ended. */
static void end_alike(const struct end *end)
{
    sigset_t all;

    if (WIFSIGNALED(end->status)) {
        sigfillset(&all);
        signal(WTERMSIG(end->status), SIG_DFL);
        sigprocmask(SIG_UNBLOCK, &all, NULL);
        raise(WTERMSIG(end->status));
    }
    _exit(WEXITSTATUS(end->status));
}

/* Whether the child ended by itself or by a user, and not by the policy. */
static bool is_proper(const struct end *end)
{
    uint64_t progress;

    if (end->is_asked)
        return true;
    if (end->is_stuck)
        return false;
    if (WIFSIGNALED(end->status))
        return is_passed_on(WTERMSIG(end->status)) ||
               WTERMSIG(end->status) == SIGPIPE;
    return !place_is_taken(&progress) && !place_is_mute();
}

static void describe(const struct end *end, uint64_t seconds, FILE *out)
{
    if (end->is_stuck)
        fprintf(out,
                "no answer of the policy for %" PRIu64
                " s: expected one for each event; " APART_SECONDS
                " allows more",
                seconds);
    else if (WIFSIGNALED(end->status))
        fprintf(out,
                "the policy crashed: signal %d (%s); "
                "run it under a debugger or build it with -fsanitize=address",
                WTERMSIG(end->status), strsignal(WTERMSIG(end->status)));
    else if (place_is_mute())
        fprintf(out,
                "the policy closed stderr, so the message of this command "
                "(exit code %d) is lost; expected no call of close",
                WEXITSTATUS(end->status));
    else
        fprintf(out,
                "the policy ended the process with exit code %d; expected an "
                "answer: return an error instead",
                WEXITSTATUS(end->status));
}

/* A policy without memory often crashes. */
static void describe_memory(const struct end *end, frag_size memory, FILE *out)
{
    const frag_size used = (frag_size)end->used.ru_maxrss * FRAG_KIB;

    if (used > memory / 4 * 3)
        fprintf(out,
                "; it used %s of the host's memory, of %s; " APART_MEMORY
                " allows more",
                FRAG_SHOW_SIZE(used), FRAG_SHOW_SIZE(memory));
}

static void judge(const struct call *call, const struct limits *most,
                  pid_t child, const struct end *end)
{
    char where[PLACE_TEXT], *words = NULL;
    size_t size;
    FILE *out;

    temporary_remove_all(); /* what was made before the child */
    temporary_remove_of(child);
    if (is_proper(end))
        end_alike(end);
    out = open_memstream(&words, &size);
    if (out) {
        describe(end, most->seconds, out);
        describe_memory(end, most->memory, out);
        fclose(out);
    }
    printable_line(stderr, "fragsim %s: %s: %s", call->name, place_words(where),
                   words ? words : "");
    _exit(EXIT_NO);
}

enum frag_err apart_continue(const void *user, struct frag_error *e)
{
    struct limits most = {.seconds = 60, .memory = host_memory()};
    sigset_t set, before;
    struct end end;
    pid_t child;

    FRAG_TRY(limits_read(&most, e));
    if (!place_share() || !temporary_share())
        return frag_no_memory(e, "the process of a policy");
    signal(SIGCHLD, SIG_DFL);
    waited_signals(&set);
    sigprocmask(SIG_BLOCK, &set, &before);
    child = fork();
    if (child > 0) {
        end = await(child, most.seconds);
        judge(user, &most, child, &end);
    }
    sigprocmask(SIG_SETMASK, &before, NULL);
    if (child < 0)
        return frag_fail(e, FRAG_IO,
                         "a process for the policy cannot be started: %s",
                         strerror(errno));
    restrain(most.memory);
    return FRAG_OK;
}
