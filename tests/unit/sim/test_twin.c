/* test_twin.c - tests that the twin keeps a device and its simulation equal:
 * both get each call in order, both hold the same memory, and the cost of each
 * call is known for both. The device is an arena here too, with other addresses
 * and costs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "sim/arena/arena.h"
#include "sim/experiments/contract/faulty.h"
#include "sim/twin.h"

#define MIB      FRAG_MIB
#define COUNT(a) (sizeof(a) / sizeof(*(a)))

enum { DEVICE, ARENA, SIDES };

/* One cost for each call, no two equal. */
static struct frag_costs prices;

struct pair {
    struct frag_backend *inner[SIDES], *twin;
    struct faulty side[SIDES];
    struct frag_engine_ops engine[SIDES]; /* of the sides */
    frag_phys other;                      /* of the device alone */
};

static unsigned told[SIDES]; /* the sum of the streams that a side received */
static frag_addr copied_to, copied_from; /* by the device, last */

static void tell_device(struct frag_backend *mem, frag_stream stream)
{
    (void)mem;
    told[DEVICE] += stream;
}

static void tell_arena(struct frag_backend *mem, frag_stream stream)
{
    (void)mem;
    told[ARENA] += stream;
}

static enum frag_err (*serve)(struct frag_relay *, struct frag_relayed *);

/* The device's. */
static enum frag_err note_copy(struct frag_relay *r, struct frag_relayed *c)
{
    if (c->call == FRAG_DRIVER_COPY) {
        copied_to = c->at;
        copied_from = c->with;
    }
    return serve(r, c);
}

static void open_pair(struct pair *p, frag_size capacity)
{
    for (int i = 0; i < FRAG_DRIVER_CALL_COUNT; i++)
        prices.call[i] = (struct frag_cost){1000 * (i + 1), 16 * (i + 1)};
    p->inner[DEVICE] = frag_arena_open(&(struct frag_arena_options){
        .capacity = FRAG_UNLIMITED,
        .total = 3 * FRAG_GIB,
        .rule = FRAG_RULE_HOSTILE,
        .costs = &prices,
    });
    p->inner[ARENA] = frag_arena_open(&(struct frag_arena_options){
        .capacity = capacity, .total = 5 * FRAG_GIB});
    for (int i = 0; i < SIDES; i++) {
        assert_non_null(p->inner[i]);
        faulty_init(&p->side[i], p->inner[i]);
        p->engine[i].stream_used = i == DEVICE ? tell_device : tell_arena;
        p->side[i].base.engine = &p->engine[i];
        told[i] = 0;
    }
    serve = p->side[DEVICE].relay.serve;
    p->side[DEVICE].relay.serve = note_copy;
    /* so that its handles are other than the arena's */
    assert_int_equal(p->inner[DEVICE]->ops->phys_create(p->inner[DEVICE],
                                                        2 * MIB, &p->other),
                     FRAG_OK);
    assert_int_equal(
        frag_twin_open(&p->side[DEVICE].base, &p->side[ARENA].base, &p->twin),
        FRAG_OK);
}

static void close_pair(struct pair *p)
{
    frag_twin_close(p->twin);
    for (int i = 0; i < SIDES; i++) {
        assert_null(p->side[i].misuse);
        frag_arena_close(p->inner[i]);
    }
}

/* Both hold the same. */
static void are_alike(const struct pair *p)
{
    const struct faulty *d = &p->side[DEVICE], *a = &p->side[ARENA];

    assert_int_equal(d->used, a->used);
    assert_int_equal(d->va, a->va);
    assert_int_equal(d->count, a->count);
    for (size_t i = 0; i < d->count; i++) {
        assert_int_equal(d->held[i].size, a->held[i].size);
        assert_int_equal(d->held[i].mapped, a->held[i].mapped);
        assert_int_not_equal(d->held[i].addr, a->held[i].addr);
    }
}

/* ------------------------------------------- a life of every call --- */

enum { SEGMENTS = 3, SPANS = 2, PHYS = 3 };

struct things {
    frag_addr segment[SEGMENTS], span[SPANS];
    frag_phys phys[PHYS];
};

