/* memo.h - the memo of a pickle: codes by number, 0 where none is set.
 *
 * Protocol 4 memoizes every dict and every text, twice for each entry of a
 * snapshot. So pages that the reader has left are packed: a page rarely holds
 * more than a few different codes.
 */
#ifndef FRAG_TRACES_PICKLE_MEMO_H
#define FRAG_TRACES_PICKLE_MEMO_H

#include "traces/base.h"

enum { MEMO_BITS = 12, MEMO_PAGE = 1 << MEMO_BITS };

/* A code: 3 bits of class, then a text's number, or 5 bits of kind and a
 * result. */
enum code_class {
    CODE_UNSET,
    CODE_TEXT,
    CODE_PAIR,
    CODE_SCALAR, /* the value itself, kept as a text */
    CODE_RESULT,
    CODE_DONE,
    CODE_OTHER,
    CODE_OPEN,
};

enum { MEMO_RESULT_MAX = 1 << 24 };

/* result < MEMO_RESULT_MAX. */
static inline uint32_t memo_code_of_result(uint8_t kind, uint64_t result)
{
    return CODE_RESULT | (uint32_t)kind << 3 | (uint32_t)result << 8;
}

/* Open: `open` has MEMO_PAGE codes. Packed: `codes` has the different ones, and
 * after them, as bytes, MEMO_PAGE places in it of `bits` bits (4 or 8) each. A
 * page that was packed is opened for good when it is written again or read
 * often, so that no order of calls makes it go back and forth. */
struct memo_page {
    uint32_t *open, *codes;
    uint16_t code_count, reads;
    uint8_t bits;
    bool stays_open;
};

struct memo {
    struct memo_page *pages;
    size_t page_count, page_room;
    size_t current; /* the page being filled */
    uint64_t next;  /* the number that MEMOIZE gives */
};

/* False if the host has no memory. */
bool memo_set(struct memo *m, uint64_t number, uint32_t code);
uint32_t memo_get_packed(struct memo *m, uint64_t number);

static inline uint32_t memo_get(struct memo *m, uint64_t number)
{
    const uint64_t k = number >> MEMO_BITS;

    if (k < m->page_count && m->pages[k].open)
        return m->pages[k].open[number & (MEMO_PAGE - 1)];
    return memo_get_packed(m, number);
}

void memo_fini(struct memo *m);

#endif
