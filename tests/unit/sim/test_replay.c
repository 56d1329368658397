/* test_replay.c - tests the numbers of the replay engine against a judge that
 * is too simple to be wrong: it keeps a list of live blocks and a list of
 * segments, and adds everything up anew after every event. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "sim/arena/arena.h"
#include "sim/replay/replay.h"

#define MIB      FRAG_MIB
#define COUNT(a) (sizeof(a) / sizeof(*(a)))

enum { SLOTS = 24, EVENTS = 1500, SEGMENT = 4 << 20, LIVE = 64, STREAMS = 2 };

/* ------------------------------------------------- the policy under test */

/* First fit over segments of 4 MiB, by brute force. On a miss it waits for the
 * device, releases empty segments, and requests memory again. The judge sees
 * all its actions. */
struct toy_block {
    frag_addr addr;
    frag_size size;
};

struct toy {
    frag_size unit; /* sizes are rounded up to it */
    uint64_t segments, blocks;
    frag_addr segment[LIVE];
    frag_stream segment_stream[LIVE];
    frag_pool segment_pool[LIVE];
    struct toy_block block[LIVE];
    frag_size limit; /* most bytes in segments, as if the device had no more */
    bool wait;       /* waits for the device before it asks again */
    bool move;       /* moves a block at each seventh call */
    uint64_t calls;
    uint32_t owner[LIVE];
};

static bool is_free(const struct toy *t, frag_addr addr, frag_size size)
{
    for (uint64_t i = 0; i < t->blocks; i++)
        if (t->block[i].addr < addr + size &&
            addr < t->block[i].addr + t->block[i].size)
            return false;
    return true;
}

static bool toy_find(const struct toy *t, frag_size size,
                     const struct frag_request *req, frag_addr *addr)
{
    for (uint64_t s = 0; s < t->segments; s++) {
        if (t->segment_stream[s] != req->stream ||
            t->segment_pool[s] != req->pool)
            continue;
        for (frag_size at = 0; at + size <= SEGMENT; at += 512)
            if (is_free(t, t->segment[s] + at, size)) {
                *addr = t->segment[s] + at;
                return true;
            }
    }
    return false;
}

static void toy_trim(struct frag_heap *heap)
{
    struct toy *t = heap->state;

    for (uint64_t s = t->segments; s-- > 0;) {
        if (!is_free(t, t->segment[s], SEGMENT))
            continue;
        assert_int_equal(
            heap->mem->ops->segment_free(heap->mem, t->segment[s], SEGMENT),
            FRAG_OK);
        t->segments--;
        t->segment[s] = t->segment[t->segments];
        t->segment_stream[s] = t->segment_stream[t->segments];
        t->segment_pool[s] = t->segment_pool[t->segments];
    }
}

static enum frag_err toy_take(struct frag_heap *heap)
{
    struct toy *t = heap->state;

    if (t->segments * SEGMENT >= t->limit)
        return FRAG_OOM;
    return heap->mem->ops->segment_alloc(heap->mem, SEGMENT,
                                         &t->segment[t->segments]);
}

static enum frag_err toy_grow(struct frag_heap *heap,
                              const struct frag_request *req)
{
    struct toy *t = heap->state;
    const struct frag_backend_ops *ops = heap->mem->ops;
    enum frag_err err;

    err = toy_take(heap);
    if (err == FRAG_OOM) {
        if (t->wait)
            FRAG_TRY(ops->synchronize(heap->mem));
        toy_trim(heap);
        err = toy_take(heap);
    }
    FRAG_TRY(err);
    t->segment_stream[t->segments] = req->stream;
    t->segment_pool[t->segments] = req->pool;
    t->segments++;
    return FRAG_OK;
}

static void toy_move(struct frag_heap *heap)
{
    struct toy *t = heap->state;
    struct toy_block *b = &t->block[t->calls % t->blocks];
    struct frag_block block = {b->addr, b->size, NULL};

    for (uint64_t s = 0; s < t->segments; s++) {
        frag_addr to = t->segment[s] + SEGMENT - b->size;

        if (b->size % 512 == 0 && is_free(t, to, b->size)) {
            assert_int_equal(
                heap->mem->ops->copy(heap->mem, to, b->addr, b->size, 0),
                FRAG_OK);
            b->addr = block.addr = to;
            heap->moved(heap->user, t->owner[t->calls % t->blocks], &block);
            return;
        }
    }
}

static enum frag_err toy_alloc(struct frag_heap *heap,
                               const struct frag_request *req,
                               struct frag_block *out)
{
    struct toy *t = heap->state;
    frag_size size = frag_round_up(req->size, t->unit);
    frag_addr addr;

    if (t->move && ++t->calls % 7 == 0 && t->blocks)
        toy_move(heap);
    if (size > SEGMENT || t->segments == LIVE)
        return FRAG_OOM;
    if (!toy_find(t, size, req, &addr)) {
        FRAG_TRY(toy_grow(heap, req));
        if (!toy_find(t, size, req, &addr))
            return FRAG_OOM;
    }
    t->owner[t->blocks] = req->owner;
    t->block[t->blocks++] = (struct toy_block){addr, size};
    *out = (struct frag_block){addr, size, NULL};
    return FRAG_OK;
}

static void toy_free(struct frag_heap *heap, const struct frag_block *block)
{
    struct toy *t = heap->state;

    for (uint64_t i = 0; i < t->blocks; i++)
        if (t->block[i].addr == block->addr) {
            t->block[i] = t->block[--t->blocks];
            t->owner[i] = t->owner[t->blocks];
            return;
        }
    fail_msg("a block was freed that is not live");
}

static void toy_fini(struct frag_heap *heap)
{
    struct toy *t = heap->state;

    t->blocks = 0;
    toy_trim(heap);
}

static const struct frag_param toy_params[] = {
    {.name = "unit",
     .kind = FRAG_PARAM_SIZE,
     .offset = offsetof(struct toy, unit),
     .init = "512",
     .min = 1,
     .max = 1 << 20,
     .help = "sizes are rounded up to it"},
    {.name = "limit",
     .kind = FRAG_PARAM_SIZE,
     .offset = offsetof(struct toy, limit),
     .init = "inf",
     .max = 0x1p64,
     .help = "most bytes in segments"},
    {.name = "wait",
     .kind = FRAG_PARAM_SWITCH,
     .offset = offsetof(struct toy, wait),
     .init = "yes",
     .help = "waits for the device before it asks again"},
    {.name = "move",
     .kind = FRAG_PARAM_SWITCH,
     .offset = offsetof(struct toy, move),
     .init = "no",
     .help = "moves blocks now and then"},
    {.name = NULL}};

static frag_size toy_quantum(const void *state)
{
    const frag_size unit = ((const struct toy *)state)->unit;

    return unit < FRAG_QUANTUM ? unit & -unit : FRAG_QUANTUM;
}

