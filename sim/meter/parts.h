/* parts.h - what the files of the meter share. Private to sim/meter/.
 *
 * Each file calls only those below it:
 * meter.c   open, close, segments, the other calls
 * vmm.c     reservations, physical memory, maps
 * books.c   the table of segments, the set of held ranges
 * index.c   the segment that a granule belongs to
 * ledger.c  the proof that every answer is sound
 */
#ifndef FRAG_SIM_METER_PARTS_H
#define FRAG_SIM_METER_PARTS_H

#include "sim/meter/meter.h"

/* A physical allocation: alive while its handle is or a map uses it. */
struct phys_use {
    struct range range; /* first; at is the handle */
    frag_size size;
    uint64_t maps;
    bool released;
};

static inline struct meter *meter_of(struct frag_backend *mem)
{
    return (struct meter *)mem;
}

static inline frag_time meter_clock(struct meter *m)
{
    return m->under->ops->now ? m->under->ops->now(m->under) : 0;
}

/* A call of `under`, timed. INVALID from it means a policy misused it. */
#define METER_TIMED(m, err, call)                                        \
    do {                                                                 \
        frag_time before_ = meter_clock(m);                              \
        (m)->changes++;                                                  \
        (err) = (m)->under->ops->call;                                   \
        (m)->spent += meter_clock(m) - before_;                          \
        if ((err) == FRAG_INVALID && (m)->ledger)                        \
            (err) = frag_ledger_blame(                                   \
                (m)->ledger, "the backend refused %s as misuse", #call); \
    } while (0)

static inline void meter_note_peak(struct meter *m)
{
    if (m->reserved > m->reserved_peak)
        m->reserved_peak = m->reserved;
}

/* A range comes or goes, and reserved then is at least `least`. */
static inline void meter_tell(const struct meter *m, frag_size least)
{
    if (m->rearranges && least <= m->reserved_peak)
        m->rearranges(m->run);
}

/* The device is asked for memory. */
static inline void meter_note_ask(struct meter *m)
{
    m->asked_again |= m->refused;
}

static inline void meter_note_answer(struct meter *m, enum frag_err err)
{
    m->refused |= err == FRAG_OOM;
}

/* A free entry of the segment table; METER_NOWHERE if there is no memory. */
uint32_t meter_take_segment(struct meter *m);
void meter_give_segment(struct meter *m, uint32_t index);

/* Enters a range of a segment, or a map of phys in the reservation that
 * `segment` is; on NOMEM and CONTRACT the books are as they were. */
enum frag_err meter_enter(struct meter *m, frag_addr addr, frag_size size,
                          uint32_t segment, struct phys_use *phys);
void meter_leave(struct meter *m, struct held_range *h);

/* A reservation that `under` has made. NOMEM. */
enum frag_err meter_book_reservation(struct meter *m, frag_addr addr,
                                     frag_size size);
/* Maps of a held reservation, a granule each, whose handles nobody has. */
enum frag_err meter_book_granules(struct meter *m, frag_addr addr,
                                  frag_size size, uint32_t segment);
/* Memory goes when its handle is released and no map uses it. */
void meter_drop_phys(struct meter *m, struct phys_use *p);

/* The six calls of virtual memory. */
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

/* The index: two levels of tables over 47 bits of address. A granule that
 * several ranges touch says so, and is then looked up in the ordered set;
 * addresses beyond are too. Clearing never fails. */

/* Makes sure that the range can be entered. NOMEM. */
enum frag_err meter_index_room(struct meter *m, frag_addr addr, frag_size size);
/* The range, which is not yet in m->held, belongs to segment `index`. */
void meter_index_set(struct meter *m, frag_addr addr, frag_size size,
                     uint32_t index);
/* The range, which is no longer in m->held, belongs to nobody. */
void meter_index_clear(struct meter *m, frag_addr addr, frag_size size);
void meter_index_close(struct meter *m);

#endif
