/* pool_log.c - a library to preload: logs the calls of the CUDA runtime's
 * stream-ordered allocator and its synchronizations to the file that POOL_LOG
 * names, for pool_programs.py. A row is: operation (a: allocate, f: free, s, d,
 * e: synchronize a stream, the device, an event), address, bytes, stream, time
 * (ns), and the bytes that the device's default pool reserves, if they changed.
 *
 * The types are those of the runtime's ABI, so that no header of CUDA is
 * needed: an error is an int, streams, events and pools are pointers. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <inttypes.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { RESERVED_CURRENT = 5 /* cudaMemPoolAttrReservedMemCurrent */ };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static FILE *log_file;
static uint64_t reserved_last = UINT64_MAX;

static int find_runtime(struct dl_phdr_info *info, size_t size, void *path)
{
    (void)size;
    if (!info->dlpi_name || !strstr(info->dlpi_name, "libcudart.so"))
        return 0;
    *(const char **)path = info->dlpi_name;
    return 1;
}

/* Sets *function to that of the runtime which the program loaded, however it
 * did so. */
static void resolve(void *function, const char *name)
{
    const char *path = NULL;
    void *library = RTLD_NEXT, *found;

    if (dl_iterate_phdr(find_runtime, &path))
        library = dlopen(path, RTLD_NOLOAD | RTLD_LAZY);
    found = dlsym(library, name);
    if (!found) {
        fprintf(stderr, "pool_log: the CUDA runtime has no %s\n", name);
        abort();
    }
    memcpy(function, &found, sizeof(found));
}

static uint64_t reserved_now(void)
{
    static int (*get_pool)(void **, int);
    static int (*get)(void *, int, void *);
    void *pool = NULL;
    uint64_t bytes = UINT64_MAX;

    if (!get) {
        resolve(&get_pool, "cudaDeviceGetDefaultMemPool");
        resolve(&get, "cudaMemPoolGetAttribute");
    }
    if (get_pool(&pool, 0) || get(pool, RESERVED_CURRENT, &bytes))
        return UINT64_MAX;
    return bytes;
}

static void open_log(void)
{
    const char *path = getenv("POOL_LOG");

    log_file = path ? fopen(path, "w") : NULL;
    if (!log_file) {
        fputs("pool_log: POOL_LOG does not name a file that can be written\n",
              stderr);
        abort();
    }
}

static void say(char op, const void *at, size_t size, const void *stream)
{
    struct timespec t;
    uint64_t reserved;

    pthread_mutex_lock(&lock);
    if (!log_file)
        open_log();
    clock_gettime(CLOCK_MONOTONIC, &t);
    fprintf(log_file, "%c,%" PRIxPTR ",%zu,%" PRIxPTR ",%lld,", op,
            (uintptr_t)at, size, (uintptr_t)stream,
            (long long)t.tv_sec * 1000000000 + t.tv_nsec);
    reserved = op == 'a' ? reserved_now() : UINT64_MAX;
    if (reserved != UINT64_MAX && reserved != reserved_last) {
        fprintf(log_file, "%" PRIu64, reserved);
        reserved_last = reserved;
    }
    fputc('\n', log_file);
    fflush(log_file);
    pthread_mutex_unlock(&lock);
}

int cudaMallocAsync(void **at, size_t size, void *stream);
int cudaFreeAsync(void *at, void *stream);
int cudaStreamSynchronize(void *stream);
int cudaDeviceSynchronize(void);
int cudaEventSynchronize(void *event);

int cudaMallocAsync(void **at, size_t size, void *stream)
{
    static int (*real)(void **, size_t, void *);
    int err;

    if (!real)
        resolve(&real, "cudaMallocAsync");
    err = real(at, size, stream);
    if (!err)
        say('a', *at, size, stream);
    return err;
}

int cudaFreeAsync(void *at, void *stream)
{
    static int (*real)(void *, void *);

    if (!real)
        resolve(&real, "cudaFreeAsync");
    say('f', at, 0, stream);
    return real(at, stream);
}

int cudaStreamSynchronize(void *stream)
{
    static int (*real)(void *);
    int err;

    if (!real)
        resolve(&real, "cudaStreamSynchronize");
    err = real(stream);
    say('s', NULL, 0, stream);
    return err;
}

int cudaDeviceSynchronize(void)
{
    static int (*real)(void);
    int err;

    if (!real)
        resolve(&real, "cudaDeviceSynchronize");
    err = real();
    say('d', NULL, 0, NULL);
    return err;
}

int cudaEventSynchronize(void *event)
{
    static int (*real)(void *);
    int err;

    if (!real)
        resolve(&real, "cudaEventSynchronize");
    err = real(event);
    say('e', NULL, 0, event);
    return err;
}
