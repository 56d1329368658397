/* meter_vmm.c - records the virtual-memory calls of the meter: reservations,
 * physical memory and maps. */
#include <stdlib.h>

#include "sim/meter/meter_parts.h"

enum frag_err meter_book_reservation(struct meter *m, frag_addr addr,
                                     frag_size size)
{
    struct held_range *h = malloc(sizeof(*h));
    uint32_t index = h ? meter_new_segment(m) : METER_NOWHERE;

    if (index == METER_NOWHERE) {
        free(h);
        return FRAG_NOMEM;
    }
    m->segments[index] = (struct segment){.addr = addr, .size = size};
    *h = (struct held_range){{.at = addr, .size = size}, index, NULL};
    ranges_add(&m->reservations, &h->range);
    m->reserved_va += size;
    return FRAG_OK;
}

enum frag_err meter_reserved(struct meter *m, struct frag_relayed *c)
{
    const enum frag_err err = meter_book_reservation(m, c->at, c->size);

    return err == FRAG_OK ? FRAG_OK : meter_undo(m, c, err);
}

enum frag_err meter_unreserved(struct meter *m, struct frag_relayed *c)
{
    struct range *r = ranges_at(&m->reservations, c->at);

    if (!r)
        return FRAG_OK;
    ranges_remove(&m->reservations, r);
    meter_remove_segment(m, ((struct held_range *)r)->segment);
    m->reserved_va -= r->size;
    free(r);
    return FRAG_OK;
}

enum frag_err meter_created(struct meter *m, struct frag_relayed *c)
{
    struct phys_use *p = malloc(sizeof(*p));

    if (!p)
        return meter_undo(m, c, FRAG_NOMEM);
    *p = (struct phys_use){.range = {.at = c->at, .size = 1}, .size = c->size};
    ranges_add(&m->phys, &p->range);
    meter_grow(m, c->size);
    return FRAG_OK;
}

void meter_drop_phys(struct meter *m, struct phys_use *p)
{
    if (!p->released || p->maps)
        return;
    m->reserved -= p->size;
    free(p);
}

enum frag_err meter_released(struct meter *m, struct frag_relayed *c)
{
    struct phys_use *p = (struct phys_use *)ranges_at(&m->phys, c->at);

    m->returned |= m->waited;
    if (!p)
        return FRAG_OK;
    ranges_remove(&m->phys, &p->range);
    p->released = true;
    meter_drop_phys(m, p);
    return FRAG_OK;
}

enum frag_err meter_mapped(struct meter *m, struct frag_relayed *c)
{
    struct phys_use *p = (struct phys_use *)ranges_at(&m->phys, c->with);
    struct range *home = ranges_upto(&m->reservations, c->at);
    enum frag_err err;

    if (!p || !home)
        return FRAG_OK;
    meter_announce(m, m->reserved);
    err =
        meter_enter(m, c->at, c->size, ((struct held_range *)home)->segment, p);
    if (err != FRAG_OK)
        return meter_undo(m, c, err);
    m->has_aliases |= p->maps > 0;
    if (!p->maps++)
        p->first = c->at;
    m->calls[FRAG_CALL_MAP]++;
    m->rearranged |= m->waited;
    meter_note_peak(m);
    meter_tell(m, FRAG_CALL_MAP, c->at, c->size,
               p->first == c->at ? 0 : p->first);
    return FRAG_OK;
}

static void forget_maps(struct meter *m, frag_addr addr, frag_size size)
{
    for (struct range *r = ranges_overlap(&m->held, addr, size); r;
         r = ranges_overlap(&m->held, addr, size)) {
        struct phys_use *p = ((struct held_range *)r)->phys;

        meter_leave(m, (struct held_range *)r);
        p->maps--;
        meter_drop_phys(m, p);
    }
}

enum frag_err meter_unmapped(struct meter *m, struct frag_relayed *c)
{
    m->calls[FRAG_CALL_UNMAP]++;
    meter_announce(m, 0);
    forget_maps(m, c->at, c->size);
    meter_tell(m, FRAG_CALL_UNMAP, c->at, c->size, 0);
    return m->ledger ? frag_ledger_drop(m->ledger, c->at, c->size) : FRAG_OK;
}

enum frag_err meter_book_granules(struct meter *m, frag_addr addr,
                                  frag_size size, uint32_t segment)
{
    frag_size unit = m->base.granularity;

    for (frag_size at = 0; at < size; at += unit) {
        struct phys_use *p = malloc(sizeof(*p));
        enum frag_err err;

        if (!p)
            return FRAG_NOMEM;
        *p = (struct phys_use){.size = unit, .maps = 1, .released = true};
        err = meter_enter(m, addr + at, unit, segment, p);
        if (err != FRAG_OK) {
            free(p);
            return err;
        }
        meter_grow(m, unit);
    }
    return FRAG_OK;
}
