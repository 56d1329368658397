/* bins.h - holes in lists by size: a fit in constant time.
 *
 * Two levels, as TLSF: the first are octaves, the second cuts each into equal
 * parts; see classes.h. A list holds the holes of its size up to that of the
 * next; the last one all that are larger. Lists are counted through all
 * octaves, 64 to a word of a bitmap that has a summary: two instructions find
 * the next one in use.
 *
 * Lists are last in, first out: a hole that was freed, split or coalesced is
 * the first of its list. A request takes the first hole of the first list that
 * has only holes that are large enough. Where there is none, the list that its
 * own size belongs to is searched from the first, and that is the only search:
 * a size that a list begins with never needs one.
 *
 * The lists are closed by their heads and live inside the holes, whose `left`
 * and `right` they use: nothing here allocates and nothing can fail.
 *
 * bins_check says whether each hole is in the list of its size and whether the
 * bitmaps say which lists are in use.
 */
#ifndef FRAG_POLICIES_MECHANISM_BINS_H
#define FRAG_POLICIES_MECHANISM_BINS_H

#include "policies/mechanism/classes.h"
#include "policies/mechanism/fit_steps.h"

enum { BINS = CLASSES_LEVELS << CLASSES_MAX_BITS };

struct bins {
    uint32_t bits;            /* parts = 2^bits, at most 2^CLASSES_MAX_BITS */
    uint32_t last;            /* the last list */
    uint64_t words;           /* bit w: used[w] is not 0 */
    uint64_t used[BINS / 64]; /* bit b of w: list 64 w + b is not
                                   empty */
    struct free_node heads[BINS];
};

/* levels: 1 to CLASSES_LEVELS; bins is zeroed. */
static inline void bins_init(struct bins *bins, uint32_t levels, uint32_t bits)
{
    assert(levels > 0 && levels <= CLASSES_LEVELS && bits <= CLASSES_MAX_BITS);
    bins->bits = bits;
    bins->last = (levels << bits) - 1;
    for (uint32_t i = 0; i <= bins->last; i++)
        bins->heads[i].left = bins->heads[i].right = &bins->heads[i];
}

/* The first list that begins with *size or more, or one beyond the last. Rounds
 * the size up to what the list begins with, unless it is beyond. */
FIT_STEP uint32_t bins_round(const struct bins *bins, frag_size *size)
{
    frag_size rounded = *size;
    const uint32_t list = class_above(bins->bits, &rounded);

    if (list <= bins->last)
        *size = rounded;
    return list;
}

/* The list that a hole of size is kept in. */
FIT_STEP uint32_t bins_home(const struct bins *bins, frag_size size)
{
    const uint32_t list = class_below(bins->bits, &size);

    return list < bins->last ? list : bins->last;
}

FIT_STEP void bins_push(struct bins *bins, struct hole *hole, uint32_t list)
{
    struct free_node *head = &bins->heads[list];

    hole->list = list;
    hole->node.left = head;
    hole->node.right = head->right;
    head->right->left = &hole->node;
    head->right = &hole->node;
    bins->used[list / 64] |= (uint64_t)1 << (list % 64);
    bins->words |= (uint64_t)1 << (list / 64);
}

/* Whether the list is empty by now goes into the bitmaps without a branch: it
 * is as good as random. */
FIT_STEP void bins_remove(struct bins *bins, struct hole *hole)
{
    struct free_node *left = hole->node.left, *right = hole->node.right;
    const uint32_t word = hole->list / 64;
    const uint64_t is_empty = left == right; /* both the head */
    uint64_t bits;

    left->right = right;
    right->left = left;
    bits = bins->used[word] & ~(is_empty << (hole->list % 64));
    bins->used[word] = bits;
    bins->words &= ~((uint64_t)!bits << word);
}

/* The first hole of the lists from `list` up, which is not beyond the last;
 * NULL if they are empty. */
FIT_STEP struct hole *bins_first(const struct bins *bins, uint32_t list)
{
    const uint32_t word = list / 64;
    const uint64_t here = bins->used[word] & (~(uint64_t)0 << (list % 64));
    const uint64_t above = bins->words & (~(uint64_t)1 << word);
    const uint64_t words = here ? (uint64_t)1 << word : above;
    uint32_t next;
    uint64_t bits;

    if (!words)
        return NULL;
    next = (uint32_t)__builtin_ctzll(words);
    bits = here ? here : bins->used[next];
    list = next * 64 + (uint32_t)__builtin_ctzll(bits);
    return (struct hole *)bins->heads[list].right;
}

/* The first hole of at least size in the list of its own; NULL if none is. */
struct hole *bins_search(const struct bins *bins, frag_size size);

/* The hole that a request of size gets; `list` is what bins_round said. */
FIT_STEP struct hole *bins_choose(const struct bins *bins, uint32_t list,
                                  frag_size size)
{
    struct hole *found = NULL;

    if (list <= bins->last)
        found = bins_first(bins, list);
    return found ? found : bins_search(bins, size);
}

/* NULL, or what is broken. Adds the holes to `met`, without a home. */
const char *bins_check(const struct bins *bins, struct met *met);

/* ---- a fit that keeps its holes so: the start of a policy's state ---- */

struct bins_fit {
    struct fit fit;
    struct bins bins;
};

static inline void bins_fit_insert(struct fit *fit, struct hole *hole)
{
    struct bins *bins = &((struct bins_fit *)fit)->bins;

    bins_push(bins, hole, bins_home(bins, hole->node.size));
}

static inline void bins_fit_remove(struct fit *fit, struct hole *hole)
{
    bins_remove(&((struct bins_fit *)fit)->bins, hole);
}

/* To the front of its new list; where it is there already, it stays. */
static inline void bins_fit_resize(struct fit *fit, struct hole *hole,
                                   frag_addr addr, frag_size size)
{
    struct bins *bins = &((struct bins_fit *)fit)->bins;
    const uint32_t list = bins_home(bins, size);

    hole->node.addr = addr;
    hole->node.size = size;
    if (hole->node.left == &bins->heads[list])
        return;
    bins_remove(bins, hole);
    bins_push(bins, hole, list);
}

static inline struct hole *bins_fit_choose(struct fit *fit, frag_size size)
{
    const struct bins *bins = &((struct bins_fit *)fit)->bins;
    frag_size rounded = size;
    const uint32_t list = bins_round(bins, &rounded);

    return bins_choose(bins, list, size);
}

static inline const char *bins_fit_check(const struct fit *fit, struct met *met)
{
    return bins_check(&((const struct bins_fit *)fit)->bins, met);
}

static const struct fit_rule bins_rule = {bins_fit_insert, bins_fit_remove,
                                          bins_fit_resize, bins_fit_choose,
                                          bins_fit_check};

#endif
