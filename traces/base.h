/* base.h - the vocabulary that every folder shares: sizes, addresses, times,
 * and how a function reports an error.
 *
 * Sizes are in bytes and times in nanoseconds, both 64-bit and unsigned. An
 * address is an address on a device: the simulator compares and adds addresses
 * and never dereferences one.
 */
#ifndef FRAG_TRACES_BASE_H
#define FRAG_TRACES_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* These two enclose the declarations of a public header, so that C++ can call
 * the functions. */
#ifdef __cplusplus
#define FRAG_BEGIN_DECLS extern "C" {
#define FRAG_END_DECLS   }
#else
#define FRAG_BEGIN_DECLS
#define FRAG_END_DECLS
#endif

FRAG_BEGIN_DECLS

typedef uint64_t frag_size;   /* bytes */
typedef uint64_t frag_addr;   /* device address */
typedef uint64_t frag_time;   /* ns */
typedef uint16_t frag_stream; /* row of a device's table of streams, which is
                                 sorted by raw stream handle */
typedef uint16_t frag_pool;   /* row of a device's table of pools; row 0 is the
                                 default pool */

#define FRAG_KIB       ((frag_size)1 << 10)
#define FRAG_MIB       ((frag_size)1 << 20)
#define FRAG_GIB       ((frag_size)1 << 30)
#define FRAG_UNLIMITED UINT64_MAX /* a capacity or limit that never binds */
#define FRAG_NEVER     UINT64_MAX /* the index of an event that never happens */

/* All error codes, as FRAG_OK, FRAG_OOM, and so on. A new code is one new line
 * here: the enum and the texts are made from this list. */
#define FRAG_ERRORS(X)                             \
    X(OK, "success")                               \
    X(OOM, "the device has no room")               \
    X(NOMEM, "the host has no memory")             \
    X(INVALID, "an argument is out of range")      \
    X(CORRUPT, "the input is malformed")           \
    X(IO, "the file could not be read or written") \
    X(UNSUPPORTED, "the backend cannot do that")   \
    X(DEVICE, "the device reported an error")      \
    X(CONTRACT, "the policy broke its contract")   \
    X(CANCELLED, "the run was interrupted")

enum frag_err {
#define X(name, text) FRAG_##name,
    FRAG_ERRORS(X)
#undef X
};

enum {
    FRAG_ERROR_COUNT = 0
#define X(name, text) +1
    FRAG_ERRORS(X)
#undef X
};

/* The message of an error. The function that detects the error writes the
 * message, because only that function knows the details; its callers pass the
 * message on unchanged. */
struct frag_error {
    char text[512];
};

#define FRAG_MUST_CHECK          __attribute__((warn_unused_result))
#define FRAG_PRINTF(text, first) __attribute__((format(printf, text, first)))

/* Evaluates `call`. If its result is an error, the enclosing function returns
 * that error at once. */
#define FRAG_TRY(call)                    \
    do {                                  \
        enum frag_err frag_try_ = (call); \
        if (frag_try_ != FRAG_OK)         \
            return frag_try_;             \
    } while (0)

/* Makes the call unless one before it failed: then `err` stays. */
#define FRAG_THEN(err, call)  \
    do {                      \
        if ((err) == FRAG_OK) \
            (err) = (call);   \
    } while (0)

/* Returns the text that FRAG_ERRORS lists for the code. */
const char *frag_err_text(enum frag_err err);

/* Called from time to time by long work, with how much of it is done and the
 * whole, in the unit of the work. True ends the work with CANCELLED. */
typedef bool frag_progress(void *user, uint64_t done, uint64_t total);

/* Formats a message into e, which may be NULL, and returns err, so that a
 * function can end with `return frag_fail(...)`. A longer message than
 * struct frag_error holds is truncated. */
enum frag_err frag_fail(struct frag_error *e, enum frag_err err,
                        const char *format, ...) FRAG_PRINTF(3, 4);

/* Writes "the host has no memory for X" to e, which may be NULL, and returns
 * FRAG_NOMEM. X is the formatted text. Every message about host memory is
 * written by this function. */
enum frag_err frag_no_memory(struct frag_error *e, const char *format, ...)
    FRAG_PRINTF(2, 3);

/* Returns the smallest multiple of unit that is at least size. unit must not be
 * 0, and the result must fit into 64 bits. */
static inline frag_size frag_round_up(frag_size size, frag_size unit)
{
    frag_size rest = size % unit;

    return rest ? size + (unit - rest) : size;
}

