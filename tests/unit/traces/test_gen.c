/* test_gen.c - tests the trace generators: walks over their events to verify
 * the promised properties. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/trace_equal.h"
#include "traces/gen/generator.h"

/* ---- traces ---- */

static struct frag_trace *made(const char *name, const char *params,
                               uint64_t seed)
{
    const struct frag_generator *g = frag_generator_find(name);
    struct frag_trace *t = NULL;
    struct frag_error e = {""};

    assert_non_null(g);
    if (frag_generate(g, params, seed, &t, &e) != FRAG_OK)
        fail_msg("%s:%s: %s", name, params, e.text);
    assert_int_equal(t->device_count, 1);
    return t;
}

/* Parameters for a short run of each generator. */
static const char *short_run(const char *name)
{
    static const char *const rows[][2] = {
        {"stationary", "allocs=3000,live=50,streams=3"},
        {"training", "steps=4,layers=5"},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
        if (!strcmp(name, rows[i][0]))
            return rows[i][1];
    fail_msg("%s has no short run in this test", name);
    return NULL;
}

/* ---- all of them ---- */

static void a_seed_gives_the_same_events_and_another_one_others(void **state)
{
    (void)state;
    for (size_t i = 0; frag_generators[i]; i++) {
        const char *name = frag_generators[i]->name;
        const char *params = short_run(name);
        struct frag_trace *a, *b, *c;

        a = made(name, params, 7);
        b = made(name, params, 7);
        c = made(name, params, 8);
        assert_null(events_differ(a->devices, b->devices));
        assert_non_null(events_differ(a->devices, c->devices));
        frag_trace_close(a);
        frag_trace_close(b);
        frag_trace_close(c);
    }
}

static void every_block_is_freed_in_the_end(void **state)
{
    (void)state;
    for (size_t i = 0; frag_generators[i]; i++) {
        const char *name = frag_generators[i]->name;
        struct frag_trace *t = made(name, short_run(name), 1);
        const struct frag_device_trace *d = t->devices;
        uint64_t allocs = 0, frees = 0;

        for (uint64_t k = 0; k < d->count; k++) {
            allocs += d->op[k] == FRAG_ALLOC;
            frees += d->op[k] == FRAG_FREE;
        }
        assert_true(allocs > 0);
        assert_int_equal(allocs, frees);
        assert_int_equal(allocs + frees, d->count);
        frag_trace_close(t);
    }
}

static void a_wrong_parameter_is_answered_with_what_is_right(void **state)
{
    static const struct {
        const char *name, *params, *words;
    } rows[] = {
        {"stationary", "alocs=1",
         "stationary: there is no parameter alocs; did you mean \"allocs\"?"},
        {"stationary", "xyzzy=1",
         "stationary: there is no parameter xyzzy; \"fragsim gen\" lists the "
         "parameters"},
        {"stationary", "allocs",
         "stationary: expected key=value, found "
         "\"allocs\""},
        {"stationary", "allocs=0",
         "stationary: allocs=0: expected a whole number from 1 to 1e+09"},
        {"stationary", "allocs=1.5",
         "stationary: allocs=1.5: expected a whole number from 1 to 1e+09"},
        {"stationary", "spread=x",
         "stationary: spread=x: expected a number from 0.01 to 10"},
        {"stationary", "sizes=constantly",
         "stationary: sizes=constantly: expected one of "
         "constant|uniform|exponential|lognormal|pareto"},
        {"stationary", "sizes=normal",
         "stationary: sizes=normal: expected one of "
         "constant|uniform|exponential|lognormal|pareto"},
        {"training", "weights=big",
         "training: weights=big: expected a size from 1 B to 64 GiB"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct frag_trace *t = NULL;
        struct frag_error e;

        assert_int_equal(frag_generate(frag_generator_find(rows[i].name),
                                       rows[i].params, 1, &t, &e),
                         FRAG_INVALID);
        assert_null(t);
        assert_string_equal(e.text, rows[i].words);
    }
}

/* ---- stationary ---- */

static void stationary_meets_its_means(void **state)
{
    static const char *const shapes[] = {"constant", "uniform", "exponential",
                                         "lognormal", "pareto"};

    (void)state;
    for (size_t i = 0; i < sizeof(shapes) / sizeof(*shapes); i++) {
        double bytes = 0, allocs = 0, live = 0, lives = 0, samples = 0;
        struct frag_trace *t;
        char params[160];

        snprintf(params, sizeof(params),
                 "allocs=40000,mean=1MiB,live=100,spread=0.5,life_spread=0.5,"
                 "sizes=%s,lifetimes=%s",
                 shapes[i], shapes[i]);
        t = made("stationary", params, 3);
        for (uint64_t k = 0; k < t->devices->count; k++) {
            const bool alloc = t->devices->op[k] == FRAG_ALLOC;

            bytes += (double)t->devices->bytes[k];
            allocs += alloc;
            live += alloc ? 1 : -1;
            if (alloc && allocs > 4000) {
                lives += live;
                samples++;
            }
        }
        assert_true(fabs(bytes / allocs / 0x1p20 - 1) < 0.03);
        assert_true(fabs(lives / samples / 100 - 1) < 0.05);
        frag_trace_close(t);
    }
}

static void exponential_lifetimes_have_an_exponential_tail(void **state)
{
    struct frag_trace *t =
        made("stationary", "allocs=40000,live=100,lifetimes=exponential", 5);
    const struct frag_device_trace *d = t->devices;
    uint64_t *born = calloc(d->slots, sizeof(*born)), now = 0;
    double above[4] = {0};

    (void)state;
    assert_non_null(born);
    for (uint64_t k = 0; k < d->count; k++) {
        if (d->op[k] == FRAG_ALLOC)
            born[d->id[k]] = now++;
        for (int m = 1; d->op[k] == FRAG_FREE && m < 4; m++)
            above[m] += now - born[d->id[k]] > (uint64_t)m * 100;
    }
    for (int m = 1; m < 4; m++)
        assert_true(fabs(above[m] / 40000 - exp(-m)) < 0.015);
    free(born);
    frag_trace_close(t);
}

/* Blocks that live for 3 requests are freed in the order of their birth. */
static void blocks_of_one_lifetime_die_in_the_order_of_birth(void **state)
{
    struct frag_trace *t =
        made("stationary", "allocs=500,live=3,lifetimes=constant", 1);
    const struct frag_device_trace *d = t->devices;
    uint64_t born[16], allocs = 0, last = 0;

    (void)state;
    assert_true(d->slots <= 16);
    for (uint64_t k = 0; k < d->count; k++) {
        if (d->op[k] == FRAG_ALLOC) {
            born[d->id[k]] = ++allocs;
            continue;
        }
        assert_int_equal(born[d->id[k]], ++last);
    }
    frag_trace_close(t);
}

/* ---- training ---- */

/* 5 layers, 2 steps: what is live after each, and the most that is. */
static void training_keeps_weights_and_states_between_steps(void **state)
{
    struct frag_trace *t =
        made("training",
             "steps=3,layers=5,activation=1KiB,weights=1MiB,jitter=0", 1);
    const struct frag_device_trace *d = t->devices;
    /* A step: 8 tensors forward, of which 2 are freed at once; a gradient for
     * each, and of the weights; the update; the first gradient of all. The
     * first step makes 2 states besides. */
    const uint64_t step = 5 * (8 + 8 + 1 + 1) * 2 + 2;
    frag_size *size = calloc(d->slots, sizeof(*size)), live = 0;
    const uint64_t ends[] = {5 + step + 10, 5 + 2 * step + 10,
                             5 + 3 * step + 10};

    (void)state;
    assert_non_null(size);
    assert_int_equal(d->count, ends[2] + 15);
    for (uint64_t k = 0, s = 0; k < ends[2]; k++) {
        if (d->op[k] == FRAG_ALLOC)
            live += size[d->id[k]] = d->bytes[k];
        else
            live -= size[d->id[k]];
        if (k + 1 == ends[s]) {
            assert_int_equal(live, 15 * FRAG_MIB);
            s++;
        }
    }
    for (uint64_t k = 0; k < step; k++) {
        assert_int_equal(d->op[ends[0] + k], d->op[ends[1] + k]);
        assert_int_equal(d->bytes[ends[0] + k], d->bytes[ends[1] + k]);
    }
    free(size);
    frag_trace_close(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_seed_gives_the_same_events_and_another_one_others),
        cmocka_unit_test(every_block_is_freed_in_the_end),
        cmocka_unit_test(a_wrong_parameter_is_answered_with_what_is_right),
        cmocka_unit_test(stationary_meets_its_means),
        cmocka_unit_test(exponential_lifetimes_have_an_exponential_tail),
        cmocka_unit_test(blocks_of_one_lifetime_die_in_the_order_of_birth),
        cmocka_unit_test(training_keeps_weights_and_states_between_steps),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
