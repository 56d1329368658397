/* vma_order.h - the order in which the vma policy tries its blocks: the first
 * block that may serve a request, by a tree of maxima in O(log n), and the
 * first one that is not in the order of free bytes, by a bitmap with a summary.
 * Private to policies/vma/.
 *
 * A place is the index of a block. Places without a block never match.
 */
#ifndef FRAG_POLICIES_VMA_VMA_ORDER_H
#define FRAG_POLICIES_VMA_VMA_ORDER_H

#include "policies/policy.h"

#define VMA_NOWHERE SIZE_MAX

struct vma_order {
    frag_size *most; /* [2 * width]; the children of i are 2 i and 2 i + 1;
                        width + k: no free chunk of block k is larger; 0: there
                        is no block */
    size_t width;    /* a power of two; 0: no place */
    uint64_t *falls; /* bit k: the block before block k has more free bytes */
    uint64_t *words; /* bit w: falls[w] is not 0 */
};

/* Makes room for `count` places. NOMEM; then nothing changed. */
enum frag_err vma_order_reserve(struct vma_order *o, size_t count);
void vma_order_fini(struct vma_order *o);

/* Sets a place that has another value. */
void vma_order_change(struct vma_order *o, size_t place, frag_size most);

static inline void vma_order_set(struct vma_order *o, size_t place,
                                 frag_size most)
{
    if (o->most[o->width + place] != most)
        vma_order_change(o, place, most);
}

static inline void vma_order_mark(struct vma_order *o, size_t place, bool falls)
{
    const size_t word = place / 64;
    uint64_t bits = o->falls[word] & ~((uint64_t)1 << (place % 64));

    bits |= (uint64_t)falls << (place % 64);
    o->falls[word] = bits;
    o->words[word / 64] &= ~((uint64_t)1 << (word % 64));
    o->words[word / 64] |= (uint64_t)(bits != 0) << (word % 64);
}

static inline bool vma_order_is_marked(const struct vma_order *o, size_t place)
{
    return o->falls[place / 64] >> (place % 64) & 1;
}

/* The first or the last place whose `most` is at least `size` (> 0), and the
 * first one that is marked; VMA_NOWHERE if there is none. */
size_t vma_order_first(const struct vma_order *o, frag_size size);
size_t vma_order_last(const struct vma_order *o, frag_size size);

static inline size_t vma_order_falls(const struct vma_order *o)
{
    for (size_t i = 0; i * 4096 < o->width; i++)
        if (o->words[i]) {
            const size_t word = i * 64 + (size_t)__builtin_ctzll(o->words[i]);

            return word * 64 + (size_t)__builtin_ctzll(o->falls[word]);
        }
    return VMA_NOWHERE;
}

#endif
