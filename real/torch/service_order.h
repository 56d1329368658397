/* service_order.h - decides which streams a stream must wait for before it uses
 * memory that another stream freed.
 *
 * A program frees a block when it has queued the last work on the block, not
 * when that work is done. The same stream may use the memory at once, since its
 * new work runs later. Any other stream has to wait for the work that the
 * block's last stream had queued at the time of the free.
 *
 * The set of freed ranges records which stream freed which addresses. Memory in
 * no range is new from the device, or was mapped at another address before. The
 * stream then waits for all other streams, unless nothing was freed since its
 * last wait. While the program uses only one stream, no ranges are kept.
 *
 * Not thread-safe.
 */
#ifndef FRAG_REAL_TORCH_SERVICE_ORDER_H
#define FRAG_REAL_TORCH_SERVICE_ORDER_H

#include "sim/ranges.h"
#include "traces/base.h"

enum {
    ORDER_STREAMS = 256
}; /* most streams; the caller waits for the device at each call for another
    * stream */

struct order {
    struct ranges freed; /* of struct freed_range */
    uint32_t streams;    /* known streams: 0 to streams - 1 */
    bool coarse; /* addresses do not identify memory: wait for all streams at
                  * each request. The caller may set it; service_order.c sets it
                  * if the host has no memory for a range */
    uint64_t frees[ORDER_STREAMS]; /* frees of each stream so far */
    /* [a][b]: stream a runs after the first after[a][b] frees of b. */
    uint64_t after[ORDER_STREAMS][ORDER_STREAMS];

    /* Makes `stream` wait for all work that is queued on `other` at this
     * time. */
    void (*wait)(void *user, frag_stream stream, frag_stream other);
    void *user;
};

/* Announces a new stream before its first use. Streams are numbered in that
 * order: 0, 1, 2 and so on. */
void order_stream(struct order *o, frag_stream stream);
/* The program frees a block that only `stream` used. */
void order_freed(struct order *o, frag_addr addr, frag_size size,
                 frag_stream stream);
/* The policy allocated this block for `stream`: makes the stream wait where
 * necessary. */
void order_taken(struct order *o, frag_addr addr, frag_size size,
                 frag_stream stream);
/* All work queued on the device is done. */
void order_synchronized(struct order *o);
void order_close(struct order *o);

#endif
