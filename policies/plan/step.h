/* step.h - the request history of plan_online, and the plan of one period.
 * Private to policies/plan/.
 *
 * A history records the last requests of one stream and pool: the size of each,
 * and the number of requests until it was freed. It detects that the latest
 * requests repeat those of one period before. A step is such a period: a circle
 * of slots, one for each request of the period. The circle starts where the
 * fewest bytes are live. The recurring requests of a step have planned
 * addresses in one region of memory.
 */
#ifndef FRAG_POLICIES_PLAN_STEP_H
#define FRAG_POLICIES_PLAN_STEP_H

#include "policies/policy.h"

/* --- history.c --- */

enum {
    CONTEXT = 16, /* successive sizes that identify a place in a step */
    HISTORY_MOST = 1 << 18, /* most requests remembered; a step has at most half
                               of that */
};

struct past_request {
    frag_size size; /* requested bytes */
    uint64_t
        context;   /* hash of this size and of the CONTEXT - 1 sizes before */
    uint32_t life; /* requests until the free, this one included; 0: live */
};

struct history {
    uint64_t count;    /* requests so far, and the number of the next one */
    uint64_t lag, run; /* the last `run` requests have the sizes of those `lag`
                          requests before; 0: no repetition */
    uint64_t room;     /* entries of the ring, a power of two; 0 at first */
    struct past_request *ring; /* request i is at index i % room */
    uint64_t
        *seen; /* by hashed context: 1 + number of the last request with it */
};

/* Makes room for one more request. NOMEM: nothing changed. */
enum frag_err history_reserve(struct history *h) FRAG_MUST_CHECK;
/* Records a request, for which there must be room; returns its number. */
uint64_t history_note(struct history *h, frag_size size);
/* Records that a request's block was freed; ignored if the request is no longer
 * remembered. */
void history_freed(struct history *h, uint64_t number);
void history_close(struct history *h);

/* Request number i, which must still be remembered. */
static inline struct past_request *history_at(const struct history *h,
                                              uint64_t i)
{
    return &h->ring[i & (h->room - 1)];
}

/* The period of the current repetition, in requests. 0 if the repetition is too
 * short (less than the period plus CONTEXT requests, or less than `sure`), or
 * if the history does not hold two periods. */
uint32_t history_period(const struct history *h, uint64_t sure);

/* --- step.c --- */

struct plan_slot {
    frag_size size;    /* requested bytes */
    frag_size offset;  /* bytes from the start of the region */
    uint32_t from, to; /* intervals [from, to) of the region; to is 0 if the
                          slot is not planned */
};

struct plan_step {
    uint32_t period;  /* slots */
    uint32_t next;    /* the slot expected for the next request */
    frag_size height; /* bytes of the region */
    struct plan_slot *slots;
    uint64_t *occupied; /* one bit for each interval: a block is live there */
    struct landmark *landmarks; /* contexts that identify one slot */
    uint32_t landmark_count;
};

#define NO_SLOT UINT32_MAX

/* Plans the last `period` requests of a history that repeats with that period,
 * with at most `effort` steps of plan_make. Blocks that were live for longer
 * than a period, or whose earlier occurrence is still live, are not planned. If
 * less than nine tenths of the bytes would be planned, memory use grows within
 * the period; then it is not a step, and *out is NULL. NOMEM, and UNSUPPORTED
 * as plan_make. */
enum frag_err step_make(const struct history *h, uint32_t period,
                        uint64_t effort,
                        struct plan_step **out) FRAG_MUST_CHECK;
void step_close(struct plan_step *s); /* s may be NULL */

/* Returns the slot of a request: the expected slot if it has this size; else
 * the slot that this context identifies (no other slot has it), if that slot
 * has this size. The slot after it is then expected. Returns NO_SLOT if there
 * is no such slot; the expected slot is then unchanged. */
uint32_t step_follow(struct plan_step *s, frag_size size, uint64_t context);

/* True if the slot is planned and no live block overlaps its range; the range
 * is then occupied until step_vacate. */
bool step_occupy(struct plan_step *s, uint32_t slot);
void step_vacate(struct plan_step *s, uint32_t slot);

#endif
