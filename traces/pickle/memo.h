/* memo.h - the memo of a pickle: a table from memo numbers to codes of 32 bits.
 * The code is 0 where no value was memoized. Protocol 4 memoizes every
 * dictionary and every text, twice for each entry of a snapshot.
 */
#ifndef FRAG_TRACES_PICKLE_MEMO_H
#define FRAG_TRACES_PICKLE_MEMO_H

#include "traces/base.h"
#include "traces/grow.h"

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

struct memo {
    uint32_t *codes;
    size_t count, room;
    uint64_t next;         /* number that the next MEMOIZE assigns */
    uint64_t text_changes; /* texts that another value has replaced */
};

/* Stores the code of a number. Returns false if the host has no memory. */
static inline bool memo_set(struct memo *m, uint64_t number, uint32_t code)
{
    if (!GROW(m->codes, m->room, number + 1))
        return false;
    while (m->count <= number)
        m->codes[m->count++] = CODE_UNSET;
    m->text_changes += (m->codes[number] & CODE_CLASS) == CODE_TEXT;
    m->codes[number] = code;
    return true;
}

/* Returns the code of a number, 0 if no value was memoized under it. */
static inline uint32_t memo_get(const struct memo *m, uint64_t number)
{
    return number < m->count ? m->codes[number] : CODE_UNSET;
}

#endif
