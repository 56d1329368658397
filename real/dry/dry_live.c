/* dry_live.c - the file of dry_live.h, and the handler of faults. */
#define _GNU_SOURCE
#include "real/dry/dry_live.h"

#include <dlfcn.h>
#include <execinfo.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>

#include "real/device/gpus.h"

enum { SECONDS = 30, NAME = 128 };

static struct {
    pthread_mutex_t lock;
    pid_t owner; /* of the file: a fork needs its own */
    int file;
    uint64_t most[FRAG_GPUS_MOST];
    char lacked[NAME], where[NAME];
    const char *end; /* "ended" or "fault", of one length; NULL: it lives */
    int signal;
} live = {.lock = PTHREAD_MUTEX_INITIALIZER, .file = -1};

/* Opens the file of this process. */
static void open_file(void)
{
    const char *folder = getenv("FRAGSIM_DRY_FOLDER");
    char path[PATH_MAX];

    if (live.owner == getpid() || !folder)
        return;
    if (live.owner) /* a fork has nothing of the device yet */
        memset(live.most, 0, sizeof(live.most));
    live.owner = getpid();
    snprintf(path, sizeof(path), "%s/%ld.live", folder, (long)live.owner);
    live.file = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
}

/* All lines. Each has the same length every time, so that no rest of an older
 * one is behind it. */
static void write_lines(void)
{
    char text[FRAG_GPUS_MOST * 32 + 4 * NAME];
    int at;

    open_file();
    if (live.file < 0)
        return;
    at = sprintf(text, "lacked\t0\t%-*s\n", NAME, live.lacked);
    for (int d = 0; d < FRAG_GPUS_MOST; d++)
        if (live.most[d])
            at += sprintf(text + at, "used\t%020llu\t%02d\n",
                          (unsigned long long)live.most[d], d);
    if (live.end)
        at += sprintf(text + at, "%s\t%03d\t%-*s\n", live.end, live.signal,
                      NAME, live.where);
    if (pwrite(live.file, text, (size_t)at, 0) != at)
        live.file = -1; /* the disk is full: the answer lacks these lines */
}

void dry_live_used(int device, uint64_t used)
{
    pthread_mutex_lock(&live.lock);
    if (used > live.most[device]) {
        live.most[device] = used;
        write_lines();
    }
    pthread_mutex_unlock(&live.lock);
}

void dry_live_lacks(const char *name)
{
    pthread_mutex_lock(&live.lock);
    snprintf(live.lacked, NAME, "%s", name);
    if (live.owner == getpid())
        write_lines();
    pthread_mutex_unlock(&live.lock);
}

void frag_dry_live_end(void)
{
    if (live.owner != getpid() || live.end)
        return;
    live.end = "ended";
    write_lines();
}

/* ---- faults ---- */

static const int faults[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT};
enum { FAULTS = sizeof(faults) / sizeof(*faults) };
static struct sigaction before[FAULTS];
static void (*last)(void);

/* Notes the library of the address. False if it is that of C, which abort and
 * memcpy are in, or none. */
static bool is_where(void *at)
{
    Dl_info info;
    const char *name;

    if (!dladdr(at, &info) || !info.dli_fname)
        return false;
    name = strrchr(info.dli_fname, '/');
    name = name ? name + 1 : info.dli_fname;
    if (!strncmp(name, "libc.so", strlen("libc.so")))
        return false;
    snprintf(live.where, NAME, "%s", name);
    return true;
}

/* The library that runs, that called what is no code, such as NULL, or that
 * called the library of C; the frames begin with those of the handler. */
static void find_where(const ucontext_t *c)
{
    enum { FRAMES = 32, OWN = 3 };
    void *frames[FRAMES];
    int i = OWN;
#ifdef __x86_64__
    void *const at = (void *)c->uc_mcontext.gregs[REG_RIP];
    void *const *from = (void *const *)c->uc_mcontext.gregs[REG_RSP];
#else
    void *const at = (void *)c->uc_mcontext.pc;
    void *const *from = (void *const *)&c->uc_mcontext.regs[30];
#endif
    Dl_info info;
    int count;

    if (is_where(at) || (!dladdr(at, &info) && is_where(*from)))
        return;
    count = backtrace(frames, FRAMES);
    while (i < count && !is_where(frames[i]))
        i++;
}

static void on_fault(int number, siginfo_t *info, void *context)
{
    (void)info;
    for (int i = 0; i < FAULTS; i++)
        sigaction(faults[i], &before[i], NULL);
    signal(SIGALRM, SIG_DFL);
    alarm(SECONDS); /* the thread may hold what `last` waits for */
    live.end = "fault";
    live.signal = number;
    write_lines();
    find_where(context);
    write_lines();
    last();
    alarm(0);
    raise(number);
}

void frag_dry_on_death(void (*write)(void))
{
    struct sigaction action = {.sa_sigaction = on_fault,
                               .sa_flags = SA_SIGINFO};

    last = write;
    sigemptyset(&action.sa_mask);
    for (int i = 0; i < FAULTS; i++)
        sigaction(faults[i], &action, &before[i]);
}