static const struct frag_policy toy = {.name = "toy",
                                       .summary = "first fit by brute force",
                                       .source = "this test",
                                       .quantum_of = toy_quantum,
                                       .state_size = sizeof(struct toy),
                                       .params = toy_params,
                                       .fini = toy_fini,
                                       .alloc = toy_alloc,
                                       .free = toy_free,
                                       .trim = toy_trim};

/* --------------------------------------------------------- random traces */

struct script {
    uint8_t op[EVENTS];
    uint32_t id[EVENTS];
    uint64_t bytes[EVENTS];
    frag_stream stream[EVENTS];
    frag_pool pool[EVENTS];
    frag_time time[EVENTS];
    struct frag_device_trace trace;
};

static const uint64_t raw_streams[STREAMS] = {0, 7};
static const struct frag_pool_id raw_pools[2] = {{0, 0}, {0, 1}};

static uint64_t next(uint64_t *rng)
{
    *rng = *rng * 6364136223846793005u + 1442695040888963407u;
    return *rng >> 33;
}

static void write_event(struct script *s, uint64_t i, int *life, uint64_t *rng)
{
    uint32_t id = (uint32_t)(next(rng) % SLOTS);

    s->id[i] = id;
    s->time[i] = 1000 + i;
    if (next(rng) % 97 == 0) {
        s->op[i] = FRAG_EMPTY_CACHE;
        s->id[i] = 0;
    } else if (life[id] == 0) {
        s->op[i] = FRAG_ALLOC;
        s->bytes[i] = 1 + next(rng) % (next(rng) % 4 ? 300000 : 3 * MIB);
        s->stream[i] = (frag_stream)(next(rng) % 8 == 0);
        s->pool[i] = (frag_pool)(next(rng) % 8 == 0);
        life[id] = 1;
    } else if (life[id] == 1 && next(rng) % 3 == 0) {
        s->op[i] = next(rng) % 2 ? FRAG_FREE_REQUESTED : FRAG_RECORD_STREAM;
        life[id] = s->op[i] == FRAG_FREE_REQUESTED ? 2 : 1;
    } else {
        s->op[i] = FRAG_FREE;
        life[id] = 0;
    }
}

static struct script *new_script(uint64_t seed)
{
    struct script *s = calloc(1, sizeof(*s));
    int life[SLOTS] = {0};

    assert_non_null(s);
    for (uint64_t i = 0; i < EVENTS; i++)
        write_event(s, i, life, &seed);
    s->trace = (struct frag_device_trace){.slots = SLOTS,
                                          .count = EVENTS,
                                          .op = s->op,
                                          .id = s->id,
                                          .bytes = s->bytes,
                                          .stream = s->stream,
                                          .pool = s->pool,
                                          .time = s->time,
                                          .stream_count = STREAMS,
                                          .pool_count = 2,
                                          .streams = raw_streams,
                                          .pools = raw_pools};
    return s;
}

/* ------------------------------------------------------------- the judge */

struct now {
    frag_size requested, allocated; /* of live blocks, without pending ones */
    frag_size pending, reserved, split;
    frag_size quanta;  /* requested, each in steps of judge.quantum */
    frag_size refused; /* the same, of failed requests */
    frag_size largest, unusable, here, stream, pool; /* free, for the request */
};

struct judge {
    const struct script *script;
    const struct toy *toy;
    const struct frag_backend *mem;
    frag_size own, quantum; /* of the policy, and of the run */
    struct {
        bool live, pending, refused;
        frag_addr addr;
        frag_size size, requested;
    } block[SLOTS];
    struct now at[EVENTS]; /* after each event */
    bool failed[EVENTS];
    uint64_t events;
};

static bool toy_has(const struct toy *t, uint32_t owner)
{
    for (uint64_t i = 0; i < t->blocks; i++)
        if (t->owner[i] == owner)
            return true;
    return false;
}

static void note_op(struct judge *j, uint64_t i, const struct frag_block *b)
{
    const struct script *s = j->script;
    uint32_t id = s->id[i];

    if (s->op[i] == FRAG_ALLOC) {
        j->failed[i] = b == NULL;
        j->block[id].live = b != NULL;
        j->block[id].refused = b == NULL;
        j->block[id].pending = false;
        j->block[id].requested = s->bytes[i];
        if (b) {
            j->block[id].addr = b->addr;
            j->block[id].size = b->size;
        }
    } else if (s->op[i] == FRAG_FREE) {
        j->block[id].live = j->block[id].refused = false;
    } else if (s->op[i] == FRAG_FREE_REQUESTED && j->block[id].live) {
        j->block[id].pending = true;
    } else if (s->op[i] == FRAG_FREE_REQUESTED) {
        j->block[id].refused = false;
    }
}

static void raise_to(frag_size *a, frag_size b)
{
    *a = b > *a ? b : *a;
}

/* The free bytes from `start`, where a block ends or the segment starts, to the
 * next block or the end of the segment. */
static frag_size gap_at(const struct judge *j, frag_addr segment,
                        frag_addr start)
{
    frag_addr end = segment + SEGMENT;

    for (int id = 0; id < SLOTS; id++)
        if (j->block[id].live && j->block[id].addr >= start &&
            j->block[id].addr < end)
            end = j->block[id].addr;
    return end - start;
}

static void count_gap(const struct judge *j, struct now *n, uint64_t s,
                      uint64_t event, frag_size gap)
{
    const frag_stream stream = j->script->stream[event];
    const frag_pool pool = j->script->pool[event];

    raise_to(&n->largest, gap);
    if (gap < j->own)
        n->unusable += gap;
    else if (j->toy->segment_pool[s] != pool)
        n->pool += gap;
    else if (j->toy->segment_stream[s] != stream)
        n->stream += gap;
    else
        n->here += gap;
}

static void look_for_gaps(const struct judge *j, struct now *n, uint64_t event)
{
    const struct toy *t = j->toy;

    for (uint64_t s = 0; s < t->segments; s++) {
        count_gap(j, n, s, event, gap_at(j, t->segment[s], t->segment[s]));
        for (int id = 0; id < SLOTS; id++)
            if (j->block[id].live &&
                j->block[id].addr - t->segment[s] < SEGMENT)
                count_gap(j, n, s, event,
                          gap_at(j, t->segment[s],
                                 j->block[id].addr + j->block[id].size));
    }
}

static struct now look(const struct judge *j, uint64_t event)
{
    struct now n = {.reserved = frag_arena_used(j->mem)};
    const struct toy *t = j->toy;

    look_for_gaps(j, &n, event);
    for (int id = 0; id < SLOTS; id++) {
        if (j->block[id].refused)
            n.refused += frag_round_up(j->block[id].requested, j->quantum);
        if (!j->block[id].live)
            continue;
        if (j->block[id].pending) {
            n.pending += j->block[id].size;
            continue;
        }
        n.requested += j->block[id].requested;
        n.quanta += frag_round_up(j->block[id].requested, j->quantum);
        n.allocated += j->block[id].size;
    }
    for (uint64_t s = 0; s < t->segments; s++) {
        frag_size in = 0;

        for (int id = 0; id < SLOTS; id++)
            if (j->block[id].live &&
                j->block[id].addr - t->segment[s] < SEGMENT)
                in += j->block[id].size;
        n.split += in ? SEGMENT - in : 0;
    }
    return n;
}

