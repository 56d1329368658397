/* adaptor.c - the functions that PyTorch calls. One lock protects everything; a
 * device is opened at its first request. The decisions are those of
 * device.c. */
#include "real/torch/adaptor.h"

#include <dlfcn.h>
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "real/torch/device.h"
#include "real/torch/settings.h"
#include "sim/results/results.h"
#include "sim/version.h"
#include "traces/printable.h"

enum { DEVICES = 64 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct settings settings;
static struct device *devices[DEVICES];
static pid_t owner; /* a forked child has no device and writes no results */
static int64_t started;

/* ---- at exit ---- */

/* The command line of this process. */
static void read_command(char *command, size_t room)
{
    FILE *file = fopen("/proc/self/cmdline", "rb");
    size_t length = file ? fread(command, 1, room - 1, file) : 0;

    if (file)
        fclose(file);
    for (size_t i = 0; i + 1 < length; i++)
        if (!command[i])
            command[i] = ' ';
    command[length] = '\0';
}

static enum frag_err add_devices(struct frag_results *r, struct frag_error *e)
{
    for (int i = 0; i < DEVICES; i++)
        if (devices[i])
            FRAG_TRY(device_report(devices[i], i, &settings,
                                   program_invocation_short_name, r, e));
    return FRAG_OK;
}

static enum frag_err write_results(struct frag_error *e)
{
    char command[4096];
    const struct frag_provenance p = {.version = frag_version,
                                      .commit = frag_commit,
                                      .command = command,
                                      .started = started,
                                      .ended = time(NULL)};
    struct frag_results *r;
    enum frag_err err;

    read_command(command, sizeof(command));
    FRAG_TRY(frag_results_open(settings.output, &p, &r, e));
    err = add_devices(r, e);
    if (err == FRAG_OK)
        return frag_results_commit(r, p.ended, e);
    frag_results_abort(r);
    return err;
}

/* The driver may be unloaded by now, so this function releases no memory: the
 * driver does that. */
static void at_exit(void)
{
    struct frag_error e = {""};

    if (getpid() != owner || !settings.output[0])
        return;
    pthread_mutex_lock(&lock);
    if (write_results(&e) != FRAG_OK)
        printable_line(stderr, "fragsim: %s", e.text);
    pthread_mutex_unlock(&lock);
}

/* ---- devices ---- */

static void die(const char *words)
{
    printable_line(stderr, "fragsim: %s", words);
    abort();
}

static void start(void)
{
    struct frag_error e = {""};

    if (settings_read(&settings, &e) != FRAG_OK)
        die(e.text);
    owner = getpid();
    started = time(NULL);
    atexit(at_exit);
}

static struct device *device_at(int ordinal)
{
    struct frag_error e = {""};

    if (ordinal < 0 || ordinal >= DEVICES)
        die("PyTorch passed a device number outside 0 to 63");
    if (!owner)
        start();
    if (!devices[ordinal] &&
        device_open(ordinal, &settings, &devices[ordinal], &e) != FRAG_OK)
        die(e.text);
    return devices[ordinal];
}

/* ---- the time of calls ---- */

static atomic_bool timed;
static atomic_size_t calls_made, ns_in_calls;

static int64_t clock_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

/* 0 if the times are off. */
static int64_t enter(void)
{
    return atomic_load_explicit(&timed, memory_order_relaxed) ? clock_ns() : 0;
}

static void leave(int64_t entered)
{
    if (!entered)
        return;
    atomic_fetch_add_explicit(&calls_made, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&ns_in_calls, (size_t)(clock_ns() - entered),
                              memory_order_relaxed);
}

/* ---- functions that PyTorch calls ---- */

/* c10::detail::torchCheckFail(function, file, line, message), which throws. */
typedef void check_fail(const char *, const char *, uint32_t, const char *);

/* Programs recognize a full device by the first words of the message. */
static void refuse(enum frag_err err, const struct frag_error *e)
{
    static const char name[] = "_ZN3c106detail14torchCheckFailEPKcS2_jS2_";
    check_fail *fail = NULL;
    char words[sizeof(e->text) + 64];

    snprintf(words, sizeof(words), "%sfragsim, %s",
             err == FRAG_OOM ? "CUDA out of memory. " : "", e->text);
    *(void **)&fail = dlsym(RTLD_DEFAULT, name);
    if (fail)
        fail("frag_torch_alloc", "fragsim", 0, words);
    die(words);
}

static enum frag_err serve(frag_size size, int ordinal,
                           frag_torch_stream stream, frag_addr *addr,
                           struct frag_error *e)
{
    enum frag_err err;

