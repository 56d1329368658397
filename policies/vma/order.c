/* order.c - the tree of order.h. */
#include "policies/vma/order.h"

#include <stdlib.h>
#include <string.h>

static struct vma_place joined(const struct vma_place *pair)
{
    return (struct vma_place){
        .most = pair[0].most > pair[1].most ? pair[0].most : pair[1].most,
        .falls = pair[0].falls || pair[1].falls};
}

enum frag_err vma_order_reserve(struct vma_order *o, size_t count)
{
    size_t width = o->width ? o->width : 1;
    struct vma_place *tree;

    if (count <= o->width)
        return FRAG_OK;
    while (width < count)
        width *= 2;
    tree = calloc(2 * width, sizeof(*tree));
    if (!tree)
        return FRAG_NOMEM;
    if (o->width)
        memcpy(&tree[width], &o->tree[o->width], o->width * sizeof(*tree));
    for (size_t i = width - 1; i > 0; i--)
        tree[i] = joined(&tree[2 * i]);
    free(o->tree);
    *o = (struct vma_order){tree, width};
    return FRAG_OK;
}

void vma_order_set(struct vma_order *o, size_t place, struct vma_place to)
{
    struct vma_place *tree = o->tree;

    for (size_t i = o->width + place; i > 0; i /= 2) {
        if (tree[i].most == to.most && tree[i].falls == to.falls)
            return;
        tree[i] = to;
        if (i > 1)
            to = joined(&tree[i & ~(size_t)1]);
    }
}

size_t vma_order_first(const struct vma_order *o, frag_size size)
{
    size_t i = 1;

    if (!o->width || o->tree[1].most < size)
        return VMA_NOWHERE;
    while (i < o->width)
        i = 2 * i + (o->tree[2 * i].most < size);
    return i - o->width;
}

size_t vma_order_last(const struct vma_order *o, frag_size size)
{
    size_t i = 1;

    if (!o->width || o->tree[1].most < size)
        return VMA_NOWHERE;
    while (i < o->width)
        i = 2 * i + (o->tree[2 * i + 1].most >= size);
    return i - o->width;
}

size_t vma_order_falls(const struct vma_order *o)
{
    size_t i = 1;

    if (!o->width || !o->tree[1].falls)
        return VMA_NOWHERE;
    while (i < o->width)
        i = 2 * i + !o->tree[2 * i].falls;
    return i - o->width;
}
