#include "policies/mechanism/bins.h"

struct hole *bins_search(const struct bins *bins, frag_size size)
{
    const struct free_node *head = &bins->heads[bins_home(bins, size)];
    struct free_node *n = head->right;

    while (n != head && n->size < size)
        n = n->right;
    return n != head ? (struct hole *)n : NULL;
}
