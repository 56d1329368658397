/* order.h - which stream has to wait before it uses memory another one freed.
 *
 * A program frees a block when it has queued the last work on it, not when that
 * is done. The same stream may have the memory at once, its work comes later;
 * any other has to wait for the work that its last stream had queued by then.
 *
 * The set of freed ranges says whose memory it was. What is in no range is
 * fresh from the device, or was mapped elsewhere before: then the stream waits
 * for all others, unless nothing was freed since it last did. While there is
 * one stream nothing is kept.
 *
 * Not thread-safe.
 */
#ifndef FRAG_REAL_TORCH_ORDER_H
#define FRAG_REAL_TORCH_ORDER_H

#include "sim/ranges.h"
#include "traces/base.h"

enum {
    ORDER_STREAMS = 256
}; /* the caller waits for the device himself at each
      call for a stream beyond */

struct order {
    struct ranges freed; /* of struct freed_range */
    uint32_t streams;    /* known: 0 to streams - 1 */
    bool coarse; /* addresses do not tell: wait for all streams each time. Set
                    where the host had no memory for a range; the caller may */
    uint64_t frees[ORDER_STREAMS]; /* so far */
    /* [a][b]: a comes after the first so many frees of b. */
    uint64_t after[ORDER_STREAMS][ORDER_STREAMS];

    /* Makes `stream` wait for all that is queued on `other` by now. */
    void (*wait)(void *user, frag_stream stream, frag_stream other);
    void *user;
};

/* The stream is about to be used for the first time. Streams are named in that
 * order: 0, 1, 2... */
void order_stream(struct order *o, frag_stream stream);
/* The program frees a block that it used on `stream` alone. */
void order_freed(struct order *o, frag_addr addr, frag_size size,
                 frag_stream stream);
/* A block is handed out to `stream`. */
void order_taken(struct order *o, frag_addr addr, frag_size size,
                 frag_stream stream);
/* Everything queued on the device is done. */
void order_synchronized(struct order *o);
void order_close(struct order *o);

#endif
