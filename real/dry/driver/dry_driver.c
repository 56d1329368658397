/* dry_driver.c - a libcuda.so.1 for machines without a GPU: implements the
 * functions of real/device/cuda_driver.h and of control.h. Here: how it starts
 * and ends, faults, devices and contexts. memory.c, contents.c, waiting.c and
 * launch.c have the rest, dry_driver.h what they have in common.
 *
 * With FRAGSIM_DRY_GPU, the devices are those of a row of gpus.h: device memory
 * is addresses only, and a context takes the memory that it takes there.
 *
 * Without it, "device" memory is a sparse file in memory, and a mapping maps
 * that file, so two addresses of one physical allocation share their bytes. The
 * driver is strict then: if a program does something that the real one forbids
 * or leaves undefined, it prints a message on stderr and ends the process with
 * 86. It does the same if memory is still held at the end.
 *
 * Each segment has a range of addresses of its own there, the next one usually
 * below the last. A driver puts small segments side by side, upwards, so a
 * policy that takes the lowest of equal blocks can choose another one.
 *
 *   FRAGSIM_DRY_GPU=ID          GPU of the table; sets memory and name
 *   FRAGSIM_DRY_MEMORY=N        MiB of the device, in place of the GPU's;
 *                               without a GPU 8192
 *   FRAGSIM_DRY_ENDLESS=1       the device supplies more than it has
 *   FRAGSIM_DRY_DEVICES=N       devices, 1 to 64, default 1; each accesses the
 *                               others' segments only if a program enables it;
 *                               CUDA_VISIBLE_DEVICES selects of them
 *   FRAGSIM_DRY_CUDA=N          version of the driver, default 13000
 *   FRAGSIM_DRY_LAZY=1          work ends only when the program waits for it
 *   FRAGSIM_DRY_NOTES=FILE      the notes (dry_notes.h), written at exit
 *
 * For tests:
 *
 *   FRAGSIM_DRY_NAME=TEXT       name of the device, default "stand-in"
 *   FRAGSIM_DRY_FAIL_AT=K       the K-th call that can fail (from 1) fails
 *   FRAGSIM_DRY_FAIL_WITH=CODE  it fails with this code, default 999
 *   FRAGSIM_DRY_CORRUPT_COPY=K  the K-th copy changes one byte
 *   FRAGSIM_DRY_WAIT_US=N       a wait for the device takes that long
 *   FRAGSIM_DRY_SHARES=0        memory cannot be shared between processes
 *   FRAGSIM_DRY_LEAKS=1         memory that is held at the end is no fault
 *   FRAGSIM_DRY_CALLS=FILE      number of calls that can fail, written at exit
 */
#define _GNU_SOURCE
#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "real/dry/driver/capture.h"
#include "real/dry/driver/dry_driver.h"
#include "real/dry/driver/memory_file.h"
#include "real/dry/driver/properties.h"
#include "real/dry/dry_live.h"
#include "real/dry/dry_notes.h"
#include "sim/arena/arena.h"

enum { DRY_LACKING = NOT_SUPPORTED };
#include "real/dry/stubs.h"

#include "real/dry/driver/dry_driver.def"

struct dry dry = {.lock = PTHREAD_MUTEX_INITIALIZER, .file = -1};

static const struct frag_gpu *model; /* see frag_dry_gpu */

static __thread struct gpu *stack[MOST_CONTEXTS]; /* of this thread */
static __thread int depth;

/* ---- faults ---- */

cu_result dry_blame(const char *format, ...)
{
    va_list list;

    va_start(list, format);
    fputs("fragsim dry: ", stderr);
    vfprintf(stderr, format, list);
    fputc('\n', stderr);
    va_end(list);
    dry.faulty = true;
    return INVALID_VALUE;
}

uint64_t dry_setting(const char *name, uint64_t usual)
{
    const char *text = getenv(name);

    return text && *text ? strtoull(text, NULL, 10) : usual;
}

static struct count {
    const char *name;
    uint64_t calls;
} counts[64];

static struct count *count_of(const char *name)
{
    struct count *c = counts;