/* Parses a size such as "512", "20MiB", "80 GB" or "1.5g". Upper and lower case
 * are the same. K, M, G, T and KiB, MiB, GiB, TiB are powers of 1024; KB, MB,
 * GB, TB are powers of 1000; no unit and B mean bytes. "inf" and "unlimited"
 * are FRAG_UNLIMITED. Nothing may follow the size.
 * INVALID if the text is not a size or if the size exceeds 2^63 bytes; then
 * *size is unchanged. */
enum frag_err frag_size_parse(const char *text, frag_size *size);

enum { FRAG_SIZE_TEXT = 32 }; /* enough for every formatted size */

/* Writes size to text in IEC units with at most three decimals, for example
 * "1.25 GiB" or "512 B", or "unlimited" for FRAG_UNLIMITED. Returns text. */
const char *frag_size_format(frag_size size, char text[FRAG_SIZE_TEXT]);
/* The same as a text that lives until the end of the block (C only). */
#define FRAG_SHOW_SIZE(size) frag_size_format(size, (char[FRAG_SIZE_TEXT]){""})

enum { FRAG_EXACT_TEXT = FRAG_SIZE_TEXT + 32 };

/* The same bytes as an option takes them, in the largest unit of which they are
 * a whole number: "24GiB". Returns text. */
const char *frag_size_argument(frag_size size, char text[FRAG_SIZE_TEXT]);
/* Writes size to text in IEC units and in bytes, for example
 * "1.25 GiB (1342177280 bytes)". Returns text. */
const char *frag_size_exact(frag_size size, char text[FRAG_EXACT_TEXT]);

/* The bound of a run's memory: the device, or the process. A full device
 * refuses in the driver, which counts memory in units of 2 MiB. A limit of the
 * process (set_per_process_memory_fraction of PyTorch) refuses in the
 * allocator, before the driver is asked, and counts the bytes that the
 * allocator requests. At equal bytes the two give different runs. */
enum frag_bound_kind {
    FRAG_BOUND_CAPACITY, /* of the device */
    FRAG_BOUND_LIMIT,    /* of the process; the device has memory enough */
    FRAG_BOUND_KINDS
};

/* "capacity", "process limit" */
extern const char *const frag_bound_words[FRAG_BOUND_KINDS];

struct frag_bound {
    frag_size bytes; /* FRAG_UNLIMITED: no bound */
    enum frag_bound_kind kind;
    /* Of a bound that was inferred from a recording: it lay between these two,
     * and `bytes' is what a replay uses. Both 0: it is known. */
    frag_size least, most;
};

#define FRAG_NO_BOUND frag_capacity_bound(FRAG_UNLIMITED)

/* A bound that is known. */
static inline struct frag_bound frag_bound_at(frag_size bytes,
                                              enum frag_bound_kind kind)
{
    struct frag_bound b = {bytes, kind, 0, 0};

    return b;
}

static inline struct frag_bound frag_capacity_bound(frag_size bytes)
{
    return frag_bound_at(bytes, FRAG_BOUND_CAPACITY);
}

/* The bytes of the bound if it is of that kind, else FRAG_UNLIMITED. */
static inline frag_size frag_bound_of(struct frag_bound b,
                                      enum frag_bound_kind kind)
{
    return b.kind == kind ? b.bytes : FRAG_UNLIMITED;
}

/* Whether the bytes are a range of addresses: not empty, and below 2^64. */
static inline bool frag_is_range(frag_addr addr, frag_size size)
{
    return size && !(size >> 63) && addr <= UINT64_MAX - size;
}

/* Orders bounds by bytes, then by kind; no bound comes last. The result is that
 * of strcmp. Two bounds of FRAG_UNLIMITED bytes are equal. */
int frag_bound_order(struct frag_bound a, struct frag_bound b);

enum { FRAG_BOUND_TEXT = 2 * FRAG_SIZE_TEXT + 24 };

/* Writes "24 GiB", "process limit 24 GiB", "unlimited", or for a bound that is
 * not known "process limit 4.5 to 5.1 GiB" to text, and returns text. */
const char *frag_bound_format(struct frag_bound b, char text[FRAG_BOUND_TEXT]);
/* The same as a text that lives until the end of the block (C only). */
#define FRAG_SHOW_BOUND(b) frag_bound_format(b, (char[FRAG_BOUND_TEXT]){""})

FRAG_END_DECLS

#endif
