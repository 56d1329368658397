/* tally.h - the running numbers of a replay. Private to sim/replay/.
 *
 * What changes with every event is kept in a few words and folded into peaks,
 * means and the series only when `reserved` or `pending` change, when a bucket
 * of the series ends, or every so often: a window, during which both are
 * constant. So the loop divides nothing, and every number is exact.
 *
 *   requested  of live blocks, pending ones included; falls when the free is
 *              completed
 *   allocated  of live blocks without pending ones
 *   pending    freed by the client, not yet completed; active is the sum
 *   split      free bytes in ordinary segments that hold a live block
 *   quanta     requested, each request rounded up to whole quanta: what no
 *              policy can go below
 */
#ifndef FRAG_SIM_REPLAY_TALLY_H
#define FRAG_SIM_REPLAY_TALLY_H

#include "sim/meter/meter.h"

struct tally {
    frag_size requested, allocated, split, quanta;

    /* Of the window's events, after each. */
    frag_size requested_max, allocated_min, allocated_max, split_max;
    uint64_t requested_sum, allocated_sum;
    uint64_t from; /* its first event */
    frag_size pending, reserved;

    /* Of the run so far. */
    frag_size peak_requested, peak_allocated, peak_active, peak_split;
    frag_size peak_quanta;
    frag_size reserved_at_live_peak;
    double fragmentation_sum, reserved_area, requested_area;
    struct frag_point *point; /* the bucket under way; NULL: no series */
};

/* The most events a window may have: sums of 47-bit numbers fit 64 bits. */
#define TALLY_WINDOW ((uint64_t)1 << 16)

void tally_open(struct tally *t);
/* Ends the window before `event`. */
void tally_fold(struct tally *t, uint64_t event);
/* Starts a bucket of the series at `event`; the window has ended. */
void tally_point(struct tally *t, struct frag_point *point, uint64_t event,
                 frag_time time);
/* The numbers of the bucket's last event; the window has ended. */
void tally_point_end(struct tally *t, frag_size largest_free);

/* A block of `size` bytes comes into segment g, or goes from it. */
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

/* A request in whole quanta. */
static inline frag_size frag_quanta(frag_size size)
{
    return (size + FRAG_QUANTUM - 1) & ~((frag_size)FRAG_QUANTUM - 1);
}

/* A request is served. */
static inline void tally_quanta(struct tally *t, frag_size size)
{
    t->quanta += frag_quanta(size);
    if (t->quanta > t->peak_quanta)
        t->peak_quanta = t->quanta;
}

/* An event is over. */
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
