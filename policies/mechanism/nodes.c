/* nodes.c - the slabs behind nodes.h: how they are allocated and freed.
 */
#include "policies/mechanism/nodes.h"

#include <stdlib.h>

enum {
    SLAB_LEAST = 1 << 11, /* bytes; each slab is twice as large, up to: */
    SLAB_MOST = 1 << 16,
    SLAB_HEAD = 64, /* the link, and room to align records to a cache line */
};

static bool add_slab(struct nodes *nodes)
{
    const size_t bytes = nodes->slab ? nodes->slab : SLAB_LEAST;
    struct node *slab = malloc(bytes);
    char *first;

    if (!slab)
        return false;
    nodes->slab = bytes < SLAB_MOST ? 2 * bytes : bytes;
    slab->next = nodes->slabs;
    nodes->slabs = slab;

    /* Put from the last to the first, so that records are taken in the order
     * of addresses. */
    first = (char *)slab + 2 * SLAB_HEAD - (uintptr_t)slab % SLAB_HEAD;
    for (size_t i = (bytes - 2 * SLAB_HEAD) / nodes->size; i-- > 0;)
        nodes_put(nodes, first + i * nodes->size);
    return true;
}

enum frag_err nodes_grow(struct nodes *nodes, size_t count)
{
    assert(nodes->size && nodes->size % sizeof(void *) == 0);
    while (nodes->count < count)
        if (!add_slab(nodes))
            return FRAG_NOMEM;
    return FRAG_OK;
}

const char *nodes_check(const struct nodes *nodes)
{
    size_t count = 0;

    for (const struct node *n = nodes->free; n && count <= nodes->count;
         n = n->next)
        count++;
    CHECK(count == nodes->count, "the free list has not `count` records");
    return NULL;
}

void nodes_release(struct nodes *nodes)
{
    while (nodes->slabs) {
        struct node *slab = nodes->slabs;

        nodes->slabs = slab->next;
        free(slab);
    }
    nodes->free = NULL;
    nodes->count = 0;
}
