/* pack.h - converts values to bytes and back, in the byte order of the machine.
 * An error (reading past the end, or a text without its final 0) sets `failed`;
 * the caller checks it once, at the end. */
#ifndef FRAG_SIM_EXPERIMENTS_SWEEP_PACK_H
#define FRAG_SIM_EXPERIMENTS_SWEEP_PACK_H

#include "traces/base.h"

struct pack {
    char *bytes;
    size_t size, room;
    bool failed; /* the host has no memory */
};

void pack_raw(struct pack *p, const void *bytes, size_t size);
void pack_number(struct pack *p, uint64_t n);
void pack_text(struct pack *p, const char *text); /* NULL stays NULL */
/* The bytes, which the caller frees; NULL if the host has no memory. */
void *pack_done(struct pack *p, size_t *size);

struct unpack {
    const char *at, *end;
    bool failed; /* an item was missing or malformed */
};

struct unpack unpack_from(const void *bytes, size_t size);
void unpack_raw(struct unpack *u, void *out, size_t size);
uint64_t unpack_number(struct unpack *u);
/* A pointer into the bytes; NULL if NULL was packed, or on failure. */
const char *unpack_text(struct unpack *u);
/* A copy of `count` items, which the caller frees, also if count is 0. NULL if
 * the items are missing, or if the host has no memory (*no_memory). */
void *unpack_items(struct unpack *u, uint64_t count, size_t item,
                   bool *no_memory);
/* Whether nothing failed and every byte was read. */
bool unpack_done(const struct unpack *u);

#endif