enum op {
    TAKE, /* a segment */
    GIVE,
    RESERVE,
    UNRESERVE,
    CREATE,
    RELEASE,
    MAP, /* `what` at `at` of span `where` */
    UNMAP,
    COPY, /* from segment `what` to `at` of span `where` */
    WAIT,
};

static const struct step {
    enum op op;
    enum frag_driver_call call;
    frag_size size;
    int what, where;
    frag_size at;
} life[] = {
    /* clang-format off */
    {TAKE,      FRAG_DRIVER_SEGMENT_ALLOC, 20 * MIB, 0, 0, 0},
    {TAKE,      FRAG_DRIVER_SMALL_ALLOC,   MIB / 2,  1, 0, 0},
    {RESERVE,   FRAG_DRIVER_VA_RESERVE,    16 * MIB, 0, 0, 0},
    {RESERVE,   FRAG_DRIVER_VA_RESERVE,    8 * MIB,  1, 0, 0},
    {CREATE,    FRAG_DRIVER_PHYS_CREATE,   2 * MIB,  0, 0, 0},
    {CREATE,    FRAG_DRIVER_PHYS_CREATE,   4 * MIB,  1, 0, 0},
    {CREATE,    FRAG_DRIVER_PHYS_CREATE,   2 * MIB,  2, 0, 0},
    {MAP,       FRAG_DRIVER_MAP,           2 * MIB,  0, 0, 0},
    {MAP,       FRAG_DRIVER_MAP,           4 * MIB,  1, 0, 6 * MIB},
    {MAP,       FRAG_DRIVER_MAP,           2 * MIB,  2, 1, 4 * MIB},
    {COPY,      FRAG_DRIVER_COPY,          4 * MIB,  0, 0, 6 * MIB},
    {UNMAP,     FRAG_DRIVER_UNMAP,         2 * MIB,  0, 0, 0},
    {MAP,       FRAG_DRIVER_MAP,           2 * MIB,  0, 1, 6 * MIB},
    {WAIT,      FRAG_DRIVER_SYNCHRONIZE,   0,        0, 0, 0},
    {TAKE,      FRAG_DRIVER_SEGMENT_ALLOC, MIB,      2, 0, 0},
    {GIVE,      FRAG_DRIVER_SMALL_FREE,    MIB / 2,  1, 0, 0},
    {UNMAP,     FRAG_DRIVER_UNMAP,         2 * MIB,  0, 1, 6 * MIB},
    {UNMAP,     FRAG_DRIVER_UNMAP,         2 * MIB,  0, 1, 4 * MIB},
    {UNMAP,     FRAG_DRIVER_UNMAP,         4 * MIB,  0, 0, 6 * MIB},
    {RELEASE,   FRAG_DRIVER_PHYS_RELEASE,  4 * MIB,  1, 0, 0},
    {RELEASE,   FRAG_DRIVER_PHYS_RELEASE,  2 * MIB,  2, 0, 0},
    {RELEASE,   FRAG_DRIVER_PHYS_RELEASE,  2 * MIB,  0, 0, 0},
    {UNRESERVE, FRAG_DRIVER_VA_FREE,       16 * MIB, 0, 0, 0},
    {UNRESERVE, FRAG_DRIVER_VA_FREE,       8 * MIB,  1, 0, 0},
    {GIVE,      FRAG_DRIVER_SEGMENT_FREE,  20 * MIB, 0, 0, 0},
    {GIVE,      FRAG_DRIVER_SEGMENT_FREE,  MIB,      2, 0, 0},
    /* clang-format on */
};

static enum frag_err take_step(struct frag_backend *m, struct things *t,
                               const struct step *s)
{
    const struct frag_backend_ops *ops = m->ops;

    switch (s->op) {
    case TAKE:
        return ops->segment_alloc(m, s->size, &t->segment[s->what]);
    case GIVE:
        return ops->segment_free(m, t->segment[s->what], s->size);
    case RESERVE:
        return ops->va_reserve(m, s->size, &t->span[s->what]);
    case UNRESERVE:
        return ops->va_free(m, t->span[s->what], s->size);
    case CREATE:
        return ops->phys_create(m, s->size, &t->phys[s->what]);
    case RELEASE:
        return ops->phys_release(m, t->phys[s->what], s->size);
    case MAP:
        return ops->map(m, t->span[s->where] + s->at, s->size,
                        t->phys[s->what]);
    case UNMAP:
        return ops->unmap(m, t->span[s->where] + s->at, s->size);
    case COPY:
        return ops->copy(m, t->span[s->where] + s->at, t->segment[s->what],
                         s->size, 0);
    case WAIT:
        return ops->synchronize(m);
    }
    return FRAG_INVALID;
}

