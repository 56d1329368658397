/* live.h - which slot holds what is live at an address (or under an id).
 *
 * Open addressing with linear probing in a power of two, at most half full.
 * A removal shifts its successors back, so there are no tombstones and the
 * table is as large as the peak number of live blocks, not as the trace.
 */
#ifndef FRAG_TRACES_LIVE_H
#define FRAG_TRACES_LIVE_H

#include <stdbool.h>
#include <stdint.h>

enum live_state { LIVE_HELD, LIVE_FREE_REQUESTED };

struct live_row {
    uint64_t key;
    uint32_t slot;  /* UINT32_MAX: the row is empty */
    uint32_t state; /* enum live_state */
};

struct live {
    struct live_row *rows; /* 1 << bits of them, NULL at first */
    uint64_t count;
    unsigned bits;
};

/* NULL if the key is not there. The row stays valid until the next call that
 * changes the table. */
struct live_row *live_find(const struct live *t, uint64_t key);

/* The key must not be there. False if the host has no memory; then nothing
 * changed. */
bool live_put(struct live *t, uint64_t key, uint32_t slot);
void live_remove(struct live *t, struct live_row *row);
void live_fini(struct live *t);

#endif
