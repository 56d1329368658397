/* policy.h - the interface of an allocator policy.
 *
 * A policy decides at which address a block is placed, and when memory is
 * allocated from the backend and returned to it. A policy is a constant table
 * of functions (struct frag_policy) and a state of known size. It does not
 * measure itself: the simulator counts what passes between the policy and the
 * backend.
 *
 * A policy keeps all its bookkeeping in host memory, because the host cannot
 * read device memory. It has no global state, takes no locks, prints nothing,
 * and reads no clock except the backend's. The same calls always have the same
 * results. All calls on one heap come from one thread at a time.
 *
 * The life of a heap (one policy that runs on one backend):
 *   1. frag_heap_open allocates the state, zeroes it, sets the parameters in
 *      it, and calls init;
 *   2. adopt is called at most once, if the run starts from memory that is
 *      already in use;
 *   3. alloc, free, free_requested, hear, set and trim follow in any order;
 *   4. frag_heap_close calls fini and frees the state.
 *
 * To add a policy, write policies/<name>.c and add POLICY(<name>) to
 * policies/policy_list.h; policies/first_fit.c is a short example. A policy can
 * also live outside this tree: see FRAG_POLICY_PLUGIN.
 */
#ifndef FRAG_POLICIES_POLICY_H
#define FRAG_POLICIES_POLICY_H

#include <stdio.h>

#include "policies/device/backend.h"

FRAG_BEGIN_DECLS

/* Facilities that a policy needs. */
enum frag_needs {
    FRAG_NEEDS_VMM = 1 << 0,    /* the backend's virtual memory calls; a heap on
                                   a backend without them is not opened */
    FRAG_NEEDS_FUTURE = 1 << 1, /* heap->future, if it is known: see there */
    FRAG_OWNS_LIMIT = 1 << 3,   /* not a need: the policy itself refuses what
                                   exceeds the limit of its process, by
                                   frag_backend_admits; for all others the
                                   caller refuses */
    FRAG_HEARS_POOLS = 1 << 4, /* not a need: `hear` is called for what is known
                                  of private pools */
    FRAG_HEARS_FREES = 1 << 5, /* not a need: `hear` is called for a free on
                                  another stream */
    FRAG_NEEDS_MOVES = 1 << 2, /* heap->moved; a running program has the
                                  addresses of its blocks, so the policy cannot
                                  serve it */
};

/* What the caller knows of a private pool. */
enum frag_pool_fact {
    FRAG_POOL_CAPTURE = 1 << 0, /* it belongs to captures of CUDA graphs: while
                                   its requests arrive, nothing may be returned
                                   to the device */
    FRAG_POOL_WHOLE = 1 << 1,   /* its blocks are not split (no_split) */
    FRAG_POOL_ENDED = 1 << 2,   /* the program no longer has the pool: what it
                                   caches may be returned as that of the default
                                   pool */
};

struct frag_request {
    frag_size size;     /* requested bytes, > 0 and < 2^63 */
    uint64_t frees_at;  /* index of the event that frees the block, or
                           FRAG_NEVER */
    uint32_t owner;     /* the caller's name for the block: see heap->moved */
    frag_stream stream; /* the stream that will use the block */
    frag_pool pool;     /* 0: the default pool */
};

/* A live block. alloc fills it, the caller stores it and passes it to free. */
struct frag_block {
    frag_addr addr; /* multiple of FRAG_ALIGNMENT */
    frag_size size; /* allocated bytes, >= the requested bytes; the difference
                       is internal fragmentation */
    void *node;     /* the policy's own record; the caller never reads it */
};

/* What a policy hears beside the requests: of a private pool, or of a free. */
struct frag_heard {
    /* Of a private pool, before its first request, and when it has ended or its
     * cache is returned. Facts are added to those heard before. */
    frag_pool pool;
    unsigned facts;  /* sum of enum frag_pool_fact */
    uint64_t number; /* of the pool in the program: PyTorch's, of a graph or of
                        a MemPool */
    bool now;        /* return the memory that no live block of it needs */

