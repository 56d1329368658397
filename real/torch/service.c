/* service.c - the devices of the program, the lock around them, and the result
 * file that is written at exit. The decisions are those of service_device.c. */
#include "real/torch/service.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include "real/device/device_share.h"
#include "real/torch/service_device.h"
#include "real/torch/service_settings.h"
#include "sim/results/results.h"
#include "sim/version.h"
#include "traces/printable.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static const char wrong_device[] =
    "PyTorch passed a device number outside 0 to 63";
static pid_t process; /* this one; getpid() is a call of the kernel */
static struct settings settings;
static struct device *devices[FRAG_TORCH_DEVICES];
static struct frag_torch_listener listener;
static pid_t reader; /* the process that read the settings */
static pid_t owner;  /* the process that opened the first device; a child that
                      * it forks has no device and writes no results */
static int64_t started;
static bool ended; /* the results are written: no further requests */
static frag_size limits[FRAG_TORCH_DEVICES]; /* of each device; 0: none */

static void note_process(void)
{
    process = getpid();
}

__attribute__((constructor)) static void start_process(void)
{
    note_process();
    pthread_atfork(NULL, NULL, note_process);
}

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
    for (int i = 0; i < FRAG_TORCH_DEVICES; i++)
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

/* Lets only one process at a time choose the name of its results and write
 * them. A file system without locks is no error: %p in the name separates the
 * processes there too. Returns the open folder, or -1. */
static int hold_folder(void)
{
    char path[sizeof(settings.output)];
    int folder;

    snprintf(path, sizeof(path), "%s", settings.output);
    folder = open(dirname(path), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder >= 0)
        (void)flock(folder, LOCK_EX);
    return folder;
}

/* The driver may be unloaded by now, so this function releases no memory: the
 * driver does that. */
void frag_torch_finish(void)
{
    struct frag_error e = {""};
    int folder;

    if (process != owner || !settings.output[0] || ended)
        return;
    ended = true;
    pthread_mutex_lock(&lock);
    folder = hold_folder();
    settings_keep_results(&settings);
    /* A listener may hold a lock while its thread waits for this one. */
    listener = (struct frag_torch_listener){NULL, NULL, NULL};
    if (write_results(&e) != FRAG_OK)
        printable_line(stderr, "fragsim: %s", e.text);
    if (folder >= 0)
        close(folder);
    pthread_mutex_unlock(&lock);
}

/* ---- devices; the lock is held in these functions ---- */

/* A process that was forked before any device was used reads the settings
 * again, because the name of its results may have its number. */
static enum frag_err start(struct frag_error *e)
{
    if (owner || reader == process)
        return FRAG_OK;
    FRAG_TRY(settings_read(&settings, e));
    reader = process;
    return FRAG_OK;
}

/* Makes this process the one that has devices and writes results. */
static enum frag_err own(struct frag_error *e)
{
    FRAG_TRY(start(e));
    if (owner == process)
        return FRAG_OK;
    if (owner)
        return frag_fail(e, FRAG_DEVICE,
                         "this process was forked from one that uses the GPU; "
                         "start it by spawn");
    owner = process;
    settings_use();
    started = time(NULL);
    atexit(frag_torch_finish);
    return FRAG_OK;
}

/* NULL if the program did not use the device. */
static struct device *opened(int ordinal)
{
    return ordinal >= 0 && ordinal < FRAG_TORCH_DEVICES ? devices[ordinal]
                                                        : NULL;
}

static enum frag_err device_at(int ordinal, struct device **out,
                               struct frag_error *e)
{
    if (ordinal < 0 || ordinal >= FRAG_TORCH_DEVICES)
        return frag_fail(e, FRAG_INVALID, "%s", wrong_device);
    FRAG_TRY(own(e));
    if (ended)
        return frag_fail(e, FRAG_DEVICE, "the program is ending");
    if (!devices[ordinal]) {
        FRAG_TRY(
            device_open(ordinal, &settings, &listener, &devices[ordinal], e));
        device_limit(devices[ordinal], limits[ordinal]);
    }
    *out = devices[ordinal];
    return FRAG_OK;
}

/* ---- the calls ---- */

static enum frag_torch_answer answer(enum frag_err err,
                                     const struct frag_error *e, char *words)
{
    if (err == FRAG_OK)
        return FRAG_TORCH_OK;
    snprintf(words, FRAG_TORCH_WORDS, "%s", e->text);
    return err == FRAG_OOM ? FRAG_TORCH_OOM : FRAG_TORCH_FAILED;
}

/* Locks the service, and finds the device. leave() follows, after an error too.
 */
static enum frag_err enter(int device, struct device **out,
                           struct frag_error *e)
{
    pthread_mutex_lock(&lock);
    *out = NULL;
    return device_at(device, out, e);
}

static enum frag_torch_answer leave(enum frag_err err,
                                    const struct frag_error *e, char *words)
{
    pthread_mutex_unlock(&lock);
    return answer(err, e, words);
}

