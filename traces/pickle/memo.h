/* memo.h - the memo of a pickle: a table from memo numbers to codes of 32 bits.
 * The code is 0 where no value was memoized.
 *
 * Protocol 4 memoizes every dictionary and every text, twice for each entry of
 * a snapshot, so the memo is large. A page of the memo rarely holds more than a
 * few different codes. Therefore the memo packs each page when another page is
 * filled.
 */
#ifndef FRAG_TRACES_PICKLE_MEMO_H
#define FRAG_TRACES_PICKLE_MEMO_H

#include "traces/base.h"

enum { MEMO_BITS = 12, MEMO_PAGE = 1 << MEMO_BITS };

/* The class of a code is its lowest 3 bits. The other 29 bits hold the number
 * of a text, or 5 bits of kind and 24 bits of result. */
enum code_class {
    CODE_UNSET,
    CODE_TEXT,
    CODE_PAIR,   /* the number of the text that stores the pair */
    CODE_SCALAR, /* the number of the text that stores tag and value */
    CODE_RESULT,
    CODE_DONE, /* a complete container of a kind without `keeps` */
    CODE_OTHER,
    CODE_OPEN, /* a container of a kind with `keeps`, not yet complete */
};

enum { CODE_CLASS = 7 }; /* mask of the class */
enum { MEMO_RESULT_MAX = 1 << 24 };

/* The code of a text, or of a value that a text stores. */
static inline uint32_t memo_code(enum code_class class, uint32_t text)
{
    return (uint32_t) class | text << 3;
}

/* The caller ensures that result is less than MEMO_RESULT_MAX. */
static inline uint32_t memo_code_of_result(uint8_t kind, uint64_t result)
{
    return CODE_RESULT | (uint32_t)kind << 3 | (uint32_t)result << 8;
}

/* A page of MEMO_PAGE codes. An open page stores them in `open`. A packed page
 * stores each different code once, in `codes`, followed by MEMO_PAGE indices
 * into `codes` of `bits` bits (4 or 8) each. The memo opens a packed page when
 * the page is written again or is read often. Such a page stays open, so that
 * no order of calls packs and opens a page again and again. */
struct memo_page {
    uint32_t *open, *codes;
    uint16_t code_count, reads;
    uint8_t bits;
    bool stays_open;
};

struct memo {
    struct memo_page *pages;
    size_t page_count, page_room;
    size_t current;        /* index of the page that is being filled */
    uint64_t next;         /* number that the next MEMOIZE assigns */
    uint64_t text_changes; /* texts that another value has replaced */
};

/* Stores the code of a number. Returns false if the host has no memory. */
bool memo_set(struct memo *m, uint64_t number, uint32_t code);

/* memo_get for a page that is not open. */
uint32_t memo_get_packed(struct memo *m, uint64_t number);

/* Returns the code of a number, 0 if its page is not open. */
static inline uint32_t memo_get_open(const struct memo *m, uint64_t number)
{
    const uint64_t k = number >> MEMO_BITS;

    return k < m->page_count && m->pages[k].open
               ? m->pages[k].open[number & (MEMO_PAGE - 1)]
               : 0;
}

/* Returns the code of a number, 0 if no value was memoized under it. */
static inline uint32_t memo_get(struct memo *m, uint64_t number)
{
    const uint32_t code = memo_get_open(m, number);

    return code ? code : memo_get_packed(m, number);
}

void memo_fini(struct memo *m);

#endif