/* For each address that the device returned in a step, under the twin's names,
 * the arena holds the same memory at the same place of its own reservation. */
static void maps_are_alike(const struct pair *p, const struct things *t)
{
    const struct faulty *d = &p->side[DEVICE], *a = &p->side[ARENA];
    frag_addr base[SPANS] = {0};

    for (size_t i = 0; i < d->count; i++)
        for (int k = 0; k < SPANS; k++) {
            const frag_addr off = d->held[i].addr - t->span[k];

            if (!d->held[i].mapped || !t->span[k] || off >= 16 * MIB)
                continue;
            if (base[k])
                assert_int_equal(a->held[i].addr - off, base[k]);
            base[k] = a->held[i].addr - off;
        }
    if (base[0] && base[1])
        assert_int_not_equal(base[0], base[1]);
}

static void both_have_the_same_at_every_step(void **state)
{
    struct things t = {0};
    struct pair p;

    (void)state;
    open_pair(&p, FRAG_UNLIMITED);
    for (size_t i = 0; i < COUNT(life); i++) {
        assert_int_equal(take_step(p.twin, &t, &life[i]), FRAG_OK);
        are_alike(&p);
        maps_are_alike(&p, &t);
        if (life[i].op == TAKE)
            assert_true(faulty_holds(&p.side[DEVICE], t.segment[life[i].what],
                                     life[i].size));
        if (life[i].op == COPY) {
            assert_int_equal(copied_to, t.span[life[i].where] + life[i].at);
            assert_int_equal(copied_from, t.segment[life[i].what]);
        }
        if (life[i].op == MAP)
            assert_true(faulty_holds(&p.side[DEVICE],
                                     t.span[life[i].where] + life[i].at,
                                     life[i].size));
    }
    assert_int_equal(p.side[DEVICE].used, 0);
    assert_int_equal(p.side[DEVICE].va, 0);
    close_pair(&p);
}

/* By the two lists of costs. The model's copy ends when the device has waited,
 * which also has a cost there. */
static void every_call_is_charged_on_both_sides(void **state)
{
    struct frag_twin_cost sum[FRAG_DRIVER_CALL_COUNT] = {{0}};
    frag_time spent = 0;
    struct things t = {0};
    struct pair p;

    (void)state;
    open_pair(&p, FRAG_UNLIMITED);
    for (size_t i = 0; i < COUNT(life); i++) {
        struct frag_twin_cost *c = &sum[life[i].call];

        c->calls++;
        c->modelled +=
            frag_cost_ns(&frag_costs_h200, life[i].call, life[i].size);
        c->measured += frag_cost_ns(&prices, life[i].call, life[i].size);
        if (life[i].op == COPY)
            c->measured += frag_cost_ns(&prices, FRAG_DRIVER_SYNCHRONIZE, 0);
        assert_int_equal(take_step(p.twin, &t, &life[i]), FRAG_OK);
    }
    for (int i = 0; i < FRAG_DRIVER_CALL_COUNT; i++) {
        const struct frag_twin_cost c =
            frag_twin_cost(p.twin, (enum frag_driver_call)i);

        assert_true(c.calls > 0);
        assert_int_equal(c.calls, sum[i].calls);
        assert_int_equal(c.modelled, sum[i].modelled);
        assert_int_equal(c.measured, sum[i].measured);
        spent += c.measured;
    }
    assert_int_equal(p.twin->ops->now(p.twin), spent);
    close_pair(&p);
}

/* The device has 3 GiB. Two are allocated and released, then two again: one GiB
 * of these must be cleared first, minus the part that was cleared during the
 * other calls. */
