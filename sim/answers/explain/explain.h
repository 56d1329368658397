/* explain.h - why a request failed: the state of the allocator at that moment,
 * the cause with its evidence, what pins memory, and which changes would have
 * served the request.
 *
 * The state comes from an exact replay of PyTorch's allocator with the recorded
 * settings at the memory limit of the recorded process. Each change is replayed
 * from the first event to the last; the recording of a job that died is first
 * completed (traces/steps/complete.h), if it has a complete step.
 */
#ifndef FRAG_SIM_ANSWERS_EXPLAIN_EXPLAIN_H
#define FRAG_SIM_ANSWERS_EXPLAIN_EXPLAIN_H

#include <stdio.h>

#include "sim/answers/sites.h"
#include "sim/answers/steps/leaks.h"
#include "sim/experiments/release.h"
#include "sim/experiments/tune/ladder.h"
#include "sim/results/json.h"

/* The word, how it ends the sentence "the job died because", and when it holds.
 */
#define EXPLAIN_CAUSES(X)                                                      \
    X(NONE, "none", "no request failed", "no request failed")                  \
    X(DEMAND, "demand", "the program itself needed too much memory",           \
      "the live blocks and the request, or the peak of a complete run, need "  \
      "more than 63/64 of the limit, a share at which no recorded job "        \
      "survived, and no setting survives")                                     \
    X(GROWTH, "growth", "its live memory grew from step to step",              \
      "the live bytes grow from step to step, and without that growth the "    \
      "request would have fitted")                                             \
    X(FRAGMENTATION, "fragmentation", "the free memory was fragmented",        \
      "enough bytes are free, but no hole of the request's stream and pool "   \
      "is large enough")                                                       \
    X(CACHE, "cache", "the free memory was cached for another stream or pool", \
      "the free bytes are cached for another stream or pool, which the "       \
      "request cannot use")                                                    \
    X(OUTSIDE, "outside", "memory outside PyTorch filled the device",          \
      "memory outside PyTorch fills the device")

enum explain_cause {
#define X(name, word, phrase, text) EXPLAIN_##name,
    EXPLAIN_CAUSES(X)
#undef X
        EXPLAIN_CAUSE_COUNT
};

extern const char *const explain_cause_words[EXPLAIN_CAUSE_COUNT];
extern const char *const explain_cause_phrases[EXPLAIN_CAUSE_COUNT];

/* Where the limit comes from. */
enum explain_limit {
    EXPLAIN_LIMIT_NONE,     /* no request failed: no limit is known */
    EXPLAIN_LIMIT_GIVEN,    /* the caller stated the limit of the process */
    EXPLAIN_LIMIT_DEVICE,   /* reserved plus what could be had */
    EXPLAIN_LIMIT_INFERRED, /* the device had enough free memory, so the process
                               had a limit: the middle of its possible values,
                               if a replay at it repeats the recording */
    EXPLAIN_LIMIT_CAPACITY, /* the caller chose the capacity of the device */
    EXPLAIN_LIMIT_PROCESS,  /* the caller chose the limit of the process */
};

/* The segments of one pool, stream and size class. Bytes. */
struct explain_space {
    frag_pool pool;
    char pool_name[FRAG_POOL_NAME];
    frag_stream stream;
    bool is_small; /* blocks of at most 1 MiB */
    uint64_t segments, holes;
    frag_size reserved, live, pending, cached; /* live + pending + cached =
                                                  reserved */
    frag_size largest;                         /* hole */
};

/* A segment of which more than 80 % is free, and the largest block that keeps
 * it from being returned to the device. */
struct explain_pin {
    frag_addr segment;
    frag_size size, cached; /* of the segment */
    frag_pool pool;
    char pool_name[FRAG_POOL_NAME];
    frag_stream stream;
    uint64_t blocks;      /* that are live or pending in it */
    frag_size bytes;      /* of the largest of them */
    uint64_t event;       /* its ALLOC; UINT64_MAX if it was not recorded */
    uint32_t stack;       /* of the ALLOC; 0 if not recorded */
    char site[SITE_TEXT]; /* of that stack; "" if not recorded */
    frag_time lifetime;   /* ns from its ALLOC to the failure; 0 if not recorded
                           */
};