static void judge_done(void *user, uint64_t event, const struct frag_block *b)
{
    struct judge *j = user;

    note_op(j, event, b);
    for (uint32_t id = 0; id < SLOTS; id++) /* completed by a synchronize */
        if (j->block[id].live && j->block[id].pending && !toy_has(j->toy, id))
            j->block[id].live = false;
    j->at[event] = look(j, event);
    j->events = event + 1;
}

static void judge_opened(void *user, struct frag_heap *heap)
{
    ((struct judge *)user)->toy = heap->state;
}

static void is_close(double a, double b)
{
    double d = a > b ? a - b : b - a;

    if (d > 1e-9 * (b > 1 ? b : 1))
        fail_msg("%.17g is not %.17g", a, b);
}

struct verdict {
    struct now peak; /* of each number */
    frag_size active, demand;
    uint64_t reserved_event, live_event, ooms, first_oom;
    double fragmentation, reserved_area, requested_area;
};

static struct verdict sum_up(const struct judge *j)
{
    struct verdict v = {.first_oom = FRAG_NEVER};

    for (uint64_t i = 0; i < j->events; i++) {
        const struct now *n = &j->at[i];

        if (n->reserved > v.peak.reserved)
            v.reserved_event = i;
        if (n->requested > v.peak.requested)
            v.live_event = i;
        raise_to(&v.peak.requested, n->requested);
        raise_to(&v.peak.allocated, n->allocated);
        raise_to(&v.peak.quanta, n->quanta);
        raise_to(&v.peak.reserved, n->reserved);
        raise_to(&v.peak.split, n->split);
        raise_to(&v.active, n->allocated + n->pending);
        if (n->reserved)
            v.fragmentation += 1 - (double)n->allocated / (double)n->reserved;
        v.reserved_area += (double)n->reserved;
        v.requested_area += (double)n->requested;
        if (j->failed[i] && v.ooms++ == 0)
            v.first_oom = i;
        raise_to(&v.demand, n->quanta + n->refused);
    }
    return v;
}

static void judge_breakdown(const struct frag_breakdown *b, const struct now *n)
{
    assert_int_equal(b->requested, n->requested);
    assert_int_equal(b->requested + b->rounding, n->allocated);
    assert_int_equal(b->pending, n->pending);
    assert_int_equal(b->free_here, n->here);
    assert_int_equal(b->free_stream, n->stream);
    assert_int_equal(b->free_pool, n->pool);
    assert_int_equal(b->unusable, n->unusable);
    assert_int_equal(b->requested + b->rounding + b->pending + b->free_here +
                         b->free_stream + b->free_pool + b->unusable,
                     n->reserved);
}

static void judge_summary(const struct judge *j, const struct frag_summary *s)
{
    const struct verdict v = sum_up(j);
    const struct now *peak = &j->at[v.reserved_event];

    assert_int_equal(s->events, j->events);
    assert_int_equal(s->peak_requested, v.peak.requested);
    assert_int_equal(s->peak_allocated, v.peak.allocated);
    assert_int_equal(s->peak_active, v.active);
    assert_int_equal(s->peak_reserved, v.peak.reserved);
    assert_int_equal(s->peak_reserved_event, v.reserved_event);
    assert_int_equal(s->peak_inactive_split, v.peak.split);
    assert_int_equal(s->end_reserved, j->at[j->events - 1].reserved);
    assert_int_equal(s->num_ooms, v.ooms);
    assert_int_equal(s->first_oom_event, v.first_oom);
    is_close(s->fragmentation_mean, v.fragmentation / (double)j->events);
    is_close(s->fragmentation_ratio,
             1 - (double)v.peak.allocated / (double)v.peak.reserved);
    is_close(s->fragmentation_at_peak,
             1 - (double)peak->allocated / (double)peak->reserved);
    is_close(s->overhead, (double)v.peak.reserved / (double)v.peak.requested);
    assert_int_equal(s->quantum, j->quantum);
    assert_int_equal(s->lower_bound, v.peak.quanta);
    assert_int_equal(s->demand, v.demand);
    assert_int_equal(s->optimal, v.peak.quanta == v.peak.reserved && !v.ooms);
    is_close(s->gap_to_bound,
             (double)v.peak.reserved / (double)v.peak.quanta - 1);
    is_close(s->overhead_average, v.reserved_area / v.requested_area);
    is_close(s->overhead_at_peak_reserved,
             (double)peak->reserved / (double)peak->requested);
    is_close(s->overhead_at_peak_requested,
             (double)j->at[v.live_event].reserved / (double)v.peak.requested);
    judge_breakdown(&s->at_peak, peak);
    if (peak->reserved > peak->allocated + peak->pending)
        is_close(
            s->external_at_peak,
            1 - (double)peak->largest /
                    (double)(peak->reserved - peak->allocated - peak->pending));
    is_close(s->internal_at_peak,
             1 - (double)peak->requested / (double)peak->allocated);
}

static void judge_ooms(const struct judge *j, const struct frag_run *run)
{
    uint64_t k = 0;

    for (uint64_t i = 0; i < j->events; i++) {
        const struct frag_oom *o;

        if (!j->failed[i])
            continue;
        assert_true(k < run->oom_count);
        o = &run->ooms[k++];
        assert_int_equal(o->event, i);
        assert_int_equal(o->time, j->script->time[i]);
        assert_int_equal(o->bytes, j->script->bytes[i]);
        assert_int_equal(o->stream, j->script->stream[i]);
        assert_int_equal(o->pool, j->script->pool[i]);
        assert_int_equal(o->requested, j->at[i].requested);
        assert_int_equal(o->allocated, j->at[i].allocated);
        assert_int_equal(o->active, j->at[i].allocated + j->at[i].pending);
        assert_int_equal(o->reserved, j->at[i].reserved);
        assert_int_equal(o->total_free, o->reserved - o->active);
        assert_int_equal(o->largest_free, j->at[i].largest);
        judge_breakdown(&o->breakdown, &j->at[i]);
    }
    assert_int_equal(k, run->oom_count);
}

