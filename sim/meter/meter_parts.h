/* meter_parts.h - declarations that the files of the meter share. Private to
 * sim/meter/.
 *
 * Each file calls only the files below it in this list:
 * meter.c      open, close, segments, copies and waits
 * meter_vmm.c  reservations, physical memory, maps
 * books.c      the table of segments, the set of held ranges
 * index.c      the lookup from a granule to its segment
 * ledger.c     the check of every answer
 */
#ifndef FRAG_SIM_METER_METER_PARTS_H
#define FRAG_SIM_METER_METER_PARTS_H

#include "sim/meter/meter.h"

/* A physical allocation. It exists until its handle is released and no map uses
 * it. */
struct phys_use {
    struct range range; /* must be the first member; range.at is the handle */
    frag_size size;
    uint64_t maps;   /* number of maps that use it */
    frag_addr first; /* address of the first map since it had none */
    bool released;   /* the handle was released */
};

/* Adds memory that the policy holds from now on. */
static inline void meter_grow(struct meter *m, frag_size by)
{
    m->reserved += by;
    m->acquired += by;
}

static inline void meter_note_peak(struct meter *m)
{
    if (m->reserved > m->reserved_peak)
        m->reserved_peak = m->reserved;
}

/* Calls `rearranges` before the set of held ranges changes, unless the change
 * raises `reserved` to `least`, which is a new peak. A change that removes a
 * range passes 0. */
static inline void meter_announce(const struct meter *m, frag_size least)
{
    if (m->rearranges && least <= m->reserved_peak)
        m->rearranges(m->run);
}

/* Calls `changed` after the set of held ranges has changed. */
static inline void meter_tell(const struct meter *m, enum frag_call call,
                              frag_addr addr, frag_size size, frag_addr same)
{
    if (m->changed)
        m->changed(m->listener, call, addr, size, same);
}

/* Index of a new entry of the table of segments; METER_NOWHERE if the host has
 * no memory. */
uint32_t meter_new_segment(struct meter *m);
void meter_remove_segment(struct meter *m, uint32_t index);

/* Adds a held range: a segment (phys is NULL), or a map of phys in the
 * reservation `segment`. NOMEM, CONTRACT; on error the books are unchanged. */
enum frag_err meter_enter(struct meter *m, frag_addr addr, frag_size size,
                          uint32_t segment, struct phys_use *phys);
void meter_leave(struct meter *m, struct held_range *h);

/* Adds a reservation that `under` has made. NOMEM. */
enum frag_err meter_book_reservation(struct meter *m, frag_addr addr,
                                     frag_size size);
/* Adds the maps of a reservation that was held from the start, one for each
 * granule. Their handles count as released. */
enum frag_err meter_book_granules(struct meter *m, frag_addr addr,
                                  frag_size size, uint32_t segment);
/* Removes p if its handle is released and no map uses it. */
void meter_drop_phys(struct meter *m, struct phys_use *p);

/* What follows a virtual-memory call that `under` has made, in the books. NOMEM
 * and CONTRACT; then the call was taken back. */
enum frag_err meter_reserved(struct meter *m, struct frag_relayed *c);
enum frag_err meter_unreserved(struct meter *m, struct frag_relayed *c);
enum frag_err meter_created(struct meter *m, struct frag_relayed *c);
enum frag_err meter_released(struct meter *m, struct frag_relayed *c);
enum frag_err meter_mapped(struct meter *m, struct frag_relayed *c);
enum frag_err meter_unmapped(struct meter *m, struct frag_relayed *c);
/* Takes a call back whose entry failed with `err`. Returns err; DEVICE if that
 * fails, too. */
enum frag_err meter_undo(struct meter *m, const struct frag_relayed *c,
                         enum frag_err err);

/* The index: two levels of tables that cover 47 bits of address. The entry of a
 * granule that two segments touch is METER_SHARED; such a granule, and any
 * address above 47 bits, is searched in the set m->held instead. */

/* Allocates the tables for a range, so that meter_index_set cannot fail.
 * NOMEM. */
enum frag_err meter_index_room(struct meter *m, frag_addr addr, frag_size size);
/* Enters segment `index` for the range. Call it before the range is added to
 * m->held. */
void meter_index_set(struct meter *m, frag_addr addr, frag_size size,
                     uint32_t index);
/* Clears the entries of the range. Call it after the range was removed from
 * m->held. It cannot fail. */
void meter_index_clear(struct meter *m, frag_addr addr, frag_size size);
void meter_index_close(struct meter *m);

#endif
