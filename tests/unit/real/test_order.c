/* test_order.c - tests the order of streams (real/torch/service_order.h) with
 * random programs on several streams. The judge knows no ranges: each unit of
 * memory stores its last user and the time of use, and each stream stores how
 * much of every other stream it comes after. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <gsl/gsl_rng.h>
#include <stdlib.h>

#include "real/torch/service_order.h"

enum { UNITS = 64, UNIT = 512, STREAMS = 4, BLOCKS = 16, STEPS = 20000 };

struct block {
    int at, units; /* units 0: none */
    frag_stream stream;
};

struct world {
    struct order order;
    uint64_t clock[STREAMS];          /* work queued so far */
    uint64_t knows[STREAMS][STREAMS]; /* [a][b]: a comes after b's clock */
    struct {
        frag_stream stream;
        uint64_t when;
    } last[UNITS];
    bool used[UNITS];
    struct block blocks[BLOCKS];
    uint64_t waits;
};

static void wait(void *user, frag_stream stream, frag_stream other)
{
    struct world *w = user;

    assert_int_not_equal(stream, other);
    w->knows[stream][other] = w->clock[other];
    w->waits++;
}

static struct world *make(uint32_t streams)
{
    struct world *w = calloc(1, sizeof(*w));

    w->order.wait = wait;
    w->order.user = w;
    for (frag_stream s = 0; s < streams; s++)
        order_stream(&w->order, s);
    return w;
}

static void drop(struct world *w)
{
    order_close(&w->order);
    free(w);
}

/* Allocates the units and uses them at once: the work of their last users must
 * be known to be done. */
static void take(struct world *w, struct block *b, int at, int units,
                 frag_stream stream)
{
    *b = (struct block){at, units, stream};
    order_taken(&w->order, (frag_addr)at * UNIT, (frag_size)units * UNIT,
                stream);
    w->clock[stream]++;
    for (int u = at; u < at + units; u++) {
        const frag_stream last = w->last[u].stream;

        assert_false(w->used[u]);
        if (w->last[u].when && last != stream &&
            w->knows[stream][last] < w->last[u].when)
            fail_msg("stream %d has unit %d while %d is at work on it", stream,
                     u, last);
        w->used[u] = true;
    }
}

static void give(struct world *w, struct block *b)
{
    w->clock[b->stream]++; /* the last work on it */
    for (int u = b->at; u < b->at + b->units; u++) {
        w->used[u] = false;
        w->last[u].stream = b->stream;
        w->last[u].when = w->clock[b->stream];
    }
    order_freed(&w->order, (frag_addr)b->at * UNIT, (frag_size)b->units * UNIT,
                b->stream);
    b->units = 0;
}

static bool is_free(const struct world *w, int at, int units)
{
    for (int u = at; u < at + units; u++)
        if (w->used[u])
            return false;
    return true;
}

static void synchronize(struct world *w)
{
    order_synchronized(&w->order);
    for (int a = 0; a < STREAMS; a++)
        for (int b = 0; b < STREAMS; b++)
            w->knows[a][b] = w->clock[b];
}

static void act(struct world *w, gsl_rng *rng, uint32_t streams)
{
    struct block *b = &w->blocks[gsl_rng_uniform_int(rng, BLOCKS)];
    const int units = 1 + (int)gsl_rng_uniform_int(rng, 12);
    const int at =
        (int)gsl_rng_uniform_int(rng, (unsigned long)(UNITS - units));

    if (gsl_rng_uniform_int(rng, 500) == 0)
        synchronize(w);
    else if (b->units)
        give(w, b);
    else if (is_free(w, at, units))
        take(w, b, at, units, (frag_stream)gsl_rng_uniform_int(rng, streams));
}

static void nobody_is_at_work_on_what_is_handed_out(void **state)
{
    (void)state;
    for (unsigned long seed = 1; seed <= 20; seed++) {
        gsl_rng *rng = gsl_rng_alloc(gsl_rng_mt19937);
        struct world *w = make(seed % 2);

        gsl_rng_set(rng, seed);
        for (int step = 0; step < STEPS; step++) {
            if (w->order.streams < STREAMS &&
                (w->order.streams == 0 || step % 1000 == 999))
                order_stream(&w->order, (frag_stream)w->order.streams);
            w->order.coarse = seed % 5 == 0;
            act(w, rng, w->order.streams);
        }
        assert_true(w->waits > 100);
        drop(w);
        gsl_rng_free(rng);
    }
}

static void one_stream_never_waits(void **state)
{
    gsl_rng *rng = gsl_rng_alloc(gsl_rng_mt19937);
    struct world *w = make(1);

    (void)state;
    for (int step = 0; step < STEPS; step++)
        act(w, rng, 1);
    assert_int_equal(w->waits, 0);
    drop(w);
    gsl_rng_free(rng);
}

/* Its own memory, memory it has waited for, memory freed before a wait: no
 * wait. */
static void waits_only_where_it_must(void **state)
{
    struct world *w = make(2);

    (void)state;
    take(w, &w->blocks[0], 0, 4, 0);
    take(w, &w->blocks[1], 4, 4, 1);
    w->waits = 0;
    give(w, &w->blocks[0]);
    take(w, &w->blocks[0], 0, 4, 0);
    assert_int_equal(w->waits, 0); /* its own */
    give(w, &w->blocks[0]);
    give(w, &w->blocks[1]);
    take(w, &w->blocks[0], 0, 2, 1);
    assert_int_equal(w->waits, 1); /* stream 1 after 0 */
    take(w, &w->blocks[2], 2, 2, 1);
    assert_int_equal(w->waits, 1); /* known since */
    take(w, &w->blocks[1], 4, 4, 0);
    assert_int_equal(w->waits, 2); /* stream 0 after 1 */
    give(w, &w->blocks[1]);
    synchronize(w);
    take(w, &w->blocks[1], 4, 4, 1);
    assert_int_equal(w->waits, 2);
    drop(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nobody_is_at_work_on_what_is_handed_out),
        cmocka_unit_test(one_stream_never_waits),
        cmocka_unit_test(waits_only_where_it_must),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