static void memory_just_given_back_is_waited_for(void **state)
{
    const frag_time clear = FRAG_CLEAR_NS_PER_MIB * (frag_time)1024;
    const struct frag_backend_ops *ops;
    frag_time first, again, freed, later;
    struct frag_twin_cost cost;
    frag_addr a = 0, b = 0;
    struct pair p;

    (void)state;
    open_pair(&p, FRAG_UNLIMITED);
    ops = p.twin->ops;
    assert_int_equal(ops->segment_alloc(p.twin, 2 * FRAG_GIB, &a), FRAG_OK);
    first = frag_twin_cost(p.twin, FRAG_DRIVER_SEGMENT_ALLOC).modelled;
    assert_int_equal(ops->segment_free(p.twin, a, 2 * FRAG_GIB), FRAG_OK);
    freed = frag_twin_cost(p.twin, FRAG_DRIVER_SEGMENT_FREE).modelled;
    assert_int_equal(ops->segment_alloc(p.twin, FRAG_GIB / 2, &b), FRAG_OK);
    cost = frag_twin_cost(p.twin, FRAG_DRIVER_SEGMENT_ALLOC);
    later = cost.modelled - first; /* half a GiB is left that was never used */
    assert_int_equal(later,
                     frag_cost_ns(&frag_costs_h200, FRAG_DRIVER_SEGMENT_ALLOC,
                                  FRAG_GIB / 2));
    assert_int_equal(ops->segment_free(p.twin, b, FRAG_GIB / 2), FRAG_OK);
    freed = frag_twin_cost(p.twin, FRAG_DRIVER_SEGMENT_FREE).modelled - freed;
    assert_int_equal(ops->segment_alloc(p.twin, 2 * FRAG_GIB, &a), FRAG_OK);
    cost = frag_twin_cost(p.twin, FRAG_DRIVER_SEGMENT_ALLOC);
    again = cost.modelled - first - later;
    /* 2.5 GiB were dirty, and the device worked during `freed` and `later`. */
    assert_in_range(again - first, 3 * clear / 2 - freed - later - 2,
                    3 * clear / 2 - freed - later + 2);
    assert_int_equal(cost.bytes, 4 * FRAG_GIB + FRAG_GIB / 2);
    assert_int_equal(ops->segment_free(p.twin, a, 2 * FRAG_GIB), FRAG_OK);
    close_pair(&p);
}

/* More than the device reports, but none of it has to be cleared. */
static void what_was_never_used_is_not_waited_for(void **state)
{
    struct frag_twin_cost cost;
    frag_addr a = 0;
    struct pair p;

    (void)state;
    open_pair(&p, FRAG_UNLIMITED);
    assert_int_equal(p.twin->ops->segment_alloc(p.twin, 4 * FRAG_GIB, &a),
                     FRAG_OK);
    cost = frag_twin_cost(p.twin, FRAG_DRIVER_SEGMENT_ALLOC);
    assert_int_equal(cost.modelled,
                     frag_cost_ns(&frag_costs_h200, FRAG_DRIVER_SEGMENT_ALLOC,
                                  4 * FRAG_GIB));
    assert_int_equal(p.twin->ops->segment_free(p.twin, a, 4 * FRAG_GIB),
                     FRAG_OK);
    close_pair(&p);
}

/* ---------------------------------------------------------- refusals --- */

/* The arena has 64 MiB; a request that it refuses does not reach the device. */
static void the_arena_is_asked_first_for_memory(void **state)
{
    const struct frag_backend_ops *ops;
    frag_addr a = 0, b = 7;
    frag_phys phys = 7;
    struct pair p;

    (void)state;
    open_pair(&p, 64 * MIB);
    ops = p.twin->ops;
    assert_int_equal(ops->segment_alloc(p.twin, 60 * MIB, &a), FRAG_OK);
    p.side[DEVICE].calls = 0;
    assert_int_equal(ops->segment_alloc(p.twin, 6 * MIB, &b), FRAG_OOM);
    assert_int_equal(ops->phys_create(p.twin, 6 * MIB, &phys), FRAG_OOM);
    assert_int_equal(p.side[DEVICE].calls, 0);
    assert_int_equal(frag_twin_refusals(p.twin), 0);
    assert_int_equal(p.twin->peak, 60 * MIB);
    assert_int_equal(b, 7);
    assert_int_equal(phys, 7);
    assert_int_equal(frag_twin_cost(p.twin, FRAG_DRIVER_SEGMENT_ALLOC).calls,
                     1);
    assert_int_equal(ops->segment_free(p.twin, a, 60 * MIB), FRAG_OK);
    are_alike(&p);
    close_pair(&p);
}