static void judge_points(const struct judge *j, const struct frag_run *run)
{
    for (uint64_t k = 0; k < run->point_count; k++) {
        const struct frag_point *p = &run->points[k];
        uint64_t end = k + 1 < run->point_count ? p[1].event : j->events;
        struct frag_point q = {.allocated_min = UINT64_MAX,
                               .reserved_min = UINT64_MAX};

        assert_int_equal(p->time, j->script->time[p->event]);
        for (uint64_t i = p->event; i < end; i++) {
            const struct now *n = &j->at[i];

            raise_to(&q.requested_max, n->requested);
            raise_to(&q.allocated_max, n->allocated);
            raise_to(&q.active_max, n->allocated + n->pending);
            raise_to(&q.reserved_max, n->reserved);
            if (n->allocated < q.allocated_min)
                q.allocated_min = n->allocated;
            if (n->reserved < q.reserved_min)
                q.reserved_min = n->reserved;
        }
        assert_int_equal(p->requested_max, q.requested_max);
        assert_int_equal(p->allocated_max, q.allocated_max);
        assert_int_equal(p->allocated_min, q.allocated_min);
        assert_int_equal(p->active_max, q.active_max);
        assert_int_equal(p->reserved_max, q.reserved_max);
        assert_int_equal(p->reserved_min, q.reserved_min);
        assert_int_equal(p->requested, j->at[end - 1].requested);
        assert_int_equal(p->allocated, j->at[end - 1].allocated);
        assert_int_equal(p->active,
                         j->at[end - 1].allocated + j->at[end - 1].pending);
        assert_int_equal(p->reserved, j->at[end - 1].reserved);
        assert_int_equal(p->largest_free, j->at[end - 1].largest);
    }
}

static struct frag_backend *device(frag_size capacity)
{
    struct frag_backend *mem = frag_arena_open(&(struct frag_arena_options){
        .capacity = capacity, .rule = FRAG_RULE_HOSTILE});

    assert_non_null(mem);
    return mem;
}

/* `own` is the quantum of the toy with these parameters, `other` that of the
 * policies with which it is compared. */
static void judge_quantum(uint64_t seed, const char *params, frag_size capacity,
                          bool check, frag_size own, frag_size other)
{
    struct script *s = new_script(seed);
    struct frag_backend *mem = device(capacity);
    struct judge *j = calloc(1, sizeof(*j));
    struct frag_error e = {""};
    struct frag_run run;
    struct frag_replay_watch watch = {
        .user = j, .opened = judge_opened, .done = judge_done};
    struct frag_replay spec = {.trace = &s->trace,
                               .watch = &watch,
                               .policy = &toy,
                               .params = params,
                               .mem = mem,
                               .quantum = other,
                               .check = check,
                               .repeat = 1,
                               .points = 1 + seed % 200,
                               .max_ooms = EVENTS};

    assert_non_null(j);
    j->script = s;
    j->mem = mem;
    j->own = own;
    j->quantum = other && other < own ? other : own;
    if (frag_replay(&spec, &run, &e) != FRAG_OK)
        fail_msg("seed %llu: %s", (unsigned long long)seed, e.text);
    judge_summary(j, &run.summary);
    judge_ooms(j, &run);
    judge_points(j, &run);
    frag_run_free(&run);
    assert_int_equal(frag_arena_used(mem), 0);
    frag_arena_close(mem);
    free(j);
    free(s);
}

static void judge_run(uint64_t seed, const char *params, frag_size capacity,
                      bool check)
{
    judge_quantum(seed, params, capacity, check, 512, 0);
}

static void numbers_agree_with_a_recount_after_every_event(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 6; seed++)
        judge_run(seed, seed % 2 ? "unit=512" : "unit=4KiB", FRAG_UNLIMITED,
                  seed % 3 != 0);
}

static void numbers_agree_where_the_device_is_too_small(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 6; seed++)
        judge_run(seed, "unit=512", (8 + seed % 3 * 4) * MIB, seed % 3 != 0);
}

static void numbers_agree_with_sizes_that_are_no_quanta(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 6; seed++)
        judge_quantum(seed, "unit=1", 16 * MIB, true, 1, 0);
}

/* A run counts in the quantum of its policy, or in a smaller one of a policy
 * with which it is compared; gaps are those of its policy. */
static void numbers_agree_in_every_quantum(void **state)
{
    static const struct {
        const char *params;
        frag_size own, other;
    } rows[] = {{"unit=256", 256, 0},   {"unit=256", 256, 512},
                {"unit=768", 512, 256}, {"unit=96", 32, 0},
                {"unit=512", 512, 1},   {"unit=256", 256, 256}};

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
        judge_quantum(i + 1, rows[i].params, 16 * MIB, i % 2, rows[i].own,
                      rows[i].other);
}

/* The first `count` events of a script; false if the policy cannot run it. */
static bool run_part(const struct script *s, uint64_t count,
                     const struct frag_policy *policy, frag_size capacity,
                     struct frag_summary *out)
{
    struct frag_device_trace part = s->trace;
    struct frag_backend *mem = device(capacity);
    struct frag_replay spec = {.trace = &part, .policy = policy, .mem = mem};
    struct frag_error e = {""};
    struct frag_run run;
    bool ran;

    part.count = count;
    ran = frag_replay(&spec, &run, &e) == FRAG_OK;
    if (ran) {
        *out = run.summary;
        frag_run_free(&run);
    }
    frag_arena_close(mem);
    return ran;
}

/* The snapshot of a peak is delayed. A run that ends at the peak makes it at
 * once, so a longer run must have the same snapshot. A policy that knows the
 * future behaves differently in a shorter run. */
static void what_follows_a_peak_does_not_change_it(void **state)
{
    static const frag_size capacities[] = {FRAG_UNLIMITED, 40 * MIB, 16 * MIB};
    size_t ran = 0;

    (void)state;
    for (uint64_t i = 0; i < 30; i++) {
        struct script *s = new_script(1 + i / 3);
        const frag_size capacity = capacities[i % 3];

        for (const struct frag_policy *const *p = frag_policies; *p; p++) {
            struct frag_summary whole, part;

            if ((*p)->needs & FRAG_NEEDS_FUTURE ||
                !run_part(s, s->trace.count, *p, capacity, &whole))
                continue;
            assert_true(run_part(s, whole.peak_reserved_event + 1, *p, capacity,
                                 &part));
            ran++;
            if (memcmp(&part.at_peak, &whole.at_peak, sizeof(part.at_peak)))
                fail_msg("%s, script %llu at %llu: other parts at event %llu",
                         (*p)->name, 1 + (unsigned long long)i / 3,
                         (unsigned long long)capacity,
                         (unsigned long long)whole.peak_reserved_event);
            is_close(whole.external_at_peak, part.external_at_peak);
        }
        free(s);
    }
    assert_true(ran > 500);
}

/* ------------------------------------------------------ by hand, by rule */

static struct frag_run replay(const struct frag_replay *spec)
{
    struct frag_error e = {""};
    struct frag_run run;

    if (frag_replay(spec, &run, &e) != FRAG_OK)
        fail_msg("%s", e.text);
    return run;
}

