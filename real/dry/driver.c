/* driver.c - a libcuda.so.1 for machines without a GPU: implements the
 * functions of real/device/driver.h and of control.h.
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
 *                               others' segments only if a program enables
 * that; CUDA_VISIBLE_DEVICES selects of them FRAGSIM_DRY_CUDA=N version of the
 * driver, default 13000 FRAGSIM_DRY_LAZY=1          work ends only when the
 * program waits for it FRAGSIM_DRY_NOTES=FILE      the notes (notes.h), written
 * at exit For tests: FRAGSIM_DRY_NAME=TEXT       name of the device, default
 * stand-in FRAGSIM_DRY_FAIL_AT=K       the K-th call that can fail does fail
 * (from 1) FRAGSIM_DRY_FAIL_WITH=CODE  it fails with this code, default 999
 *   FRAGSIM_DRY_CORRUPT_COPY=K  the K-th copy changes one byte
 *   FRAGSIM_DRY_WAIT_US=N       a wait for the device takes that long
 *   FRAGSIM_DRY_SHARES=0        memory cannot be shared between processes
 *   FRAGSIM_DRY_LEAKS=1         memory that is held at the end is no fault
 *   FRAGSIM_DRY_CALLS=FILE      number of calls that can fail, written at exit
 */
#define _GNU_SOURCE
#include <ctype.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "real/device/gpus.h"
#include "real/dry/capture.h"
#include "real/dry/control.h"
#include "real/dry/devices.h"
#include "real/dry/notes.h"
#include "real/dry/places.h"
#include "real/dry/shadow.h"

#define GRANULE ((size_t)2 << 20)
#define SPACE   ((size_t)1 << 40)
#define ENDLESS ((size_t)1 << 43) /* of all devices; places.c has addresses */

enum {
    INVALID_VALUE = 1,
    NO_DEVICES = 100,
    NO_DEVICE = 101,
    NO_CONTEXT = 201,
    INVALID_HANDLE = 400,
    NOT_FOUND = 500,
    PEER_TWICE = 704,
    MOST_DEVICES = FRAG_GPUS_MOST,
    MOST_CONTEXTS = 16,
    CAPTURES = 900,
    OPERATING_SYSTEM = 304,
    NOT_SUPPORTED = 801,
    NOT_PERMITTED = 800,
    UNKNOWN = 999,
    FAULTY = 86,
};

enum { DRY_LACKING = NOT_SUPPORTED };
#include "real/dry/stubs.h"

#include "real/dry/driver.def"

/* An object that the program holds: a physical allocation, a reservation or a
 * mapping. */
struct held {
    struct held *next;
    uint64_t at; /* address; for a physical allocation, its handle */
    size_t size;
    size_t offset;       /* of an allocation in its file */
    struct held *memory; /* the mapped allocation */
    unsigned uses;       /* number of mappings, plus 1 until it is released */
    unsigned handles;    /* of an allocation: handles that were not released */
    int file;            /* of an allocation: 0 for dry.file, or a file of its
                          * own, which other processes may have too */
    bool shareable;      /* an allocation that may be exported */
    bool imported;       /* an allocation of another process */
    int device;
    uint64_t rights; /* of a mapping: a bit for each device that may access */
    bool is_segment; /* of a reservation: cuMemAlloc made it */
};

/* Work is a counter: an event counts as work, and so does work that a test
 * queues. */
struct stream {
    struct stream *next;
    cu_stream name;
    uint64_t queued, done;
    struct need *needs;
    bool destroyed;
};

/* Work of a stream that ends before work of another one begins. */
struct need {
    struct need *next;
    uint64_t before; /* the work that waits */
    struct stream *other;
    uint64_t when; /* the work that it waits for */
};

struct event {
    struct stream *stream; /* NULL: not recorded yet */
    bool captured;         /* recorded on a stream that is captured */
    uint64_t when;
};

/* A wait of one stream for another. */
struct wait {
    struct wait *next;
    cu_stream stream, other;
    uint64_t count; /* of waits for all work then queued on the other */
};

/* A device; its address is that of its primary context. */
struct gpu {
    size_t used;
    bool has_context; /* it was created; it stays to the end */
    int retains;
    uint64_t peers; /* a bit for each device that may access its segments */
};

static struct {
    pthread_mutex_t lock;
    int file;
    struct gpu gpus[MOST_DEVICES];
    int gpu_count, all_count; /* all: without CUDA_VISIBLE_DEVICES */
    bool is_started;
    bool is_empty; /* memory has no contents */
    size_t capacity, context;
    size_t room; /* bytes that it supplies; with FRAGSIM_DRY_ENDLESS more than
                    its capacity */
    size_t end;  /* of the used part of the file */
    struct held *memory, *reservations, *maps;
    uint64_t calls, fail_at, copies, corrupt_at;
    int fail_with;
    uint64_t handles;
    bool faulty;
    bool lazy;
    unsigned wait_us; /* duration of a wait for the device */
    struct stream *streams;
    struct wait *waits;
    uint64_t events, synchronizes;
    const char *fails; /* the name of the call that must fail, or NULL */
} dry = {.lock = PTHREAD_MUTEX_INITIALIZER, .file = -1};

static const struct frag_gpu *model; /* see frag_dry_gpu */

static __thread struct gpu *stack[MOST_CONTEXTS]; /* of this thread */
static __thread int depth;

/* ---- faults ---- */

__attribute__((format(printf, 1, 2))) static cu_result blame(const char *format,
                                                             ...)
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

