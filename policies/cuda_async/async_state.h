/* async_state.h - the state of the cuda_async policy, shared by its files.
 * Private to policies/cuda_async/.
 *
 * Blocks tile the address space; a block is used or free. The topmost block,
 * `end`, is free and always there. Every other free block is a hole: it is in
 * the holes of one stream or in the common holes. Physical memory lies under
 * the blocks in pages: all of a used block has memory, all of a stream's hole
 * too, and a common hole may have some. A spare page is mapped nowhere; between
 * two calls there are none unless the device failed. No two free neighbours are
 * in the same holes. A hole is in the set `backed` if all of its pages have
 * memory, and in `partial` if not; `partial` of a stream is empty, because only
 * common holes lose pages. `oldest` lists the holes of all streams in the order
 * of their ages. A page without memory lies wholly in one free block, so memory
 * that is mapped for a new block is part of no other hole. cuda_async_check
 * checks all but the last.
 */
#ifndef FRAG_POLICIES_CUDA_ASYNC_ASYNC_STATE_H
#define FRAG_POLICIES_CUDA_ASYNC_ASYNC_STATE_H

#include "policies/mechanism/free_set.h"
#include "policies/mechanism/lanes.h"
#include "policies/mechanism/nodes.h"
#include "policies/mechanism/phys_table.h"
#include "policies/mechanism/stock.h"
#include "policies/policy.h"

/* The holes of one stream, or the common ones. */
struct async_holes {
    struct lane lane;                /* of the stream, in pool 0 */
    struct free_set backed, partial; /* ordered by size and age */
};

struct async_block {
    struct free_node node; /* must be the first member; its addr is the age:
                              the number of the hole in the order in which
                              holes were made */
    frag_addr addr;
    struct async_block *below, *above;
    struct async_block *older, *newer; /* neighbours in the list of the holes of
                                          all streams, if it is in it */
    uint64_t freed; /* of a stream's hole: `made` when the youngest of its parts
                       was freed */
    struct async_holes *owner; /* the holes that it joins when it is freed */
    frag_size requested;       /* of a used block: bytes of its request */
    struct async_holes
        *home;      /* the holes that it is in; NULL: used, or the end */
    bool is_backed; /* of a hole: it is in home->backed */
};

struct cuda_async {
    frag_size page, span, threshold; /* parameters, as the two lines below */
    uint64_t sync, run_ahead;
    bool opportunistic, internal, retry;
    frag_addr base; /* start of the address space; 0: not reserved yet */
    struct async_block *end; /* the topmost block, always free */
    struct phys_table phys;  /* of the page at base + i * page */
    struct stock stock;      /* the pages and the spare ones */
    frag_size requested; /* bytes that the live blocks were requested with */
    uint64_t requests;   /* since the last synchronization */
    uint64_t made;       /* requests in total */
    uint64_t ages;       /* number of holes ever made */
    struct async_holes common;
    struct lanes streams;                /* their holes */
    struct async_block *oldest, *newest; /* holes of all streams */
    struct nodes nodes;                  /* of blocks */
};

/* Puts a block that is in no set into the set of `home` that fits its memory.
 * Its age must be set. */
void cuda_async_file(struct cuda_async *p, struct async_block *t,
                     struct async_holes *home);
/* Takes a hole out of its set; it has no home then. */
void cuda_async_unfile(struct cuda_async *p, struct async_block *t);

/* Maps memory under all of the free range [addr, addr + size). Pages of common
 * holes and of the end are remapped before new ones are created. OOM, NOMEM,
 * DEVICE: free pages may have been mapped, unmapped or released; used pages are
 * unchanged. */
enum frag_err cuda_async_back(struct frag_heap *heap, frag_addr addr,
                              frag_size size) FRAG_MUST_CHECK;

/* Releases whole free pages, the highest first, while the pool has more than
 * `keep` bytes. Those of holes that are not common stay. */
void cuda_async_shrink(struct frag_heap *heap, frag_size keep);

/* Returns NULL, or a text that names the broken invariant. */
const char *cuda_async_check(const struct frag_heap *heap);

/* Releases all pages, used ones included, and frees their arrays. */
void cuda_async_return_all(struct frag_heap *heap);

#endif
