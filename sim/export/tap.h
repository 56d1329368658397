/* tap.h - reports every placement of a replay in the order in which it happens:
 * blocks, frees, moves, segments and maps.
 *
 * All of it comes from the watch of the replay and from the moves that a policy
 * reports. A free of the client is reported before the calls that the policy
 * makes in answer, so that a block lies in held memory at every moment of the
 * report.
 */
#ifndef FRAG_SIM_EXPORT_TAP_H
#define FRAG_SIM_EXPORT_TAP_H

#include "sim/meter/meter.h"
#include "sim/replay/replay.h"

enum placement_kind {
    PLACED_SEGMENT,       /* a segment was allocated */
    PLACED_SEGMENT_FREED, /* a segment was freed as a whole */
    PLACED_MAP,           /* one physical allocation was mapped */
    PLACED_UNMAP,         /* one map or several adjacent ones were removed */
    PLACED_BLOCK,         /* a block was allocated, or arrived by a move */
    PLACED_PENDING,       /* the client freed a block; it keeps its memory until
                             FREED, which follows at once unless a stream still
                             uses the block */
    PLACED_FREED,   /* the memory of a block was freed, or left by a move */
    PLACED_REFUSED, /* a request could not be met */
};

struct placement {
    enum placement_kind kind;
    bool moved;     /* BLOCK, FREED and PENDING: part of a move */
    uint32_t slot;  /* of a block or a request */
    uint64_t event; /* the event under way; the number of events after the last
                       one */
    uint64_t asked; /* event of the request of the block */
    frag_addr addr; /* 0 for REFUSED */
    frag_size size; /* bytes; of a block: allocated; of a refused request:
                       requested */
};

struct tap;

/* The functions may be NULL. */
struct tap_listener {
    void *user; /* first argument of each function */
    void (*opened)(void *user, struct frag_heap *heap); /* before the first */
    void (*placed)(void *user, const struct tap *t, const struct placement *p);
    void (*done)(void *user, const struct tap *t, uint64_t event);
    /* After the last event; live blocks and their memory are still held. */
    void (*ended)(void *user, const struct tap *t);
    const bool *stop; /* the caller of the replay ends it when this is true */
};

/* The state of a slot: no block, a live block, a block that a stream uses. */
enum tap_state { TAP_FREE, TAP_LIVE, TAP_PENDING };

struct tap_slot {
    struct frag_block block;
    uint64_t asked;
    enum tap_state state;
};

struct tap {
    struct frag_replay_watch watch; /* the watch for the replay */
    const struct frag_device_trace *device;
    const struct meter *meter; /* of the replay, from its begin to its end */
    struct tap_listener listener;

    frag_size requested, allocated; /* of live blocks, now, in bytes */
    uint64_t moves;                 /* of live blocks */
    struct tap_slot *slots;
    uint64_t event;
    bool is_settled; /* the free of the event was reported */
    bool is_over;    /* later calls only close the heap */
    void (*moved)(void *user, uint32_t owner, const struct frag_block *block);
    void *moved_user;
};

/* Opens a tap for a replay of the device, which is borrowed. The caller runs
 * one replay with &t->watch. NOMEM; then the tap need not be closed. */
enum frag_err tap_open(struct tap *t, const struct frag_device_trace *device,
                       const struct tap_listener *listener) FRAG_MUST_CHECK;
void tap_close(struct tap *t);

#endif