enum frag_torch_answer frag_torch_serve(int device, size_t size,
                                        frag_torch_stream stream,
                                        struct frag_service_block *out,
                                        char *words)
{
    struct frag_served block = {0};
    struct frag_error e;
    struct device *d;
    enum frag_err err = enter(device, &d, &e);

    if (err == FRAG_OK)
        err = device_alloc(d, size, stream, &block, &e);
    *out = (struct frag_service_block){block.addr, block.size};
    return leave(err, &e, words);
}

/* A forked child frees nothing: its memory is the parent's. */
enum frag_torch_answer frag_torch_end(int device, uint64_t addr,
                                      frag_torch_stream stream, char *words)
{
    bool waits = false;
    struct frag_error e;
    struct device *d;
    enum frag_err err = FRAG_OK;
    enum frag_torch_answer done;

    if (owner && owner != process)
        return FRAG_TORCH_OK;
    pthread_mutex_lock(&lock);
    if (!ended)
        err = device_at(device, &d, &e);
    if (!ended && err == FRAG_OK)
        err = device_free(d, addr, stream, &waits, &e);
    done = leave(err, &e, words);
    return done == FRAG_TORCH_OK && waits ? FRAG_TORCH_WAITS : done;
}

enum frag_torch_answer frag_torch_use(int device, uint64_t addr,
                                      frag_torch_stream stream, char *words)
{
    struct frag_error e = {""};
    enum frag_err err = FRAG_OK;

    pthread_mutex_lock(&lock);
    if (opened(device) && device_use(opened(device), addr, stream) != FRAG_OK)
        err = frag_no_memory(&e, "a stream of a block");
    return leave(err, &e, words);
}

enum frag_torch_answer frag_torch_trim(int device, char *words)
{
    struct frag_error e = {""};
    enum frag_err err = FRAG_OK;

    pthread_mutex_lock(&lock);
    if (opened(device))
        err = device_trim(opened(device), &e);
    return leave(err, &e, words);
}

enum frag_torch_answer frag_torch_peer(int device, int peer, char *words)
{
    struct frag_error e = {""};
    struct device *d;
    enum frag_err err = enter(device, &d, &e);

    if (err == FRAG_OK)
        err = device_add_peer(d, peer, &e);
    return leave(err, &e, words);
}

enum frag_torch_answer frag_torch_limit(int device, uint64_t bytes, char *words)
{
    struct frag_error e = {""};
    enum frag_err err = FRAG_OK;

    pthread_mutex_lock(&lock);
    if (device < 0 || device >= FRAG_TORCH_DEVICES)
        err = frag_fail(&e, FRAG_INVALID, "%s", wrong_device);
    else
        limits[device] = bytes ? bytes : 1;
    if (opened(device))
        device_limit(opened(device), limits[device]);
    return leave(err, &e, words);
}

enum frag_torch_answer frag_torch_export(int device, uint64_t addr, int *file,
                                         char *words)
{
    struct frag_error e = {""};
    struct device *d;
    enum frag_err err = enter(device, &d, &e);

    if (err == FRAG_OK)
        err = frag_cuda_export(device_gpu(d), addr, file, &e);
    return leave(err, &e, words);
}

enum frag_torch_answer frag_torch_import(int device, int sender,
                                         const uint64_t *sizes,
                                         const int *files, size_t count,
                                         uint64_t *addr, char *words)
{
    const struct frag_cuda_shared from = {sender, sizes, files, count};
    struct frag_error e = {""};
    struct device *d;
    enum frag_err err = enter(device, &d, &e);

    if (err == FRAG_OK)
        err = frag_cuda_import(device_gpu(d), &from, addr, &e);
    return leave(err, &e, words);
}

/* At the end of the process, the driver returns the memory itself. */
enum frag_torch_answer frag_torch_forget(int device, uint64_t addr,
                                         uint64_t size, char *words)
{
    struct frag_error e = {""};
    struct device *d;
    enum frag_err err = FRAG_OK;

    pthread_mutex_lock(&lock);
    if (owner == process && !ended) {
        err = device_at(device, &d, &e);
        if (err == FRAG_OK)
            err = frag_cuda_forget(device_gpu(d), addr, size, &e);
    }
    return leave(err, &e, words);
}

void frag_torch_changed(const char *text)
{
    pthread_mutex_lock(&lock);
    settings.changes++;
    snprintf(settings.last, sizeof(settings.last), "%s", text);
    pthread_mutex_unlock(&lock);
}

const char *frag_torch_policy(char *words)
{
    struct frag_error e = {""};
    enum frag_err err;

    pthread_mutex_lock(&lock);
    err = start(&e);
    return leave(err, &e, words) == FRAG_TORCH_OK ? settings.text : NULL;
}

void frag_torch_listen(const struct frag_torch_listener *wanted)
{
    pthread_mutex_lock(&lock);
    listener = *wanted;
    pthread_mutex_unlock(&lock);
}

/* ---- numbers that the program can read ---- */

static struct device_numbers numbers_of(int device)
{
    struct device_numbers n = {0};

    pthread_mutex_lock(&lock);
    if (opened(device))
        n = device_numbers(opened(device));
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
    return (size_t)numbers_of(device).calls;
}

size_t frag_torch_driver_ns(int device)
{
    return (size_t)numbers_of(device).ns;
}
