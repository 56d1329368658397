/* pickle_text.h - a table of the distinct texts of a pickle, numbered from 0 in
 * the order in which they are added. Private to traces/pickle/. */
#ifndef FRAG_TRACES_PICKLE_PICKLE_TEXT_H
#define FRAG_TRACES_PICKLE_PICKLE_TEXT_H

#include "traces/base.h"

struct text {
    const char *at;
    uint32_t length, hash;
};

struct text_block;

struct pickle_texts {
    struct text *rows;
    uint32_t count, room;
    uint32_t *slots;     /* hash table: 1 + number of a text; 0: free */
    uint32_t slot_count; /* a power of two */
    struct text_block *blocks;
    size_t block_left; /* free bytes in the first block */
};

#define TEXT_NONE UINT32_MAX

/* Returns the number of a text and adds the text if it is new. The bytes are
 * copied. TEXT_NONE: the host has no memory, or the table is full (2^29 - 1
 * texts). */
uint32_t texts_add(struct pickle_texts *t, const void *bytes, size_t length);
void texts_fini(struct pickle_texts *t);

#endif
