/* policy.h - what an allocator policy is.
 *
 * A policy decides where a block goes and when memory is taken from and given
 * back to the backend. It keeps all bookkeeping on the host, holds no global
 * state, takes no locks, prints nothing, and asks no clock but the backend's:
 * the same calls always give the same answers. It reports nothing about itself;
 * the engine measures.
 *
 * To add one: write policies/<name>.c, add POLICY(<name>) to policies/list.h.
 * Or leave this tree alone: see FRAG_POLICY_PLUGIN.
 */
#ifndef FRAG_POLICIES_POLICY_H
#define FRAG_POLICIES_POLICY_H

#include "policies/device/backend.h"

FRAG_BEGIN_DECLS

/* What a policy may require; a run that cannot supply it is refused. */
enum frag_needs {
    FRAG_NEEDS_VMM = 1 << 0,    /* the backend's virtual memory calls */
    FRAG_NEEDS_FUTURE = 1 << 1, /* heap->future and frees_at are filled in */
    FRAG_NEEDS_MOVES = 1 << 2,  /* the caller takes heap->moved */
};

struct frag_request {
    frag_size size;     /* bytes asked for, > 0, < 2^63 */
    uint64_t frees_at;  /* index of the event that frees it, or FRAG_NEVER */
    uint32_t owner;     /* the caller's name for the block; given to moved() */
    frag_stream stream; /* the stream that will use it */
    frag_pool pool;     /* 0: the default pool */
};

/* A live block. The caller keeps it and hands it back to free. */
struct frag_block {
    frag_addr addr; /* multiple of FRAG_ALIGNMENT */
    frag_size size; /* bytes granted, >= asked: the rest is internal waste */
    void *node;     /* the policy's own record */
};

enum {
    FRAG_QUANTUM = 512, /* unit of blocks where the policy has none of its own,
                           as PyTorch and CuPy */
    FRAG_ALIGNMENT = 256, /* of every block address, as CUDA promises (CUDA C++
                             Programming Guide, device memory accesses) */
};

/* All that will be asked, in the order of asking. Who replays a trace more than
 * once asks for the whole of it again each time, with all that was live freed
 * in between. */
struct frag_future_request {
    frag_size size;
    uint64_t allocs_at; /* index of the event that asks */
    uint64_t frees_at;  /* of the one that frees, or FRAG_NEVER; as frees_at of
                           the request */
    frag_stream stream;
    frag_pool pool;
};

struct frag_future {
    size_t count;
    const struct frag_future_request *requests;
};

/* One policy at work on one backend. */
struct frag_heap {
    const struct frag_policy *policy;
    struct frag_backend *mem;
    void *state; /* policy->state_size bytes: zeroed, then parameters set */
    const struct frag_future *future; /* borrowed; NULL where nobody knows it or
                                         the policy does not need it. A policy
                                         that does serves requests without it
                                         too, as well as it can */

    /* Called by a policy that moves blocks, after the copy is queued: the block
     * that `owner` named now lies in *block. NULL where the caller cannot take
     * moves; such a run is refused before it starts. */
    void (*moved)(void *user, uint32_t owner, const struct frag_block *block);
    void *user;
};

enum frag_param_kind {
    FRAG_PARAM_SIZE,   /* frag_size, as frag_size_parse; FRAG_UNLIMITED is "inf"
                        */
    FRAG_PARAM_NUMBER, /* uint64_t */
    FRAG_PARAM_RATIO,  /* double */
    FRAG_PARAM_SWITCH, /* bool: yes or no */
    FRAG_PARAM_CHOICE, /* uint32_t: index of the word in `choices` */
};

/* One tunable: "segment=20MiB" in `-p first_fit:segment=20MiB`. */
struct frag_param {
    const char *name;
    enum frag_param_kind kind;
    size_t offset;       /* of the value in the state */
    const char *init;    /* default, as a user would write it */
    const char *choices; /* "a|b|c" for CHOICE, else NULL */
    double min, max;     /* inclusive range of SIZE, NUMBER and RATIO values */
    const char *help;    /* one line, with the unit */
    const char *at_most; /* another SIZE, NUMBER or RATIO that this one may not
                            exceed; NULL: none */
};

/* A layout to start from: see adopt. Borrowed for the call. */
struct frag_held_block {
    frag_addr addr;
    frag_size size;      /* granted */
    frag_size requested; /* UINT64_MAX if unknown */
    bool live;           /* false: a free block */
};

struct frag_held_segment {
    frag_addr addr;
    frag_size size;
    frag_stream stream;
    frag_pool pool;
    bool is_small, is_expandable;
    size_t block_count;
    const struct frag_held_block *blocks; /* tile the segment, by address */
};

struct frag_error;

struct frag_policy {
    const char *name;    /* the file's name; what -p takes */
    const char *summary; /* one line for `fragsim policies` */
    const char *source;  /* where the rule was described first */
    unsigned needs;      /* FRAG_NEEDS_* */
    size_t state_size;
    const struct frag_param *params; /* ended by a NULL name; NULL if none */

    /* A policy with a grammar of its own reads the text after the colon here
     * instead (state is zeroed; text is never NULL), INVALID if it is wrong,
     * and writes it back, all values resolved, in at most `room` bytes. Both
     * or neither. `params` then only documents. The state is copied and freed
     * as plain bytes until init: it owns nothing and does not point into
     * itself. */
    enum frag_err (*configure)(void *state, const char *text,
                               struct frag_error *e);
    void (*describe)(const void *state, char *text, size_t room);