static void a_watched_run_and_a_bare_one_give_the_same_numbers(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 6; seed++) {
        struct script *s = new_script(seed);
        struct frag_run run[2];

        for (int careful = 0; careful < 2; careful++) {
            struct frag_backend *mem = device(12 * MIB);
            struct frag_replay spec = {.trace = &s->trace,
                                       .policy = &toy,
                                       .mem = mem,
                                       .check = careful,
                                       .repeat = 3,
                                       .points = 7};

            run[careful] = replay(&spec);
            run[careful].summary.ns_per_event = 0;
            frag_arena_close(mem);
        }
        assert_int_equal(run[0].summary.events, 3 * EVENTS);
        assert_memory_equal(&run[0].summary, &run[1].summary,
                            sizeof(run[0].summary));
        assert_int_equal(run[0].point_count, 7);
        assert_memory_equal(run[0].points, run[1].points,
                            7 * sizeof(*run[0].points));
        frag_run_free(&run[0]);
        frag_run_free(&run[1]);
        free(s);
    }
}

static void moved_blocks_are_followed(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 6; seed++) {
        struct script *s = new_script(seed);
        struct frag_backend *mem = device(FRAG_UNLIMITED);
        struct frag_replay spec = {.trace = &s->trace,
                                   .policy = &toy,
                                   .params = "move=yes",
                                   .mem = mem,
                                   .check = true,
                                   .repeat = 2};
        struct frag_run run = replay(&spec);

        assert_true(run.summary.calls[FRAG_CALL_COPY] > 10);
        assert_true(run.summary.bytes_moved > 0);
        /* The toy moves one block at a time, by one copy. */
        assert_int_equal(run.summary.num_moves,
                         run.summary.calls[FRAG_CALL_COPY]);
        assert_int_equal(run.summary.num_stalls, run.summary.num_moves);
        frag_run_free(&run);
        frag_arena_close(mem);
        free(s);
    }
}

/* alloc 3 MiB as 0, alloc 2 MiB as 1, free 0, alloc 4 MiB as 2, ... on a device
 * of 8 MiB. */
static void an_oom_is_kept_skipped_with_its_free_and_counted(void **state)
{
    static const uint8_t op[] = {FRAG_ALLOC, FRAG_ALLOC, FRAG_ALLOC, FRAG_FREE,
                                 FRAG_FREE,  FRAG_ALLOC, FRAG_FREE,  FRAG_FREE};
    static const uint32_t id[] = {0, 1, 2, 0, 2, 2, 2, 1};
    static const uint64_t bytes[] = {3 << 20, 2 << 20, 4 << 20, 0, 0, 100};
    static const frag_stream stream[COUNT(op)];
    static const frag_pool pool[COUNT(op)];
    const struct frag_device_trace trace = {.slots = 3,
                                            .count = COUNT(op),
                                            .op = op,
                                            .id = id,
                                            .bytes = bytes,
                                            .stream = stream,
                                            .pool = pool,
                                            .stream_count = 1,
                                            .pool_count = 1,
                                            .streams = raw_streams,
                                            .pools = raw_pools};
    uint64_t padded[COUNT(op)] = {0};
    struct frag_device_trace t = trace;
    struct frag_backend *mem = device(8 * MIB);
    struct frag_replay spec = {.trace = &t,
                               .policy = &toy,
                               .mem = mem,
                               .check = true,
                               .repeat = 1,
                               .max_ooms = 9};
    struct frag_run run;

    (void)state;
    memcpy(padded, bytes, sizeof(bytes));
    t.bytes = padded;
    run = replay(&spec);
    assert_int_equal(run.summary.events, COUNT(op));
    assert_int_equal(run.summary.num_ooms, 1);
    assert_int_equal(run.summary.first_oom_event, 2);
    assert_int_equal(run.summary.num_alloc_retries, 1);
    assert_int_equal(run.summary.peak_reserved, 8 * MIB);
    assert_int_equal(run.summary.peak_reserved_event, 1);
    assert_int_equal(run.summary.peak_segments, 2);
    assert_int_equal(run.summary.calls[FRAG_CALL_SEGMENT_ALLOC], 2);
    assert_int_equal(run.oom_count, 1);
    assert_int_equal(run.ooms[0].largest_free, 2 * MIB);
    assert_int_equal(run.ooms[0].total_free, 3 * MIB);
    assert_int_equal(run.ooms[0].breakdown.free_here, 3 * MIB);
    assert_int_equal(run.segment_count, 4); /* two at the OOM, two at the end */
    assert_int_equal(run.segments[0].at, 2);
    assert_int_equal(run.segments[0].allocated + run.segments[1].allocated,
                     5 * MIB);
    assert_int_equal(run.segments[3].at, COUNT(op));
    assert_int_equal(run.segments[3].blocks, 0);
    frag_run_free(&run);

    spec.stop_at_oom = true;
    run = replay(&spec);
    assert_int_equal(run.summary.events, 3);
    assert_int_equal(run.summary.num_ooms, 1);
    assert_int_equal(run.summary.end_reserved, 8 * MIB);
    frag_run_free(&run);
    frag_arena_close(mem);
}

/* A block waits for queued work, the device is full; the policy's wait for it
 * completes the free, and the free in the trace is then skipped. */
static void
a_synchronize_completes_pending_frees_within_the_request(void **state)
{
    static const uint8_t op[] = {FRAG_ALLOC, FRAG_FREE_REQUESTED, FRAG_ALLOC,
                                 FRAG_FREE, FRAG_FREE};
    static const uint32_t id[] = {0, 0, 1, 0, 1};
    static const uint64_t bytes[] = {3 << 20, 0, 4 << 20, 0, 0};
    static const frag_stream stream[COUNT(op)];
    static const frag_pool pool[COUNT(op)];
    const struct frag_device_trace trace = {.slots = 2,
                                            .count = COUNT(op),
                                            .op = op,
                                            .id = id,
                                            .bytes = bytes,
                                            .stream = stream,
                                            .pool = pool,
                                            .stream_count = 1,
                                            .pool_count = 1,
                                            .streams = raw_streams,
                                            .pools = raw_pools};
    struct frag_backend *mem = device(4 * MIB);
    struct frag_replay spec = {.trace = &trace,
                               .policy = &toy,
                               .mem = mem,
                               .check = true,
                               .repeat = 2,
                               .points = 10};
    struct frag_run run = replay(&spec);

    (void)state;
    assert_int_equal(run.summary.num_ooms, 0);
    assert_int_equal(run.summary.num_alloc_retries, 2);
    assert_int_equal(run.summary.calls[FRAG_CALL_SYNCHRONIZE], 2);
    assert_int_equal(run.points[1].allocated, 0);
    assert_int_equal(run.points[1].active, 3 * MIB);
    assert_int_equal(run.points[1].requested, 0);
    assert_int_equal(run.points[2].active, 4 * MIB);
    assert_int_equal(run.points[3].active, 4 * MIB);
    assert_int_equal(run.points[4].active, 0);
    assert_int_equal(run.summary.peak_active, 4 * MIB);
    frag_run_free(&run);
    frag_arena_close(mem);

    mem = spec.mem = device(FRAG_UNLIMITED);
    spec.params = "limit=4MiB"; /* the policy refuses, not the device */
    run = replay(&spec);
    assert_int_equal(run.summary.num_alloc_retries, 2);
    assert_int_equal(run.summary.num_ooms, 0);
    frag_run_free(&run);
    frag_arena_close(mem);

    mem = spec.mem = device(4 * MIB);
    spec.params = "wait=no"; /* the device refuses and receives the request
                              * again */
    run = replay(&spec);
    assert_int_equal(run.summary.num_alloc_retries, 2);
    assert_int_equal(run.summary.num_ooms, 2);
    frag_run_free(&run);
    frag_arena_close(mem);
}

