/* record_log.h - the log of a recorded CUDA program, as it lies in the file.
 *
 * real/record_*.c writes it from inside the program,
 * traces/import/record/record.c reads it. One file a process: a header of
 * RECORD_HEADER bytes, then calls of 64 bytes each, in the order in which they
 * took effect: a call that hands memory out takes its place when it has
 * returned, one that gives memory back takes it before it begins, so no address
 * is handed out again before the free that made it vacant. All numbers are
 * little-endian.
 *
 * The file is a shared mapping that grows by whole chunks: what was written is
 * in it however the process ends. A place whose kind is 0 was never used (the
 * rest of the last chunk), or belongs to a call that had not returned.
 */
#ifndef FRAG_TRACES_RECORD_LOG_H
#define FRAG_TRACES_RECORD_LOG_H

#include <stdint.h>

#define RECORD_MAGIC  "fragrec\n"
#define RECORD_SUFFIX ".fragrec"

/* The variable of the environment that says where a program puts its log. */
#define RECORD_FOLDER "FRAGSIM_RECORD_FOLDER"

enum { RECORD_VERSION = 2, RECORD_HEADER = 4096 };

/* What was called. `address`, `bytes`, `stream`, `other`, `context` and `name`
 * hold what the line says; what it does not name is 0. A managed or pitched
 * block is freed as any other. `result` is the driver's; of a call that hands
 * out and failed the address is what was free of the device, 0 if not known.
 *
 * A context is named where memory is its own and goes with it: what was taken
 * in stream order and what cuMemCreate made have none (cuda.h, cuCtxDestroy).
 */
#define RECORD_KINDS(X)                                                     \
    X(ALLOC)         /* address, bytes, context */                          \
    X(ALLOC_PITCH)   /* address, pitch x rows, context */                   \
    X(ALLOC_MANAGED) /* address, bytes, context */                          \
    X(FREE)          /* address */                                          \
    X(ALLOC_ASYNC)   /* address, bytes, stream */                           \
    X(ALLOC_POOL)    /* the same, other: pool */                            \
    X(FREE_ASYNC)    /* address, stream */                                  \
    X(POOL)          /* other: pool, bytes: 1 if it is the default */       \
    X(POOL_USED)     /* other: pool that ALLOC_ASYNC takes from */          \
    X(POOL_GONE)     /* other: pool */                                      \
    X(CREATE)        /* other: handle, bytes */                             \
    X(RELEASE)       /* other: handle */                                    \
    X(RETAIN)        /* address, other: handle */                           \
    X(MAP)           /* address, bytes, other: handle */                    \
    X(UNMAP)         /* address, bytes */                                   \
    X(RESERVE)       /* address, bytes */                                   \
    X(UNRESERVE)     /* address, bytes */                                   \
    X(ARRAY)         /* other: handle, context, bytes of its elements: 0 if \
                        not known */                                        \
    X(ARRAY_GONE)    /* other: handle */                                    \
    X(GRAPH)         /* address, bytes: a launch of the graph takes them */ \
    X(FOREIGN)       /* address, or other: handle, of what others took */   \
    X(CONTEXT_GONE)  /* context, 0 if it was not gone after all */          \
    X(UNREAD)        /* name, of a call that is not one of these */

enum record_kind {
    RECORD_NOTHING,
#define X(name) RECORD_##name,
    RECORD_KINDS(X)
#undef X
        RECORD_KIND_COUNT
};

/* Results of the driver that have a meaning here. */
enum { RECORD_SUCCESS = 0, RECORD_OUT_OF_MEMORY = 2 };

/* Devices that are none: not known; the host, or memory that others took. */
enum { RECORD_NO_DEVICE = -1, RECORD_ELSEWHERE = -2 };

struct record_header {
    char magic[8];
    uint32_t version, call_bytes;
    uint64_t process, started; /* ns since the epoch */
    uint64_t lost;             /* calls for which the file could not grow */
    char program[64];          /* ends with a 0 */
};

struct record_call {
    uint32_t kind; /* enum record_kind; written last */
    int32_t result;
    int32_t device;  /* of what is handed out; else RECORD_NO_DEVICE */
    uint32_t thread; /* the process's threads by their first call, from 0 */
    union {
        struct {
            uint64_t address, bytes;
            uint64_t stream; /* raw handle; of a default stream per thread the
                                thread's number in the upper half */
            uint64_t other;
        };
        char name[32]; /* cut to 31 characters, ends with a 0 */
    };
    uint64_t time; /* when it took its place, ns since the epoch */
    uint64_t context;
};

#endif