    /* May be NULL. init starts from the state described above; fini returns
     * everything to the backend and the host, live blocks included. */
    enum frag_err (*init)(struct frag_heap *heap);
    void (*fini)(struct frag_heap *heap);

    /* FRAG_OOM says the request cannot be met; the policy may have given
     * memory back on the way, every live block has its contents. NOMEM and
     * DEVICE end the run; the heap can still be closed. */
    enum frag_err (*alloc)(struct frag_heap *heap,
                           const struct frag_request *req,
                           struct frag_block *out);
    void (*free)(struct frag_heap *heap, const struct frag_block *block);

    /* The client is done with the block but queued work is not; free() follows
     * when it is. NULL if the policy does not care. */
    void (*free_requested)(struct frag_heap *heap,
                           const struct frag_block *block);

    /* Give back memory that no live block needs, as empty_cache. NULL if the
     * policy keeps none. */
    void (*trim)(struct frag_heap *heap);

    /* Give up all it can by moving blocks. NULL if the policy never moves. */
    enum frag_err (*compact)(struct frag_heap *heap);

    /* Before the first alloc: take over memory that is already held and laid
     * out so. The backend holds the segments already. nodes[i] gets the node
     * of the i-th live block, segments in order. NULL if the policy cannot. */
    enum frag_err (*adopt)(struct frag_heap *heap,
                           const struct frag_held_segment *segments,
                           size_t count, void **nodes);
};

/* A policy outside of this tree is a shared library with a plugin in it,
 *
 *     static const struct frag_policy mine = {...};
 *     FRAG_POLICY_PLUGIN(mine);
 *
 * built with find_package(fragsim), add_library(mine MODULE mine.c) and
 * target_link_libraries(mine PRIVATE fragsim::fragsim), and used as
 * `fragsim replay -p ./libmine.so:PARAMS`. */
enum {
    FRAG_POLICY_ABI = 2, /* goes up when this header or what it includes changes
                            in a way that a built plugin would not survive */
};

struct frag_plugin {
    uint32_t abi; /* of the headers it was built with; the first member ever */
    const struct frag_policy *policy;
};

#define FRAG_POLICY_PLUGIN(policy)                      \
    FRAG_BEGIN_DECLS                                    \
    extern const struct frag_plugin frag_policy_plugin; \
    FRAG_END_DECLS                                      \
    const struct frag_plugin frag_policy_plugin = {FRAG_POLICY_ABI, &(policy)}

#define POLICY(name) extern const struct frag_policy frag_policy_##name;
#include "policies/list.h"
#undef POLICY

/* The registered policies in the order of list.h; NULL ends the array. */
extern const struct frag_policy *const frag_policies[];

/* NULL if there is none of that name. */
const struct frag_policy *frag_policy_find(const char *name);

enum { FRAG_PARAMS_TEXT = 512 }; /* room for all parameters as text */

/* The parameters of a policy, read once. They are one block of memory that does
 * not change and ends with free(): several heaps, in several threads, may be
 * opened with them. */
struct frag_params {
    const struct frag_policy *policy;
    size_t state, size; /* bytes of text[]: where the state begins in it, and
                           all; private to params.c */
    char text[];        /* all parameters, resolved, as a user would write them;
                           then the state up to its last byte that is not 0 */
};

/* Reads params as "segment=20MiB,limit=1GiB" (NULL or "": all defaults). *out
 * is to be freed. INVALID with the words in e for a bad parameter, NOMEM. Each
 * parameter is judged by itself; whether they go together is found when a heap
 * is opened. */
enum frag_err frag_params_read(const struct frag_policy *policy,
                               const char *params, struct frag_params **out,
                               struct frag_error *e)
    __attribute__((warn_unused_result));
/* To be freed; NULL if the host has no memory. */
struct frag_params *frag_params_copy(const struct frag_params *params);

/* Opens a heap of the policy on mem. The heap borrows mem and the future, and
 * must be closed before them; params may be freed at once; moved and user start
 * NULL and may be set before the first alloc. A NULL future: nobody knows it.
 * INVALID for parameters that do not go together, UNSUPPORTED if mem lacks what
 * the policy needs, NOMEM; then the heap need not be closed. */
enum frag_err
frag_heap_open_params(struct frag_heap *heap, const struct frag_params *params,
                      struct frag_backend *mem,
                      const struct frag_future *future, struct frag_error *e)
    __attribute__((warn_unused_result));
/* The same, with the parameters as text: errors of frag_params_read, too. */
enum frag_err
frag_heap_open_with(struct frag_heap *heap, const struct frag_policy *policy,
                    struct frag_backend *mem, const char *params,
                    const struct frag_future *future, struct frag_error *e)
    __attribute__((warn_unused_result));
/* The same without a future. */
enum frag_err frag_heap_open(struct frag_heap *heap,
                             const struct frag_policy *policy,
                             struct frag_backend *mem, const char *params,
                             struct frag_error *e)
    __attribute__((warn_unused_result));
void frag_heap_close(struct frag_heap *heap);

/* Whether params are good for the policy, as frag_params_read says. Writes all
 * parameters, resolved, to text (may be NULL) as they would be given. */
enum frag_err frag_policy_resolve(const struct frag_policy *policy,
                                  const char *params, char *text, size_t room,
                                  struct frag_error *e)
    __attribute__((warn_unused_result));

FRAG_END_DECLS

#endif
