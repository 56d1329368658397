/* reservations.h - the address ranges of expandable segments, inferred from
 * what a recorded allocator mapped and unmapped.
 *
 * A recording does not state where a reservation begins. Its first map is at
 * its beginning, so a reservation that was made during the recording is known
 * exactly. Of one that was made before, the lowest recorded address is taken.
 * If its true beginning is lower, no request of the recording was placed below
 * that address, although PyTorch prefers the lowest place, so the answers are
 * the same.
 * Source: find_expandable_block of PyTorch 2.11, as read in its source.
 */
#ifndef FRAG_SIM_REPLAY_RESERVATIONS_H
#define FRAG_SIM_REPLAY_RESERVATIONS_H

#include "traces/torch_sizes.h"
#include "traces/trace.h"

FRAG_BEGIN_DECLS

struct frag_reservation {
    frag_addr addr, end; /* all recorded addresses of it are in [addr, end) */
    frag_size mapped;    /* bytes mapped after the last action */
    uint32_t stream;     /* frag_stream */
    uint32_t pool;       /* frag_pool */
    bool is_small;       /* it belongs to a small pool */
    bool held;           /* it was made before the recording began */
    bool unseen;         /* nothing of it was ever mapped; it has no address */
    uint64_t made;       /* the action that made it; 0 if held */
    uint64_t dropped;    /* the action that dropped it; UINT64_MAX: none did */
    frag_size page;      /* in bytes */
    struct torch_reserve reserve;
};

/* Lists the reservations in *out, which the caller frees: first the held ones
 * in ascending order of addresses, then the others in the order in which they
 * were made. `total` is the size of the device in bytes, on which the size of
 * a reservation depends. NOMEM; then *out is untouched. */
enum frag_err frag_reservations(const struct frag_device_trace *d,
                                frag_size total, struct frag_reservation **out,
                                uint64_t *count,
                                struct frag_error *e) FRAG_MUST_CHECK;

/* The largest size of a device, in bytes and at most `total`, with which no two
 * of the reservations overlap. */
frag_size frag_reservations_total(const struct frag_reservation *rows,
                                  uint64_t count, frag_size total);

/* The bytes of a reservation on a device of `total` bytes. */
frag_size frag_reservation_size(const struct frag_reservation *r,
                                frag_size total);

FRAG_END_DECLS

#endif
