#include "policies/mechanism/holes.h"

/* Hole is the first member of a node's owner: its links lead to holes. */
static struct hole *hole_of(struct free_node *node)
{
    return (struct hole *)node;
}

static struct hole *left(const struct hole *h)
{
    return hole_of(h->node.left);
}

static struct hole *right(const struct hole *h)
{
    return hole_of(h->node.right);
}

static struct free_node *node_of(struct hole *h)
{
    return h ? &h->node : NULL;
}

static uint64_t priority(const struct hole *h)
{
    return (h->node.addr >> 9) * 0x9e3779b97f4a7c15u;
}

static void refresh(struct hole *h)
{
    h->largest = h->node.size;
    if (left(h) && left(h)->largest > h->largest)
        h->largest = left(h)->largest;
    if (right(h) && right(h)->largest > h->largest)
        h->largest = right(h)->largest;
}

/* Parts a tree into what lies below addr and what lies above. */
static void part(struct hole *tree, frag_addr addr, struct hole **low,
                 struct hole **high)
{
    struct hole *inner;

    if (!tree) {
        *low = *high = NULL;
        return;
    }
    if (tree->node.addr < addr) {
        part(right(tree), addr, &inner, high);
        tree->node.right = node_of(inner);
        *low = tree;
    } else {
        part(left(tree), addr, low, &inner);
        tree->node.left = node_of(inner);
        *high = tree;
    }
    refresh(tree);
}

/* Joins two trees, all of low below all of high. */
static struct hole *join(struct hole *low, struct hole *high)
{
    struct hole *root;

    if (!low || !high)
        return low ? low : high;
    if (priority(low) >= priority(high)) {
        root = low;
        root->node.right = node_of(join(right(low), high));
    } else {
        root = high;
        root->node.left = node_of(join(low, left(high)));
    }
    refresh(root);
    return root;
}

static struct hole *with(struct hole *tree, struct hole *hole)
{
    struct hole *low, *high;

    if (!tree || priority(tree) < priority(hole)) {
        part(tree, hole->node.addr, &low, &high);
        hole->node.left = node_of(low);
        hole->node.right = node_of(high);
        refresh(hole);
        return hole;
    }
    if (hole->node.addr < tree->node.addr)
        tree->node.left = node_of(with(left(tree), hole));
    else
        tree->node.right = node_of(with(right(tree), hole));
    refresh(tree);
    return tree;
}

static struct hole *without(struct hole *tree, struct hole *hole)
{
    if (tree == hole)
        return join(left(hole), right(hole));
    if (hole->node.addr < tree->node.addr)
        tree->node.left = node_of(without(left(tree), hole));
    else
        tree->node.right = node_of(without(right(tree), hole));
    refresh(tree);
    return tree;
}

void holes_insert(struct hole **tree, struct hole *hole)
{
    *tree = with(*tree, hole);
}

void holes_remove(struct hole **tree, struct hole *hole)
{
    *tree = without(*tree, hole);
}

struct hole *holes_lowest(struct hole *tree, frag_size size, frag_addr from)
{
    struct hole *found;

    if (!tree || tree->largest < size)
        return NULL;
    if (tree->node.addr >= from) {
        found = holes_lowest(left(tree), size, from);
        if (found)
            return found;
        if (tree->node.size >= size)
            return tree;
    }
    return holes_lowest(right(tree), size, from);
}
