/* tally.h - the running numbers of a replay. Private to sim/replay/.
 *
 * A few counters change with every event. They are folded into peaks, means and
 * the series at the end of a window: a run of events during which `reserved`
 * and `pending` are constant. A window ends when one of the two changes, when a
 * bucket of the series ends, and after TALLY_WINDOW events. The loop therefore
 * never divides, and every number is exact.
 *
 * The counters, in bytes:
 *   requested  requested for live blocks; a block is live from its ALLOC until
 *              the client frees it
 *   allocated  allocated for live blocks
 *   pending    allocated for blocks that the client has freed, but that are not
 *              yet reusable; active = allocated + pending
 *   split      free bytes in ordinary segments that hold a live block
 *   quanta     as requested, but with each request rounded up to whole quanta
 *              of the run
 *   refused    as quanta, of the requests that failed and that the client has
 *              not freed yet
 */
#ifndef FRAG_SIM_REPLAY_TALLY_H
#define FRAG_SIM_REPLAY_TALLY_H

#include "sim/meter/meter.h"

/* A sum of 64-bit numbers, high * 2^32 + low, with low below 2^32. It is exact,
 * so it does not depend on the windows in which it was summed. */
struct tally_sum {
    uint64_t high, low;
};

struct tally {
    frag_size requested, allocated, split, refused;
    frag_size mask;        /* the quantum of the run, negated */
    frag_size quanta_mark; /* a larger `quanta' is a new peak or demand */
    frag_size quanta_left; /* quanta_mark - quanta */

    /* Over the events of the window, after each event. */
    frag_size requested_max, allocated_min, allocated_max, split_max;
    uint64_t requested_sum, allocated_sum;
    uint64_t from;               /* first event of the window */
    frag_size pending, reserved; /* constant during the window */

    /* Over all windows of the run so far. */
    frag_size peak_requested, peak_allocated, peak_active, peak_split;
    frag_size peak_quanta, demand; /* of quanta, and of quanta + refused */
    frag_size reserved_at_peak_requested;
    struct tally_sum reserved_area, requested_area; /* bytes times events */
    /* Since `reserved' changed last: it is `held' over `held_events' events. */
    frag_size held;
    uint64_t held_events;
    struct tally_sum held_allocated; /* bytes times events */
    double fragmentation_sum;        /* over the events before */
    struct frag_point *point; /* the current bucket; NULL: none is open */
};

/* The largest number of events in a window. With it, a sum of 47-bit numbers
 * over the window fits in 64 bits. */
#define TALLY_WINDOW ((uint64_t)1 << 16)

void tally_open(struct tally *t);
/* Starts the tally before `event` with the memory that is in use then, which is
 * the first peak. */
void tally_adopt(struct tally *t, uint64_t event);
/* Raises peak_quanta and demand to the current sums. Called after a change of
 * `refused', and when `quanta' exceeds its mark. */
void tally_raise(struct tally *t);
/* Ends the window before `event`, with which the next window starts. */
void tally_fold(struct tally *t, uint64_t event);
/* The sum of the fragmentation after each event. The caller has called
 * tally_fold. */
double tally_fragmentation(const struct tally *t);
double tally_double(struct tally_sum sum);
/* Starts a bucket of the series at `event`. The caller has called
 * tally_fold(event). */
void tally_point(struct tally *t, struct frag_point *point, uint64_t event,
                 frag_time time);
/* Ends the bucket with the numbers after its last event. The caller has called
 * tally_fold. */
void tally_point_end(struct tally *t, frag_size largest_free);

/* Adds a block of `size` bytes to segment g; tally_clear removes it. */
static inline void tally_fill(struct tally *t, struct segment *g,
                              frag_size size)
{
    frag_size opened = g->live++ ? 0 : g->size;

    t->split += (opened - size) & g->split_mask;
}

static inline void tally_clear(struct tally *t, struct segment *g,
                               frag_size size)
{
    frag_size closed = --g->live ? 0 : g->size;

    t->split += (size - closed) & g->split_mask;
}

/* A requested size, rounded up to whole quanta, which are a power of two, and
 * negated: the loop has no instruction to spare. */
static inline frag_size tally_minus(const struct tally *t, frag_size size)
{
    return -size & t->mask;
}

/* Counts a request that was served. */
static inline void tally_quanta(struct tally *t, frag_size size)
{
    if (!__builtin_add_overflow(t->quanta_left, tally_minus(t, size),
                                &t->quanta_left))
        tally_raise(t);
}

/* Counts an event that has ended. */
static inline void tally_event(struct tally *t)
{
    frag_size requested = t->requested, allocated = t->allocated;

    t->requested_sum += requested;
    t->allocated_sum += allocated;
    if (requested > t->requested_max)
        t->requested_max = requested;
    if (allocated > t->allocated_max)
        t->allocated_max = allocated;
    if (allocated < t->allocated_min)
        t->allocated_min = allocated;
    if (t->split > t->split_max)
        t->split_max = t->split;
}

#endif
