/* pack.h - values to bytes and back, in the machine's own order. Reading past
 * the end or a text without one is remembered, and seen once at the end. */
#ifndef FRAG_SIM_EXPERIMENTS_SWEEP_PACK_H
#define FRAG_SIM_EXPERIMENTS_SWEEP_PACK_H

#include "traces/base.h"

struct pack {
    char *bytes;
    size_t size, room;
    bool failed; /* no memory */
};

void pack_raw(struct pack *p, const void *bytes, size_t size);
void pack_number(struct pack *p, uint64_t n);
void pack_text(struct pack *p, const char *text); /* NULL is kept */
/* The bytes, to be freed; NULL if there was no memory. */
void *pack_done(struct pack *p, size_t *size);

struct unpack {
    const char *at, *end;
    bool failed; /* what was wanted is not there */
};

struct unpack unpack_from(const void *bytes, size_t size);
void unpack_raw(struct unpack *u, void *out, size_t size);
uint64_t unpack_number(struct unpack *u);
/* Into the bytes; NULL where it was NULL or is none. */
const char *unpack_text(struct unpack *u);
/* `count` items, to be freed; at least one is there to be freed. NULL if they
 * are not there or there is no memory (*no_memory). */
void *unpack_items(struct unpack *u, uint64_t count, size_t item,
                   bool *no_memory);
/* Whether all was there, and nothing more. */
bool unpack_done(const struct unpack *u);

#endif
