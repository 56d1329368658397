/* order.h - the order in which the vma policy tries its blocks, as a tree of
 * maxima: the first block that may serve a request, and the first one that is
 * not in the order of free bytes, each in O(log n). Private to policies/vma/.
 *
 * A place is the index of a block. Places without a block never match.
 */
#ifndef FRAG_POLICIES_VMA_ORDER_H
#define FRAG_POLICIES_VMA_ORDER_H

#include "policies/policy.h"

#define VMA_NOWHERE SIZE_MAX

struct vma_place {
    frag_size most; /* no free chunk of the block is larger; 0: no block */
    bool falls;     /* the block before has more free bytes */
};

struct vma_order {
    struct vma_place *tree; /* [2 * width]; the children of i are 2 i and 2 i +
                               1; place k is width + k */
    size_t width;           /* a power of two; 0: no place */
};

/* Makes room for `count` places. NOMEM; then nothing changed. */
enum frag_err vma_order_reserve(struct vma_order *o, size_t count);
void vma_order_set(struct vma_order *o, size_t place, struct vma_place to);

/* The first or the last place whose `most` is at least `size` (> 0), and the
 * first one that falls; VMA_NOWHERE if there is none. */
size_t vma_order_first(const struct vma_order *o, frag_size size);
size_t vma_order_last(const struct vma_order *o, frag_size size);
size_t vma_order_falls(const struct vma_order *o);

#endif
