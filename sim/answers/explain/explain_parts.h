/* explain_parts.h - the parts of an explanation. Private to
 * sim/answers/explain/.
 *
 *   explain_run.c      a replay up to an event, with edits
 *   state.c            segments and blocks at one moment
 *   cause.c            totals and the cause
 *   trial.c            one replayed change, and the best one
 *   changes.c          the changes of settings, calls, blocks and memory
 *   explain_program.c  those that only the program can make
 *   explain.c          finds the failure and its limit, and calls the others
 *   explain_put.c      text and JSON
 */
#ifndef FRAG_SIM_ANSWERS_EXPLAIN_EXPLAIN_PARTS_H
#define FRAG_SIM_ANSWERS_EXPLAIN_EXPLAIN_PARTS_H

#include "policies/policies.h"
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
};

void state_close(struct state *s);
/* Copies the blocks of a heap of the torch policy; sets nomem on failure. */
void state_take(struct state *s, const struct frag_heap *heap);
/* Copies a recorded layout. NOMEM. */
enum frag_err state_from_layout(struct state *s, const struct frag_layout *l,
                                struct frag_error *e);
/* Sorts the blocks and finds the event of each by its address. placed
 * has `slots` rows and is reordered; NULL if no addresses are known. */
void state_name(struct state *s, struct placed *placed, uint32_t slots);
/* The index after the last block of the segment that begins at block i. */
uint64_t state_segment_end(const struct state *s, uint64_t i);

/* ---- explain_run.c ---- */

/* An event that is inserted before another one. */
struct explain_edit {
    uint64_t before; /* event of the trace */
    uint64_t block;  /* the ALLOC of the block; not of EMPTY_CACHE */
    uint8_t op;      /* FRAG_FREE, FRAG_ALLOC (again) or FRAG_EMPTY_CACHE. The
                        trace's own FREE of a block that is free does nothing */
};

/* A replay up to and including an event, or of the whole trace. */
struct attempt {
    const struct frag_device_trace *device;
    uint64_t event;       /* the request */
    bool whole;           /* the replay goes on after it */
    const char *settings; /* of PyTorch */
    struct frag_bound bound;
    frag_size total;   /* of the device; 0: FRAG_H200_TOTAL */
    bool starts_there; /* starts from the recorded layout */
    bool anchored;     /* segments get their recorded addresses */
    bool without_last; /* the request is left out */
    bool stops;        /* the replay ends after the first OOM */
    bool one_space;    /* all requests use the stream of the request */
    bool one_pool;     /* all requests use the default pool */
    const struct explain_edit *edits; /* by event */
    size_t edit_count;
    const bool *scales; /* for each ALLOC of the device: whether its bytes are
                           multiplied by `scale`; NULL: none are */
    double scale;
    frag_progress *progress;
    void *user;
};

struct outcome {
    bool served;   /* the request was met */
    uint64_t ooms; /* requests that failed up to and including it */
    uint64_t first_oom, later_oom; /* the first of them, and the first after the
                                      request; UINT64_MAX: none */
    frag_size rounded;   /* of the last request that failed; 0: none */
    frag_size peak;      /* reserved */
    frag_size requested; /* its peak */
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
/* Finds what leaked before the event. NOMEM. */
enum frag_err cause_growth(struct explain *x,
                           struct frag_error *e) FRAG_MUST_CHECK;
/* Decides, from the totals and the changes of settings. */
void cause_decide(struct explain *x);

/* Writes the limit, or the interval in which it lies. Returns text. */
const char *cause_limit(const struct explain *x, char text[2 * FRAG_SIZE_TEXT]);

/* ---- trial.c ---- */

struct trial {
    struct explain *x;
    const struct attempt *base;
    uint64_t ooms;       /* of the base */
    frag_size requested; /* peak, if nothing fails and nothing is changed */
    uint64_t room;       /* of x->changes */
    struct frag_error *e;
};

/* Adds a sentence, which is borrowed, once. */
void explain_add_unknown(struct explain *x, const char *text);
/* The base with its segments at the addresses that the driver would choose, and
 * with all that follows. */
struct attempt trial_attempt(const struct trial *t);
/* Replays a changed attempt and adds it to the answer; at change->limit, or, if
 * that is 0, at the limit that was in force. Errors of frag_replay. */
enum frag_err trial_add(struct trial *t, const struct attempt *a,
                        const struct explain_change *change) FRAG_MUST_CHECK;
/* Whether a request fails at this limit. */
enum frag_err trial_fails(const struct trial *t, const struct attempt *a,
                          frag_size limit, bool *fails) FRAG_MUST_CHECK;
/* Runs it without a limit: nothing fails. */
enum frag_err trial_unlimited(const struct trial *t, const struct attempt *a,
                              struct outcome *out) FRAG_MUST_CHECK;
/* Adds a change whose result is known; its text is complete. NOMEM. */
enum frag_err trial_know(struct trial *t,
                         const struct explain_change *change) FRAG_MUST_CHECK;
/* Whether no request failed in the replay of the change. */
bool trial_serves(const struct explain_change *c);

/* ---- changes.c ---- */

/* Replays the changes, and decides on the cause before those that depend on it.
 * `base` is the attempt that failed, base_ooms its OOMs. Errors of frag_replay.
 */
enum frag_err changes_try(struct explain *x, const struct attempt *base,
                          const struct tune_ladder *ladder, uint64_t base_ooms,
                          const struct state *s,
                          struct frag_error *e) FRAG_MUST_CHECK;

/* ---- explain_program.c ---- */

/* Keeps of some blocks those that the program could free where the request is
 * made: it frees them later, and before its last complete step ends; they are
 * no optimizer's; and, if stacks were recorded, the user's code allocates them.
 * NOMEM. */
enum frag_err program_keep_freed(struct trial *t,
                                 const struct explain_block **list,
                                 uint64_t *count) FRAG_MUST_CHECK;
/* Tries what the program can do against growth and demand, and where no setting
 * serves. Errors of frag_replay. */
enum frag_err program_try(struct trial *t) FRAG_MUST_CHECK;

#endif
