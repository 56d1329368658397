/* live.c - the hash table of live blocks, with open addressing. */
#include "traces/live.h"

#include <stdlib.h>

/* The row where a key belongs. Fibonacci hashing uses the top bits of the
 * product, which depend on all bits of the key: addresses differ in their high
 * bits, ids in their low bits. */
static uint64_t home(const struct live *t, uint64_t key)
{
    return (key * 0x9e3779b97f4a7c15u) >> (64 - t->bits);
}

static uint64_t mask(const struct live *t)
{
    return ((uint64_t)1 << t->bits) - 1;
}

/* Returns the row of the key, or the empty row where the key can be put. */
static struct live_row *seek(const struct live *t, uint64_t key)
{
    uint64_t i = home(t, key);

    while (t->rows[i].slot != UINT32_MAX && t->rows[i].key != key)
        i = (i + 1) & mask(t);
    return &t->rows[i];
}

struct live_row *live_find(const struct live *t, uint64_t key)
{
    struct live_row *row;

    if (!t->rows)
        return NULL;
    row = seek(t, key);
    return row->slot == UINT32_MAX ? NULL : row;
}

static bool rehash(struct live *t)
{
    struct live next = {.bits = t->rows ? t->bits + 1 : 10};
    uint64_t size = (uint64_t)1 << next.bits;

    next.rows = malloc(size * sizeof(*next.rows));
    if (!next.rows)
        return false;
    for (uint64_t i = 0; i < size; i++)
        next.rows[i].slot = UINT32_MAX;
    for (uint64_t i = 0; t->rows && i <= mask(t); i++)
        if (t->rows[i].slot != UINT32_MAX)
            *seek(&next, t->rows[i].key) = t->rows[i];
    free(t->rows);
    t->rows = next.rows;
    t->bits = next.bits;
    return true;
}

bool live_put(struct live *t, uint64_t key, uint32_t slot)
{
    struct live_row *row;

    if ((!t->rows || t->count * 2 > mask(t)) && !rehash(t))
        return false;
    row = seek(t, key);
    t->count += row->slot == UINT32_MAX;
    *row = (struct live_row){key, slot, LIVE_HELD};
    return true;
}

/* Removal leaves a hole. A later row moves back into the hole, unless its home
 * lies after the hole: then a search from its home would not find it. */
void live_remove(struct live *t, struct live_row *row)
{
    uint64_t hole = (uint64_t)(row - t->rows);
    uint64_t i = hole;

    for (;;) {
        i = (i + 1) & mask(t);
        if (t->rows[i].slot == UINT32_MAX)
            break;
        if (((i - home(t, t->rows[i].key)) & mask(t)) < ((i - hole) & mask(t)))
            continue;
        t->rows[hole] = t->rows[i];
        hole = i;
    }
    t->rows[hole].slot = UINT32_MAX;
    t->count--;
}

void live_fini(struct live *t)
{
    free(t->rows);
    *t = (struct live){0};
}
