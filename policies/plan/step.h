/* step.h - what plan_online learns of a stream, and the plan it makes.
 *
 * A history remembers the last requests of one stream and pool: how many bytes
 * each asked for, and after how many further requests it was freed. It says
 * when the last ones repeat those a period before. A step is such a period, its
 * recurring requests laid out in one region: a circle of slots, one for each
 * request, the first where the least is live.
 */
#ifndef FRAG_POLICIES_PLAN_STEP_H
#define FRAG_POLICIES_PLAN_STEP_H

#include "policies/policy.h"

/* --- plan_history.c --- */

enum {
    CONTEXT = 16, /* requests in a row by which a place in a step is known */
    HISTORY_MOST = 1 << 18, /* requests remembered; a step has half at most */
};

struct asked {
    frag_size size;
    uint64_t
        context;   /* hash of this size and those of the CONTEXT - 1 before */
    uint32_t life; /* requests until it was freed, itself one; 0: still live */
};

struct history {
    uint64_t count;     /* requests so far: the number of the next one */
    uint64_t lag, run;  /* the last `run` repeat those `lag` before; 0: none */
    uint64_t room;      /* of the ring, a power of two; 0 at first */
    struct asked *ring; /* request i is at i % room */
    uint64_t *seen;     /* by context: 1 + the last request that had it */
};

/* Makes sure that one more can be noted. NOMEM, then nothing changed. */
enum frag_err history_reserve(struct history *h) FRAG_MUST_CHECK;
/* Notes a request, for which there is room; returns its number. */
uint64_t history_note(struct history *h, frag_size size);
void history_freed(struct history *h, uint64_t number);
void history_close(struct history *h);

/* Request number i, of those still remembered. */
static inline struct asked *history_at(const struct history *h, uint64_t i)
{
    return &h->ring[i & (h->room - 1)];
}

/* The period of a repetition that is complete, of at least `sure` requests, and
 * remembered twice over; 0 if there is none. */
uint32_t history_period(const struct history *h, uint64_t sure);

/* --- plan_step.c --- */

struct plan_slot {
    frag_size size;    /* as requested */
    frag_size offset;  /* in the region */
    uint32_t from, to; /* cells of the region; none if it is not planned */
};

struct plan_step {
    uint32_t period; /* slots */
    uint32_t next;   /* the slot that comes next if all goes on as before */
    frag_size height;
    struct plan_slot *slots;
    uint64_t *occupied; /* cells of the region, a bit each */
    struct landmark *landmarks;
    uint32_t landmark_count;
};

#define NO_SLOT UINT32_MAX

/* Plans the last `period` requests of a history that repeats so, with at most
 * `effort` steps of plan_make. What was live for longer than a period, or still
 * is, is not planned. *out is NULL where less than nine tenths of the bytes
 * would be: that is no step, but a stretch in which something grows. NOMEM,
 * UNSUPPORTED as plan_make. */
enum frag_err step_make(const struct history *h, uint32_t period,
                        uint64_t effort,
                        struct plan_step **out) FRAG_MUST_CHECK;
void step_close(struct plan_step *s); /* NULL is fine */

/* The slot of a request, or NO_SLOT: the one that comes next, or else the one
 * that ends in this context, which no other does. Goes on behind it; a request
 * without a slot leaves the place in the step as it was. */
uint32_t step_follow(struct plan_step *s, frag_size size, uint64_t context);

/* Whether the slot is planned and nothing live lies there; then it is taken,
 * until it is vacated. */
bool step_occupy(struct plan_step *s, uint32_t slot);
void step_vacate(struct plan_step *s, uint32_t slot);

#endif
