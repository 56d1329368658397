#include "sim/meter.h"

#include <stdlib.h>

#include "sim/meter_index.h"

/* A physical allocation: alive while its handle is or a map uses it. */
struct phys_use {
    struct range range; /* first; at is the handle */
    frag_size size;
    uint64_t maps;
    bool released;
};

static struct meter *meter_of(struct frag_backend *mem)
{
    return (struct meter *)mem;
}

/* ------------------------------------------------------ counts, faults --- */

static frag_time clock_of(struct meter *m)
{
    return m->under->ops->now ? m->under->ops->now(m->under) : 0;
}

/* A call of `under`, timed. INVALID from it means a policy misused it. */
#define TIMED(m, err, call)                                              \
    do {                                                                 \
        frag_time before_ = clock_of(m);                                 \
        (m)->changes++;                                                  \
        (err) = (m)->under->ops->call;                                   \
        (m)->spent += clock_of(m) - before_;                             \
        if ((err) == FRAG_INVALID && (m)->ledger)                        \
            (err) = frag_ledger_blame(                                   \
                (m)->ledger, "the backend refused %s as misuse", #call); \
    } while (0)

static void note_peak(struct meter *m)
{
    if (m->reserved > m->reserved_peak)
        m->reserved_peak = m->reserved;
}

/* The device is asked for memory. */
static void note_ask(struct meter *m)
{
    m->asked_again |= m->refused;
}

static void note_answer(struct meter *m, enum frag_err err)
{
    m->refused |= err == FRAG_OOM;
}

bool meter_settle(struct meter *m)
{
    bool again = m->asked_again || m->waited;

    note_peak(m);
    m->refused = m->asked_again = m->waited = false;
    return again;
}

/* ---------------------------------------------- segments, held ranges --- */

/* A free entry of the segment table; METER_NOWHERE if there is no memory. */
static uint32_t take_segment(struct meter *m)
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

static void give_segment(struct meter *m, uint32_t index)
{
    m->segments[index] = (struct segment){.next_free = m->segment_free};
    m->segment_free = index;
}

/* Enters a range; on NOMEM the books are as they were. */
static enum frag_err enter(struct meter *m, frag_addr addr, frag_size size,
                           uint32_t segment, struct phys_use *phys)
{
    struct held_range *h = malloc(sizeof(*h));
    uint64_t group = phys ? segment : 0;
    enum frag_err err = h ? meter_index_room(m, addr, size) : FRAG_NOMEM;

    if (err == FRAG_OK && m->ledger)
        err = frag_ledger_hold(m->ledger, addr, size, group);
    if (err != FRAG_OK) {
        free(h);
        return err;
    }
    *h = (struct held_range){{.at = addr, .size = size}, segment, phys};
    meter_index_set(m, addr, size, segment);
    ranges_add(&m->held, &h->range);
    return FRAG_OK;
}

static void leave(struct meter *m, struct held_range *h)
{
    ranges_remove(&m->held, &h->range);
    meter_index_clear(m, h->range.at, h->range.size);
    free(h);
}

static enum frag_err book_segment(struct meter *m, frag_addr addr,
                                  frag_size size)
{
    uint32_t index = take_segment(m);
    enum frag_err err;

    if (index == METER_NOWHERE)
        return FRAG_NOMEM;
    m->segments[index] = (struct segment){
        .addr = addr, .size = size, .split_mask = ~(frag_size)0};
    err = enter(m, addr, size, index, NULL);
    if (err != FRAG_OK) {
        give_segment(m, index);
        return err;
    }
    m->reserved += size;
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

    note_ask(m);
    TIMED(m, err, segment_alloc(m->under, size, &at));
    note_answer(m, err);
    FRAG_TRY(err);
    err = book_segment(m, at, size);
    if (err != FRAG_OK)
        return m->under->ops->segment_free(m->under, at, size) == FRAG_OK
                   ? err
                   : FRAG_DEVICE;
    m->calls[FRAG_CALL_SEGMENT_ALLOC]++;
    note_peak(m);
    *addr = at;
    return FRAG_OK;
}

static enum frag_err segment_free(struct frag_backend *mem, frag_addr addr,
                                  frag_size size)
{
    struct meter *m = meter_of(mem);
    struct range *r = ranges_at(&m->held, addr);
    enum frag_err err;

    TIMED(m, err, segment_free(m->under, addr, size));
    FRAG_TRY(err);
    m->calls[FRAG_CALL_SEGMENT_FREE]++;
    if (r) {
        give_segment(m, ((struct held_range *)r)->segment);
        leave(m, (struct held_range *)r);
        m->reserved -= size;
        m->segments_now--;
    }
    return m->ledger ? frag_ledger_drop(m->ledger, addr, size) : FRAG_OK;
}

/* ----------------------------------------------------- virtual memory --- */

static enum frag_err book_reservation(struct meter *m, frag_addr addr,
                                      frag_size size)
{
    struct held_range *h = malloc(sizeof(*h));
    uint32_t index = h ? take_segment(m) : METER_NOWHERE;

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

static enum frag_err va_reserve(struct frag_backend *mem, frag_size size,
                                frag_addr *addr)
{
    struct meter *m = meter_of(mem);
    frag_addr at;
    enum frag_err err;

    TIMED(m, err, va_reserve(m->under, size, &at));
    FRAG_TRY(err);
    err = book_reservation(m, at, size);
    if (err != FRAG_OK)
        return m->under->ops->va_free(m->under, at, size) == FRAG_OK
                   ? err
                   : FRAG_DEVICE;
    *addr = at;
    return FRAG_OK;
}

static enum frag_err va_free(struct frag_backend *mem, frag_addr addr,
                             frag_size size)
{
    struct meter *m = meter_of(mem);
    struct range *r = ranges_at(&m->reservations, addr);
    enum frag_err err;

    TIMED(m, err, va_free(m->under, addr, size));
    FRAG_TRY(err);
    if (!r)
        return FRAG_OK;
    ranges_remove(&m->reservations, r);
    give_segment(m, ((struct held_range *)r)->segment);
    m->reserved_va -= r->size;
    free(r);
    return FRAG_OK;
}

static enum frag_err phys_create(struct frag_backend *mem, frag_size size,
                                 frag_phys *phys)
{
    struct meter *m = meter_of(mem);
    struct phys_use *p = malloc(sizeof(*p));
    frag_phys handle;
    enum frag_err err;

    if (!p)
        return FRAG_NOMEM;
    note_ask(m);
    TIMED(m, err, phys_create(m->under, size, &handle));
    note_answer(m, err);
    if (err != FRAG_OK) {
        free(p);
        return err;
    }
    *p = (struct phys_use){.range = {.at = handle, .size = 1}, .size = size};
    ranges_add(&m->phys, &p->range);
    m->reserved += size;
    *phys = handle;
    return FRAG_OK;
}

static void drop_phys(struct meter *m, struct phys_use *p)
{
    if (!p->released || p->maps)
        return;
    m->reserved -= p->size;
    free(p);
}

static enum frag_err phys_release(struct frag_backend *mem, frag_phys phys,
                                  frag_size size)
{
    struct meter *m = meter_of(mem);
    struct phys_use *p = (struct phys_use *)ranges_at(&m->phys, phys);
    enum frag_err err;

    TIMED(m, err, phys_release(m->under, phys, size));
    FRAG_TRY(err);
    if (!p)
        return FRAG_OK;
    ranges_remove(&m->phys, &p->range);
    p->released = true;
    drop_phys(m, p);
    return FRAG_OK;
}

static enum frag_err map(struct frag_backend *mem, frag_addr addr,
                         frag_size size, frag_phys phys)
{
    struct meter *m = meter_of(mem);
    struct phys_use *p = (struct phys_use *)ranges_at(&m->phys, phys);
    struct range *home = ranges_upto(&m->reservations, addr);
    enum frag_err err;

    TIMED(m, err, map(m->under, addr, size, phys));
    FRAG_TRY(err);
    if (!p || !home)
        return FRAG_OK;
    err = enter(m, addr, size, ((struct held_range *)home)->segment, p);
    if (err != FRAG_OK)
        return m->under->ops->unmap(m->under, addr, size) == FRAG_OK
                   ? err
                   : FRAG_DEVICE;
    p->maps++;
    m->calls[FRAG_CALL_MAP]++;
    note_peak(m);
    return FRAG_OK;
}

static void forget_maps(struct meter *m, frag_addr addr, frag_size size)
{
    for (struct range *r = ranges_overlap(&m->held, addr, size); r;
         r = ranges_overlap(&m->held, addr, size)) {
        struct phys_use *p = ((struct held_range *)r)->phys;

        leave(m, (struct held_range *)r);
        p->maps--;
        drop_phys(m, p);
    }
}

static enum frag_err unmap(struct frag_backend *mem, frag_addr addr,
                           frag_size size)
{
    struct meter *m = meter_of(mem);
    enum frag_err err;

    TIMED(m, err, unmap(m->under, addr, size));
    FRAG_TRY(err);
    m->calls[FRAG_CALL_UNMAP]++;
    forget_maps(m, addr, size);
    return m->ledger ? frag_ledger_drop(m->ledger, addr, size) : FRAG_OK;
}

/* --------------------------------------------------------- other calls --- */

static enum frag_err copy(struct frag_backend *mem, frag_addr dst,
                          frag_addr src, frag_size size, frag_stream stream)
{
    struct meter *m = meter_of(mem);
    enum frag_err err;

    TIMED(m, err, copy(m->under, dst, src, size, stream));
    FRAG_TRY(err);
    m->calls[FRAG_CALL_COPY]++;
    m->bytes_moved += size;
    return FRAG_OK;
}

static enum frag_err synchronize(struct frag_backend *mem)
{
    struct meter *m = meter_of(mem);
    enum frag_err err;

    TIMED(m, err, synchronize(m->under));
    FRAG_TRY(err);
    m->calls[FRAG_CALL_SYNCHRONIZE]++;
    m->waited = true;
    if (m->synchronized)
        m->synchronized(m->user);
    return FRAG_OK;
}

static frag_time now(struct frag_backend *mem)
{
    return clock_of(meter_of(mem));
}

/* ---------------------------------------------------------- both ends --- */

static struct frag_backend_ops ops_over(const struct frag_backend_ops *under)
{
    struct frag_backend_ops ops = {.name = under->name, .now = now};

    ops.segment_alloc = under->segment_alloc ? segment_alloc : NULL;
    ops.segment_free = under->segment_free ? segment_free : NULL;
    ops.va_reserve = under->va_reserve ? va_reserve : NULL;
    ops.va_free = under->va_free ? va_free : NULL;
    ops.phys_create = under->phys_create ? phys_create : NULL;
    ops.phys_release = under->phys_release ? phys_release : NULL;
    ops.map = under->map ? map : NULL;
    ops.unmap = under->unmap ? unmap : NULL;
    ops.copy = under->copy ? copy : NULL;
    ops.synchronize = under->synchronize ? synchronize : NULL;
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

/* One way back for each kind; what the device answers cannot matter now. */
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
            drop_phys(m, p);
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
    meter_index_close(m);
    free(m->segments);
}

/* Maps of a held reservation, a granule each, whose handles nobody has. */
static enum frag_err book_granules(struct meter *m, frag_addr addr,
                                   frag_size size, uint32_t segment)
{
    frag_size unit = m->base.granularity;

    for (frag_size at = 0; at < size; at += unit) {
        struct phys_use *p = malloc(sizeof(*p));
        enum frag_err err;

        if (!p)
            return FRAG_NOMEM;
        *p = (struct phys_use){.size = unit, .maps = 1, .released = true};
        err = enter(m, addr + at, unit, segment, p);
        if (err != FRAG_OK) {
            free(p);
            return err;
        }
        m->reserved += unit;
    }
    return FRAG_OK;
}

enum frag_err meter_hold(struct meter *m, const struct frag_held_segment *s)
{
    const struct frag_backend_ops *under = m->under->ops;

    if (!under->hold)
        return FRAG_UNSUPPORTED;
    FRAG_TRY(under->hold(m->under, s->addr, s->size, s->is_expandable));
    m->changes++;
    if (!s->is_expandable)
        return book_segment(m, s->addr, s->size);
    FRAG_TRY(book_reservation(m, s->addr, s->size));
    return book_granules(
        m, s->addr, s->size,
        ((struct held_range *)ranges_at(&m->reservations, s->addr))->segment);
}