    /* The client frees the block on another stream than that of its request;
     * free follows at once. NULL: of a private pool. */
    const struct frag_block *block;
    frag_stream stream;
};

/* A change of the settings or of the limit of the program's allocator. */
struct frag_setting {
    const char *text; /* as the program passed it, in the grammar of
                         PYTORCH_CUDA_ALLOC_CONF; NULL: a change of the limit */
    frag_size limit;  /* text is NULL: of the process, in bytes; FRAG_UNLIMITED:
                         none */
};

enum {
    FRAG_QUANTUM = 512,   /* bytes; the quantum of a policy that has no unit of
                             its own, as in PyTorch and CuPy; no policy has a
                             larger one */
    FRAG_ALIGNMENT = 256, /* bytes; every block address is a multiple of it, as
                             CUDA guarantees (CUDA C++ Programming Guide,
                             "Device Memory Accesses") */
    FRAG_STATE_MOST = 1 << 30, /* bytes of the state of a policy */
};

/* One request of the trace. */
struct frag_future_request {
    frag_size size;     /* requested bytes */
    uint64_t allocs_at; /* index of the event that requests the block */
    uint64_t frees_at;  /* index of the event that frees it, or FRAG_NEVER; the
                           same as frees_at of the request */
    frag_stream stream;
    frag_pool pool;
};

/* Keeps what a policy computed from a future in its init, for later heaps with
 * the same policy, the same parameters and the same requests: it must depend on
 * nothing else. All zero at first. While it is empty, one heap at a time may be
 * opened with it; afterwards it is constant, and several threads may share it.
 */
struct frag_memo {
    void *made; /* NULL: empty; else outlives the heap that made it */
    void (*release)(void *made);
};

/* All requests of the trace, in the order in which they arrive. Repeated
 * replays request the whole trace again; live blocks are freed between two
 * repetitions. */
struct frag_future {
    size_t count;
    const struct frag_future_request *requests;
    /* A policy whose init works long on the future calls this at least ten
     * times a second, with the work that is done and the most work that there
     * will be, in a unit of the policy. If it returns true, init undoes what it
     * did and returns CANCELLED. NULL: nobody listens. */
    frag_progress *progress;
    void *user;             /* first argument of progress */
    struct frag_memo *memo; /* NULL: nothing is kept */
};

/* One policy that runs on one backend. */
struct frag_heap {
    const struct frag_policy *policy;
    struct frag_backend *mem;
    void *state; /* policy->state_size bytes: zeroed, then parameters set */
    frag_size quantum;                /* of the policy with these parameters */
    const struct frag_future *future; /* borrowed; NULL if the future is not
                                         known or the policy does not need it. A
                                         policy that needs the future must also
                                         serve requests without it, as well as
                                         it can */

    /* A policy that moves blocks calls this after it has queued the copy of a
     * block: the block that the request named `owner` now lies in *block. NULL
     * if the caller cannot follow moves; the policy then moves no block. */
    void (*moved)(void *user, uint32_t owner, const struct frag_block *block);
    void *user; /* the caller's; passed to moved */
};

/* The kind of a parameter determines the type of its value in the state. */
enum frag_param_kind {
    FRAG_PARAM_SIZE,   /* frag_size, read by frag_size_parse; FRAG_UNLIMITED is
                          written "inf" */
    FRAG_PARAM_NUMBER, /* uint64_t */
    FRAG_PARAM_RATIO,  /* double */
    FRAG_PARAM_SWITCH, /* bool, written "yes" or "no" */
    FRAG_PARAM_CHOICE, /* uint32_t: index of the word in `choices` */
};

