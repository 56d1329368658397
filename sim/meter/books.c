/* books.c - the books of the meter: the table of segments and the set of held
 * ranges. Its only call of the backend takes one back that cannot be recorded.
 */
#include <stdlib.h>

#include "sim/meter/meter_parts.h"

enum frag_err meter_undo(struct meter *m, const struct frag_relayed *c,
                         enum frag_err err)
{
    return frag_relay_undo(m->relay.under, c) == FRAG_OK ? err : FRAG_DEVICE;
}

uint32_t meter_new_segment(struct meter *m)
{
    uint32_t index = m->segment_free;

    if (index) {
        m->segment_free = m->segments[index].next_free;
        return index;
    }
    if (m->segment_count == m->segment_room) {
        uint32_t room = m->segment_room * 2;
        struct segment *grown =
            room > m->segment_room ? realloc(m->segments, room * sizeof(*grown))
                                   : NULL;

        if (!grown)
            return METER_NOWHERE;
        m->segments = grown;
        m->segment_room = room;
    }
    return m->segment_count++;
}

void meter_remove_segment(struct meter *m, uint32_t index)
{
    m->segments[index] = (struct segment){.next_free = m->segment_free};
    m->segment_free = index;
}

enum frag_err meter_enter(struct meter *m, frag_addr addr, frag_size size,
                          uint32_t segment, struct phys_use *phys)
{
    struct held_range *h = malloc(sizeof(*h));
    uint64_t group = phys ? segment : 0;
    enum frag_err err = h ? meter_index_room(m, addr, size) : FRAG_NOMEM;

    if (err == FRAG_OK && m->ledger)
        err = frag_ledger_hold(m->ledger, addr, size, group, (uintptr_t)phys);
    if (err != FRAG_OK) {
        free(h);
        return err;
    }
    *h = (struct held_range){{.at = addr, .size = size}, segment, phys};
    meter_index_set(m, addr, size, segment);
    ranges_add(&m->held, &h->range);
    return FRAG_OK;
}

void meter_leave(struct meter *m, struct held_range *h)
{
    ranges_remove(&m->held, &h->range);
    meter_index_clear(m, h->range.at, h->range.size);
    free(h);
}
