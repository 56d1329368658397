/* holes.c - the tree of holes: a treap by address, and the search for the
 * lowest hole that is large enough. See holes.h.
 */
#include "policies/mechanism/holes.h"

#include <assert.h>

#define TREAP_NODE struct hole
#include "policies/mechanism/treap.h"

/* Free sets and bins access a hole through its member `node`. */
static_assert(offsetof(struct hole, low) == offsetof(struct hole, node.left) &&
                  offsetof(struct hole, high) ==
                      offsetof(struct hole, node.right) &&
                  offsetof(struct hole, size) ==
                      offsetof(struct hole, node.size) &&
                  offsetof(struct hole, at) == offsetof(struct hole, node.addr),
              "a hole of a tree is laid out as a free_node");

void holes_insert(struct hole **tree, struct hole *hole)
{
    /* Holes begin at the same few addresses again and again; with the size, one
     * address does not always have the same rank. */
    treap_insert(tree, hole, hole->at + hole->size * 0x9e3779b97f4a7c15u);
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
    struct hole *best = NULL; /* the result is best or in its high subtree */

    assert(size > 0);
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

/* ---- the check ---- */

struct hole_walk {
    const void *home;
    struct met *met;
    const struct hole *last; /* the previous hole of the walk */
};

/* Checks one node against its children and against the previous hole. */
static const char *check_hole(struct hole_walk *w, const struct hole *h)
{
    const struct hole *children[] = {h->low, h->high};
    frag_size most = h->size;

    for (int i = 0; i < 2; i++) {
        if (!children[i])
            continue;
        CHECK(children[i]->rank <= h->rank,
              "a hole has a higher rank than its parent");
        if (children[i]->widest > most)
            most = children[i]->widest;
    }
    CHECK(h->widest == most, "a hole does not know the largest size below it");
    CHECK(!w->last ||
              (w->last->at < h->at && w->last->size <= h->at - w->last->at),
          "holes are not in the order of addresses, or overlap");
    w->last = h;
    return NULL;
}

static const char *check_tree(struct hole_walk *w, const struct hole *h)
{
    if (!h)
        return NULL;
    CHECK(met_add(w->met, h, w->home), "a tree has more holes than are free");
    CHECK_ALL(check_tree(w, h->low));
    CHECK_ALL(check_hole(w, h));
    return check_tree(w, h->high);
}

const char *holes_check(const struct hole *tree, const void *home,
                        struct met *met)
{
    struct hole_walk w = {.home = home, .met = met};

    return check_tree(&w, tree);
}