/* The device has 8 MiB, the arena any. */
static void what_the_device_refuses_is_taken_back(void **state)
{
    const struct frag_backend_ops *ops;
    frag_addr a = 7;
    frag_phys phys = 7;
    struct pair p;

    (void)state;
    open_pair(&p, FRAG_UNLIMITED);
    ops = p.twin->ops;
    p.side[DEVICE].limit = 8 * MIB;
    assert_int_equal(ops->segment_alloc(p.twin, 10 * MIB, &a), FRAG_OOM);
    are_alike(&p);
    assert_int_equal(ops->phys_create(p.twin, 10 * MIB, &phys), FRAG_OOM);
    are_alike(&p);
    assert_int_equal(frag_twin_refusals(p.twin), 2);
    assert_int_equal(a, 7);
    assert_int_equal(phys, 7);
    assert_int_equal(ops->segment_alloc(p.twin, 8 * MIB, &a), FRAG_OK);
    assert_int_equal(ops->segment_free(p.twin, a, 8 * MIB), FRAG_OK);
    are_alike(&p);
    close_pair(&p);
}

/* Each call of the device fails once: nothing has changed, and made again it
 * succeeds. */
static void a_call_that_the_device_fails_can_be_made_again(void **state)
{
    (void)state;
    for (uint64_t k = 1;; k++) {
        struct things t = {0};
        unsigned failed = 0;
        struct pair p;

        open_pair(&p, FRAG_UNLIMITED);
        p.side[DEVICE].fail_at = k;
        p.side[DEVICE].error = FRAG_DEVICE;
        for (size_t i = 0; i < COUNT(life); i++) {
            enum frag_err err = take_step(p.twin, &t, &life[i]);

            are_alike(&p);
            if (err != FRAG_OK) {
                assert_int_equal(err, FRAG_DEVICE);
                failed++;
                err = take_step(p.twin, &t, &life[i]);
            }
            assert_int_equal(err, FRAG_OK);
            are_alike(&p);
        }
        assert_int_equal(frag_twin_refusals(p.twin), 0);
        close_pair(&p);
        if (!failed)
            break;
        assert_int_equal(failed, 1);
        assert_true(k <= COUNT(life) + 1); /* a copy is two calls */
    }
}

/* The same for the arena, which receives the call first: then the device does
 * not receive it. */
static void what_the_arena_fails_the_device_is_not_asked(void **state)
{
    static const struct step asked[] = {
        {TAKE, FRAG_DRIVER_SEGMENT_ALLOC, 2 * MIB, 0, 0, 0},
        {RESERVE, FRAG_DRIVER_VA_RESERVE, 8 * MIB, 0, 0, 0},
        {CREATE, FRAG_DRIVER_PHYS_CREATE, 2 * MIB, 0, 0, 0},
        {MAP, FRAG_DRIVER_MAP, 2 * MIB, 0, 0, 0},
        {COPY, FRAG_DRIVER_COPY, 2 * MIB, 0, 0, 0},
    };
    struct things t = {0};
    struct pair p;

    (void)state;
    open_pair(&p, FRAG_UNLIMITED);
    p.side[ARENA].error = FRAG_DEVICE;
    for (size_t i = 0; i < COUNT(asked); i++) {
        p.side[ARENA].calls = p.side[DEVICE].calls = 0;
        p.side[ARENA].fail_at = p.side[DEVICE].fail_at = 1;
        p.side[DEVICE].error = FRAG_INVALID;
        assert_int_equal(take_step(p.twin, &t, &asked[i]), FRAG_DEVICE);
        assert_int_equal(p.side[DEVICE].calls, 0);
        p.side[ARENA].fail_at = p.side[DEVICE].fail_at = 0;
        assert_int_equal(frag_twin_cost(p.twin, asked[i].call).calls, 0);
        assert_int_equal(take_step(p.twin, &t, &asked[i]), FRAG_OK);
        are_alike(&p);
    }
    close_pair(&p); /* which frees the list of held memory */
}