/* A block of the allocator: live, pending, or a hole. */
struct explain_block {
    frag_addr segment, addr;
    frag_size size, requested;
    frag_stream stream;
    frag_pool pool;
    bool is_small, is_expandable, live, pending;
    uint64_t event; /* its ALLOC; UINT64_MAX: not known */
};

enum explain_change_kind {
    EXPLAIN_SETTING,     /* another text of PYTORCH_CUDA_ALLOC_CONF */
    EXPLAIN_EMPTY_CACHE, /* calls of empty_cache */
    EXPLAIN_FREE,        /* one block is freed before the request */
    EXPLAIN_STEP_FREE,   /* what a step leaves behind is freed */
    EXPLAIN_ONE_SPACE,   /* one stream for all requests */
    EXPLAIN_ONE_POOL,    /* no private pools */
    EXPLAIN_BATCH,       /* what depends on the batch is smaller */
    EXPLAIN_RECOMPUTE,   /* blocks of the forward pass are freed, and allocated
                            again in the backward pass */
    EXPLAIN_EARLY_FREE,  /* what a step leaves to the next one, which frees it,
                            is freed at its end */
    EXPLAIN_CAPACITY,    /* a higher limit */
    EXPLAIN_CHANGE_KINDS
};

extern const char *const explain_change_words[EXPLAIN_CHANGE_KINDS];

/* The result of replaying a change. */
enum explain_result {
    EXPLAIN_SURVIVES, /* no request of the complete run fails */
    EXPLAIN_SERVES,   /* no recorded or predicted request of a job that died
                         fails; what it would have requested is not known */
    EXPLAIN_FAILS,    /* a request fails; a job may go on after it */
    EXPLAIN_OPEN,     /* that depends on what was not recorded */
    EXPLAIN_RESULTS
};

extern const char *const explain_result_words[EXPLAIN_RESULTS];

/* A change, and what its replay showed. */
struct explain_change {
    enum explain_change_kind kind;
    char text[512]; /* what is changed, as a sentence or a setting */
    enum explain_result result;
    uint64_t fails_at; /* FAILS: the event whose request fails; else UINT64_MAX
                        */
    bool predicted;    /* FAILS: the request that fails was not recorded */
    bool served;     /* the request is met, and no other request fails before */
    frag_size peak;  /* largest reserved bytes */
    frag_size limit; /* at which it was replayed */
    uint64_t event;  /* FREE: the ALLOC of the block; else UINT64_MAX */
    frag_size bytes; /* FREE: of the block; CAPACITY: more than the limit that
                        was in force; else 0 */
    frag_size saved; /* bytes by which the peak requested falls */
};

enum { EXPLAIN_UNKNOWN = 8 };

struct explain {
    const struct frag_trace *trace; /* borrowed */
    const struct frag_device_trace *device;
    bool failed;       /* a request failed; else the state at the end */
    bool replayed;     /* false: the trace has no history, and the state is
                          that of the snapshot */
    bool reproduced;   /* the replay failed where the recording failed, with
                          the same reserved bytes */
    uint64_t event;    /* the failed request, or the last event */
    uint64_t ooms;     /* requests that failed up to and including it */
    frag_size request; /* bytes, as requested */
    frag_size rounded; /* the block that it needs */
    frag_size segment; /* the new segment that it would need */
    frag_stream stream;
    frag_pool pool;
    char pool_name[FRAG_POOL_NAME];
    uint32_t stack;
    char site[SITE_TEXT];    /* of that stack; "" if not recorded */
    frag_size device_free;   /* FRAG_UNLIMITED: not recorded */
    struct frag_bound bound; /* FRAG_NO_BOUND: none is known */
    enum explain_limit limit_source;
    frag_size limit_least, limit_most; /* its possible values; equal unless it
                                          is INFERRED */
    frag_size total;                   /* of the device; 0: not known */
    frag_size outside;    /* bytes held outside PyTorch; 0: not known, or the
                             device was not full */
    const char *settings; /* in force; "" for PyTorch's defaults */
    char *used;           /* the same with the recorded release and padding */
    char release[RELEASE_NOTE]; /* release_note of the recorded settings */

