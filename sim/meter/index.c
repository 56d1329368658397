/* index.c - the index of the meter: two levels of tables that map a granule of
 * addresses to the segment that holds it. */
#include "sim/meter/meter_parts.h"

#include <stdlib.h>

#define GRANULE ((frag_size)1 << METER_GRANULE_BITS)
#define LEAVES  ((uint64_t)1 << METER_LEAF_BITS)

static uint64_t first_granule(frag_addr addr)
{
    return addr >> METER_GRANULE_BITS;
}

/* The end (exclusive) of the granules that the range touches and that the
 * tables cover. */
static uint64_t end_granule(frag_addr addr, frag_size size)
{
    uint64_t end = (addr + size - 1) >> METER_GRANULE_BITS;
    uint64_t most = (uint64_t)1 << (METER_LEAF_BITS + METER_ROOT_BITS);

    return end < most ? end + 1 : most;
}

enum frag_err meter_index_room(struct meter *m, frag_addr addr, frag_size size)
{
    uint64_t end = end_granule(addr, size);

    for (uint64_t g = first_granule(addr); g < end;
         g = (g / LEAVES + 1) * LEAVES) {
        uint32_t **leaf = &m->index[g / LEAVES];

        if (!*leaf)
            *leaf = calloc(LEAVES, sizeof(**leaf));
        if (!*leaf)
            return FRAG_NOMEM;
    }
    return FRAG_OK;
}

void meter_index_set(struct meter *m, frag_addr addr, frag_size size,
                     uint32_t index)
{
    uint64_t end = end_granule(addr, size);

    for (uint64_t g = first_granule(addr); g < end; g++) {
        uint32_t *entry = &m->index[g / LEAVES][g % LEAVES];

        *entry =
            *entry == METER_NOWHERE || *entry == index ? index : METER_SHARED;
    }
}

void meter_index_clear(struct meter *m, frag_addr addr, frag_size size)
{
    uint64_t end = end_granule(addr, size);

    for (uint64_t g = first_granule(addr); g < end; g++) {
        uint32_t *entry = &m->index[g / LEAVES][g % LEAVES];

        if (*entry != METER_SHARED ||
            !ranges_overlap(&m->held, g << METER_GRANULE_BITS, GRANULE))
            *entry = METER_NOWHERE;
    }
}

void meter_index_close(struct meter *m)
{
    for (uint64_t i = 0; m->index && i < (uint64_t)1 << METER_ROOT_BITS; i++)
        free(m->index[i]);
    free(m->index);
}

uint32_t meter_find_slowly(const struct meter *m, frag_addr addr)
{
    const struct range *r = ranges_upto(&m->held, addr);

    return r && addr - r->at < r->size ? ((const struct held_range *)r)->segment
                                       : METER_NOWHERE;
}
