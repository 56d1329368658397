/* state.h - what the parts of cuda_async share. Private to
 * policies/cuda_async/.
 *
 * Address space is tiled by pieces, used or free; the topmost, `end`, is free
 * and always there, the other free ones are in the holes of a stream or in the
 * common ones. Memory lies under it by pages: all of a used piece has it, a
 * free one may. Spare pages are mapped nowhere, and there are none between two
 * calls unless the device failed. No two free neighbours are in the same holes.
 * cuda_async_check checks this.
 */
#ifndef FRAG_POLICIES_CUDA_ASYNC_STATE_H
#define FRAG_POLICIES_CUDA_ASYNC_STATE_H

#include "policies/mechanism/free_set.h"
#include "policies/mechanism/nodes.h"
#include "policies/policy.h"

struct holes_of {
    struct holes_of *next;
    frag_stream stream;
    struct free_set set;
};

struct async_piece {
    struct free_node node; /* size and addr; first: a set gives pieces */
    struct async_piece *below, *above;
    struct holes_of *owner; /* where it goes when it is freed */
    struct holes_of *home;  /* where it lies; NULL: used, or the end */
};

struct cuda_async {
    frag_size page, span, threshold; /* the parameters */
    uint64_t sync;
    bool opportunistic, internal;
    frag_addr base;          /* of the address space; 0: not reserved yet */
    struct async_piece *end; /* the topmost piece, always there, free */
    frag_phys *phys;         /* of the page at base + i * page; 0: none */
    size_t known;            /* entries of it */
    frag_phys *spare;        /* created, mapped nowhere */
    size_t spares;
    uint64_t pages;    /* created */
    uint64_t requests; /* since the last synchronization */
    struct holes_of common, *streams;
    struct nodes nodes; /* of pieces */
};

/* Memory under all of [addr, addr + size), which is free, for a request that
 * may use the holes given and the common ones. OOM, NOMEM, DEVICE; pages may
 * have come or gone on the way, none of them used. */
enum frag_err cuda_async_back(struct frag_heap *heap,
                              const struct holes_of *holes, frag_addr addr,
                              frag_size size) FRAG_MUST_CHECK;

/* Returns the highest whole free pages while more than `keep` bytes are held.
 * All holes are common. */
void cuda_async_shrink(struct frag_heap *heap, frag_size keep);

/* NULL, or what is broken. */
const char *cuda_async_check(const struct frag_heap *heap);

/* Returns all pages, used or not, and what it takes to know them. */
void cuda_async_return_all(struct frag_heap *heap);

#endif
