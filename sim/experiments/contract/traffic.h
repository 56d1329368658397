/* traffic.h - random requests for any policy, and a judge of its answers.
 *
 * A script is made before it runs. So the same script can run twice, with other
 * block numbers, or at another scale, and each request knows when its block
 * will be freed. The judge compares each answer with all live blocks and all
 * held memory, one by one, and shares no code with any policy.
 */
#ifndef FRAG_SIM_EXPERIMENTS_CONTRACT_TRAFFIC_H
#define FRAG_SIM_EXPERIMENTS_CONTRACT_TRAFFIC_H

#include "policies/policy.h"
#include "sim/experiments/contract/faulty.h"

enum { MAX_LIVE = 96, MAX_STEPS = 2048 };

enum step_kind {
    STEP_ALLOC,
    STEP_FREE,
    STEP_REQUEST_FREE,
    STEP_TRIM,
    STEP_NONE
};

struct step {
    enum step_kind kind;
    uint32_t id; /* below MAX_LIVE */
    frag_size size;
    uint64_t frees_at;
    frag_stream stream;
};

struct script {
    size_t count;
    struct step steps[MAX_STEPS];
};

/* The next random number of a sequence; *state starts as its seed. */
uint64_t random_next(uint64_t *state);

/* A random size, mostly small; it is not a multiple of any unit. */
frag_size random_size(uint64_t *rng);

/* Makes `steps` random requests and frees, then frees all live blocks. If
 * `size` is set, all requests have that size. */
void script_make(struct script *s, uint64_t seed, size_t steps, frag_size size);

/* How a script is run. */
struct traffic_options {
    frag_size capacity; /* of the device; 0: unlimited */
    frag_size scale;    /* factor for sizes, the device and the granularity */
    uint32_t mask;      /* owners are ids XOR this value */
    bool one_stream;
};

/* The answer of a policy to a step, without the addresses. */
struct answer {
    enum frag_err err;
    uint64_t birth;     /* of the range that the block starts in */
    frag_size at, size; /* in that range */
    frag_size used;     /* bytes held from the device after the step */
};

struct live {
    struct frag_block block;
    frag_size requested;
    bool is_live, is_pending;
};

struct traffic {
    struct traffic_options opts;
    struct frag_heap heap;
    struct faulty mem;
    struct frag_backend *arena;
    struct live live[MAX_LIVE];
    size_t ooms;
    const char *fault;
    struct place *place; /* NULL: nobody watches */
    struct answer answers[MAX_STEPS];
};

/* Opens the policy on an arena that is as hostile as a device can be. The
 * error of frag_heap_open, or NOMEM; then nothing is to be closed. */
enum frag_err traffic_open(struct traffic *t, const struct frag_policy *policy,
                           const char *params,
                           const struct traffic_options *opts) FRAG_MUST_CHECK;
/* Returns the first fault of the run; without one, a description of memory that
 * is left on the device; else NULL. */
const char *traffic_close(struct traffic *t);

/* Makes one step and judges nothing; returns the error of alloc. */
enum frag_err traffic_step(struct traffic *t, const struct step *step);

/* Compares all live blocks and all held memory. Returns the first fault, or
 * NULL. */
const char *traffic_judge(const struct traffic *t);

/* Runs steps [from, to) until a fault; returns how many were run. */
size_t traffic_run(struct traffic *t, const struct script *s, size_t from,
                   size_t to);

#endif
