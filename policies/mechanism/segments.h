/* segments.h - allocating segments, for policies without rules of their own.
 *
 * A request that no held memory can serve causes a new segment. It has the size
 * of the parameter "segment"; for a larger request it has the size of the
 * request, rounded up to the granularity. If the device refuses, the policy
 * returns its segments without live blocks, and, if it returned any, the
 * segment is requested once more.
 */
#ifndef FRAG_POLICIES_MECHANISM_SEGMENTS_H
#define FRAG_POLICIES_MECHANISM_SEGMENTS_H

#include "policies/policy.h"

#include <stddef.h>

/* The row of the parameter "segment"; its value is `member` of struct
 * `state`. */
#define SEGMENT_PARAM(state, member)                                           \
    FRAG_RANGE_PARAM(SIZE, "segment", state, member, "20MiB", 512, 0x1p40,     \
                     "bytes allocated from the device at once, rounded up to " \
                     "512; a larger request gets a segment of its own size")

/* The rows of the parameters "limit" and "fraction", for a pool that limits
 * its own size; the values are `bytes` and `share` of struct `state`. */
#define POOL_LIMIT_PARAMS(state, bytes, share)                               \
    FRAG_RANGE_PARAM(SIZE, "limit", state, bytes, "inf", 512, 0x1p64,        \
                     "the pool never holds more than so many bytes"),        \
        FRAG_RANGE_PARAM(RATIO, "fraction", state, share, "1", 0.001, 1,     \
                         "the pool never holds more than this share of the " \
                         "device's memory; 1: no such limit")

/* The lower of the two limits in bytes; FRAG_UNLIMITED if there is none. */
static inline frag_size pool_limit(struct frag_backend *mem, frag_size limit,
                                   double fraction)
{
    const frag_size share =
        fraction < 1 ? (frag_size)((double)frag_backend_total(mem) * fraction)
                     : FRAG_UNLIMITED;

    return share < limit ? share : limit;
}

/* Bytes of the segment to allocate for a block of `size` bytes. `segment` is
 * the parameter. */
static inline frag_size segment_size(const struct frag_backend *mem,
                                     frag_size segment, frag_size size)
{
    const frag_size usual = frag_round_up(segment, FRAG_QUANTUM);

    return size <= usual ? usual : frag_round_up(size, mem->granularity);
}

/* Allocates a segment from the device. If the device has no room, calls
 * return_free, which returns unused memory to the device and reports whether it
 * returned any; if so, tries once more. Errors are those of segment_alloc. */
enum frag_err segment_take(struct frag_heap *heap, frag_size size,
                           bool (*return_free)(struct frag_heap *heap),
                           frag_addr *addr) FRAG_MUST_CHECK;

/* ---- a list of segments, the newest first ---- */

/* A segment; a policy's struct begins with it. */
struct segment {
    struct segment *next;
    frag_addr addr;
    frag_size size;
};

/* Allocates a segment, as segment_take does, and puts it at the front of the
 * list, in a struct of `bytes` bytes that are zeroed but for the segment. NOMEM
 * too; then nothing changed but what return_free did. */
enum frag_err
segments_add(struct frag_heap *heap, struct segment **list, size_t bytes,
             frag_size size,
             bool (*return_free)(struct frag_heap *heap)) FRAG_MUST_CHECK;

/* Returns the idle segments to the device, calls `forget` for each, and frees
 * it; true if any was returned. A segment that the device refuses stays. */
bool segments_return(struct frag_heap *heap, struct segment **list,
                     bool (*is_idle)(const struct segment *s),
                     void (*forget)(struct frag_heap *heap, struct segment *s));

/* Returns all segments, whether the device refuses or not, and frees them. */
void segments_fini(struct frag_heap *heap, struct segment **list);

#endif
