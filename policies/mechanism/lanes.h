/* lanes.h - what a policy keeps for each stream of each pool, found by a hash
 * table. An entry is made at the first use, so the memory depends on the
 * streams and pools that a trace uses, and not on their numbers.
 *
 * A policy's struct begins with a struct lane. A zeroed struct lanes is empty.
 */
#ifndef FRAG_POLICIES_MECHANISM_LANES_H
#define FRAG_POLICIES_MECHANISM_LANES_H

#include <stdlib.h>

#include "policies/policy.h"

struct lane {
    struct lane *prev, *next; /* in the list of all lanes */
    frag_pool pool;
    frag_stream stream;
};

struct lanes {
    struct lane **table; /* open addressing; NULL: empty */
    size_t mask;         /* entries - 1; the entries are a power of two */
    size_t count;
    struct lane *first; /* the lane that was made or touched last */
};

/* The entry of a stream and pool, or the empty one where it would be. */
static inline struct lane **lanes_entry(const struct lanes *lanes,
                                        frag_pool pool, frag_stream stream)
{
    size_t i = (((size_t)pool << 16) + stream) * 0x9e3779b1u >> 3;

    for (;; i++) {
        struct lane **l = &lanes->table[i & lanes->mask];

        if (!*l || ((*l)->pool == pool && (*l)->stream == stream))
            return l;
    }
}

static inline bool lanes_widen(struct lanes *lanes)
{
    const size_t room = lanes->table ? (lanes->mask + 1) * 2 : 8;
    struct lanes wide = *lanes;

    wide.table = calloc(room, sizeof(*wide.table));
    if (!wide.table)
        return false;
    wide.mask = room - 1;
    for (struct lane *l = lanes->first; l; l = l->next)
        *lanes_entry(&wide, l->pool, l->stream) = l;
    free(lanes->table);
    *lanes = wide;
    return true;
}

/* Puts a lane at the front of the list. */
static inline void lanes_push(struct lanes *lanes, struct lane *l)
{
    l->prev = NULL;
    l->next = lanes->first;
    if (l->next)
        l->next->prev = l;
    lanes->first = l;
}

/* Moves a lane to the front of the list. */
static inline void lanes_touch(struct lanes *lanes, struct lane *l)
{
    if (!l->prev)
        return;
    l->prev->next = l->next;
    if (l->next)
        l->next->prev = l->prev;
    lanes_push(lanes, l);
}

/* The lane of a stream and pool. If there is none yet, it is made: `bytes`
 * bytes, zeroed but for the lane. NULL if the host has no memory. */
static inline void *lanes_get(struct lanes *lanes, frag_pool pool,
                              frag_stream stream, size_t bytes)
{
    struct lane *l = lanes->table ? *lanes_entry(lanes, pool, stream) : NULL;

    if (l)
        return l;
    if ((!lanes->table || lanes->count > lanes->mask / 2) &&
        !lanes_widen(lanes))
        return NULL;
    l = calloc(1, bytes);
    if (!l)
        return NULL;
    l->pool = pool;
    l->stream = stream;
    *lanes_entry(lanes, pool, stream) = l;
    lanes_push(lanes, l);
    lanes->count++;
    return l;
}

/* Frees all lanes. */
static inline void lanes_fini(struct lanes *lanes)
{
    for (struct lane *l = lanes->first, *next; l; l = next) {
        next = l->next;
        free(l);
    }
    free(lanes->table);
    *lanes = (struct lanes){0};
}

#endif
