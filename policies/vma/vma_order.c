/* vma_order.c - the tree and the storage of vma_order.h. */
#include "policies/vma/vma_order.h"

#include <stdlib.h>

static frag_size larger(const frag_size *pair)
{
    return pair[0] > pair[1] ? pair[0] : pair[1];
}

/* Makes zeroed storage for `width` places; false if the host has no memory. */
static bool open(struct vma_order *o, size_t width)
{
    const size_t words = width / 64 + 1;

    *o = (struct vma_order){calloc(2 * width, sizeof(*o->most)), width,
                            calloc(words, sizeof(*o->falls)),
                            calloc(words / 64 + 1, sizeof(*o->words))};
    return o->most && o->falls && o->words;
}

void vma_order_fini(struct vma_order *o)
{
    free(o->most);
    free(o->falls);
    free(o->words);
}

enum frag_err vma_order_reserve(struct vma_order *o, size_t count)
{
    size_t width = o->width ? o->width : 1;
    struct vma_order wider;

    if (count <= o->width)
        return FRAG_OK;
    while (width < count)
        width *= 2;
    if (!open(&wider, width)) {
        vma_order_fini(&wider);
        return FRAG_NOMEM;
    }
    for (size_t i = 0; i < o->width; i++) {
        vma_order_set(&wider, i, o->most[o->width + i]);
        vma_order_mark(&wider, i, vma_order_is_marked(o, i));
    }
    vma_order_fini(o);
    *o = wider;
    return FRAG_OK;
}

void vma_order_change(struct vma_order *o, size_t place, frag_size most)
{
    size_t i = o->width + place;

    for (; i > 0 && o->most[i] != most; i /= 2) {
        o->most[i] = most;
        most = larger(&o->most[i & ~(size_t)1]);
    }
}

size_t vma_order_first(const struct vma_order *o, frag_size size)
{
    size_t i = 1;

    if (!o->width || o->most[1] < size)
        return VMA_NOWHERE;
    while (i < o->width)
        i = 2 * i + (o->most[2 * i] < size);
    return i - o->width;
}

size_t vma_order_last(const struct vma_order *o, frag_size size)
{
    size_t i = 1;

    if (!o->width || o->most[1] < size)
        return VMA_NOWHERE;
    while (i < o->width)
        i = 2 * i + (o->most[2 * i + 1] >= size);
    return i - o->width;
}