/* One parameter, such as "segment=20MiB" in `-p first_fit:segment=20MiB`. */
struct frag_param {
    const char *name;
    enum frag_param_kind kind;
    size_t offset;       /* of the value in the state, in bytes */
    const char *init;    /* default, as a user would write it; NULL: off, which
                            no written value sets; with configure only */
    const char *choices; /* "a|b|c" for CHOICE, else NULL */
    double min, max;     /* inclusive range of SIZE, NUMBER and RATIO values */
    const char *help;    /* one line, with the unit; shown to users */
    const char *at_most; /* name of another SIZE, NUMBER or RATIO parameter that
                            this one must not exceed; NULL: none */
};

/* The rows of `params` for the usual kinds. The value is `member_` of the
 * state, whose type is `state_` (as in struct first_fit). The kind of a range
 * is SIZE, NUMBER or RATIO. The remaining arguments are members of struct
 * frag_param, in its order.
 */
#define FRAG_RANGE_PARAM(kind_, name_, state_, member_, init_, min_, max_, \
                         help_)                                            \
    {                                                                      \
        .name = name_, .kind = FRAG_PARAM_##kind_,                         \
        .offset = offsetof(state_, member_), .init = init_, .min = min_,   \
        .max = max_, .help = help_                                         \
    }
#define FRAG_CHOICE_PARAM(name_, state_, member_, init_, choices_, help_) \
    {                                                                     \
        .name = name_, .kind = FRAG_PARAM_CHOICE,                         \
        .offset = offsetof(state_, member_), .init = init_,               \
        .choices = choices_, .help = help_                                \
    }
#define FRAG_SWITCH_PARAM(name_, state_, member_, init_, help_)           \
    {                                                                     \
        .name = name_, .kind = FRAG_PARAM_SWITCH,                         \
        .offset = offsetof(state_, member_), .init = init_, .help = help_ \
    }

/* The layout that adopt starts from. All of it is borrowed for the call. */
struct frag_held_block {
    frag_addr addr;
    frag_size size;      /* allocated bytes */
    frag_size requested; /* requested bytes; UINT64_MAX if unknown */
    bool live;           /* false: a free block */
};

struct frag_held_segment {
    frag_addr addr;
    frag_size size; /* bytes */
    frag_stream stream;
    frag_pool pool;
    bool is_small, is_expandable; /* as PyTorch's snapshot states */
    frag_addr reservation; /* if is_expandable: the reservation that contains
                              the segment, and maybe further ones. Of one pool
                              and stream; no two reservations overlap */
    frag_size reservation_size; /* bytes */
    size_t block_count;
    const struct frag_held_block *blocks; /* in address order; they fill the
                                             segment without gap or overlap */
};

struct frag_error;

/* A policy. All function members except alloc and free may be NULL. */
struct frag_policy {
    const char *name;    /* the file's name; the word after -p */
    const char *summary; /* one line for `fragsim policies` */
    const char *source;  /* where the rule was first described */
    const char *assumes; /* what a run assumes that no trace shows, and the
                            range of it; one sentence without a full stop, part
                            of the notes of each run. NULL: nothing */
    unsigned needs;      /* FRAG_NEEDS_* */
    frag_size quantum;   /* bytes, a power of two up to FRAG_QUANTUM: a block of
                            n requested bytes has at least n bytes, rounded up
                            to whole quanta, of held memory for itself. Lower
                            bounds rest on it. A policy that rounds to more has
                            FRAG_QUANTUM: the rest is waste of its own */
    size_t state_size;   /* bytes, at most FRAG_STATE_MOST; more is allocated by
                            init */
    const struct frag_param *params; /* ended by a NULL name; NULL if none */

    /* The quantum with the parameters that are in the state, for a policy in
     * which parameters make it smaller. NULL: none does. */
    frag_size (*quantum_of)(const void *state);

