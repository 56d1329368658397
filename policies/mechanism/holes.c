/* holes.c - the tree of holes: what a treap does, and first fit in it. */
#include "policies/mechanism/holes.h"

#include <assert.h>

#define TREAP_NODE struct hole
#include "policies/mechanism/treap.h"

/* A hole is a free_node to those that keep it elsewhere. */
static_assert(offsetof(struct hole, low) == offsetof(struct hole, node.left) &&
                  offsetof(struct hole, high) ==
                      offsetof(struct hole, node.right) &&
                  offsetof(struct hole, size) ==
                      offsetof(struct hole, node.size) &&
                  offsetof(struct hole, at) == offsetof(struct hole, node.addr),
              "a hole of a tree is laid out as a free_node");

void holes_insert(struct hole **tree, struct hole *hole)
{
    treap_insert(tree, hole);
}

void holes_remove(struct hole **tree, struct hole *hole)
{
    treap_remove(tree, hole);
}

void holes_resize(struct hole **tree, struct hole *hole, frag_addr addr,
                  frag_size size)
{
    treap_resize(tree, hole, addr, size);
}

struct hole *holes_lowest(struct hole *tree, frag_size size, frag_addr from)
{
    struct hole *best = NULL; /* the lowest so far: it or one to its right */

    for (struct hole *h = tree; treap_widest(h) >= size;) {
        if (h->at < from) {
            h = h->high;
            continue;
        }
        if (h->size >= size || treap_widest(h->high) >= size)
            best = h;
        h = h->low;
    }
    if (!best || best->size >= size)
        return best;
    return treap_lowest_in(best->high, size);
}
