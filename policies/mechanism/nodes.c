/* nodes.c - the slabs behind nodes.h: how they are allocated and freed.
 */
#include "policies/mechanism/nodes.h"

#include <stdlib.h>

enum {
    SLAB_BYTES = 1 << 16,
    SLAB_HEAD = 64, /* the link, and room to align records to a cache line */
};

static size_t slab_room(const struct nodes *nodes)
{
    return (SLAB_BYTES - 2 * SLAB_HEAD) / nodes->size;
}

static bool add_slab(struct nodes *nodes)
{
    struct node *slab = malloc(SLAB_BYTES);
    char *first;

    if (!slab)
        return false;
    slab->next = nodes->slabs;
    nodes->slabs = slab;

    /* Put from the last to the first, so that records are taken in the order
     * of addresses. */
    first = (char *)slab + 2 * SLAB_HEAD - (uintptr_t)slab % SLAB_HEAD;
    for (size_t i = slab_room(nodes); i-- > 0;)
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
