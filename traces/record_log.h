/* record_log.h - the format of a .fragrec file: the log of the CUDA driver
 * calls of one process.
 *
 * real/recorder/ writes the log from inside the recorded program, and
 * traces/import/record/ reads it. The file has a header of RECORD_HEADER bytes,
 * then one struct record_call of 64 bytes per call. All numbers are in the byte
 * order of the processor; the reader refuses those of the other order.
 *
 * A call claims its position in the file at the moment when it takes effect: a
 * call that allocates claims it after the driver returned, a call that frees
 * claims it before the driver is called. Therefore no address is allocated
 * again in the log before its free.
 *
 * The file is a shared memory mapping that grows in chunks, so everything that
 * was written is in the file however the process ends. A position whose kind is
 * 0 was never used (the rest of the last chunk), or belongs to a call that had
 * not returned.
 */
#ifndef FRAG_TRACES_RECORD_LOG_H
#define FRAG_TRACES_RECORD_LOG_H

#include <stdint.h>

#define RECORD_MAGIC  "fragrec\n"
#define RECORD_SUFFIX ".fragrec"

/* The environment variable that names the folder for the logs. */
#define RECORD_FOLDER "FRAGSIM_RECORD_FOLDER"

enum { RECORD_VERSION = 2, RECORD_HEADER = 4096 };

/* The kinds of calls, each with the fields of struct record_call that it fills;
 * the other fields of address, bytes, stream, other, context and name are 0.
 * `result` is the driver's result. If a call that allocates fails, its address
 * is the number of free bytes of the device, 0 if not known. FREE also frees
 * managed and pitched blocks.
 *
 * `context` is filled where the memory belongs to a context and is freed with
 * it. Memory of stream-ordered allocations and of cuMemCreate belongs to no
 * context (cuda.h, cuCtxDestroy).
 *
 * New kinds are added at the end, so that a log of an older recorder stays
 * readable. The kinds HOST_* are about pinned memory of the host: the memory of
 * HOST_ALLOC was allocated by the driver, that of HOST_REGISTER by the program.
 * Their device is RECORD_NO_DEVICE; a range of I/O memory has RECORD_ELSEWHERE.
 */
#define RECORD_KINDS(X)                                                       \
    X(ALLOC)         /* address, bytes, context */                            \
    X(ALLOC_PITCH)   /* address, bytes: pitch x rows, context */              \
    X(ALLOC_MANAGED) /* address, bytes, context */                            \
    X(FREE)          /* address */                                            \
    X(ALLOC_ASYNC)   /* address, bytes, stream */                             \
    X(ALLOC_POOL)    /* address, bytes, stream, other: pool */                \
    X(FREE_ASYNC)    /* address, stream */                                    \
    X(POOL)          /* other: pool, bytes: 1 if it is the default pool */    \
    X(POOL_USED)     /* other: pool of all later ALLOC_ASYNC on the device */ \
    X(POOL_GONE)     /* other: pool */                                        \
    X(CREATE)        /* other: handle, bytes */                               \
    X(RELEASE)       /* other: handle */                                      \
    X(RETAIN)        /* address, other: handle */                             \
    X(MAP)           /* address, bytes, other: handle */                      \
    X(UNMAP)         /* address, bytes */                                     \
    X(RESERVE)       /* address, bytes */                                     \
    X(UNRESERVE)     /* address, bytes */                                     \
    X(ARRAY)         /* other: handle, context, bytes: size of the elements,  \
                        0 if not known */                                     \
    X(ARRAY_GONE)    /* other: handle */                                      \
    X(GRAPH)         /* address, bytes: allocated when the graph launches */  \
    X(FOREIGN)       /* address or other: handle, of memory that was          \
                        allocated elsewhere */                                \
    X(CONTEXT_GONE)  /* context, 0 if the context still exists */             \
    X(UNREAD)        /* name: of a driver call without a kind of its own */   \
    X(GRAPH_MEMORY)  /* bytes: held by the driver for graphs of the device */ \
    X(CONTEXT_GREEN) /* context, other: the context that owns its memory */   \
    X(HOST_ALLOC)    /* address, 0 if of no bytes; bytes, context */          \
    X(HOST_FREE)     /* address */                                            \
    X(HOST_REGISTER) /* address, bytes, context */                            \
    X(HOST_UNREGISTER) /* address */                                          \
    X(TEXT)            /* name: the next part of the text of a CHANGE */      \
    X(CHANGE)          /* bytes: the limit of the device, UINT64_MAX: none.   \
                          RECORD_NO_DEVICE: settings. The first line of the   \
                          text has these; the others are the stack, innermost \
                          first: line, function and file, with tabs between */

enum record_kind {
    RECORD_NOTHING,
#define X(name) RECORD_##name,
    RECORD_KINDS(X)
#undef X
        RECORD_KIND_COUNT
};

/* The results of the driver that a reader distinguishes from other errors. */
enum { RECORD_SUCCESS = 0, RECORD_OUT_OF_MEMORY = 2 };

/* Values of `device` that are no device number: the device is not known; the
 * memory is on the host or was allocated elsewhere. */
enum { RECORD_NO_DEVICE = -1, RECORD_ELSEWHERE = -2 };

struct record_header {
    char magic[8];
    uint32_t version, call_bytes;
    uint64_t process, started; /* process id; ns since 1970 */
    uint64_t lost;             /* calls that are missing because the file could
                                  not grow */
    char program[64];          /* name, ends with a 0 */
};

struct record_call {
    uint32_t kind; /* enum record_kind; written last */
    int32_t result;
    int32_t device;  /* of the allocated memory, or RECORD_NO_DEVICE */
    uint32_t thread; /* threads are numbered from 0 by their first call */
    union {
        struct {
            uint64_t address, bytes;
            uint64_t stream; /* raw handle; for a default stream per thread, the
                                thread's number in the upper 32 bits */
            uint64_t other;
        };
        char name[32]; /* at most 31 characters, ends with a 0 */
    };
    uint64_t time; /* when the call claimed its position, ns since 1970 */
    uint64_t context;
};

#endif
