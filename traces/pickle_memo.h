/* pickle_memo.h - the memo of a pickle: codes by number, 0 where none is set.
 *
 * Protocol 4 memoizes every dict and every text, twice for each entry of a
 * snapshot. So pages that the reader has left are packed: a page rarely holds
 * more than a few different codes.
 */
#ifndef FRAG_PICKLE_MEMO_H
#define FRAG_PICKLE_MEMO_H

#include "traces/base.h"

struct memo_page;

struct memo {
    struct memo_page *pages;
    size_t page_count, page_room;
    size_t current; /* the page being filled */
    uint64_t next;  /* the number that MEMOIZE gives */
};

/* False if the host has no memory. */
bool memo_set(struct memo *m, uint64_t number, uint32_t code);
uint32_t memo_get(const struct memo *m, uint64_t number);
void memo_fini(struct memo *m);

#endif
