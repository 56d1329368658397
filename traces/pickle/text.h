/* text.h - the distinct texts of a pickle, numbered as they come. */
#ifndef FRAG_TRACES_PICKLE_TEXT_H
#define FRAG_TRACES_PICKLE_TEXT_H

#include "traces/base.h"

struct text {
    const char *at;
    uint32_t length, hash;
};

struct text_block;

struct texts {
    struct text *rows;
    uint32_t count, room;
    uint32_t *slots; /* 1 + number; 0 is free; slot_count is a power of two */
    uint32_t slot_count;
    struct text_block *blocks;
    size_t block_left;
};

#define TEXT_NONE UINT32_MAX /* the host has no memory */

/* The number of a text, a new one if it is new. */
uint32_t texts_add(struct texts *t, const void *bytes, size_t length);
void texts_fini(struct texts *t);

#endif