    pthread_mutex_lock(&lock);
    err = device_alloc(device_at(ordinal), size, stream, addr, e);
    pthread_mutex_unlock(&lock);
    return err;
}

void *frag_torch_alloc(ssize_t size, int device, frag_torch_stream stream)
{
    const int64_t entered = enter();
    struct frag_error e = {""};
    frag_addr addr = 0;
    enum frag_err err;

    if (size <= 0)
        return NULL;
    err = serve((frag_size)size, device, stream, &addr, &e);
    if (err != FRAG_OK)
        refuse(err, &e);
    leave(entered);
    return (void *)(uintptr_t)addr;
}

void frag_torch_free(void *ptr, ssize_t size, int device,
                     frag_torch_stream stream)
{
    const int64_t entered = enter();
    struct frag_error e = {""};
    enum frag_err err;

    (void)size;
    if (!ptr || getpid() != owner)
        return;
    pthread_mutex_lock(&lock);
    err = device_free(device_at(device), (frag_addr)(uintptr_t)ptr, stream, &e);
    pthread_mutex_unlock(&lock);
    if (err != FRAG_OK)
        die(e.text);
    leave(entered);
}

/* PyTorch does not pass the device of the block. */
void frag_torch_record_stream(void *ptr, frag_torch_stream stream)
{
    pthread_mutex_lock(&lock);
    for (int i = 0; ptr && i < DEVICES; i++)
        if (devices[i] && device_use(devices[i], (frag_addr)(uintptr_t)ptr,
                                     stream) != FRAG_OK)
            die("the host has no memory for a stream of a block");
    pthread_mutex_unlock(&lock);
}

void frag_torch_empty_cache(void)
{
    struct frag_error e = {""};
    enum frag_err err = FRAG_OK;

    pthread_mutex_lock(&lock);
    for (int i = 0; err == FRAG_OK && i < DEVICES; i++)
        if (devices[i])
            err = device_trim(devices[i], &e);
    pthread_mutex_unlock(&lock);
    if (err != FRAG_OK)
        die(e.text);
}

/* ---- numbers that the program can read ---- */

struct numbers {
    struct frag_serve_memory memory;
    struct device_calls calls;
};

static struct numbers numbers_of(int device)
{
    struct numbers n = {0};

    pthread_mutex_lock(&lock);
    if (device >= 0 && device < DEVICES && devices[device])
        n = (struct numbers){device_memory(devices[device]),
                             device_calls(devices[device])};
    pthread_mutex_unlock(&lock);
    return n;
}

size_t frag_torch_reserved(int device)
{
    return numbers_of(device).memory.reserved;
}

size_t frag_torch_peak_reserved(int device)
{
    return numbers_of(device).memory.peak_reserved;
}

size_t frag_torch_peak_allocated(int device)
{
    return numbers_of(device).memory.peak_allocated;
}

size_t frag_torch_driver_calls(int device)
{
    return (size_t)numbers_of(device).calls.count;
}

size_t frag_torch_driver_ns(int device)
{
    return (size_t)numbers_of(device).calls.ns;
}

void frag_torch_timed(int on)
{
    atomic_store_explicit(&timed, on != 0, memory_order_relaxed);
}

size_t frag_torch_timed_calls(void)
{
    return atomic_load_explicit(&calls_made, memory_order_relaxed);
}

size_t frag_torch_timed_ns(void)
{
    return atomic_load_explicit(&ns_in_calls, memory_order_relaxed);
}
