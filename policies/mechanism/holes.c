#include "policies/mechanism/holes.h"

/* A node is the first member of its hole: links lead to holes. */
static struct hole *left(const struct hole *h)
{
    return (struct hole *)h->node.left;
}

static struct hole *right(const struct hole *h)
{
    return (struct hole *)h->node.right;
}

static uint64_t priority(const struct hole *h)
{
    return ((uintptr_t)h >> 3) * 0x9e3779b97f4a7c15u;
}

static frag_size largest(const struct hole *h)
{
    return h ? h->largest : 0;
}

static frag_size larger(frag_size a, frag_size b)
{
    return a > b ? a : b;
}

static frag_size largest_below(const struct hole *h)
{
    return larger(h->node.size, larger(largest(left(h)), largest(right(h))));
}

static void refresh_up(struct hole *h)
{
    for (; h; h = h->parent) {
        const frag_size now = largest_below(h);

        if (h->largest == now)
            break;
        h->largest = now;
    }
}

/* Puts `now`, which may be NULL, where `old` hung below parent. */
static void replace(struct hole **tree, struct hole *parent,
                    const struct hole *old, struct hole *now)
{
    struct free_node *node = now ? &now->node : NULL;

    if (!parent)
        *tree = now;
    else if (left(parent) == old)
        parent->node.left = node;
    else
        parent->node.right = node;
    if (now)
        now->parent = parent;
}

/* Turns h and its parent around. */
static void lift(struct hole **tree, struct hole *h)
{
    struct hole *parent = h->parent;
    struct hole *inner;

    replace(tree, parent->parent, parent, h);
    if (left(parent) == h) {
        inner = right(h);
        parent->node.left = h->node.right;
        h->node.right = &parent->node;
    } else {
        inner = left(h);
        parent->node.right = h->node.left;
        h->node.left = &parent->node;
    }
    if (inner)
        inner->parent = parent;
    parent->parent = h;
    h->largest = parent->largest;
    parent->largest = largest_below(parent);
}

void holes_insert(struct hole **tree, struct hole *hole)
{
    struct free_node **link = NULL;
    struct hole *parent = NULL;

    for (struct hole *h = *tree; h; h = (struct hole *)*link) {
        parent = h;
        h->largest = larger(h->largest, hole->node.size);
        link = hole->node.addr < h->node.addr ? &h->node.left : &h->node.right;
    }
    if (link)
        *link = &hole->node;
    else
        *tree = hole;
    hole->node.left = hole->node.right = NULL;
    hole->parent = parent;
    hole->largest = hole->node.size;
    while (hole->parent && priority(hole->parent) < priority(hole))
        lift(tree, hole);
}

void holes_remove(struct hole **tree, struct hole *hole)
{
    while (left(hole) && right(hole))
        lift(tree, priority(left(hole)) >= priority(right(hole)) ? left(hole)
                                                                 : right(hole));
    replace(tree, hole->parent, hole, left(hole) ? left(hole) : right(hole));
    refresh_up(hole->parent);
}

void holes_resize(struct hole *hole, frag_addr addr, frag_size size)
{
    hole->node.addr = addr;
    hole->node.size = size;
    refresh_up(hole);
}

/* The lowest hole of a tree that has one of size. */
static struct hole *lowest_below(struct hole *h, frag_size size)
{
    for (;;) {
        if (largest(left(h)) >= size)
            h = left(h);
        else if (h->node.size >= size)
            return h;
        else
            h = right(h);
    }
}

struct hole *holes_lowest(struct hole *tree, frag_size size, frag_addr from)
{
    struct hole *best = NULL; /* the lowest so far: it or one to its right */

    for (struct hole *h = tree; largest(h) >= size;) {
        if (h->node.addr < from) {
            h = right(h);
            continue;
        }
        if (h->node.size >= size || largest(right(h)) >= size)
            best = h;
        h = left(h);
    }
    if (!best || best->node.size >= size)
        return best;
    return lowest_below(right(best), size);
}
