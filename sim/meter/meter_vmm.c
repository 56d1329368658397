/* meter_vmm.c - the virtual-memory calls of the meter: passes them on and
 * records reservations, physical memory and maps. */
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

enum frag_err meter_va_reserve(struct frag_backend *mem, frag_size size,
                               frag_addr *addr)
{
    struct meter *m = meter_of(mem);
    frag_addr at;
    enum frag_err err;

    METER_TIMED(m, err, va_reserve(m->under, size, &at), 0, size,
                "whole granules, at least one");
    FRAG_TRY(err);
    err = meter_book_reservation(m, at, size);
    if (err != FRAG_OK)
        return m->under->ops->va_free(m->under, at, size) == FRAG_OK
                   ? err
                   : FRAG_DEVICE;
    *addr = at;
    return FRAG_OK;
}

enum frag_err meter_va_free(struct frag_backend *mem, frag_addr addr,
                            frag_size size)
{
    struct meter *m = meter_of(mem);
    struct range *r = ranges_at(&m->reservations, addr);
    enum frag_err err;

    METER_TIMED(
        m, err, va_free(m->under, addr, size), addr, size,
        "a reservation as va_reserve made it, in which nothing is mapped");
    FRAG_TRY(err);
    if (!r)
        return FRAG_OK;
    ranges_remove(&m->reservations, r);
    meter_remove_segment(m, ((struct held_range *)r)->segment);
    m->reserved_va -= r->size;
    free(r);
    return FRAG_OK;
}

enum frag_err meter_phys_create(struct frag_backend *mem, frag_size size,
                                frag_phys *phys)
{
    struct meter *m = meter_of(mem);
    struct phys_use *p = malloc(sizeof(*p));
    frag_phys handle;
    enum frag_err err;

    if (!p)
        return FRAG_NOMEM;
    meter_note_request(m);
    if (meter_refuses(m, size))
        err = FRAG_OOM;
    else
        METER_TIMED(m, err, phys_create(m->under, size, &handle), 0, size,
                    "whole granules, at least one");
    meter_note_answer(m, err);
    if (err != FRAG_OK) {
        free(p);
        return err;
    }
    *p = (struct phys_use){.range = {.at = handle, .size = 1}, .size = size};
    ranges_add(&m->phys, &p->range);
    meter_grow(m, size);
    *phys = handle;
    return FRAG_OK;
}

void meter_drop_phys(struct meter *m, struct phys_use *p)
{
    if (!p->released || p->maps)
        return;
    m->reserved -= p->size;
    free(p);
}

enum frag_err meter_phys_release(struct frag_backend *mem, frag_phys phys,
                                 frag_size size)
{
    struct meter *m = meter_of(mem);
    struct phys_use *p = (struct phys_use *)ranges_at(&m->phys, phys);
    enum frag_err err;

    METER_TIMED(m, err, phys_release(m->under, phys, size), phys, size,
                "a handle of phys_create with its size, once");
    FRAG_TRY(err);
    m->returned |= m->waited;
    if (!p)
        return FRAG_OK;
    ranges_remove(&m->phys, &p->range);
    p->released = true;
    meter_drop_phys(m, p);
    return FRAG_OK;
}

enum frag_err meter_map(struct frag_backend *mem, frag_addr addr,
                        frag_size size, frag_phys phys)
{
    struct meter *m = meter_of(mem);
    struct phys_use *p = (struct phys_use *)ranges_at(&m->phys, phys);
    struct range *home = ranges_upto(&m->reservations, addr);
    enum frag_err err;

    METER_TIMED(m, err, map(m->under, addr, size, phys), addr, size,
                "whole granules of one reservation that are not mapped, and "
                "the size of the handle");
    FRAG_TRY(err);
    if (!p || !home)
        return FRAG_OK;
    meter_announce(m, m->reserved);
    err = meter_enter(m, addr, size, ((struct held_range *)home)->segment, p);
    if (err != FRAG_OK)
        return m->under->ops->unmap(m->under, addr, size) == FRAG_OK
                   ? err
                   : FRAG_DEVICE;
    m->has_aliases |= p->maps > 0;
    if (!p->maps++)
        p->first = addr;
    m->calls[FRAG_CALL_MAP]++;
    m->rearranged |= m->waited;
    meter_note_peak(m);
    meter_tell(m, FRAG_CALL_MAP, addr, size, p->first == addr ? 0 : p->first);
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

enum frag_err meter_unmap(struct frag_backend *mem, frag_addr addr,
                          frag_size size)
{
    struct meter *m = meter_of(mem);
    enum frag_err err;

    METER_TIMED(m, err, unmap(m->under, addr, size), addr, size,
                "one whole map, or several adjacent ones");
    FRAG_TRY(err);
    m->calls[FRAG_CALL_UNMAP]++;
    meter_announce(m, 0);
    forget_maps(m, addr, size);
    meter_tell(m, FRAG_CALL_UNMAP, addr, size, 0);
    return m->ledger ? frag_ledger_drop(m->ledger, addr, size) : FRAG_OK;
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
