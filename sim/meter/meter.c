/* meter.c - the meter as a backend: opens and closes it, and passes on the
 * calls for segments, copies and waits. */
#include "sim/meter/meter.h"

#include <stdlib.h>

#include "sim/meter/meter_parts.h"

bool meter_settle(struct meter *m)
{
    bool again = m->retried || (m->waited && (m->returned || !m->rearranged));

    meter_note_peak(m);
    m->refused = m->retried = false;
    m->waited = m->returned = m->rearranged = false;
    return again;
}

/* ----------------------------------------------------------- segments --- */

static enum frag_err book_segment(struct meter *m, frag_addr addr,
                                  frag_size size)
{
    uint32_t index = meter_new_segment(m);
    enum frag_err err;

    if (index == METER_NOWHERE)
        return FRAG_NOMEM;
    m->segments[index] = (struct segment){
        .addr = addr, .size = size, .split_mask = ~(frag_size)0};
    err = meter_enter(m, addr, size, index, NULL);
    if (err != FRAG_OK) {
        meter_remove_segment(m, index);
        return err;
    }
    meter_grow(m, size);
    m->segments_now++;
    if (m->segments_now > m->segments_peak)
        m->segments_peak = m->segments_now;
    return FRAG_OK;
}

static enum frag_err segment_alloc(struct frag_backend *mem, frag_size size,
                                   frag_addr *addr)
{
    struct meter *m = meter_of(mem);
    frag_addr at;
    enum frag_err err;

    meter_note_request(m);
    if (meter_refuses(m, size))
        err = FRAG_OOM;
    else
        METER_TIMED(m, err, segment_alloc(m->under, size, &at), 0, size,
                    "a size above 0");
    meter_note_answer(m, err);
    FRAG_TRY(err);
    meter_announce(m, m->reserved + size);
    err = book_segment(m, at, size);
    if (err != FRAG_OK)
        return m->under->ops->segment_free(m->under, at, size) == FRAG_OK
                   ? err
                   : FRAG_DEVICE;
    m->calls[FRAG_CALL_SEGMENT_ALLOC]++;
    meter_note_peak(m);
    meter_tell(m, FRAG_CALL_SEGMENT_ALLOC, at, size, 0);
    *addr = at;
    return FRAG_OK;
}

static enum frag_err segment_free(struct frag_backend *mem, frag_addr addr,
                                  frag_size size)
{
    struct meter *m = meter_of(mem);
    struct range *r = ranges_at(&m->held, addr);
    enum frag_err err;

    METER_TIMED(m, err, segment_free(m->under, addr, size), addr, size,
                "a segment that the policy holds, with the address and the "
                "size of its allocation");
    FRAG_TRY(err);
    m->calls[FRAG_CALL_SEGMENT_FREE]++;
    m->returned |= m->waited;
    if (r) {
        meter_announce(m, 0);
        meter_remove_segment(m, ((struct held_range *)r)->segment);
        meter_leave(m, (struct held_range *)r);
        m->reserved -= size;
        m->segments_now--;
        meter_tell(m, FRAG_CALL_SEGMENT_FREE, addr, size, 0);
    }
    return m->ledger ? frag_ledger_drop(m->ledger, addr, size) : FRAG_OK;
}

/* --------------------------------------------------------- other calls --- */

static enum frag_err copy(struct frag_backend *mem, frag_addr dst,
                          frag_addr src, frag_size size, frag_stream stream)
{
    struct meter *m = meter_of(mem);
    enum frag_err err;

    METER_TIMED(m, err, copy(m->under, dst, src, size, stream), dst, size,
                "two ranges that do not overlap");
    FRAG_TRY(err);
    m->calls[FRAG_CALL_COPY]++;
    m->rearranged |= m->waited;
    m->bytes_moved += size;
    if (m->ledger)
        frag_ledger_copied(m->ledger, dst, size);
    return FRAG_OK;
}

static enum frag_err synchronize(struct frag_backend *mem)
{
    struct meter *m = meter_of(mem);
    enum frag_err err;

    METER_TIMED(m, err, synchronize(m->under), 0, 0,
                "no queued work that failed");
    FRAG_TRY(err);
    m->calls[FRAG_CALL_SYNCHRONIZE]++;
    m->waited = true;
    if (m->synchronized)
        m->synchronized(m->user);
    return FRAG_OK;
}

static frag_time now(struct frag_backend *mem)
{
    return meter_clock(meter_of(mem));
}

