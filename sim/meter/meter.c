/* meter.c - the meter as a backend: opens and closes it, passes on the calls,
 * and records those for segments, copies and waits. */
#include "sim/meter/meter.h"

#include <inttypes.h>
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

static enum frag_err segment_allocated(struct meter *m, struct frag_relayed *c)
{
    enum frag_err err;

    meter_announce(m, m->reserved + c->size);
    err = book_segment(m, c->at, c->size);
    if (err != FRAG_OK)
        return meter_undo(m, c, err);
    m->calls[FRAG_CALL_SEGMENT_ALLOC]++;
    meter_note_peak(m);
    meter_tell(m, FRAG_CALL_SEGMENT_ALLOC, c->at, c->size, 0);
    return FRAG_OK;
}

static enum frag_err segment_freed(struct meter *m, struct frag_relayed *c)
{
    struct range *r = ranges_at(&m->held, c->at);

    m->calls[FRAG_CALL_SEGMENT_FREE]++;
    m->returned |= m->waited;
    if (r) {
        meter_announce(m, 0);
        meter_remove_segment(m, ((struct held_range *)r)->segment);
        meter_leave(m, (struct held_range *)r);
        m->reserved -= c->size;
        m->segments_now--;
        meter_tell(m, FRAG_CALL_SEGMENT_FREE, c->at, c->size, 0);
    }
    return m->ledger ? frag_ledger_drop(m->ledger, c->at, c->size) : FRAG_OK;
}

/* ----------------------------------------------------------- all calls --- */

static enum frag_err copied(struct meter *m, struct frag_relayed *c)
{
    m->calls[FRAG_CALL_COPY]++;
    m->rearranged |= m->waited;
    m->bytes_moved += c->size;
    if (m->ledger)
        frag_ledger_copied(m->ledger, c->at, c->size);
    return FRAG_OK;
}

static enum frag_err waited(struct meter *m, struct frag_relayed *c)
{
    (void)c;
    m->calls[FRAG_CALL_SYNCHRONIZE]++;
    m->waited = true;
    if (m->synchronized)
        m->synchronized(m->user);
    return FRAG_OK;
}

/* The rule of policies/device/backend.h for each call, and what follows it. */
static const struct {
    const char *rule;
    enum frag_err (*record)(struct meter *m, struct frag_relayed *c);
} calls[FRAG_DRIVER_CALL_COUNT] = {
    [FRAG_DRIVER_SEGMENT_ALLOC] = {"a size above 0", segment_allocated},
    [FRAG_DRIVER_SEGMENT_FREE] =
        {"a segment that the policy holds, with the address and the size of "
         "its allocation",
         segment_freed},
    [FRAG_DRIVER_VA_RESERVE] = {"whole granules, at least one", meter_reserved},
    [FRAG_DRIVER_VA_FREE] =
        {"a reservation as va_reserve made it, in which nothing is mapped",
         meter_unreserved},
    [FRAG_DRIVER_PHYS_CREATE] = {"whole granules, at least one", meter_created},
    [FRAG_DRIVER_PHYS_RELEASE] = {"a handle of phys_create with its size, once",
                                  meter_released},
    [FRAG_DRIVER_MAP] =
        {"whole granules of one reservation that are not mapped, and the size "
         "of the handle",
         meter_mapped},
    [FRAG_DRIVER_UNMAP] = {"one whole map, or several adjacent ones",
                           meter_unmapped},
    [FRAG_DRIVER_COPY] = {"two ranges that do not overlap", copied},
    [FRAG_DRIVER_SYNCHRONIZE] = {"no queued work that failed", waited},
};

/* Whether the limit of the process refuses memory before the device is asked.
 */
static bool refuses(struct meter *m, frag_size size)
{
    return m->guards_limit &&
           (size > FRAG_UNLIMITED - m->reserved ||
            !frag_backend_admits(&m->base, m->reserved + size));
}

static frag_time clock_of(struct frag_backend *mem)
{
    return mem->ops->now ? mem->ops->now(mem) : 0;
}

/* Makes the call and measures its time. INVALID is a fault of the policy for
 * the ledger. */