    while (c->name && c->name != name && strcmp(c->name, name) != 0)
        c++;
    return c;
}

void dry_count(const char *name)
{
    struct count *c = count_of(name);

    c->name = name;
    c->calls++;
}

/* Whether this call must fail. */
bool dry_fails(const char *name, cu_result *code)
{
    const bool named = dry.fails && !strcmp(dry.fails, name);

    dry_count(name);
    *code = dry.fail_with;
    if (named)
        dry.fails = NULL;
    return ++dry.calls == dry.fail_at || named;
}

uint64_t frag_dry_calls(const char *name)
{
    return count_of(name)->calls;
}

void frag_dry_fail(const char *name)
{
    dry.fails = name;
}

__attribute__((destructor)) static void at_end(void)
{
    const char *path = getenv("FRAGSIM_DRY_CALLS");
    const char *list = getenv("FRAGSIM_DRY_NOTES");
    FILE *file = path && dry.is_started ? fopen(path, "w") : NULL;

    if (file) {
        fprintf(file, "%llu\n", (unsigned long long)dry.calls);
        fclose(file);
    }
    if (list && dry.is_started)
        frag_dry_notes_write(list);
    frag_dry_live_end();
    if (dry_setting("FRAGSIM_DRY_LEAKS", dry.is_empty))
        dry.memory = dry.reservations = NULL, dry.gpu_count = 0;
    for (struct dry_holding *h = dry.memory; h; h = h->next)
        dry_blame("memory of %zu bytes was never released", h->size);
    for (struct dry_holding *h = dry.reservations; h; h = h->next)
        dry_blame("%zu bytes at 0x%llx were never given back", h->size,
                  (unsigned long long)h->at);
    for (int i = 0; i < dry.gpu_count; i++)
        if (dry.gpus[i].retains)
            dry_blame("the context was retained %d times more than released",
                      dry.gpus[i].retains);
    if (dry.faulty && !dry.is_empty)
        _exit(FAULTY);
}

/* ---- start ---- */

/* Selects the GPU of the table, or memory with contents. */
static void start_model(void)
{
    const char *id = getenv("FRAGSIM_DRY_GPU");

    model = frag_gpu_find(id ? id : "h200");
    if (!model) {
        fprintf(stderr, "fragsim dry: FRAGSIM_DRY_GPU: no GPU \"%s\"\n", id);
        _exit(FAULTY);
    }
    dry.is_empty = id != NULL;
    dry.capacity = dry_setting("FRAGSIM_DRY_MEMORY", id ? 0 : 8192) << 20;
    if (!dry.capacity)
        dry.capacity = model->total;
    dry.context = id ? model->context : 0;
    if (dry.is_empty)
        return;
    dry.file = memory_file("fragsim_dry");
    if (dry.file < 0 || ftruncate(dry.file, (off_t)SPACE) != 0)
        abort();
}

/* How many of `count` devices CUDA_VISIBLE_DEVICES leaves: those before the
 * first that is none. */
static int count_visible(int count)
{
    const char *text = getenv("CUDA_VISIBLE_DEVICES");
    int visible = 0;

    if (!text)
        return count;
    for (; isdigit((unsigned char)*text) && visible < MOST_DEVICES; visible++) {
        char *end;

        if (strtol(text, &end, 10) >= count)
            break;
        text = end + (*end == ',');
    }
    return visible;
}

