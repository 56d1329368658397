/* memory_classes.h - what blocks are for: weights, gradients, a cache, and so
 * on, told from the stacks, pools and lives of the blocks of a recording.
 *
 * The innermost frame that a rule knows decides (the table in memory_classes.c
 * has the files of PyTorch, transformers, vLLM and SGLang). A block of a
 * private pool belongs to CUDA graphs. PyTorch's backward pass runs in threads
 * without a stack: a block from there that lives until the optimizer next
 * requests memory is a gradient; the others hold gradients of activations.
 */
#ifndef FRAG_SIM_ANSWERS_HELD_MEMORY_CLASSES_H
#define FRAG_SIM_ANSWERS_HELD_MEMORY_CLASSES_H

#include "traces/trace.h"

#define MEMORY_CLASSES(X)                \
    X(UNTOLD, "not told")                \
    X(WEIGHTS, "weights")                \
    X(GRADIENTS, "gradients")            \
    X(OPTIMIZER, "optimizer")            \
    X(ACTIVATIONS, "activations")        \
    X(CACHE, "cache of keys and values") \
    X(GRAPHS, "CUDA graphs")             \
    X(WORKSPACES, "workspaces")          \
    X(COMMUNICATION, "communication")

enum memory_class {
#define X(name, text) CLASS_##name,
    MEMORY_CLASSES(X)
#undef X
        CLASS_COUNT
};

extern const char *const memory_class_names[CLASS_COUNT];

/* The classes of the blocks, by the event of the ALLOC, in d->count bytes that
 * the caller frees. NULL: no memory. A trace without stacks has only blocks of
 * graphs and such that are not told. */
uint8_t *classes_find(const struct frag_trace *t,
                      const struct frag_device_trace *d);

/* Requested bytes of a class. */
struct class_row {
    frag_size at_peak; /* when the bytes of all live blocks are most */
    frag_size most;    /* when its own are */
};

/* The rows of all classes. NOMEM. */
enum frag_err classes_sum(const struct frag_trace *t,
                          const struct frag_device_trace *d,
                          struct class_row rows[CLASS_COUNT],
                          struct frag_error *e) FRAG_MUST_CHECK;

#endif
