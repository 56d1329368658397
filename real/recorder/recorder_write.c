/* recorder_write.c - the log of the process: its file, its mapped chunks, and
 * the places in them that threads claim without a lock. */
#include "real/recorder/write.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum {
    CHUNK = 1 << 20,                                 /* bytes */
    CALLS = CHUNK / (int)sizeof(struct record_call), /* in a chunk */
    FIRST = RECORD_HEADER / (int)sizeof(struct record_call),
    CHUNKS = 1 << 16,
};

_Static_assert(sizeof(struct record_call) == 64, "as record_log.h says");
_Static_assert(sizeof(struct record_header) <= RECORD_HEADER, "has room");

/* The only log of the process. It is static because nobody passes state to a
 * library that is loaded into a program. */
static struct log {
    pthread_mutex_t lock; /* held while the file is opened or grows */
    int file;             /* -1: not opened yet */
    bool failed;          /* the file could not be opened */
    _Atomic uint64_t next;
    _Atomic(char *) chunks[CHUNKS];
} log_ = {.lock = PTHREAD_MUTEX_INITIALIZER, .file = -1, .next = FIRST};

static _Atomic uint32_t threads;
static __thread uint32_t thread; /* 1 + the thread's number; 0: no number yet */

uint32_t log_thread(void)
{
    if (!thread)
        thread = 1 + atomic_fetch_add(&threads, 1);
    return thread - 1;
}

uint64_t log_time(void)
{
    struct timespec t;

    clock_gettime(CLOCK_REALTIME, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* ---- the file ---- */

/* A process that executes another program keeps its number, so the first names
 * may exist already. */
static int open_file(const char *folder)
{
    char path[4096];

    for (unsigned i = 0; i < 10000; i++) {
        int file;

        if (snprintf(path, sizeof(path), "%s/%ld-%u" RECORD_SUFFIX, folder,
                     (long)getpid(), i) >= (int)sizeof(path)) {
            errno = ENAMETOOLONG;
            return -1;
        }
        file = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (file >= 0 || errno != EEXIST)
            return file;
    }
    return -1;
}

static void write_header(char *at)
{
    struct record_header h = {.magic = RECORD_MAGIC,
                              .version = RECORD_VERSION,
                              .call_bytes = sizeof(struct record_call),
                              .process = (uint64_t)getpid(),
                              .started = log_time()};

    strncpy(h.program, program_invocation_short_name, sizeof(h.program) - 1);
    memcpy(at, &h, sizeof(h));
}

/* Reserves disk space. A limit on file sizes would kill the program with a
 * signal (SIGXFSZ) that the program did not cause, so the signal is blocked
 * here and removed. */
static int reserve_room(off_t start)
{
    const struct timespec at_once = {0};
    sigset_t too_large, before, pending;
    int err;

    sigemptyset(&too_large);
    sigaddset(&too_large, SIGXFSZ);
    pthread_sigmask(SIG_BLOCK, &too_large, &before);
    sigpending(&pending);
    err = posix_fallocate(log_.file, start, CHUNK);
    if (err == EFBIG && !sigismember(&pending, SIGXFSZ))
        sigtimedwait(&too_large, NULL, &at_once);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return err;
}

/* MADV_POPULATE_WRITE of Linux 5.14: makes all pages writable at once, which
 * MAP_POPULATE does not do for a shared file. An older kernel refuses it and
 * then handles one page fault for each page. */
enum { POPULATE_WRITE = 23 };

/* Disk space is reserved before it is mapped: a store to a mapping without disk
 * space would kill the program. */
static char *map_chunk(uint64_t index)
{
    const off_t start = (off_t)index * CHUNK;
    const int err = reserve_room(start);
    void *at;

    if (err != 0) {
        errno = err;
        return NULL;
    }
    at =
        mmap(NULL, CHUNK, PROT_READ | PROT_WRITE, MAP_SHARED, log_.file, start);
    if (at == MAP_FAILED)
        return NULL;
    madvise(at, CHUNK, POPULATE_WRITE);
    return at;
}

/* The folder is read when the library is loaded, since a program may clear its
 * environment. It is also read at the first call, which may come earlier. */
static const char *find_folder(void)
{
    static char folder[4096];
    const char *value = getenv(RECORD_FOLDER);

    if (!*folder && value)
        snprintf(folder, sizeof(folder), "%s", value);
    return folder;
}

static void start(void)
{
    const char *folder = find_folder();
    char *at = NULL;

    log_.failed = true;
    if (!*folder)
        return;
    log_.file = open_file(folder);
    if (log_.file >= 0)
        at = map_chunk(0);
    if (!at) {
        dprintf(STDERR_FILENO,
                "fragsim record: nothing of process %ld is recorded: %s: %s\n",
                (long)getpid(), folder, strerror(errno));
        return;
    }
    write_header(at);
    atomic_store(&log_.chunks[0], at);
    log_.failed = false;
}

/* Maps the chunk of that index. Returns NULL if that is impossible. */
static char *grow(uint64_t index)
{
    char *at = NULL;
    const int saved = errno;

    pthread_mutex_lock(&log_.lock);
    if (log_.file < 0 && !log_.failed)
        start();
    if (!log_.failed && index < CHUNKS) {
        at = atomic_load(&log_.chunks[index]);
        if (!at && (at = map_chunk(index)))
            atomic_store(&log_.chunks[index], at);
    }
    pthread_mutex_unlock(&log_.lock);
    errno = saved;
    return at;
}

static void count_lost(void)
{
    struct record_header *h = (void *)atomic_load(&log_.chunks[0]);

    if (h)
        __atomic_fetch_add(&h->lost, 1, __ATOMIC_RELAXED);
}

/* ---- calls ---- */

struct record_call *log_claim(void)
{
    const uint64_t index = atomic_fetch_add(&log_.next, 1);
    const uint64_t chunk = index / CALLS;
    char *at = chunk < CHUNKS ? atomic_load(&log_.chunks[chunk]) : NULL;

    if (!at)
        at = grow(chunk);
    if (!at) {
        count_lost();
        return NULL;
    }
    return (struct record_call *)(void *)at + index % CALLS;
}

void log_commit(struct record_call *place, const struct record_call *call)
{
    const size_t kind = sizeof(call->kind);

    if (!place)
        return;
    memcpy((char *)place + kind, (const char *)call + kind,
           sizeof(*call) - kind);
    __atomic_store_n(&place->kind, call->kind, __ATOMIC_RELEASE);
}

/* ---- fork ---- */

/* The child has only this thread. It unmaps the parent's log and makes a new
 * lock, since another thread of the parent may hold the old one. */
static void in_child(void)
{
    const uint64_t used = 1 + (atomic_load(&log_.next) - 1) / CALLS;

    for (uint64_t i = 0; i < used && i < CHUNKS; i++) {
        char *at = atomic_exchange(&log_.chunks[i], NULL);

        if (at)
            munmap(at, CHUNK);
    }
    if (log_.file >= 0)
        close(log_.file);
    pthread_mutex_init(&log_.lock, NULL);
    log_.file = -1;
    log_.failed = false;
    atomic_store(&log_.next, FIRST);
}

__attribute__((constructor)) static void prepare(void)
{
    find_folder();
    pthread_atfork(NULL, NULL, in_child);
}