/* The trace of these columns, with one stream and two pools. */
#define TWO_POOLS(slot_count, ops, ids, sizes, of_stream, of_pool)            \
    {                                                                         \
        .slots = (slot_count), .count = COUNT(ops), .op = (ops), .id = (ids), \
        .bytes = (sizes), .stream = (of_stream), .pool = (of_pool),           \
        .stream_count = 1, .pool_count = 2, .streams = raw_streams,           \
        .pools = raw_pools                                                    \
    }

/* The policy `direct` has no gap. It is optimal only where the device, too, can
 * serve it with no more than the lower bound, in its units. */
static void a_run_is_optimal_only_in_units_of_the_device(void **state)
{
    static const struct {
        uint64_t bytes, count;
        enum frag_address_rule rule;
        frag_size peak_device;
        uint64_t optimal;
    } rows[] = {{2 << 20, 3, FRAG_RULE_DRIVER, 6 << 20, 1},
                {3 << 20, 1, FRAG_RULE_DRIVER, 4 << 20, 1},
                {3 << 20, 2, FRAG_RULE_DRIVER, 8 << 20, 0},
                {3 << 20, 2, FRAG_RULE_EXACT, 6 << 20, 1}};
    static const uint8_t op[] = {FRAG_ALLOC, FRAG_ALLOC, FRAG_ALLOC};
    static const uint32_t id[] = {0, 1, 2};
    static const frag_stream stream[COUNT(op)];
    static const frag_pool pool[COUNT(op)];

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        const uint64_t bytes[] = {rows[i].bytes, rows[i].bytes, rows[i].bytes};
        const struct frag_device_trace trace =
            TWO_POOLS(3, op, id, bytes, stream, pool);
        struct frag_backend *mem =
            frag_arena_open(&(const struct frag_arena_options){
                .capacity = FRAG_UNLIMITED, .rule = rows[i].rule});
        const struct frag_replay spec = {.trace = &trace,
                                         .policy = frag_policy_find("direct"),
                                         .mem = mem,
                                         .events = rows[i].count};
        struct frag_run run = replay(&spec);

        is_close(run.summary.gap_to_bound, 0);
        assert_int_equal(run.summary.peak_device, rows[i].peak_device);
        assert_int_equal(run.summary.optimal, rows[i].optimal);
        frag_run_free(&run);
        frag_arena_close(mem);
    }
}

/* A layout was recorded of an allocator that placed by 256 bytes: the blocks
 * that torch adopts fill a segment, and count in that unit. */
static void adopted_blocks_count_in_the_unit_in_which_they_lie(void **state)
{
    enum { BLOCKS = 2 * MIB / 768 };
    const struct frag_recorded_segment segment = {.addr = (frag_addr)1 << 46,
                                                  .size = BLOCKS * 768 + 512,
                                                  .is_small = true,
                                                  .block_count = BLOCKS + 1};
    static struct frag_recorded_block blocks[BLOCKS + 1];
    static uint32_t id[BLOCKS + 1];
    static uint64_t bytes[BLOCKS + 1];
    static const uint8_t op[BLOCKS + 1];
    static const frag_stream stream[BLOCKS + 1];
    static const frag_pool pool[BLOCKS + 1];
    struct frag_device_trace trace =
        TWO_POOLS(BLOCKS + 1, op, id, bytes, stream, pool);
    struct frag_backend *mem = frag_arena_open(
        &(const struct frag_arena_options){.capacity = FRAG_UNLIMITED});
    const struct frag_replay spec = {.trace = &trace,
                                     .policy = frag_policy_find("torch"),
                                     .mem = mem,
                                     .adopt_start = true};
    struct frag_run run;

    (void)state;
    for (uint32_t i = 0; i <= BLOCKS; i++) {
        id[i] = i;
        bytes[i] = i < BLOCKS ? 600 : 300;
        blocks[i] =
            (struct frag_recorded_block){.addr = segment.addr + i * 768,
                                         .size = i < BLOCKS ? 768 : 512,
                                         .requested = bytes[i],
                                         .slot = i,
                                         .state = FRAG_ACTIVE_ALLOCATED};
    }
    trace.initial = trace.count;
    trace.recorded.start = (struct frag_layout){.segment_count = 1,
                                                .segments = &segment,
                                                .block_count = BLOCKS + 1,
                                                .blocks = blocks};
    run = replay(&spec);
    assert_int_equal(run.summary.start, FRAG_START_ADOPTED);
    assert_int_equal(run.summary.peak_reserved, 2 * MIB);
    assert_int_equal(run.summary.quantum, 256);
    assert_int_equal(run.summary.lower_bound, 2 * MIB);
    frag_run_free(&run);
    frag_arena_close(mem);
}

/* The same peak of requested twice, with 4 and with 8 MiB reserved. */
static void of_equal_peaks_the_first_counts(void **state)
{
    static const uint8_t op[] = {FRAG_ALLOC, FRAG_FREE,  FRAG_ALLOC,
                                 FRAG_FREE,  FRAG_ALLOC, FRAG_FREE};
    static const uint32_t id[COUNT(op)];
    static const uint64_t bytes[] = {4096, 0, 512, 0, 4096, 0};
    static const frag_stream stream[COUNT(op)];
    static const frag_pool pool[] = {0, 0, 1, 0, 0, 0};
    const struct frag_device_trace trace =
        TWO_POOLS(1, op, id, bytes, stream, pool);
    struct frag_backend *mem = device(FRAG_UNLIMITED);
    struct frag_replay spec = {
        .trace = &trace, .policy = &toy, .mem = mem, .repeat = 1};
    struct frag_run run = replay(&spec);

    (void)state;
    is_close(run.summary.overhead_at_peak_requested, 1024);
    is_close(run.summary.overhead, 2048);
    assert_int_equal(run.summary.peak_reserved_event, 2);
    frag_run_free(&run);
    frag_arena_close(mem);
}

/* The free parts are those that a request of pool 1 sees: the last event of a
 * part of two events, run twice, is event 1. */
