/* base.h - the words every layer uses: sizes, addresses, times, errors.
 *
 * Everything is 64-bit and unsigned. Bytes are plain bytes, times are
 * nanoseconds, addresses belong to a device and are never dereferenced.
 */
#ifndef FRAG_TRACES_BASE_H
#define FRAG_TRACES_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Around the declarations of a public header, so that C++ can call them. */
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
typedef uint16_t frag_stream; /* index in a trace's table of streams, whose
                                 order is that of the raw handles */
typedef uint16_t frag_pool;   /* index in a trace's table of pools; 0 is the
                                 default pool */

#define FRAG_KIB       ((frag_size)1 << 10)
#define FRAG_MIB       ((frag_size)1 << 20)
#define FRAG_GIB       ((frag_size)1 << 30)
#define FRAG_UNLIMITED UINT64_MAX /* a capacity or limit that never binds */
#define FRAG_NEVER     UINT64_MAX /* an event index that never comes */

/* Every way a call can end. Add a line here and nowhere else. */
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

/* The words of an error, filled at the deepest place that knows them. */
struct frag_error {
    char text[512];
};

#define FRAG_MUST_CHECK          __attribute__((warn_unused_result))
#define FRAG_PRINTF(text, first) __attribute__((format(printf, text, first)))

/* Leave the calling function with the error of a call, if it has one. */
#define FRAG_TRY(call)                    \
    do {                                  \
        enum frag_err frag_try_ = (call); \
        if (frag_try_ != FRAG_OK)         \
            return frag_try_;             \
    } while (0)

/* The one-line text of an error code. */
const char *frag_err_text(enum frag_err err);

/* Writes the words to e (which may be NULL) and returns err, so that a
 * function can end with `return frag_fail(...)`. */
enum frag_err frag_fail(struct frag_error *e, enum frag_err err,
                        const char *format, ...) FRAG_PRINTF(3, 4);

/* Writes "the host has no memory for WORDS" to e (which may be NULL) and
 * returns NOMEM: the one text of this error. */
enum frag_err frag_no_memory(struct frag_error *e, const char *format, ...)
    FRAG_PRINTF(2, 3);

/* The smallest multiple of unit that is at least size. unit > 0; the result
 * must fit 64 bits. */
static inline frag_size frag_round_up(frag_size size, frag_size unit)
{
    frag_size rest = size % unit;

    return rest ? size + (unit - rest) : size;
}

/* Reads a size as people write it: "512", "20MiB", "80 GB", "1.5g", case free.
 * KiB, MiB, GiB, TiB and K, M, G, T are powers of 1024; KB, MB, GB, TB are
 * powers of 1000; "inf" is FRAG_UNLIMITED. The whole text must be used.
 * INVALID if it is not a size or exceeds 2^63; then *size is untouched. */
enum frag_err frag_size_parse(const char *text, frag_size *size);

enum { FRAG_SIZE_TEXT = 32 }; /* room for any formatted size */

/* Writes size in IEC units with at most three decimals ("1.25 GiB", "512 B",
 * "unlimited") and returns text. */
const char *frag_size_format(frag_size size, char text[FRAG_SIZE_TEXT]);

FRAG_END_DECLS

#endif