static void what_was_not_taken_cannot_be_given(void **state)
{
    const struct frag_backend_ops *ops;
    frag_addr segment, span;
    struct pair p;

    (void)state;
    open_pair(&p, FRAG_UNLIMITED);
    ops = p.twin->ops;
    assert_int_equal(ops->segment_alloc(p.twin, 4 * MIB, &segment), FRAG_OK);
    assert_int_equal(ops->va_reserve(p.twin, 4 * MIB, &span), FRAG_OK);
    p.side[DEVICE].calls = 0;
    p.side[DEVICE].error = FRAG_DEVICE; /* counts every call */
    assert_int_equal(ops->segment_free(p.twin, segment + 512, 512),
                     FRAG_INVALID);
    assert_int_equal(ops->va_free(p.twin, segment, 4 * MIB), FRAG_INVALID);
    assert_int_equal(ops->phys_release(p.twin, 99, 2 * MIB), FRAG_INVALID);
    assert_int_equal(ops->map(p.twin, span, 2 * MIB, 99), FRAG_INVALID);
    assert_int_equal(p.side[DEVICE].calls, 0);
    are_alike(&p);
    assert_int_equal(ops->segment_free(p.twin, segment, 4 * MIB), FRAG_OK);
    p.side[DEVICE].calls = 0;
    assert_int_equal(ops->segment_free(p.twin, segment, 4 * MIB), FRAG_INVALID);
    assert_int_equal(p.side[DEVICE].calls, 0);
    close_pair(&p);
}

/* ------------------------------------------------------- the rest --- */

/* The capacity is that of the arena, the granularity that of the device.
 */
static void it_says_of_each_side_what_is_its_own(void **state)
{
    struct frag_backend *twin;
    struct pair p;

    (void)state;
    open_pair(&p, 64 * MIB);
    p.side[DEVICE].base.granularity = 4 * MIB;
    p.side[DEVICE].base.busy = true;
    assert_int_equal(
        frag_twin_open(&p.side[DEVICE].base, &p.side[ARENA].base, &twin),
        FRAG_OK);
    assert_int_equal(twin->capacity, 64 * MIB);
    assert_int_equal(twin->total, 5 * FRAG_GIB);
    assert_int_equal(twin->granularity, 4 * MIB);
    assert_true(twin->busy);
    assert_false(p.twin->busy);
    frag_twin_close(twin);
    close_pair(&p);
}

static void both_are_told_of_streams_if_they_care(void **state)
{
    struct pair p;

    (void)state;
    open_pair(&p, FRAG_UNLIMITED);
    frag_backend_stream_used(p.twin, 3);
    assert_int_equal(told[DEVICE], 3);
    assert_int_equal(told[ARENA], 3);
    p.engine[DEVICE].stream_used = NULL;
    frag_backend_stream_used(p.twin, 4);
    p.engine[ARENA].stream_used = NULL;
    p.engine[DEVICE].stream_used = tell_device;
    frag_backend_stream_used(p.twin, 5);
    assert_int_equal(told[DEVICE], 8);
    assert_int_equal(told[ARENA], 7);
    close_pair(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_have_the_same_at_every_step),
        cmocka_unit_test(every_call_is_charged_on_both_sides),
        cmocka_unit_test(memory_just_given_back_is_waited_for),
        cmocka_unit_test(what_was_never_used_is_not_waited_for),
        cmocka_unit_test(the_arena_is_asked_first_for_memory),
        cmocka_unit_test(what_the_device_refuses_is_taken_back),
        cmocka_unit_test(a_call_that_the_device_fails_can_be_made_again),
        cmocka_unit_test(what_the_arena_fails_the_device_is_not_asked),
        cmocka_unit_test(what_was_not_taken_cannot_be_given),
        cmocka_unit_test(it_says_of_each_side_what_is_its_own),
        cmocka_unit_test(both_are_told_of_streams_if_they_care),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
