/* bins.h - free blocks in lists by size: a good fit in constant time.
 *
 * The lists have two levels, as in TLSF. The first level divides sizes into
 * octaves, the second divides each octave into equal parts; see classes.h. A
 * list holds the holes (free blocks) from its own start size up to the start
 * size of the next list; the last list has no upper bound. All lists are
 * numbered through. A bitmap has a bit for each list, a summary has a bit for
 * each word of the bitmap; two instructions find the next list that is not
 * empty.
 *
 * Each list is last in, first out: a hole that is freed, split or coalesced
 * moves to the front of its list. A request receives the first hole of the
 * first non-empty list whose holes are all large enough. If there is no such
 * list, the list of the request's own size is searched from its front. This is
 * the only search; a size that equals the start size of a list never needs it.
 *
 * The links are the members `left` and `right` of the holes, and each list is a
 * ring closed by its head. No function here allocates or fails.
 */
#ifndef FRAG_POLICIES_MECHANISM_BINS_H
#define FRAG_POLICIES_MECHANISM_BINS_H

#include "policies/mechanism/classes.h"
#include "policies/mechanism/fit_steps.h"

enum { BINS = CLASSES_LEVELS << CLASSES_MAX_BITS };

struct bins {
    uint32_t bits;            /* 2^bits lists an octave, <= CLASSES_MAX_BITS */
    uint32_t last;            /* index of the last list */
    uint64_t words;           /* the summary; bit w: used[w] is not 0 */
    uint64_t used[BINS / 64]; /* bit b of word w: list 64 w + b is not empty */
    struct free_node heads[BINS];
};

/* Makes all lists empty. bins is zeroed before; levels (octaves) is 1 to
 * CLASSES_LEVELS, bits 0 to CLASSES_MAX_BITS. */
static inline void bins_init(struct bins *bins, uint32_t levels, uint32_t bits)
{
    assert(levels > 0 && levels <= CLASSES_LEVELS && bits <= CLASSES_MAX_BITS);
    bins->bits = bits;
    bins->last = (levels << bits) - 1;
    for (uint32_t i = 0; i <= bins->last; i++)
        bins->heads[i].left = bins->heads[i].right = &bins->heads[i];
}

/* The first list whose start size is at least *size. Rounds *size up to that
 * start size. If there is no such list, the result is greater than bins->last
 * and *size is untouched. */
FIT_STEP uint32_t bins_round(const struct bins *bins, frag_size *size)
{
    frag_size rounded = *size;
    const uint32_t list = class_above(bins->bits, &rounded);

    if (list <= bins->last)
        *size = rounded;
    return list;
}

/* The list that holds a hole of this size. */
FIT_STEP uint32_t bins_home(const struct bins *bins, frag_size size)
{
    const uint32_t list = class_below(bins->bits, &size);

    return list < bins->last ? list : bins->last;
}

/* Adds a hole to the front of a list. */
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

/* Removes a hole from its list. The bitmaps are updated without a branch,
 * because the processor could not predict whether the list is now empty. */
FIT_STEP void bins_remove(struct bins *bins, struct hole *hole)
{
    struct free_node *left = hole->node.left, *right = hole->node.right;
    const uint32_t word = hole->list / 64;
    const uint64_t is_empty = left == right; /* both are the head */
    uint64_t bits;

    left->right = right;
    right->left = left;
    bits = bins->used[word] & ~(is_empty << (hole->list % 64));
    bins->used[word] = bits;
    bins->words &= ~((uint64_t)!bits << word);
}

/* The first hole of the lists from `list` (<= bins->last) up; NULL if all of
 * them are empty. */
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

/* The first hole of at least `size` bytes in the list of that size; NULL if
 * there is none. */
struct hole *bins_search(const struct bins *bins, frag_size size);

/* The hole for a request of `size` bytes, NULL if none is large enough. `list`
 * is the result of bins_round for the size. */
FIT_STEP struct hole *bins_choose(const struct bins *bins, uint32_t list,
                                  frag_size size)
{
    struct hole *found = NULL;

    if (list <= bins->last)
        found = bins_first(bins, list);
    return found ? found : bins_search(bins, size);
}

/* Checks that each hole is in the list of its size and that the bitmaps state
 * which lists are in use. Returns NULL or a text that names the fault. Adds the
 * holes to `met`, with home NULL. */
const char *bins_check(const struct bins *bins, struct met *met);

/* ---- a fit whose rule is these lists: the start of a policy's state ---- */

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

/* Moves the hole to the front of its new list; a hole that is already at the
 * front of that list stays there. */
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

static inline const char *bins_fit_check(const struct fit *fit, struct met *met)
{
    return bins_check(&((const struct bins_fit *)fit)->bins, met);
}

/* A policy chooses with bins_choose; it rounds the size before. */
static const struct fit_rule bins_rule = {
    bins_fit_insert, bins_fit_remove, bins_fit_resize, NULL, bins_fit_check};

#endif