void dry_start(void)
{
    if (dry.is_started)
        return;
    dry.is_started = true;
    start_model();
    dry.gpu_count = (int)dry_setting("FRAGSIM_DRY_DEVICES", 1);
    if (dry.gpu_count < 1 || dry.gpu_count > MOST_DEVICES)
        abort();
    if (dry.context && dry.gpu_count > 1)
        dry.context += model->beside;
    dry.room = frag_device_room(dry.capacity);
    if (dry_setting("FRAGSIM_DRY_ENDLESS", 0) &&
        dry.room < ENDLESS / (size_t)dry.gpu_count)
        dry.room = ENDLESS / (size_t)dry.gpu_count;
    dry.all_count = dry.gpu_count;
    dry.gpu_count = count_visible(dry.all_count);
    dry.fail_at = dry_setting("FRAGSIM_DRY_FAIL_AT", 0);
    dry.fail_with = (int)dry_setting("FRAGSIM_DRY_FAIL_WITH", UNKNOWN);
    dry.lazy = dry_setting("FRAGSIM_DRY_LAZY", 0);
    dry.prompt = dry_setting("FRAGSIM_DRY_PROMPT", 0);
    dry.wait_us = (unsigned)dry_setting("FRAGSIM_DRY_WAIT_US", 0);
    dry.corrupt_at = dry_setting("FRAGSIM_DRY_CORRUPT_COPY", 0);
}

static void start_once(void)
{
    pthread_mutex_lock(&dry.lock);
    dry_start();
    pthread_mutex_unlock(&dry.lock);
}

const struct frag_gpu *frag_dry_gpu(void)
{
    start_once();
    return model;
}

int frag_dry_devices(void)
{
    start_once();
    return dry.all_count;
}

bool frag_dry_has_contents(void)
{
    start_once();
    return !dry.is_empty;
}

/* ---- errors, devices, contexts ---- */

struct gpu *dry_current(void)
{
    return depth ? stack[depth - 1] : NULL;
}

int dry_current_device(void)
{
    return (int)(dry_current() - dry.gpus);
}

cu_result cuInit(unsigned flags)
{
    ENTER();
    LEAVE(flags           ? dry_blame("cuInit with flags")
          : dry.gpu_count ? CU_SUCCESS
                          : NO_DEVICES);
}

cu_result cuGetErrorName(cu_result code, const char **name)
{
    *name = code == CU_OUT_OF_MEMORY ? "CUDA_ERROR_OUT_OF_MEMORY"
            : code == INVALID_VALUE  ? "CUDA_ERROR_INVALID_VALUE"
            : code == CAPTURES       ? "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED"
                                     : "CUDA_ERROR_UNKNOWN";
    return CU_SUCCESS;
}

cu_result cuGetErrorString(cu_result code, const char **words)
{
    *words = code == CU_OUT_OF_MEMORY ? "out of memory"
             : code == INVALID_VALUE  ? "invalid argument"
             : code == CAPTURES
                 ? "operation not permitted when stream is capturing"
                 : "unknown error";
    return CU_SUCCESS;
}

cu_result cuDriverGetVersion(int *version)
{
    *version = (int)dry_setting("FRAGSIM_DRY_CUDA", 13000);
    return CU_SUCCESS;
}

cu_result cuDeviceGetCount(int *count)
{
    start_once();
    *count = dry.gpu_count;
    return CU_SUCCESS;
}

cu_result cuDeviceGet(cu_device *device, int ordinal)
{
    start_once();
    *device = ordinal;
    return ordinal >= 0 && ordinal < dry.gpu_count ? CU_SUCCESS : NO_DEVICE;
}

cu_result cuDeviceGetName(char *name, int room, cu_device device)
{
    const char *given = getenv("FRAGSIM_DRY_NAME");

    (void)device;
    snprintf(name, (size_t)room, "%s",
             frag_dry_has_contents() ? given ? given : "stand-in"
                                     : frag_dry_gpu()->name);
    return CU_SUCCESS;
}

cu_result cuDeviceTotalMem_v2(size_t *total, cu_device device)
{
    (void)device;
    ENTER();
    *total = dry.capacity;
    LEAVE(CU_SUCCESS);
}

cu_result cuDeviceGetAttribute(int *value, int which, cu_device device)
{
    char name[64];

    (void)device;
    ENTER();
    *value = which == CU_HAS_FILE_DESCRIPTORS &&
             dry_setting("FRAGSIM_DRY_SHARES", 1);
    if (which == CU_HAS_FILE_DESCRIPTORS || dry_attribute(model, which, value))
        LEAVE(CU_SUCCESS);
    snprintf(name, sizeof(name), "attribute %d of a device", which);
    frag_dry_note(DRY_LACKS, name);
    LEAVE(NOT_SUPPORTED);
}