static void the_end_is_seen_by_the_last_request_of_a_part(void **state)
{
    static const uint8_t op[] = {FRAG_ALLOC, FRAG_ALLOC, FRAG_ALLOC};
    static const uint32_t id[] = {0, 1, 2};
    static const uint64_t bytes[] = {512, 1024, 512};
    static const frag_stream stream[COUNT(op)];
    static const frag_pool pool[] = {0, 1, 0};
    const struct frag_device_trace trace =
        TWO_POOLS(3, op, id, bytes, stream, pool);
    struct frag_device_trace cut = trace;
    struct frag_backend *mem = device(FRAG_UNLIMITED);
    struct frag_replay spec = {
        .trace = &trace, .policy = &toy, .mem = mem, .events = 2, .repeat = 2};
    struct frag_run part = replay(&spec), whole;

    (void)state;
    cut.count = 2;
    spec.trace = &cut;
    whole = replay(&spec);
    assert_true(whole.end.parts.free_pool > 0);
    assert_memory_equal(&part.end, &whole.end, sizeof(part.end));
    frag_run_free(&part);
    frag_run_free(&whole);
    frag_arena_close(mem);
}

static bool stop_now(void *user, uint64_t done, uint64_t total)
{
    *(uint64_t *)user = total;
    return done > 0;
}

static void a_cancelled_run_says_so_and_leaves_nothing(void **state)
{
    struct script *s = new_script(5);
    struct frag_backend *mem = device(FRAG_UNLIMITED);
    uint64_t total = 0;
    struct frag_error e = {""};
    struct frag_run run;
    struct frag_replay spec = {.trace = &s->trace,
                               .policy = &toy,
                               .mem = mem,
                               .repeat = 4,
                               .progress = stop_now,
                               .user = &total};

    (void)state;
    assert_int_equal(frag_replay(&spec, &run, &e), FRAG_CANCELLED);
    assert_int_equal(total, 4 * EVENTS);
    assert_int_equal(frag_arena_used(mem), 0);
    frag_arena_close(mem);
    free(s);
}

/* The whole trace of the test below, as it is foretold. */
static void check_future(const struct frag_future *f)
{
    static const uint64_t allocs_at[] = {0, 1, 4}, frees_at[] = {3, 2, 5};

    assert_non_null(f);
    assert_int_equal(f->count, 3);
    for (size_t i = 0; i < f->count; i++) {
        assert_int_equal(f->requests[i].size, 2 * MIB);
        assert_int_equal(f->requests[i].allocs_at, allocs_at[i]);
        assert_int_equal(f->requests[i].frees_at, frees_at[i]);
        assert_int_equal(f->requests[i].stream, i == 1);
        assert_int_equal(f->requests[i].pool, 0);
    }
}

static enum frag_err see_future(struct frag_heap *heap)
{
    check_future(heap->future);
    return FRAG_OK;
}

static enum frag_err count_future(struct frag_heap *heap,
                                  const struct frag_request *req,
                                  struct frag_block *out)
{
    uint64_t *sum = heap->state;

    *sum = *sum * 31 + req->frees_at;
    assert_true(req->frees_at != FRAG_NEVER);
    assert_true(req->owner == 0 ? req->frees_at == 3 || req->frees_at == 5
                                : req->frees_at == 2);
    return heap->mem->ops->segment_alloc(heap->mem, req->size, &out->addr);
}

static void give_segment(struct frag_heap *heap, const struct frag_block *b)
{
    assert_int_equal(heap->mem->ops->segment_free(heap->mem, b->addr, 2 * MIB),
                     FRAG_OK);
}

/* A policy that works on the future until its listener cancels. */
static enum frag_err work_on_future(struct frag_heap *heap)
{
    const struct frag_future *f = heap->future;

    for (uint64_t done = 0; done < UINT64_MAX; done++)
        if (f->progress(f->user, done, UINT64_MAX))
            return FRAG_CANCELLED;
    return FRAG_OK;
}

struct preparation {
    uint64_t events, total; /* of the last call of progress */
    uint64_t calls;
};

static bool stop_at_third(void *user, uint64_t done, uint64_t total)
{
    struct preparation *p = user;

    p->events = done;
    p->total = total;
    return ++p->calls == 3;
}

static void the_work_before_the_first_event_can_be_cancelled(void **state)
{
    static const struct frag_policy worker = {.name = "worker",
                                              .summary = "works",
                                              .source = "this test",
                                              .quantum = FRAG_QUANTUM,
                                              .needs = FRAG_NEEDS_FUTURE,
                                              .init = work_on_future,
                                              .alloc = toy_alloc,
                                              .free = toy_free};
    struct script *s = new_script(5);
    struct frag_backend *mem = device(FRAG_UNLIMITED);
    struct preparation p = {.events = 1};
    struct frag_error e = {""};
    struct frag_run run;
    struct frag_replay spec = {.trace = &s->trace,
                               .policy = &worker,
                               .mem = mem,
                               .repeat = 2,
                               .progress = stop_at_third,
                               .user = &p};

    (void)state;
    assert_int_equal(frag_replay(&spec, &run, &e), FRAG_CANCELLED);
    assert_string_equal(e.text, "worker: the run was interrupted");
    assert_int_equal(p.calls, 3);
    assert_int_equal(p.events, 0);
    assert_int_equal(p.total, 2 * EVENTS);
    assert_int_equal(frag_arena_used(mem), 0);
    frag_arena_close(mem);
    free(s);
}

static void an_offline_policy_is_told_all_before_it_starts(void **state)
{
    static const struct frag_policy seer = {.name = "seer",
                                            .summary = "sees",
                                            .source = "this test",
                                            .quantum = FRAG_QUANTUM,
                                            .needs = FRAG_NEEDS_FUTURE,
                                            .state_size = sizeof(uint64_t),
                                            .init = see_future,
                                            .alloc = count_future,
                                            .free = give_segment};
    static const uint8_t op[] = {FRAG_ALLOC, FRAG_ALLOC, FRAG_FREE,
                                 FRAG_FREE,  FRAG_ALLOC, FRAG_FREE};
    static const uint32_t id[] = {0, 1, 1, 0, 0, 0};
    static const uint64_t bytes[] = {2 << 20, 2 << 20, 0, 0, 2 << 20, 0};
    static const frag_stream stream[] = {0, 1, 0, 0, 0, 0};
    static const frag_pool pool[COUNT(op)];
    const struct frag_device_trace trace = {.slots = 2,
                                            .count = COUNT(op),
                                            .op = op,
                                            .id = id,
                                            .bytes = bytes,
                                            .stream = stream,
                                            .pool = pool,
                                            .stream_count = 2,
                                            .pool_count = 1,
                                            .streams = raw_streams,
                                            .pools = raw_pools};
    struct frag_backend *mem = device(FRAG_UNLIMITED);
    struct frag_replay spec = {
        .trace = &trace, .policy = &seer, .mem = mem, .repeat = 1};
    struct frag_run run = replay(&spec);

    (void)state;
    frag_run_free(&run);
    frag_arena_close(mem);
}

/* What a policy is told, in order: a and f for a request and a free, the digit
 * of a change of settings. */
static char told[16];

static void hear(char what)
{
    assert_true(strlen(told) + 1 < sizeof(told));
    told[strlen(told)] = what;
}

