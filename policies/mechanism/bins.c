/* bins.c - the parts of bins.h that are not inline: the search of one list, and
 * the check of the invariants.
 */
#include "policies/mechanism/bins.h"

struct hole *bins_search(const struct bins *bins, frag_size size)
{
    const struct free_node *head = &bins->heads[bins_home(bins, size)];
    struct free_node *n = head->right;

    while (n != head && n->size < size)
        n = n->right;
    return n != head ? (struct hole *)n : NULL;
}

/* ---- the check ---- */

/* The start size of a list, in quanta: the list's index read as a floating
 * point number with `bits` bits of mantissa. */
static uint64_t start_of(const struct bins *bins, uint32_t list)
{
    const uint32_t parts = (uint32_t)1 << bins->bits;

    if (list < parts)
        return list;
    return (uint64_t)(parts + list % parts) << (list / parts - 1);
}

static const char *check_list(const struct bins *bins, uint32_t list,
                              struct met *met)
{
    const struct free_node *head = &bins->heads[list], *n = head;

    do {
        CHECK(n->right->left == n,
              "a hole of a list does not know its neighbour");
        n = n->right;
        if (n == head)
            break;
        CHECK(((const struct hole *)n)->list == list,
              "a hole does not know its list");
        CHECK(n->size / FRAG_QUANTUM >= start_of(bins, list) &&
                  (list == bins->last ||
                   n->size / FRAG_QUANTUM < start_of(bins, list + 1)),
              "a hole is not in the list of its size");
        CHECK(met_add(met, n, NULL), "a list has more holes than are free");
    } while (n != head);
    return NULL;
}

const char *bins_check(const struct bins *bins, struct met *met)
{
    for (uint32_t list = 0; list <= bins->last; list++) {
        const bool is_used = bins->heads[list].right != &bins->heads[list];

        CHECK((bins->used[list / 64] >> (list % 64) & 1) == is_used,
              "the bitmap does not match the lists in use");
        CHECK((bins->words >> (list / 64) & 1) == (bins->used[list / 64] != 0),
              "the summary does not match the words in use");
        CHECK_ALL(check_list(bins, list, met));
    }
    return NULL;
}
