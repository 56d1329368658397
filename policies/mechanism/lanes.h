/* lanes.h - what a policy keeps for each stream of each pool, found by a hash
 * table. An entry is added at the first use, so the memory depends on the
 * streams and pools that a trace uses, and not on their numbers. The table does
 * not own what it refers to.
 *
 * A zeroed struct lanes is empty.
 */
#ifndef FRAG_POLICIES_MECHANISM_LANES_H
#define FRAG_POLICIES_MECHANISM_LANES_H

#include <stdlib.h>

#include "policies/policy.h"

struct lane {
    void *user; /* NULL: the entry is empty */
    frag_pool pool;
    frag_stream stream;
};

struct lanes {
    struct lane *table; /* open addressing */
    size_t mask;        /* entries - 1; the entries are a power of two */
    size_t count;
};

static inline size_t lanes_hash(frag_pool pool, frag_stream stream)
{
    return (((size_t)pool << 16) + stream) * 0x9e3779b1u >> 3;
}

/* The value added for this stream and pool; NULL: nothing. */
static inline void *lanes_find(const struct lanes *lanes, frag_pool pool,
                               frag_stream stream)
{
    size_t i = lanes_hash(pool, stream);

    if (!lanes->table)
        return NULL;
    for (;; i++) {
        const struct lane *l = &lanes->table[i & lanes->mask];

        if (!l->user || (l->pool == pool && l->stream == stream))
            return l->user;
    }
}

/* The place of a stream and pool that is not in the table. */
static inline void lanes_place(struct lanes *lanes, struct lane lane)
{
    size_t i = lanes_hash(lane.pool, lane.stream);

    while (lanes->table[i & lanes->mask].user)
        i++;
    lanes->table[i & lanes->mask] = lane;
}

static inline enum frag_err lanes_widen(struct lanes *lanes)
{
    const size_t room = lanes->table ? (lanes->mask + 1) * 2 : 8;
    struct lanes wide = {calloc(room, sizeof(*wide.table)), room - 1,
                         lanes->count};

    if (!wide.table)
        return FRAG_NOMEM;
    for (size_t i = 0; lanes->table && i <= lanes->mask; i++)
        if (lanes->table[i].user)
            lanes_place(&wide, lanes->table[i]);
    free(lanes->table);
    *lanes = wide;
    return FRAG_OK;
}

/* Adds `user`, not NULL, for a stream and pool that has none. NOMEM; then
 * nothing changed. */
FRAG_MUST_CHECK static inline enum frag_err
lanes_add(struct lanes *lanes, frag_pool pool, frag_stream stream, void *user)
{
    if (!lanes->table || lanes->count > lanes->mask / 2)
        FRAG_TRY(lanes_widen(lanes));
    lanes_place(lanes, (struct lane){user, pool, stream});
    lanes->count++;
    return FRAG_OK;
}

static inline void lanes_fini(struct lanes *lanes)
{
    free(lanes->table);
    *lanes = (struct lanes){0};
}

#endif