    /* For a policy whose parameters have a grammar of their own. configure
     * reads the text after the colon of -p into the zeroed state; the text is
     * never NULL. It returns INVALID, with a message in e, if the text is
     * wrong. describe writes the parameters back as text with all values
     * resolved. Both are set or both are NULL. With configure, `params` is
     * documentation only. Until init the state is copied and freed as plain
     * bytes: configure must not allocate memory or store pointers into the
     * state. */
    enum frag_err (*configure)(void *state, const char *text,
                               struct frag_error *e);
    void (*describe)(const void *state, FILE *out);

    /* init starts from the state described at heap->state. If init fails, fini
     * is not called: init undoes what it did. fini returns all memory to the
     * backend and to the host, including that of live blocks. */
    enum frag_err (*init)(struct frag_heap *heap);
    void (*fini)(struct frag_heap *heap);

    /* alloc serves a request and fills *out. OOM: the request cannot be met.
     * The policy may have returned unused memory to the backend before it
     * fails, but every live block keeps its contents, and the run continues.
     * NOMEM and DEVICE end the run; the heap can still be closed. So does
     * UNSUPPORTED, after an adopt only: the run has come to a state that no run
     * of these parameters has, because of the layout. Any other code breaks
     * this contract. free is called at most once for each block and cannot
     * fail. */
    enum frag_err (*alloc)(struct frag_heap *heap,
                           const struct frag_request *req,
                           struct frag_block *out);
    void (*free)(struct frag_heap *heap, const struct frag_block *block);

    /* The client no longer needs the block, but work that uses it is still
     * queued on the device. The caller calls free when that work is complete.
     * NULL if the policy ignores this. */
    void (*free_requested)(struct frag_heap *heap,
                           const struct frag_block *block);

    /* Is called for what FRAG_HEARS_POOLS and FRAG_HEARS_FREES name, and for
     * nothing else. NOMEM ends the run. NULL without these. */
    enum frag_err (*hear)(struct frag_heap *heap,
                          const struct frag_heard *heard);

    /* From here on other settings hold. A policy whose parameters say that they
     * hold for the whole run ignores it. INVALID: the text is wrong, and what
     * comes before the error has changed, as in PyTorch; the run continues.
     * setting is NULL before a repetition: the parameters hold again. NULL if
     * the policy has no such settings. */
    enum frag_err (*set)(struct frag_heap *heap,
                         const struct frag_setting *setting);

    /* Returns memory that no live block needs to the backend, as PyTorch's
     * empty_cache does. NULL if the policy has no such call. */
    void (*trim)(struct frag_heap *heap);

    /* Takes over a layout before the first alloc. The backend already holds
     * the segments. adopt stores the node of the i-th live block in nodes[i];
     * live blocks are counted through all segments in order. NULL if the
     * policy cannot start from a layout. */
    enum frag_err (*adopt)(struct frag_heap *heap,
                           const struct frag_held_segment *segments,
                           size_t count, void **nodes);

    /* For tests, after each call (`fragsim policies --test`): walks the whole
     * state, in O(n), and changes nothing. Returns NULL, or a text that names
     * the broken invariant. NULL if the policy has no such function;
     * `unchecked` then says why. */
    const char *(*check)(const struct frag_heap *heap);
    const char *unchecked; /* one sentence; NULL with a check */
};

/* A policy outside this tree is a shared library that contains a plugin:
 *
 *     static const struct frag_policy mine = {...};
 *     FRAG_POLICY_PLUGIN(mine);
 *
 * Build it with find_package(fragsim), add_library(mine MODULE mine.c) and
 * target_link_libraries(mine PRIVATE fragsim::fragsim). Run it with
 * `fragsim replay -p ./libmine.so:PARAMS`. tests/package/plugin is an example.
 */
enum {
    FRAG_POLICY_ABI = 9, /* rises when this header, or a header that it
                            includes, changes in a way that breaks a plugin
                            that is already compiled */
};

struct frag_plugin {
    uint32_t abi; /* FRAG_POLICY_ABI of the headers that the plugin was compiled
                     with; this stays the first member in every version */
    const struct frag_policy *policy;
};

