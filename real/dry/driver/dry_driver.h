/* dry_driver.h - what the parts of the stand-in for the driver have in common:
 * its objects, its one state with its lock, and how a function of the driver
 * begins and ends. Private to the stand-in for the driver.
 */
#ifndef FRAG_REAL_DRY_DRIVER_DRY_DRIVER_H
#define FRAG_REAL_DRY_DRIVER_DRY_DRIVER_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "real/device/gpus.h"
#include "real/dry/control.h"

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

/* An object that the program holds: a physical allocation, a reservation or a
 * mapping. */
struct dry_holding {
    struct dry_holding *next;
    uint64_t at; /* address; for a physical allocation, its handle */
    size_t size;
    size_t offset;              /* of an allocation in its file */
    struct dry_holding *memory; /* the mapped allocation */
    unsigned uses;    /* number of mappings, plus 1 until it is released */
    unsigned handles; /* of an allocation: handles that were not released */
    int file;         /* of an allocation: 0 for dry.file, or a file of its
                       * own, which other processes may have too */
    bool shareable;   /* an allocation that may be exported */
    bool imported;    /* an allocation of another process */
    int device;
    uint64_t rights; /* of a mapping: a bit for each device that may access */
    bool is_segment; /* of a reservation: cuMemAlloc made it */
};

/* Work is a counter: an event counts as work, and so does work that a test
 * queues. */
struct dry_stream {
    struct dry_stream *next;
    cu_stream name;
    uint64_t queued, done;
    struct need *needs;
    bool destroyed;
};

/* Work of a stream that ends before work of another one begins. */
struct need {
    struct need *next;
    uint64_t before; /* the work that waits */
    struct dry_stream *other;
    uint64_t when; /* the work that it waits for */
};

struct dry_event {
    struct dry_stream *stream; /* NULL: not recorded yet */
    bool captured;             /* recorded on a stream that is captured */
    uint64_t when;
    uint64_t waits;    /* for the device, of the program before it */
    unsigned idle;     /* looks of a thread of NCCL since the last launch */
    uint64_t launches; /* of the program when a thread of NCCL looked last */
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
    uint64_t held, held_most; /* of them by libraries, such as NCCL; the most */
    bool has_context;         /* it was created; it stays to the end */
    bool has_streams;         /* beside the default one */
    int retains;
    uint64_t peers; /* a bit for each device that may access its segments */
};

extern struct dry {
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
    struct dry_holding *memory, *reservations, *maps;
    uint64_t calls, fail_at, copies, corrupt_at;
    int fail_with;
    uint64_t handles;
    bool faulty;
    bool lazy;
    unsigned wait_us; /* duration of a wait for the device */
    struct dry_stream *streams;
    struct wait *waits;
    uint64_t events, synchronizes, waits_of_host;
    bool prompt;       /* FRAGSIM_DRY_PROMPT */
    const char *fails; /* the name of the call that must fail, or NULL */
} dry;

/* ---- faults ---- */

/* Says what the program did that the real driver forbids, and returns its
 * error; the process ends with FAULTY then (dry_driver.c). */
__attribute__((format(printf, 1, 2))) cu_result dry_blame(const char *format,
                                                          ...);
/* The number of an environment variable; `usual` if it is not set. */
uint64_t dry_setting(const char *name, uint64_t usual);
/* Counts a call of that name (frag_dry_calls). */
void dry_count(const char *name);
/* Counts the call, and says whether it must fail, with *code. */
bool dry_fails(const char *name, cu_result *code);

/* ---- a function of the driver ---- */

/* Reads the variables, once. The caller holds the lock. */
void dry_start(void);
/* The device of this thread's current context; NULL without one. */
struct gpu *dry_current(void);
int dry_current_device(void);
bool dry_is_context(cu_context context);

/* Every call below that can fail begins with this macro. */
#define ENTER()                          \
    cu_result result_ = CU_SUCCESS;      \
                                         \
    pthread_mutex_lock(&dry.lock);       \
    dry_start();                         \
    if (dry_fails(__func__, &result_)) { \
        pthread_mutex_unlock(&dry.lock); \
        return result_;                  \
    }

#define LEAVE(code)                      \
    do {                                 \
        result_ = (code);                \
        pthread_mutex_unlock(&dry.lock); \
        return result_;                  \
    } while (0)

#define NEEDS_CONTEXT() \
    if (!dry_current()) \
    LEAVE((dry_blame("%s without a context", __func__), (cu_result)NO_CONTEXT))

/* A handle that the program never looks into. */
#define OPAQUE(type) (type)(uintptr_t)++ dry.handles

/* ---- held objects (holdings.c) ---- */

struct dry_holding *held_add(struct dry_holding **list, struct dry_holding h);
void held_drop(struct dry_holding **list, const struct dry_holding *h);
/* The object that begins at the address; NULL if there is none. */
struct dry_holding *held_at(struct dry_holding *list, uint64_t address);
/* The object that contains all of [address, address + size), or NULL. */
struct dry_holding *held_around(struct dry_holding *list, uint64_t address,
                                size_t size);
/* Whether an object has a byte of [address, address + size). */
bool held_meets(const struct dry_holding *list, uint64_t address, size_t size);

/* The size in whole granules. */
size_t granules(size_t size);
/* Physical memory of the device. Its part of the file is never used again, so
 * no later block can find the contents of freed memory. */
cu_result memory_take(int device, size_t size, struct dry_holding **out);
/* One use of the memory ends; with the last one it is free. */
void memory_let_go(struct dry_holding *memory);
/* Addresses of the device, of which no other memory of the process has one. */
uint64_t addresses_take(int device, size_t size, bool is_segment);
void addresses_return(const struct dry_holding *r);
/* The memory's contents are at the address now; no longer. Nothing is done for
 * memory without contents. `rights` are those of mmap. */
void memory_show(uint64_t address, const struct dry_holding *memory,
                 int rights);
void memory_hide(uint64_t address, size_t size);

/* ---- contents (contents.c) ---- */

/* Whether the memory's own device may read and write all of it. */
bool memory_is_open(cu_address address, size_t size);
/* Device memory with contents, for the host. */
void *memory_host(cu_address address);

#endif