static enum frag_err pass(struct meter *m, struct frag_relayed *c)
{
    struct frag_backend *under = m->relay.under;
    const frag_time before = clock_of(under);
    enum frag_err err;

    m->changes++;
    err = frag_relay_pass(under, c);
    m->spent += clock_of(under) - before;
    if (err != FRAG_INVALID || !m->ledger)
        return err;
    return frag_ledger_blame(m->ledger,
                             "the policy calls %s with address 0x%" PRIx64
                             " and %" PRIu64 " bytes: expected %s",
                             frag_driver_call_names[c->call], c->at, c->size,
                             calls[c->call].rule);
}

static enum frag_err serve(struct frag_relay *relay, struct frag_relayed *c)
{
    struct meter *m = (struct meter *)relay;
    const bool takes = c->call == FRAG_DRIVER_SEGMENT_ALLOC ||
                       c->call == FRAG_DRIVER_PHYS_CREATE;
    enum frag_err err = FRAG_OOM;

    m->retried |= takes && m->refused;
    if (!takes || !refuses(m, c->size))
        err = pass(m, c);
    m->refused |= takes && err == FRAG_OOM;
    return err == FRAG_OK ? calls[c->call].record(m, c) : err;
}

/* ---------------------------------------------------------- both ends --- */

/* Memory that was held before is no call of the policy. */
static enum frag_err hold(struct frag_backend *mem, frag_addr addr,
                          frag_size size, enum frag_holding what)
{
    struct meter *m = (struct meter *)mem;
    struct frag_backend *under = m->relay.under;
    const struct held_range *r;

    m->changes++;
    meter_announce(m, 0);
    FRAG_TRY(under->engine->hold(under, addr, size, what));
    if (what == FRAG_HOLD_SEGMENT)
        return book_segment(m, addr, size);
    if (what == FRAG_HOLD_RESERVATION)
        return meter_book_reservation(m, addr, size);
    r = (const struct held_range *)ranges_upto(&m->reservations, addr);
    return r ? meter_book_granules(m, addr, size, r->segment) : FRAG_INVALID;
}

/* A replay may run on a meter of its caller (sim/answers/steps). */
static const struct frag_engine_ops meter_engine = {.hold = hold};

enum frag_err meter_open(struct meter *m, struct frag_backend *under,
                         struct frag_ledger *ledger)
{
    enum { FIRST_ROOM = 64 };

    *m = (struct meter){.ledger = ledger};
    frag_relay_open(&m->relay, under, serve);
    if (under->engine && under->engine->hold)
        m->base.engine = &meter_engine;
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
    struct frag_relayed c = {.call = h->phys ? FRAG_DRIVER_UNMAP
                                             : FRAG_DRIVER_SEGMENT_FREE,
                             .at = h->range.at,
                             .size = h->range.size};

    (void)!frag_relay_pass(m->relay.under, &c);
}

static void return_everything(struct meter *m)
{
    struct frag_backend *under = m->relay.under;
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
        under->ops->phys_release(under, r->at, ((struct phys_use *)r)->size);
        free(r);
    }
    while ((r = ranges_pop(&m->reservations))) {
        under->ops->va_free(under, r->at, r->size);
        free(r);
    }
}

void meter_close(struct meter *m)
{
    return_everything(m);
    m->relay.under->asked |= m->base.asked;
    m->relay.under->limit_used = m->base.limit_used;
    m->relay.under->limit_refused = m->base.limit_refused;
    meter_index_close(m);
    free(m->segments);
}

enum frag_err meter_hold(struct meter *m, const struct frag_held_segment *s)
{
    if (!m->base.engine)
        return FRAG_UNSUPPORTED;
    if (!s->is_expandable)
        return hold(&m->base, s->addr, s->size, FRAG_HOLD_SEGMENT);
    if (!ranges_at(&m->reservations, s->reservation))
        FRAG_TRY(hold(&m->base, s->reservation, s->reservation_size,
                      FRAG_HOLD_RESERVATION));
    return hold(&m->base, s->addr, s->size, FRAG_HOLD_MAPS);
}
