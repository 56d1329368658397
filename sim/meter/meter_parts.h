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

static inline struct meter *meter_of(struct frag_backend *mem)
{
    return (struct meter *)mem;
}

static inline frag_time meter_clock(struct meter *m)
{
    return m->under->ops->now ? m->under->ops->now(m->under) : 0;
}

/* Makes a call of `under` and measures its time. INVALID means that the policy
 * made a call against the rule of policies/device/backend.h, which is a fault
 * for the ledger; `addr' and `size' are those of the call. */
#define METER_TIMED(m, err, call, addr, size, rule)                    \
    do {                                                               \
        frag_time before_ = meter_clock(m);                            \
        (m)->changes++;                                                \
        (err) = (m)->under->ops->call;                                 \
        (m)->spent += meter_clock(m) - before_;                        \
        if ((err) == FRAG_INVALID && (m)->ledger)                      \
            (err) = meter_blame((m)->ledger, #call, addr, size, rule); \
    } while (0)

/* The fault of a call, written in C, of which only the name is said. */
enum frag_err meter_blame(struct frag_ledger *ledger, const char *call,
                          frag_addr addr, frag_size size, const char *rule);

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

/* Called before memory is requested from the device, and after its answer. */
static inline void meter_note_request(struct meter *m)
{
    m->retried |= m->refused;
}

static inline void meter_note_answer(struct meter *m, enum frag_err err)
{
    m->refused |= err == FRAG_OOM;
}

/* Whether the limit of the process refuses memory before the device is asked.
 */
static inline bool meter_refuses(struct meter *m, frag_size size)
{
    return m->guards_limit &&
           (size > FRAG_UNLIMITED - m->reserved ||
            !frag_backend_admits(&m->base, m->reserved + size));
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

/* The six virtual-memory calls of frag_backend_ops. */
enum frag_err meter_va_reserve(struct frag_backend *mem, frag_size size,
                               frag_addr *addr);
enum frag_err meter_va_free(struct frag_backend *mem, frag_addr addr,
                            frag_size size);
enum frag_err meter_phys_create(struct frag_backend *mem, frag_size size,
                                frag_phys *phys);
enum frag_err meter_phys_release(struct frag_backend *mem, frag_phys phys,
                                 frag_size size);
enum frag_err meter_map(struct frag_backend *mem, frag_addr addr,
                        frag_size size, frag_phys phys);
enum frag_err meter_unmap(struct frag_backend *mem, frag_addr addr,
                          frag_size size);

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