static uint64_t setting(const char *name, uint64_t usual)
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

static void count(const char *name)
{
    struct count *c = count_of(name);

    c->name = name;
    c->calls++;
}

/* Whether this call must fail. */
static bool fails(const char *name, cu_result *code)
{
    const bool named = dry.fails && !strcmp(dry.fails, name);

    count(name);
    *code = dry.fail_with;
    if (named)
        dry.fails = NULL;
    return ++dry.calls == dry.fail_at || named;
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
    if (setting("FRAGSIM_DRY_LEAKS", dry.is_empty))
        dry.memory = dry.reservations = NULL, dry.gpu_count = 0;
    for (struct held *h = dry.memory; h; h = h->next)
        blame("memory of %zu bytes was never released", h->size);
    for (struct held *h = dry.reservations; h; h = h->next)
        blame("%zu bytes at 0x%llx were never given back", h->size,
              (unsigned long long)h->at);
    for (int i = 0; i < dry.gpu_count; i++)
        if (dry.gpus[i].retains)
            blame("the context was retained %d times more than released",
                  dry.gpus[i].retains);
    if (dry.faulty && !dry.is_empty)
        _exit(FAULTY);
}

/* ---- held objects ---- */

static struct held *add(struct held **list, struct held h)
{
    struct held *made = malloc(sizeof(*made));

    if (!made)
        abort();
    *made = h;
    made->next = *list;
    *list = made;
    return made;
}

static void drop(struct held **list, const struct held *h)
{
    while (*list != h)
        list = &(*list)->next;
    *list = h->next;
    free((void *)(uintptr_t)h);
}

static struct held *at(struct held *list, uint64_t address)
{
    while (list && list->at != address)
        list = list->next;
    return list;
}

/* Finds the object that contains all of [address, address + size). */
static struct held *around(struct held *list, uint64_t address, size_t size)
{
    while (list && (address < list->at || address - list->at > list->size ||
                    size > list->size - (address - list->at)))
        list = list->next;
    return list;
}

static bool meets(const struct held *list, uint64_t address, size_t size)
{
    while (list &&
           (address >= list->at + list->size || list->at >= address + size))
        list = list->next;
    return list != NULL;
}

static size_t whole(size_t size)
{
    return (size + GRANULE - 1) / GRANULE * GRANULE;
}

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
    dry.capacity = setting("FRAGSIM_DRY_MEMORY", id ? 0 : 8192) << 20;
    if (!dry.capacity)
        dry.capacity = model->total;
    dry.context = id ? model->context : 0;
    if (dry.is_empty)
        return;
    dry.file = memfd_create("fragsim_dry", MFD_CLOEXEC);
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

static void start(void)
{
    if (dry.is_started)
        return;
    dry.is_started = true;
    start_model();
    dry.gpu_count = (int)setting("FRAGSIM_DRY_DEVICES", 1);
    if (dry.gpu_count < 1 || dry.gpu_count > MOST_DEVICES)
        abort();
    dry.room = dry.capacity;
    if (setting("FRAGSIM_DRY_ENDLESS", 0) &&
        dry.room < ENDLESS / (size_t)dry.gpu_count)
        dry.room = ENDLESS / (size_t)dry.gpu_count;
    dry.all_count = dry.gpu_count;
    dry.gpu_count = count_visible(dry.all_count);
    dry.fail_at = setting("FRAGSIM_DRY_FAIL_AT", 0);
    dry.fail_with = (int)setting("FRAGSIM_DRY_FAIL_WITH", UNKNOWN);
    dry.lazy = setting("FRAGSIM_DRY_LAZY", 0);
    dry.wait_us = (unsigned)setting("FRAGSIM_DRY_WAIT_US", 0);
    dry.corrupt_at = setting("FRAGSIM_DRY_CORRUPT_COPY", 0);
}