/* ---------------------------------------------------------- both ends --- */

/* Memory that was held before is no call of the policy. */
static enum frag_err hold(struct frag_backend *mem, frag_addr addr,
                          frag_size size, enum frag_holding what)
{
    struct meter *m = meter_of(mem);
    const struct held_range *r;

    m->changes++;
    meter_announce(m, 0);
    FRAG_TRY(m->under->ops->hold(m->under, addr, size, what));
    if (what == FRAG_HOLD_SEGMENT)
        return book_segment(m, addr, size);
    if (what == FRAG_HOLD_RESERVATION)
        return meter_book_reservation(m, addr, size);
    r = (const struct held_range *)ranges_upto(&m->reservations, addr);
    return r ? meter_book_granules(m, addr, size, r->segment) : FRAG_INVALID;
}

static struct frag_backend_ops ops_over(const struct frag_backend_ops *under)
{
    struct frag_backend_ops ops = {.name = under->name, .now = now};

    ops.segment_alloc = under->segment_alloc ? segment_alloc : NULL;
    ops.segment_free = under->segment_free ? segment_free : NULL;
    ops.va_reserve = under->va_reserve ? meter_va_reserve : NULL;
    ops.va_free = under->va_free ? meter_va_free : NULL;
    ops.phys_create = under->phys_create ? meter_phys_create : NULL;
    ops.phys_release = under->phys_release ? meter_phys_release : NULL;
    ops.map = under->map ? meter_map : NULL;
    ops.unmap = under->unmap ? meter_unmap : NULL;
    ops.copy = under->copy ? copy : NULL;
    ops.synchronize = under->synchronize ? synchronize : NULL;
    ops.hold = under->hold ? hold : NULL;
    return ops;
}

enum frag_err meter_open(struct meter *m, struct frag_backend *under,
                         struct frag_ledger *ledger)
{
    enum { FIRST_ROOM = 64 };

    *m = (struct meter){.base = *under, .under = under, .ledger = ledger};
    m->ops = ops_over(under->ops);
    m->base.ops = &m->ops;
    m->segments = calloc(FIRST_ROOM, sizeof(*m->segments));
    m->index = calloc((size_t)1 << METER_ROOT_BITS, sizeof(*m->index));
    if (!m->segments || !m->index) {
        free(m->segments);
        free(m->index);
        return FRAG_NOMEM;
    }
    m->segment_room = FIRST_ROOM;
    m->segment_count = 1;
    return FRAG_OK;
}

/* Returns a segment or a map to the device. The meter is closing, so an error
 * of the device is ignored. */
static void return_range(struct meter *m, const struct held_range *h)
{
    enum frag_err err =
        h->phys
            ? m->under->ops->unmap(m->under, h->range.at, h->range.size)
            : m->under->ops->segment_free(m->under, h->range.at, h->range.size);

    (void)err;
}

static void return_everything(struct meter *m)
{
    struct range *r;

    while ((r = ranges_pop(&m->held))) {
        struct phys_use *p = ((struct held_range *)r)->phys;

        return_range(m, (struct held_range *)r);
        if (p) {
            p->maps--;
            meter_drop_phys(m, p);
        }
        free(r);
    }
    while ((r = ranges_pop(&m->phys))) {
        m->under->ops->phys_release(m->under, r->at,
                                    ((struct phys_use *)r)->size);
        free(r);
    }
    while ((r = ranges_pop(&m->reservations))) {
        m->under->ops->va_free(m->under, r->at, r->size);
        free(r);
    }
}

void meter_close(struct meter *m)
{
    return_everything(m);
    m->under->asked |= m->base.asked;
    m->under->limit_used = m->base.limit_used;
    m->under->limit_refused = m->base.limit_refused;
    meter_index_close(m);
    free(m->segments);
}

enum frag_err meter_hold(struct meter *m, const struct frag_held_segment *s)
{
    if (!m->under->ops->hold)
        return FRAG_UNSUPPORTED;
    if (!s->is_expandable)
        return hold(&m->base, s->addr, s->size, FRAG_HOLD_SEGMENT);
    if (!ranges_at(&m->reservations, s->reservation))
        FRAG_TRY(hold(&m->base, s->reservation, s->reservation_size,
                      FRAG_HOLD_RESERVATION));
    return hold(&m->base, s->addr, s->size, FRAG_HOLD_MAPS);
}