#define FRAG_POLICY_PLUGIN(policy)                      \
    FRAG_BEGIN_DECLS                                    \
    extern const struct frag_plugin frag_policy_plugin; \
    FRAG_END_DECLS                                      \
    const struct frag_plugin frag_policy_plugin = {FRAG_POLICY_ABI, &(policy)}

/* The registered policies in the order of policy_list.h; NULL ends the array.
 */
extern const struct frag_policy *const frag_policies[];

static inline bool frag_quantum_is_valid(frag_size quantum)
{
    return quantum && quantum <= FRAG_QUANTUM && !(quantum & (quantum - 1));
}

/* Checks the table of a policy and the rows of its parameters, before any other
 * use: all that this header demands of the members and that can be seen without
 * a call. INVALID with what was expected, what was found, and a remedy in e. */
enum frag_err frag_policy_check(const struct frag_policy *policy,
                                struct frag_error *e)
    __attribute__((warn_unused_result));

/* Returns the code that a function of the policy returned, if it is one of enum
 * frag_err; else CONTRACT, with a message in e. */
enum frag_err frag_policy_answer(const struct frag_policy *policy,
                                 const char *function, enum frag_err err,
                                 struct frag_error *e)
    __attribute__((warn_unused_result));

/* The registered policy of that name, or NULL. */
const struct frag_policy *frag_policy_find(const char *name);

/* The parameters of a policy after they were read and checked. The struct is
 * one block of memory that never changes; the owner frees it with free().
 * Several heaps, also in several threads, may be opened with the same one. */
struct frag_params {
    const struct frag_policy *policy;
    frag_size quantum;  /* of the policy with these parameters, in bytes */
    size_t state, size; /* private to params.c: offset of the state in text[],
                           and bytes of text[] */
    char text[];        /* all parameters, resolved, as a user would write them;
                           then the state up to its last byte that is not 0 */
};

/* Reads parameters from text such as "segment=20MiB,limit=1GiB"; NULL or ""
 * means all defaults. On success *out is new and the caller frees it. INVALID,
 * with a message in e, for a wrong parameter; NOMEM. Each parameter is checked
 * by itself here; frag_heap_open_params checks whether they agree. */
enum frag_err frag_params_read(const struct frag_policy *policy,
                               const char *params, struct frag_params **out,
                               struct frag_error *e)
    __attribute__((warn_unused_result));
/* A copy that the caller frees; NULL if the host has no memory. */
struct frag_params *frag_params_copy(const struct frag_params *params);

/* Opens a heap of the policy on the backend mem. The heap borrows mem and
 * future and must be closed before they are freed; params may be freed at once.
 * future may be NULL: the future is not known. moved and user are NULL after
 * the call and may be set before the first alloc. INVALID if two parameters do
 * not agree, UNSUPPORTED if mem lacks what the policy needs, NOMEM, or the
 * error of init; on error e has a message, and the heap must not be closed. */
enum frag_err
frag_heap_open_params(struct frag_heap *heap, const struct frag_params *params,
                      struct frag_backend *mem,
                      const struct frag_future *future, struct frag_error *e)
    __attribute__((warn_unused_result));
/* The same with the parameters as text; has the errors of frag_params_read
 * too. */
enum frag_err
frag_heap_open_with(struct frag_heap *heap, const struct frag_policy *policy,
                    struct frag_backend *mem, const char *params,
                    const struct frag_future *future, struct frag_error *e)
    __attribute__((warn_unused_result));
/* The same as frag_heap_open_with, without a future. */
enum frag_err frag_heap_open(struct frag_heap *heap,
                             const struct frag_policy *policy,
                             struct frag_backend *mem, const char *params,
                             struct frag_error *e)
    __attribute__((warn_unused_result));
void frag_heap_close(struct frag_heap *heap);
/* Empties the memo; all heaps that were opened with it are closed. */
void frag_memo_release(struct frag_memo *memo);

FRAG_END_DECLS

#endif