    frag_size reserved, live, pending, cached;
    frag_size requested;    /* by the live and pending blocks */
    frag_size unreserved;   /* limit - reserved */
    frag_size own_cached;   /* in segments of the request's stream and pool */
    frag_size own_largest;  /* hole of the request's stream, pool and class */
    frag_size other_cached; /* in segments of other streams and pools */
    frag_size other_largest;
    frag_size largest; /* hole of all */
    uint64_t holes;

    enum leaks_verdict growth;       /* of the live memory, until the event */
    enum leaks_reason growth_reason; /* why that is unknown */
    double growth_rate;   /* bytes a step; 0: nothing leaks, or no step is
                             marked */
    uint64_t steps;       /* complete steps between marks; 0: there are none */
    frag_size grown;      /* bytes that leaked, by sim/answers/steps/leaks.h */
    uint32_t grown_stack; /* of the ALLOCs that leak most; 0: unknown */
    char grown_site[SITE_TEXT]; /* of that stack; "" if unknown */

    frag_size need; /* the live blocks and the request, or, if the complete run
                       is known, its peak requested; 0 if no request failed */
    enum explain_cause cause;
    char evidence[512];
    struct explain_space *spaces; /* the largest first */
    uint64_t space_count;
    struct explain_pin *pins; /* that with most free bytes first */
    uint64_t pin_count;
    struct explain_block *blocks; /* by address; those of a segment lie
                                     together */
    uint64_t block_count;
    struct explain_change *changes; /* in the order of their attempts */
    uint64_t change_count;
    struct frag_trace
        *future; /* the device, completed if the job died; owned */
    struct frag_completion completion;    /* how far the recording reaches */
    const char *unknown[EXPLAIN_UNKNOWN]; /* what else cannot be known:
                                             sentences */
    size_t unknown_count;
};

/* The run to explain. All pointers are borrowed, also by the result. */
struct explain_options {
    const struct frag_trace *trace;
    const struct frag_device_trace *device; /* of the trace */
    const char *at; /* as for moment_read, "oom" or an event that failed;
                       NULL: the last failed request, or the end */
    struct frag_bound bound; /* of not 0 bytes: explain the first request that
                                fails in a replay at this bound */
    frag_size total;         /* bytes of the device; 0: not known */
    const struct tune_ladder *ladder; /* of the device, with one case: which
                                         settings and which bound would do;
                                         NULL: that is not said */
    /* As in struct frag_replay; may be NULL. */
    frag_progress *progress;
    void *user;
};

/* Explains the failure of a device. INVALID for settings or a moment that
 * cannot be; UNSUPPORTED if the device has neither events nor segments;
 * CANCELLED; NOMEM. On error *out need not be closed. */
enum frag_err explain_make(const struct explain_options *options,
                           struct explain *out,
                           struct frag_error *e) FRAG_MUST_CHECK;
void explain_close(struct explain *x);

/* Whether the recording of the device reports a failed request. */
bool explain_has_failure(const struct frag_device_trace *d);

/* The best change of the program that is known to serve: no setting, and no
 * higher limit. NULL: there is none. */
const struct explain_change *explain_program_advice(const struct explain *x);
/* The first change of a kind that is known to serve; NULL: there is none. */
const struct explain_change *explain_served_by(const struct explain *x,
                                               enum explain_change_kind kind);

/* Whether the failed request could use this hole if it were large enough: it is
 * free, of the request's stream and pool, and of its class of sizes. False if
 * no request failed. */
bool explain_can_use(const struct explain *x, const struct explain_block *b);

/* Writes the answer as text. */
void explain_put_text(const struct explain *x, FILE *out);
/* Writes the members of the open JSON object. */
void explain_put_json(const struct explain *x, struct frag_json *j);

#endif