static void start_once(void)
{
    pthread_mutex_lock(&dry.lock);
    start();
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

/* Physical memory. Its part of the file is never used again, so no later block
 * can find the contents of freed memory. */
static cu_result take_memory(int device, size_t size, struct held **out)
{
    if (size > dry.room - dry.gpus[device].used)
        return CU_OUT_OF_MEMORY;
    if (!dry.is_empty && size > SPACE - dry.end)
        abort();
    *out = add(&dry.memory, (struct held){.at = ++dry.handles,
                                          .size = size,
                                          .offset = dry.end,
                                          .device = device,
                                          .handles = 1,
                                          .uses = 1});
    dry.end += size;
    dry.gpus[device].used += size;
    return CU_SUCCESS;
}

static void let_go(struct held *memory)
{
    if (--memory->uses)
        return;
    if (memory->file) /* other processes may still have it */
        close(memory->file);
    else if (!dry.is_empty)
        fallocate(dry.file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                  (off_t)memory->offset, (off_t)memory->size);
    if (!memory->imported)
        dry.gpus[memory->device].used -= memory->size;
    drop(&dry.memory, memory);
}

static uint64_t reserve_anywhere(size_t size)
{
    char *room = mmap(NULL, size + GRANULE, PROT_NONE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    uintptr_t first;

    if (room == MAP_FAILED)
        abort();
    first = whole((uintptr_t)room);
    munmap(room, first - (uintptr_t)room);
    munmap((void *)(first + size), GRANULE - (first - (uintptr_t)room));
    return first;
}

static uint64_t reserve(int device, size_t size, bool is_segment)
{
    return dry.is_empty ? place_take(device, dry.gpu_count, dry.capacity, size,
                                     is_segment)
                        : reserve_anywhere(size);
}

static void unreserve(const struct held *r)
{
    if (dry.is_empty)
        place_return(r->device, r->at, r->size, r->is_segment);
    else
        munmap((void *)(uintptr_t)r->at, r->size);
}

static void show(uint64_t address, const struct held *memory, int rights)
{
    if (!dry.is_empty &&
        mmap((void *)(uintptr_t)address, memory->size, rights,
             MAP_SHARED | MAP_FIXED, memory->file ? memory->file : dry.file,
             (off_t)memory->offset) == MAP_FAILED)
        abort();
}

static void hide(uint64_t address, size_t size)
{
    if (!dry.is_empty)
        mmap((void *)(uintptr_t)address, size, PROT_NONE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
}

/* ---- functions: start, errors, devices, contexts ---- */

/* Every call below that can fail begins with this macro. */
#define ENTER()                          \
    cu_result result_ = CU_SUCCESS;      \
                                         \
    pthread_mutex_lock(&dry.lock);       \
    start();                             \
    if (fails(__func__, &result_)) {     \
        pthread_mutex_unlock(&dry.lock); \
        return result_;                  \
    }

#define LEAVE(code)                      \
    do {                                 \
        result_ = (code);                \
        pthread_mutex_unlock(&dry.lock); \
        return result_;                  \
    } while (0)

static struct gpu *current(void)
{
    return depth ? stack[depth - 1] : NULL;
}

static int current_device(void)
{
    return (int)(current() - dry.gpus);
}

#define NEEDS_CONTEXT() \
    if (!current())     \
    LEAVE((blame("%s without a context", __func__), (cu_result)NO_CONTEXT))

cu_result cuInit(unsigned flags)
{
    ENTER();
    LEAVE(flags           ? blame("cuInit with flags")
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
    *version = (int)setting("FRAGSIM_DRY_CUDA", 13000);
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
    *value =
        which == CU_HAS_FILE_DESCRIPTORS && setting("FRAGSIM_DRY_SHARES", 1);
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

static bool is_context(cu_context context)
{
    const struct gpu *gpu = (void *)context;

    return gpu >= dry.gpus && gpu < dry.gpus + dry.gpu_count;
}

cu_result cuCtxPushCurrent_v2(cu_context context)
{
    ENTER();
    if (!is_context(context) || depth == MOST_CONTEXTS)
        LEAVE(blame("no such context"));
    stack[depth++] = (void *)context;
    LEAVE(CU_SUCCESS);
}

cu_result cuCtxPopCurrent_v2(cu_context *context)
{
    if (!depth)
        return blame("a context popped that was not pushed");
    *context = (cu_context)(void *)stack[--depth];
    return CU_SUCCESS;
}

cu_result cuCtxGetCurrent(cu_context *context)
{
    *context = (cu_context)(void *)current();
    return CU_SUCCESS;
}

/* Replaces the top of the stack. */
cu_result cuCtxSetCurrent(cu_context context)
{
    if (!is_context(context))
        return blame("no such context");
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
    for (struct stream *s = dry.streams; s; s = s->next)
        s->done = s->queued;
    pthread_mutex_unlock(&dry.lock); /* other threads go on meanwhile */
    if (dry.wait_us)
        usleep(dry.wait_us);
    return CU_SUCCESS;
}

cu_result cuMemGetInfo_v2(size_t *left, size_t *total)
{
    ENTER();
    NEEDS_CONTEXT();
    *left = dry.capacity > current()->used ? dry.capacity - current()->used : 0;
    *total = dry.capacity;
    LEAVE(CU_SUCCESS);
}

/* ---- segments ---- */

static cu_result new_segment(cu_address *out, size_t size)
{
    struct held *memory;
    cu_result code;

    if (!size)
        return blame("a segment of nothing");
    if (capture_forbids())
        return capture_refuses("cuMemAlloc");
    code = take_memory(current_device(), whole(size), &memory);
    if (code != CU_SUCCESS)
        return code;
    *out = reserve(memory->device, memory->size, true);
    add(&dry.reservations, (struct held){.at = *out,
                                         .device = memory->device,
                                         .size = memory->size,
                                         .memory = memory,
                                         .is_segment = true});
    add(&dry.maps, (struct held){.at = *out,
                                 .size = memory->size,
                                 .memory = memory,
                                 .rights = UINT64_C(1) << memory->device});
    show(*out, memory, PROT_READ | PROT_WRITE);
    return CU_SUCCESS;
}

cu_result cuMemAlloc_v2(cu_address *out, size_t size)
{
    ENTER();
    NEEDS_CONTEXT();
    LEAVE(new_segment(out, size));
}

static cu_result free_segment(cu_address address)
{
    struct held *r = at(dry.reservations, address);

    if (!r || !r->is_segment)
        return blame("cuMemFree of 0x%llx, which is no segment",
                     (unsigned long long)address);
    if (capture_forbids())
        return capture_refuses("cuMemFree");
    unreserve(r);
    let_go(r->memory);
    drop(&dry.maps, at(dry.maps, address));
    drop(&dry.reservations, r);
    return CU_SUCCESS;
}

cu_result cuMemFree_v2(cu_address address)
{
    ENTER();
    NEEDS_CONTEXT();
    LEAVE(free_segment(address));
}

/* ---- virtual memory ---- */

cu_result cuMemGetAllocationGranularity(size_t *size,
                                        const struct cu_memory_prop *prop,
                                        int kind)
{
    *size = GRANULE;
    return prop->type == CU_PINNED && prop->location.type == CU_ON_DEVICE &&
                   kind == CU_MINIMUM
               ? CU_SUCCESS
               : blame("memory of another kind");
}

cu_result cuMemAddressReserve(cu_address *out, size_t size, size_t alignment,
                              cu_address wish, unsigned long long flags)
{
    const int device = current() ? current_device() : 0;

    ENTER();
    if (!size || size % GRANULE || alignment || wish || flags)
        LEAVE(blame("cuMemAddressReserve of %zu bytes", size));
    *out = reserve(device, size, false);
    add(&dry.reservations,
        (struct held){.at = *out, .size = size, .device = device});
    LEAVE(CU_SUCCESS);
}

static cu_result free_reservation(cu_address address, size_t size)
{
    struct held *r = at(dry.reservations, address);

    if (!r || r->is_segment || r->size != size)
        return blame("cuMemAddressFree of 0x%llx, %zu bytes: no reservation",
                     (unsigned long long)address, size);
    if (meets(dry.maps, address, size)) /* as after an unmap that failed */
        return INVALID_VALUE;
    unreserve(r);
    drop(&dry.reservations, r);
    return CU_SUCCESS;
}

cu_result cuMemAddressFree(cu_address address, size_t size)
{
    ENTER();
    LEAVE(free_reservation(address, size));
}

cu_result cuMemCreate(cu_memory *out, size_t size,
                      const struct cu_memory_prop *prop,
                      unsigned long long flags)
{
    struct held *memory = NULL;
    cu_result code;

    ENTER();
    if (!size || size % GRANULE || flags || prop->type != CU_PINNED ||
        prop->location.type != CU_ON_DEVICE)
        LEAVE(blame("cuMemCreate of %zu bytes", size));
    if (prop->handle_types & ~CU_FILE_DESCRIPTOR) /* as without a fabric */
        LEAVE(NOT_PERMITTED);
    if (prop->location.id < 0 || prop->location.id >= dry.gpu_count)
        LEAVE(NO_DEVICE);
    code = take_memory(prop->location.id, size, &memory);
    if (code == CU_SUCCESS) {
        memory->shareable = prop->handle_types == CU_FILE_DESCRIPTOR;
        *out = memory->at;
    }
    LEAVE(code);
}

static cu_result release(cu_memory handle)
{
    struct held *memory = at(dry.memory, handle);

    if (!memory || !memory->handles)
        return blame("cuMemRelease of a handle that is none");
    memory->handles--;
    let_go(memory);
    return CU_SUCCESS;
}

cu_result cuMemRelease(cu_memory handle)
{
    ENTER();
    LEAVE(release(handle));
}

static cu_result map(cu_address address, size_t size, size_t offset,
                     cu_memory handle, unsigned long long flags)
{
    struct held *memory = at(dry.memory, handle);
    const struct held *r = around(dry.reservations, address, size);

    if (!memory || !memory->handles || memory->size != size || offset || flags)
        return blame("cuMemMap of memory that is not there as asked");
    if (!r || r->is_segment || address % GRANULE)
        return blame("cuMemMap outside of a reservation");
    if (meets(dry.maps, address, size))
        return blame("cuMemMap over a mapping");
    memory->uses++;
    add(&dry.maps,
        (struct held){.at = address, .size = size, .memory = memory});
    return CU_SUCCESS;
}

cu_result cuMemMap(cu_address address, size_t size, size_t offset,
                   cu_memory handle, unsigned long long flags)
{
    ENTER();
    LEAVE(map(address, size, offset, handle, flags));
}

/* Both functions accept only whole mappings, one or several in a row. */
static cu_result each_map(cu_address address, size_t size,
                          void (*act)(struct held *), const char *name)
{
    const cu_address end = address + size;

    for (cu_address next = address; next < end;) {
        const struct held *m = at(dry.maps, next);

        if (!m || m->size > end - next)
            return blame("%s of part of a mapping, or of none", name);
        next += m->size;
    }
    while (address < end) {
        struct held *m = at(dry.maps, address);

        address += m->size;
        act(m);
    }
    return CU_SUCCESS;
}

/* Rights that cuMemSetAccess sets; only under the lock. */
static uint64_t rights;

static void open_map(struct held *m)
{
    m->rights |= rights;
    show(m->at, m->memory, PROT_READ | PROT_WRITE);
}

cu_result cuMemSetAccess(cu_address address, size_t size,
                         const struct cu_access *access, size_t count)
{
    ENTER();
    rights = 0;
    for (size_t i = 0; i < count; i++) {
        if (access[i].flags != CU_READ_AND_WRITE ||
            access[i].location.type != CU_ON_DEVICE)
            LEAVE(blame("cuMemSetAccess for something else"));
        if (access[i].location.id < 0 || access[i].location.id >= dry.gpu_count)
            LEAVE(NO_DEVICE);
        rights |= UINT64_C(1) << access[i].location.id;
    }
    if (!rights)
        LEAVE(blame("cuMemSetAccess for no device"));
    LEAVE(each_map(address, size, open_map, "cuMemSetAccess"));
}

static void unmap(struct held *m)
{
    hide(m->at, m->size);
    let_go(m->memory);
    drop(&dry.maps, m);
}

cu_result cuMemUnmap(cu_address address, size_t size)
{
    ENTER();
    if (capture_forbids())
        LEAVE(capture_refuses("cuMemUnmap"));
    LEAVE(each_map(address, size, unmap, "cuMemUnmap"));
}

/* ---- memory of other processes ---- */

static struct held *retained(struct held *memory)
{
    memory->handles++;
    memory->uses++;
    return memory;
}

cu_result cuMemRetainAllocationHandle(cu_memory *out, void *address)
{
    const struct held *m, *r;

    ENTER();
    m = around(dry.maps, (uintptr_t)address, 1);
    r = around(dry.reservations, (uintptr_t)address, 1);
    if (!m || !r || r->is_segment)
        LEAVE(INVALID_VALUE);
    *out = retained(m->memory)->at;
    LEAVE(CU_SUCCESS);
}

/* Moves an allocation to a file of its own, so that it outlives this process's
 * use of it. The name says the device. */
static cu_result move_to_file(struct held *memory)
{
    char name[32];
    void *from;
    int file;

    snprintf(name, sizeof(name), "fragsim_dry_%d", memory->device);
    file = memfd_create(name, MFD_CLOEXEC);
    if (file < 0)
        return OPERATING_SYSTEM;
    from = mmap(NULL, memory->size, PROT_READ, MAP_SHARED, dry.file,
                (off_t)memory->offset);
    if (from == MAP_FAILED || ftruncate(file, (off_t)memory->size) != 0 ||
        write(file, from, memory->size) != (ssize_t)memory->size)
        abort();
    munmap(from, memory->size);
    memory->file = file;
    memory->offset = 0;
    for (struct held *m = dry.maps; m; m = m->next)
        if (m->memory == memory && m->rights)
            show(m->at, memory, PROT_READ | PROT_WRITE);
    return CU_SUCCESS;
}

static cu_result export(int *out, struct held *memory, int type)
{
    if (!memory || !memory->handles || type != CU_FILE_DESCRIPTOR)
        return blame("cuMemExportToShareableHandle of a handle that is none");
    if (!memory->shareable)
        return INVALID_VALUE;
    if (!memory->file && move_to_file(memory) != CU_SUCCESS)
        return OPERATING_SYSTEM;
    *out = dup(memory->file);
    return *out < 0 ? OPERATING_SYSTEM : CU_SUCCESS;
}

cu_result cuMemExportToShareableHandle(void *out, cu_memory handle, int type,
                                       unsigned long long flags)
{
    ENTER();
    if (flags)
        LEAVE(blame("cuMemExportToShareableHandle with flags"));
    LEAVE(export(out, at(dry.memory, handle), type));
}

/* The device of a file that was exported, or -1. */
static int device_of_file(int file)
{
    char path[64], name[64];
    int device = -1;
    ssize_t length;

    snprintf(path, sizeof(path), "/proc/self/fd/%d", file);
    length = readlink(path, name, sizeof(name) - 1);
    name[length > 0 ? length : 0] = '\0';
    return sscanf(name, "/memfd:fragsim_dry_%d", &device) == 1 &&
                   device < dry.gpu_count
               ? device
               : -1;
}

cu_result cuMemImportFromShareableHandle(cu_memory *out, void *what, int type)
{
    const int file = (int)(intptr_t)what, device = device_of_file(file);

    ENTER();
    if (type != CU_FILE_DESCRIPTOR)
        LEAVE(blame("cuMemImportFromShareableHandle of another kind"));
    if (device < 0)
        LEAVE(INVALID_VALUE);
    *out =
        add(&dry.memory, (struct held){.at = ++dry.handles,
                                       .size = (size_t)lseek(file, 0, SEEK_END),
                                       .device = device,
                                       .file = dup(file),
                                       .imported = true,
                                       .shareable = true,
                                       .handles = 1,
                                       .uses = 1})
            ->at;
    LEAVE(CU_SUCCESS);
}

/* ---- contents ---- */

/* Whether the device may access the mapping. Peers access segments if that was
 * enabled, but mapped memory only with rights of their own. */
static bool may_access(int device, const struct held *m)
{
    const struct held *r = around(dry.reservations, m->at, 1);

    return m->rights >> device & 1 ||
           (r && r->is_segment &&
            dry.gpus[m->memory->device].peers >> device & 1);
}

/* Whether the device may read and write [address, address + size). */
static bool is_open_to(int device, cu_address address, size_t size)
{
    while (size) {
        const struct held *m = around(dry.maps, address, 1);
        size_t here;

        if (!m || !may_access(device < 0 ? m->memory->device : device, m))
            return false;
        here = m->size - (size_t)(address - m->at);
        if (here >= size)
            return true;
        address += here;
        size -= here;
    }
    return true;
}

/* Whether the memory's own device may. */
static bool is_open(cu_address address, size_t size)
{
    return is_open_to(-1, address, size);
}

int frag_dry_owner(uint64_t address)
{
    const struct held *r, *m;

    pthread_mutex_lock(&dry.lock);
    r = around(dry.reservations, address, 1);
    m = around(dry.maps, address, 1);
    pthread_mutex_unlock(&dry.lock);
    return !r ? FRAG_DRY_HOST : m ? m->memory->device : FRAG_DRY_UNMAPPED;
}

uint64_t frag_dry_used(int device)
{
    return dry.gpus[device].used;
}

uint64_t frag_dry_base(uint64_t address)
{
    const struct held *r;

    pthread_mutex_lock(&dry.lock);
    r = around(dry.reservations, address, 1);
    pthread_mutex_unlock(&dry.lock);
    return r && r->is_segment ? r->at : 0;
}

DRY_EXPORT cu_result cuPointerGetAttribute(void *out, int which, cu_address at);
cu_result cuPointerGetAttribute(void *out, int which, cu_address at)
{
    enum { DEVICE_POINTER = 3 };
    char name[64];

    if (which == DEVICE_POINTER && frag_dry_owner(at) >= 0) {
        memcpy(out, &at, sizeof(at));
        return CU_SUCCESS;
    }
    if (which == DEVICE_POINTER) /* as of memory that CUDA does not know */
        return INVALID_VALUE;
    snprintf(name, sizeof(name), "attribute %d of a pointer", which);
    frag_dry_note(DRY_LACKS, name);
    return NOT_SUPPORTED;
}

DRY_EXPORT cu_result cuMemGetAddressRange_v2(cu_address *, size_t *,
                                             cu_address);
cu_result cuMemGetAddressRange_v2(cu_address *base, size_t *size, cu_address at)
{
    const struct held *r;

    pthread_mutex_lock(&dry.lock);
    r = around(dry.reservations, at, 1);
    if (r && base)
        *base = r->at;
    if (r && size)
        *size = r->size;
    pthread_mutex_unlock(&dry.lock);
    return r ? CU_SUCCESS : INVALID_VALUE;
}

bool frag_dry_may(int device, uint64_t address, size_t size)
{
    bool open;

    pthread_mutex_lock(&dry.lock);
    open = is_open_to(device, address, size);
    pthread_mutex_unlock(&dry.lock);
    return open;
}

cu_result cuCtxEnablePeerAccess(cu_context context, unsigned flags)
{
    struct gpu *peer = (void *)context;
    uint64_t bit;

    ENTER();
    NEEDS_CONTEXT();
    bit = UINT64_C(1) << current_device();
    if (!is_context(context) || flags || peer == current())
        LEAVE(INVALID_VALUE);
    if (peer->peers & bit)
        LEAVE(PEER_TWICE);
    peer->peers |= bit;
    LEAVE(CU_SUCCESS);
}

cu_result cuCtxDisablePeerAccess(cu_context context)
{
    ENTER();
    NEEDS_CONTEXT();
    if (!is_context(context))
        LEAVE(INVALID_VALUE);
    ((struct gpu *)(void *)context)->peers &=
        ~(UINT64_C(1) << current_device());
    LEAVE(CU_SUCCESS);
}

static void *host(cu_address address)
{
    return (void *)(uintptr_t)address;
}

cu_result cuMemcpyDtoDAsync_v2(cu_address dst, cu_address src, size_t size,
                               cu_stream stream)
{
    (void)stream;
    ENTER();
    NEEDS_CONTEXT();
    if (!is_open(dst, size) || !is_open(src, size))
        LEAVE(blame("a copy of memory that is not there"));
    if (dry.is_empty) {
        frag_dry_copied(dst, src, size);
        LEAVE(CU_SUCCESS);
    }
    memmove(host(dst), host(src), size);
    if (++dry.copies == dry.corrupt_at)
        ((char *)host(dst))[size / 2] ^= 1;
    LEAVE(CU_SUCCESS);
}

cu_result cuMemcpyDtoH_v2(void *dst, cu_address src, size_t size)
{
    ENTER();
    if (!is_open(src, size))
        LEAVE(blame("a copy of memory that is not there"));
    if (!dry.is_empty) {
        memcpy(dst, host(src), size);
        LEAVE(CU_SUCCESS);
    }
    pthread_mutex_unlock(&dry.lock); /* a reader may call the driver */
    memset(dst, 0, size);
    frag_dry_read(dst, src, size);
    return CU_SUCCESS;
}

cu_result cuMemcpyHtoD_v2(cu_address dst, const void *src, size_t size)
{
    ENTER();
    if (!is_open(dst, size))
        LEAVE(blame("a copy to memory that is not there"));
    if (dry.is_empty)
        frag_dry_wrote(dst, src, size);
    else
        memcpy(host(dst), src, size);
    LEAVE(CU_SUCCESS);
}

/* ---- streams and events: work finishes at once, or lazily ---- */

#define OPAQUE(type) (type)(uintptr_t)++ dry.handles

static void *made(size_t size)
{
    void *it = calloc(1, size);

    if (!it)
        abort();
    return it;
}

static struct stream *stream_of(cu_stream name)
{
    struct stream *s = dry.streams;

    while (s && s->name != name)
        s = s->next;
    if (s)
        return s;
    s = made(sizeof(*s));
    s->name = name;
    s->next = dry.streams;
    return dry.streams = s;
}

cu_result cuStreamCreate(cu_stream *stream, unsigned flags)
{
    (void)flags;
    ENTER();
    NEEDS_CONTEXT();
    /* PyTorch keeps marks in the low bits of a stream. */
    *stream = (cu_stream)(uintptr_t)(++dry.handles << 4);
    stream_of(*stream);
    if (dry.is_empty)
        place_stream(current_device(), dry.gpu_count, dry.capacity);
    LEAVE(CU_SUCCESS);
}

cu_result cuStreamDestroy_v2(cu_stream stream)
{
    pthread_mutex_lock(&dry.lock);
    stream_of(stream)->destroyed = true;
    pthread_mutex_unlock(&dry.lock);
    return CU_SUCCESS;
}

static struct event *event_of(cu_event event)
{
    return (struct event *)(void *)event;
}

static void count_wait(cu_stream stream, cu_stream other)
{
    struct wait *w = dry.waits;

    while (w && (w->stream != stream || w->other != other))
        w = w->next;
    if (!w) {
        w = made(sizeof(*w));
        *w = (struct wait){.next = dry.waits, .stream = stream, .other = other};
        dry.waits = w;
    }
    w->count++;
}

static void note_wait(struct stream *s, const struct event *e)
{
    struct need *n;

    if (!e->stream)
        return;
    if (e->when >= e->stream->queued) /* the stream has no later work */
        count_wait(s->name, e->stream->name);
    if (e->stream == s || e->when <= e->stream->done)
        return;
    n = made(sizeof(*n));
    *n = (struct need){s->needs, s->queued + 1, e->stream, e->when};
    s->needs = n;
}

cu_result cuStreamWaitEvent(cu_stream stream, cu_event event, unsigned flags)
{
    ENTER();
    if (flags)
        LEAVE(blame("cuStreamWaitEvent with flags"));
    if (stream_of(stream)->destroyed)
        LEAVE(INVALID_HANDLE);
    if (event_of(event)->captured)
        capture_joins(stream, event_of(event)->stream->name);
    else if (capture_has(stream))
        LEAVE(capture_refuses("cuStreamWaitEvent")); /* needs work outside */
    note_wait(stream_of(stream), event_of(event));
    LEAVE(CU_SUCCESS);
}

cu_result cuEventCreate(cu_event *event, unsigned flags)
{
    (void)flags;
    ENTER();
    *event = made(sizeof(struct event));
    dry.events++;
    LEAVE(CU_SUCCESS);
}

cu_result cuEventRecord(cu_event event, cu_stream stream)
{
    struct event *e = event_of(event);

    ENTER();
    if (stream_of(stream)->destroyed)
        LEAVE(INVALID_HANDLE);
    e->stream = stream_of(stream);
    e->captured = capture_has(stream);
    e->when = ++e->stream->queued;
    if (!dry.lazy)
        e->stream->done = e->when;
    LEAVE(CU_SUCCESS);
}

cu_result cuEventQuery(cu_event event)
{
    const struct event *e = event_of(event);
    cu_result code = CU_NOT_READY;

    pthread_mutex_lock(&dry.lock);
    count(__func__);
    if (e->captured || capture_forbids())
        code = capture_refuses("cuEventQuery");
    else if (!e->stream || e->when <= e->stream->done)
        code = CU_SUCCESS;
    pthread_mutex_unlock(&dry.lock);
    return code;
}

cu_result cuEventDestroy_v2(cu_event event)
{
    pthread_mutex_lock(&dry.lock);
    dry.events--;
    pthread_mutex_unlock(&dry.lock);
    free(event_of(event));
    return CU_SUCCESS;
}

/* The work of the stream up to `when` ended, and with it what the work up to
 * `waiting` waited for. */
static void end_work(struct stream *s, uint64_t when, uint64_t waiting)
{
    struct need **where = &s->needs;

    if (s->done < when)
        s->done = when;
    while (*where) {
        struct need *n = *where;

        if (n->before > waiting) {
            where = &n->next;
            continue;
        }
        *where = n->next;
        end_work(n->other, n->when, n->when);
        free(n);
        where = &s->needs;
    }
}

/* Waits for one stream, or for what an event marks. */
static cu_result finish(const char *name, struct stream *s, uint64_t when,
                        uint64_t waiting)
{
    if (s && s->destroyed)
        return INVALID_HANDLE;
    if (s ? capture_has(s->name) : capture_forbids())
        return capture_refuses(name);
    if (s)
        end_work(s, when, waiting);
    return CU_SUCCESS;
}

cu_result cuStreamSynchronize(cu_stream stream)
{
    struct stream *s;

    ENTER();
    s = stream_of(stream);
    LEAVE(finish("cuStreamSynchronize", s, s->queued, s->queued + 1));
}

cu_result cuStreamQuery(cu_stream stream)
{
    const struct stream *s;

    ENTER();
    s = stream_of(stream);
    if (s->destroyed)
        LEAVE(INVALID_HANDLE);
    if (capture_has(stream) || capture_forbids())
        LEAVE(capture_refuses("cuStreamQuery"));
    LEAVE(s->done < s->queued ? CU_NOT_READY : CU_SUCCESS);
}

cu_result cuEventSynchronize(cu_event event)
{
    const struct event *e = event_of(event);

    ENTER();
    if (e->captured)
        LEAVE(capture_refuses("cuEventSynchronize"));
    LEAVE(finish("cuEventSynchronize", e->stream, e->when, e->when));
}

/* ---- captures ---- */

cu_result cuStreamBeginCapture_v2(cu_stream stream, int mode)
{
    ENTER();
    LEAVE(capture_begin(stream, mode));
}

cu_result cuStreamEndCapture(cu_stream stream, void **graph)
{
    ENTER();
    LEAVE(capture_end(stream, graph));
}

cu_result cuStreamGetCaptureInfo(cu_stream stream, int *status, uint64_t *id)
{
    pthread_mutex_lock(&dry.lock);
    *status = capture_status(stream, id);
    pthread_mutex_unlock(&dry.lock);
    return CU_SUCCESS;
}

cu_result cuThreadExchangeStreamCaptureMode(int *mode)
{
    capture_exchange(mode);
    return CU_SUCCESS;
}

void frag_dry_queue(cu_stream stream)
{
    pthread_mutex_lock(&dry.lock);
    stream_of(stream)->queued++;
    pthread_mutex_unlock(&dry.lock);
}

void frag_dry_finish(cu_stream stream)
{
    pthread_mutex_lock(&dry.lock);
    stream_of(stream)->done = stream_of(stream)->queued;
    pthread_mutex_unlock(&dry.lock);
}

uint64_t frag_dry_waits(cu_stream stream, cu_stream other)
{
    uint64_t count = 0;

    for (const struct wait *w = dry.waits; w; w = w->next)
        if (w->stream == stream && w->other == other)
            count += w->count;
    return count;
}

uint64_t frag_dry_synchronizes(void)
{
    return dry.synchronizes;
}

uint64_t frag_dry_calls(const char *name)
{
    return count_of(name)->calls;
}

uint64_t frag_dry_events(void)
{
    return dry.events;
}

void frag_dry_fail(const char *name)
{
    dry.fails = name;
}

/* ---- kernels: those of real/device/pattern.c, by name ---- */

static cu_result fill(void **args)
{
    const cu_address address = *(cu_address *)args[0];
    const uint64_t pairs = *(uint64_t *)args[1], first = *(uint64_t *)args[2];
    const uint64_t factor = *(uint64_t *)args[3];
    uint64_t *word = host(address);

    if (!is_open(address, pairs * 16))
        return blame("a kernel writes memory that is not there");
    for (uint64_t i = 0; i < 2 * pairs; i++)
        word[i] = (first + i) * factor;
    return CU_SUCCESS;
}

static cu_result verify(void **args)
{
    const cu_address address = *(cu_address *)args[0];
    const uint64_t pairs = *(uint64_t *)args[1], first = *(uint64_t *)args[2];
    const uint64_t factor = *(uint64_t *)args[3];
    const cu_address answer = *(cu_address *)args[4];
    const uint64_t *word = host(address);

    if (!is_open(address, pairs * 16) || !is_open(answer, 8))
        return blame("a kernel reads memory that is not there");
    for (uint64_t i = 0; i < 2 * pairs; i++)
        if (word[i] != (first + i) * factor) {
            *(uint64_t *)host(answer) = i / 2 * 16;
            break;
        }
    return CU_SUCCESS;
}

static const struct {
    const char *name;
    cu_result (*run)(void **args);
} kernels[] = {{"frag_fill", fill}, {"frag_verify", verify}};

cu_result cuModuleLoadData(cu_module *module, const void *image)
{
    ENTER();
    NEEDS_CONTEXT();
    if (!dry.is_empty && !strstr(image, ".version"))
        LEAVE(blame("a module that is no PTX"));
    *module = OPAQUE(cu_module);
    LEAVE(CU_SUCCESS);
}

/* Compiled code is not read. */
DRY_EXPORT cu_result cuModuleLoad(cu_module *module, const char *path);
cu_result cuModuleLoad(cu_module *module, const char *path)
{
    return cuModuleLoadData(module, path);
}

DRY_EXPORT cu_result cuModuleLoadDataEx(cu_module *, const void *, unsigned,
                                        int *, void **);
cu_result cuModuleLoadDataEx(cu_module *module, const void *image,
                             unsigned count, int *options, void **values)
{
    (void)count, (void)options, (void)values;
    return cuModuleLoadData(module, image);
}

/* Registers, local and shared memory are in the compiled code. */
DRY_EXPORT cu_result cuFuncGetAttribute(int *value, int which, cu_function f);
cu_result cuFuncGetAttribute(int *value, int which, cu_function f)
{
    enum { MOST_THREADS = 0, REGISTERS = 4 };

    (void)f;
    frag_dry_note(DRY_GUESS, "registers and spills of compiled code: 64, 0");
    *value = which == MOST_THREADS ? 1024 : which == REGISTERS ? 64 : 0;
    return CU_SUCCESS;
}

DRY_EXPORT cu_result cuOccupancyMaxActiveClusters(int *, cu_function, void *);
cu_result cuOccupancyMaxActiveClusters(int *count, cu_function f, void *config)
{
    (void)f, (void)config;
    frag_dry_note(DRY_GUESS,
                  "cuOccupancyMaxActiveClusters: 1 of each processor");
    *count = frag_dry_gpu()->processors;
    return CU_SUCCESS;
}

cu_result cuModuleUnload(cu_module module)
{
    (void)module;
    return CU_SUCCESS;
}

cu_result cuModuleGetFunction(cu_function *function, cu_module module,
                              const char *name)
{
    (void)module;
    ENTER();
    if (dry.is_empty) {
        *function = OPAQUE(cu_function);
        LEAVE(CU_SUCCESS);
    }
    for (size_t i = 0; i < sizeof(kernels) / sizeof(*kernels); i++)
        if (!strcmp(kernels[i].name, name)) {
            *function = (cu_function)(uintptr_t)(i + 1);
            LEAVE(CU_SUCCESS);
        }
    LEAVE(NOT_FOUND);
}

cu_result cuLaunchKernel(cu_function function, unsigned grid_x, unsigned grid_y,
                         unsigned grid_z, unsigned block_x, unsigned block_y,
                         unsigned block_z, unsigned shared, cu_stream stream,
                         void **args, void **extra)
{
    (void)stream;
    (void)extra;
    ENTER();
    NEEDS_CONTEXT();
    if (dry.is_empty) {
        frag_dry_launched();
        LEAVE(CU_SUCCESS);
    }
    if (!grid_x || grid_y != 1 || grid_z != 1 || !block_x || block_y != 1 ||
        block_z != 1 || shared)
        LEAVE(blame("a launch of another shape"));
    LEAVE(kernels[(uintptr_t)function - 1].run(args));
}