static enum frag_err told_alloc(struct frag_heap *heap,
                                const struct frag_request *req,
                                struct frag_block *out)
{
    hear('a');
    return toy_alloc(heap, req, out);
}

static void told_free(struct frag_heap *heap, const struct frag_block *block)
{
    hear('f');
    toy_free(heap, block);
}

static enum frag_err told_set(struct frag_heap *heap,
                              const struct frag_setting *setting)
{
    (void)heap;
    hear(*setting->text);
    return FRAG_OK;
}

/* A change that is never made stops the engine: the alarm ends the test. */
static void a_change_of_settings_is_made_right_before_its_event(void **state)
{
    static const struct frag_policy listener = {.name = "listener",
                                                .summary = "listens",
                                                .source = "this test",
                                                .quantum_of = toy_quantum,
                                                .state_size =
                                                    sizeof(struct toy),
                                                .params = toy_params,
                                                .fini = toy_fini,
                                                .alloc = told_alloc,
                                                .free = told_free,
                                                .set = told_set};
    static const uint8_t op[] = {FRAG_ALLOC, FRAG_FREE, FRAG_ALLOC, FRAG_FREE};
    static const uint32_t id[COUNT(op)];
    static const uint64_t bytes[] = {512, 0, 512, 0};
    static const frag_stream stream[COUNT(op)];
    static const frag_pool pool[COUNT(op)];
    static const char *const texts[] = {"0", "1", "2", "3"};
    static const struct frag_setting_change changes[] = {
        {.event = 0, .text = 0},
        {.event = 1, .text = 1},
        {.event = 1, .text = 2},
        {.event = 3, .text = 3}};
    const struct frag_device_trace trace = {.slots = 1,
                                            .count = COUNT(op),
                                            .op = op,
                                            .id = id,
                                            .bytes = bytes,
                                            .stream = stream,
                                            .pool = pool,
                                            .stream_count = 1,
                                            .pool_count = 1,
                                            .streams = raw_streams,
                                            .pools = raw_pools,
                                            .strings = texts,
                                            .change_count = COUNT(changes),
                                            .changes = changes};
    struct frag_backend *mem = device(FRAG_UNLIMITED);
    struct frag_replay spec = {
        .trace = &trace, .policy = &listener, .mem = mem, .repeat = 1};
    struct frag_run run;

    (void)state;
    alarm(10);
    run = replay(&spec);
    alarm(0);
    assert_string_equal(told, "0a12fa3f");
    frag_run_free(&run);
    frag_arena_close(mem);
}

static void a_policy_whose_needs_the_device_lacks_is_refused(void **state)
{
    static const struct frag_policy mapper = {.name = "mapper",
                                              .summary = "maps",
                                              .source = "this test",
                                              .quantum = FRAG_QUANTUM,
                                              .needs = FRAG_NEEDS_VMM,
                                              .state_size = 8,
                                              .alloc = count_future,
                                              .free = give_segment};
    struct script *s = new_script(1);
    struct frag_backend *mem = device(FRAG_UNLIMITED);
    const struct frag_backend_ops full = *mem->ops;
    struct frag_backend_ops plain = full;
    struct frag_replay spec = {
        .trace = &s->trace, .policy = &mapper, .mem = mem, .repeat = 1};
    struct frag_error e = {""};
    struct frag_run run;

    (void)state;
    plain.va_reserve = NULL;
    plain.va_free = NULL;
    plain.phys_create = NULL;
    plain.phys_release = NULL;
    plain.map = NULL;
    plain.unmap = NULL;
    mem->ops = &plain;
    assert_int_equal(frag_replay(&spec, &run, &e), FRAG_UNSUPPORTED);
    spec.policy = &toy;
    spec.params = "unit=nonsense";
    assert_int_equal(frag_replay(&spec, &run, &e), FRAG_INVALID);
    mem->ops = &full;
    frag_arena_close(mem);
    free(s);
}

static void an_empty_trace_is_an_empty_run(void **state)
{
    static const struct frag_device_trace trace = {.slots = 0};
    struct frag_backend *mem = device(FRAG_UNLIMITED);
    struct frag_replay spec = {.trace = &trace,
                               .policy = &toy,
                               .mem = mem,
                               .check = true,
                               .repeat = 3,
                               .points = 5};
    struct frag_run run = replay(&spec);

    (void)state;
    assert_int_equal(run.summary.events, 0);
    assert_int_equal(run.point_count, 0);
    assert_true(run.summary.fragmentation_mean == 0);
    frag_run_free(&run);
    frag_arena_close(mem);
}

static void a_series_does_not_change_the_summary(void **state)
{
    static const uint64_t points[] = {0, 1, 7, 199, EVENTS};
    enum { RUNS = sizeof(points) / sizeof(*points) };

    (void)state;
    for (uint64_t seed = 1; seed <= 6; seed++) {
        struct script *s = new_script(seed);
        struct frag_summary first = {0};

        for (int i = 0; i < RUNS; i++) {
            struct frag_backend *mem = device(12 * MIB);
            struct frag_replay spec = {.trace = &s->trace,
                                       .policy = &toy,
                                       .mem = mem,
                                       .points = points[i]};
            struct frag_run run = replay(&spec);

            run.summary.ns_per_event = 0;
            if (i)
                assert_memory_equal(&run.summary, &first, sizeof(first));
            memcpy(&first, &run.summary, sizeof(first));
            frag_run_free(&run);
            frag_arena_close(mem);
        }
        free(s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_agree_with_a_recount_after_every_event),
        cmocka_unit_test(numbers_agree_where_the_device_is_too_small),
        cmocka_unit_test(numbers_agree_with_sizes_that_are_no_quanta),
        cmocka_unit_test(numbers_agree_in_every_quantum),
        cmocka_unit_test(a_run_is_optimal_only_in_units_of_the_device),
        cmocka_unit_test(adopted_blocks_count_in_the_unit_in_which_they_lie),
        cmocka_unit_test(what_follows_a_peak_does_not_change_it),
        cmocka_unit_test(a_watched_run_and_a_bare_one_give_the_same_numbers),
        cmocka_unit_test(a_series_does_not_change_the_summary),
        cmocka_unit_test(moved_blocks_are_followed),
        cmocka_unit_test(an_oom_is_kept_skipped_with_its_free_and_counted),
        cmocka_unit_test(
            a_synchronize_completes_pending_frees_within_the_request),
        cmocka_unit_test(of_equal_peaks_the_first_counts),
        cmocka_unit_test(the_end_is_seen_by_the_last_request_of_a_part),
        cmocka_unit_test(a_cancelled_run_says_so_and_leaves_nothing),
        cmocka_unit_test(the_work_before_the_first_event_can_be_cancelled),
        cmocka_unit_test(an_offline_policy_is_told_all_before_it_starts),
        cmocka_unit_test(a_change_of_settings_is_made_right_before_its_event),
        cmocka_unit_test(a_policy_whose_needs_the_device_lacks_is_refused),
        cmocka_unit_test(an_empty_trace_is_an_empty_run),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
