/* live.h - a hash table of live blocks: it maps the address or the id of a live
 * block (the key) to the block's slot.
 *
 * The table uses open addressing with linear probing. Its size is a power of
 * two, and at most half of its rows are used. A removal moves later rows back,
 * so no deleted rows remain, and the memory depends on the peak number of live
 * blocks, not on the length of the trace.
 */
#ifndef FRAG_TRACES_LIVE_H
#define FRAG_TRACES_LIVE_H

#include <stdbool.h>
#include <stdint.h>

/* The block is in use, or its free was requested and has not completed. */
enum live_state { LIVE_HELD, LIVE_FREE_REQUESTED };

struct live_row {
    uint64_t key;
    uint32_t slot;  /* UINT32_MAX: the row is empty */
    uint32_t state; /* enum live_state, or a number that the caller defines */
};

/* A zeroed struct is an empty table. */
struct live {
    struct live_row *rows; /* 1 << bits rows; NULL until the first live_put */
    uint64_t count;        /* rows that are not empty */
    unsigned bits;
};

/* Returns the row of the key, NULL if the table lacks the key. The row is valid
 * until the next call that changes the table. */
struct live_row *live_find(const struct live *t, uint64_t key);

/* Adds a key in the state LIVE_HELD, or replaces its row. Returns false if the
 * host has no memory; then the table is unchanged. */
bool live_put(struct live *t, uint64_t key, uint32_t slot);
/* Removes a row that live_find returned. */
void live_remove(struct live *t, struct live_row *row);
/* Releases the memory; the table is then empty. */
void live_fini(struct live *t);

#endif
