/* parts.h - the parts of an explanation. Private to sim/answers/explain/.
 *
 *   run.c      a replay up to an event, with edits
 *   state.c    segments and blocks at one moment
 *   cause.c    totals and the cause
 *   changes.c  the replayed changes
 *   explain.c  finds the failure and its limit, and calls the others
 *   put.c      text and JSON
 */
#ifndef FRAG_SIM_ANSWERS_EXPLAIN_PARTS_H
#define FRAG_SIM_ANSWERS_EXPLAIN_PARTS_H

#include "policies/torch/torch.h"
#include "sim/answers/explain/explain.h"
#include "traces/steps/steps.h"

/* ---- state.c ---- */

/* Blocks by address; the blocks of a segment lie together. */
struct state {
    struct explain_block *blocks;
    uint64_t count, room;
    bool nomem;
};

/* Where the block of each slot lies. */
struct placed {
    frag_addr addr; /* 0: nowhere */
    uint64_t event;
    uint32_t slot;
};

void state_close(struct state *s);
/* Copies the blocks of a heap of the torch policy; sets nomem on failure. */
void state_take(struct state *s, const struct frag_heap *heap);
/* Copies a recorded layout. NOMEM. */
enum frag_err state_from_layout(struct state *s, const struct frag_layout *l,
                                struct frag_error *e);
/* Sorts the blocks and finds the slot and event of each by its address. placed
 * has `slots` rows and is reordered; NULL if no addresses are known. */
void state_name(struct state *s, struct placed *placed, uint32_t slots);
/* The index after the last block of the segment that begins at block i. */
uint64_t state_segment_end(const struct state *s, uint64_t i);

/* ---- run.c ---- */

/* An event that is inserted before another one. */
struct edit {
    uint64_t before; /* event of the trace */
    uint8_t op;      /* FRAG_FREE or FRAG_EMPTY_CACHE */
    uint32_t slot;   /* of FRAG_FREE */
};

/* A replay up to and including an event. */
struct attempt {
    const struct frag_device_trace *device;
    uint64_t event;       /* the last one */
    const char *settings; /* of PyTorch */
    frag_size limit;      /* FRAG_UNLIMITED: none */
    bool is_device;       /* the device has this capacity; else the process has
                             this limit */
    frag_size total;      /* of the device; 0: FRAG_H200_TOTAL */
    bool starts_there;    /* starts from the recorded layout */
    bool anchored;        /* segments get their recorded addresses */
    bool without_last;    /* the last event is left out */
    bool one_space;       /* all requests use the stream and the pool of the
                             last event */
    const struct edit *edits; /* by event */
    size_t edit_count;
    bool (*progress)(void *user, uint64_t done, uint64_t total);
    void *user;
};

struct outcome {
    bool served; /* the last event is an ALLOC that was met */
    uint64_t ooms, first_oom;
    frag_size rounded; /* of the last request that failed; 0: none */
    frag_size peak;
};

/* Runs it. state may be NULL; else it is filled, and the caller closes it.
 * Errors of frag_replay. */
enum frag_err attempt_run(const struct attempt *a, struct outcome *out,
                          struct state *state,
                          struct frag_error *e) FRAG_MUST_CHECK;

/* ---- cause.c ---- */

/* Fills the totals, spaces and pins of x. NOMEM. */
enum frag_err cause_sum(struct explain *x, const struct state *s,
                        struct frag_error *e) FRAG_MUST_CHECK;
/* Whether a step left the block behind: it is live, and was allocated in a step
 * that is neither the first, which also allocates what stays, nor the last,
 * whose blocks the next step may free. Sets *step then. */
bool cause_is_left(const struct frag_steps *steps,
                   const struct explain_block *b, uint64_t *step);
/* Finds the steps before the event, and what they left behind. NOMEM. */
enum frag_err cause_growth(struct explain *x, const struct state *s,
                           struct frag_error *e) FRAG_MUST_CHECK;
/* Decides, from the totals. */
void cause_decide(struct explain *x);

/* ---- changes.c ---- */

/* Replays the changes. `base` is the attempt that failed, base_ooms its OOMs.
 * Errors of frag_replay. */
enum frag_err changes_try(struct explain *x, const struct attempt *base,
                          uint64_t base_ooms, const struct state *s,
                          struct frag_error *e) FRAG_MUST_CHECK;

#endif