cu_result frag_dry_properties(char *out, int release, int ordinal)
{
    size_t total;
    cu_result code = cuDeviceTotalMem_v2(&total, ordinal);

    if (code != CU_SUCCESS)
        return code;
    dry_properties(frag_dry_gpu(), release, ordinal, total, out);
    snprintf(out + DRY_AT_UUID, DRY_UUID, "fragsim dry %d", ordinal);
    return cuDeviceGetName(out, DRY_NAME, ordinal);
}

cu_result cuDevicePrimaryCtxRetain(cu_context *context, cu_device device)
{
    ENTER();
    if (device < 0 || device >= dry.gpu_count)
        LEAVE(NO_DEVICE);
    if (!dry.gpus[device].has_context)
        dry.gpus[device].used += dry.context;
    dry_live_used(device, dry.gpus[device].used);
    dry.gpus[device].has_context = true;
    dry.gpus[device].retains++;
    *context = (cu_context)(void *)&dry.gpus[device];
    LEAVE(CU_SUCCESS);
}

cu_result cuDevicePrimaryCtxRelease_v2(cu_device device)
{
    dry.gpus[device].retains--;
    return CU_SUCCESS;
}

cu_result cuDevicePrimaryCtxGetState(cu_device device, unsigned *flags,
                                     int *active)
{
    *flags = 0;
    *active = dry.gpus[device].retains > 0;
    return CU_SUCCESS;
}

bool dry_is_context(cu_context context)
{
    const struct gpu *gpu = (void *)context;

    return gpu >= dry.gpus && gpu < dry.gpus + dry.gpu_count;
}

cu_result cuCtxPushCurrent_v2(cu_context context)
{
    ENTER();
    if (!dry_is_context(context) || depth == MOST_CONTEXTS)
        LEAVE(dry_blame("no such context"));
    stack[depth++] = (void *)context;
    LEAVE(CU_SUCCESS);
}

cu_result cuCtxPopCurrent_v2(cu_context *context)
{
    if (!depth)
        return dry_blame("a context popped that was not pushed");
    *context = (cu_context)(void *)stack[--depth];
    return CU_SUCCESS;
}

cu_result cuCtxGetCurrent(cu_context *context)
{
    *context = (cu_context)(void *)dry_current();
    return CU_SUCCESS;
}

DRY_EXPORT cu_result cuCtxGetDevice(cu_device *out)
{
    if (!dry_current())
        return NO_CONTEXT;
    *out = dry_current_device();
    return CU_SUCCESS;
}

/* The stand-in writes no log. */
DRY_EXPORT cu_result cuLogsRegisterCallback(void *call, void *data,
                                            uint64_t *handle)
{
    (void)call;
    (void)data;
    *handle = ++dry.handles;
    return CU_SUCCESS;
}

/* Replaces the top of the stack. */
cu_result cuCtxSetCurrent(cu_context context)
{
    if (!dry_is_context(context))
        return dry_blame("no such context");
    depth += !depth;
    stack[depth - 1] = (void *)context;
    return CU_SUCCESS;
}

cu_result cuCtxSynchronize(void)
{
    ENTER();
    NEEDS_CONTEXT();
    if (capture_is_active())
        LEAVE(capture_refuses("cuCtxSynchronize"));
    dry.synchronizes++;
    dry.waits_of_host++;
    for (struct dry_stream *s = dry.streams; s; s = s->next)
        s->done = s->queued;
    pthread_mutex_unlock(&dry.lock); /* other threads go on meanwhile */
    if (dry.wait_us)
        usleep(dry.wait_us);
    return CU_SUCCESS;
}

cu_result cuMemGetInfo_v2(size_t *left, size_t *total)
{
    frag_dry_room_read();
    ENTER();
    NEEDS_CONTEXT();
    *left = dry.capacity > dry_current()->used
                ? dry.capacity - dry_current()->used
                : 0;
    *total = dry.capacity;
    LEAVE(CU_SUCCESS);
}
