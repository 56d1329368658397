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
#include <unistd.h>

#include "tests/trace_equal.h"
#include "traces/gen/generator.h"

/* ---- traces ---- */

static char folder[] = "/tmp/test_gen.XXXXXX";
static char profile_path[64], trace_path[64];

static void write_text(const char *path, const char *text)
{
    FILE *out = fopen(path, "w");

    assert_non_null(out);
    assert_true(fputs(text, out) >= 0);
    assert_int_equal(fclose(out), 0);
}

/* Two sizes: 100 bytes, 1 of 4 requests and 10 of 12 live; 7 bytes, 3 of 4 and
 * 2 of 12. And requests of 100 bytes that live for 3. */
static int make_inputs(void **state)
{
    (void)state;
    if (!mkdtemp(folder))
        return -1;
    snprintf(profile_path, sizeof(profile_path), "%s/profile.csv", folder);
    snprintf(trace_path, sizeof(trace_path), "%s/trace.csv", folder);
    write_text(profile_path, "100, 1.0, 10.0\n7, 3.0, 2.0\n");
    write_text(trace_path, "op,id,bytes,stream\n"
                           "alloc,1,100,0\nalloc,2,100,0\nalloc,3,100,0\n"
                           "free,1,0,0\nalloc,4,100,0\n"
                           "free,2,0,0\nalloc,5,100,0\n"
                           "free,3,0,0\nalloc,6,100,0\n"
                           "free,4,0,0\nfree,5,0,0\nfree,6,0,0\n");
    return 0;
}

static int remove_inputs(void **state)
{
    (void)state;
    unlink(profile_path);
    unlink(trace_path);
    return rmdir(folder);
}

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

/* Parameters for a short run of each generator; "%s" is the file it needs. */
static const char *short_run(const char *name, char text[128])
{
    static const char *const rows[][2] = {
        {"stationary", "allocs=3000,live=50,streams=3"},
        {"training", "steps=4,layers=5"},
        {"inference", "requests=40,running=8"},
        {"fitted", "allocs=2000,trace=%s"},
        {"tiling", "blocks=500"},
        {"fleetbench", "allocs=2000,live=100,profile=%s"},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        const char *file = strcmp(name, "fitted") ? profile_path : trace_path;
        const char *hole = strstr(rows[i][1], "%s");

        if (strcmp(name, rows[i][0]) != 0)
            continue;
        snprintf(text, 128, "%.*s%s", (int)(hole ? hole - rows[i][1] : 127),
                 rows[i][1], hole ? file : "");
        return text;
    }
    fail_msg("%s has no short run in this test", name);
    return NULL;
}

/* ---- all of them ---- */

static void a_seed_gives_the_same_events_and_another_one_others(void **state)
{
    (void)state;
    for (size_t i = 0; frag_generators[i]; i++) {
        const char *name = frag_generators[i]->name;
        char params[128];
        struct frag_trace *a, *b, *c;

        short_run(name, params);
        a = made(name, params, 7);
        b = made(name, params, 7);
        c = made(name, params, 8);
        assert_null(events_differ(a->devices, b->devices));
        if (strcmp(name, "fitted") != 0) /* its trace has one kind of block */
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
        char params[128];
        struct frag_trace *t =
            made(frag_generators[i]->name,
                 short_run(frag_generators[i]->name, params), 1);
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
        {"stationary", "sizes=normal",
         "stationary: sizes=normal: expected one of "
         "constant|uniform|exponential|lognormal|pareto"},
        {"training", "weights=big",
         "training: weights=big: expected a size from 1 B to 64 GiB"},
        {"fitted", "", "fitted: expected trace=FILE"},
        {"fleetbench", "profile=", "fleetbench: expected profile=FILE"},
        {"tiling", "blocks=9,ticks=2,bytes=2KiB",
         "tiling: expected blocks of at most bytes / unit x ticks = 8, found "
         "9"},
        {"tiling", "bytes=1TiB,unit=1",
         "tiling: expected bytes / unit of at most 2^32 - 1, found "
         "1099511627776; "
         "raise unit or lower bytes"},
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

/* ---- inference ---- */

/* One request at a time, in chunks of one token. Each cache is allocated while
 * the last one is still live. It is one token larger, or it belongs to the next
 * request. */
static void a_cache_grows_by_a_chunk_while_the_old_one_is_live(void **state)
{
    struct frag_trace *t = made("inference",
                                "requests=20,running=1,token=1000,scores=1,"
                                "chunk=1,prompt=100,output=100",
                                1);
    const struct frag_device_trace *d = t->devices;
    uint64_t live = 0, grown = 0, started = 0;
    frag_size last = 0;

    (void)state;
    for (uint64_t k = 0; k < d->count; k++) {
        if (d->op[k] == FRAG_FREE && d->bytes[k] == 0) {
            live--;
            continue;
        }
        live++;
        if (d->bytes[k] == 1) /* the scores */
            continue;
        assert_int_equal(d->bytes[k] % 1000, 0);
        if (live == 3) { /* the scores, the old and the new */
            assert_int_equal(d->bytes[k], last + 1000);
            grown++;
        } else {
            started++;
        }
        last = d->bytes[k];
    }
    assert_int_equal(started, 20);
    assert_true(grown > 1000);
    frag_trace_close(t);
}

/* ---- fitted ---- */

static void fitted_requests_keep_size_and_lifetime_together(void **state)
{
    struct frag_trace *t;
    char params[128];
    uint64_t allocs = 0, frees = 0;

    (void)state;
    snprintf(params, sizeof(params), "allocs=500,trace=%s", trace_path);
    t = made("fitted", params, 1);
    /* In the trace each block of 100 bytes lives for 3 requests. The last three
     * end with the trace: after 3, 2 and 1 requests. */
    for (uint64_t k = 0; k < t->devices->count; k++) {
        if (t->devices->op[k] == FRAG_FREE) {
            frees++;
            continue;
        }
        assert_int_equal(t->devices->bytes[k], 100);
        allocs++;
        assert_true(allocs - frees <= 3);
    }
    assert_int_equal(allocs, 500);
    frag_trace_close(t);
}

/* Between two requests, what dies is freed oldest first. */
static void of_equals_the_older_block_dies_first(void **state)
{
    struct frag_trace *t;
    const struct frag_device_trace *d;
    uint64_t born[16], allocs = 0, last = 0, ties = 0;
    char params[128];

    (void)state;
    snprintf(params, sizeof(params), "allocs=500,trace=%s", trace_path);
    t = made("fitted", params, 1);
    d = t->devices;
    assert_true(d->slots <= 16);
    for (uint64_t k = 0; allocs < 500; k++) {
        if (d->op[k] == FRAG_ALLOC) {
            born[d->id[k]] = ++allocs;
            last = 0;
            continue;
        }
        assert_true(born[d->id[k]] > last);
        ties += last > 0;
        last = born[d->id[k]];
    }
    assert_true(ties > 10);
    frag_trace_close(t);
}

/* ---- tiling ---- */

/* Whenever something is about to be freed, and at the end of all allocations,
 * memory is full; never is more live. */
static void a_tiling_is_full_at_all_times(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed < 20; seed++) {
        struct frag_trace *t =
            made("tiling", "blocks=300,bytes=1MiB,unit=256,ticks=100", seed);
        const struct frag_device_trace *d = t->devices;
        frag_size *size = calloc(d->slots, sizeof(*size)), live = 0;
        uint64_t allocs = 0;

        assert_non_null(size);
        for (uint64_t k = 0; k < d->count && allocs < 300; k++) {
            if (d->op[k] == FRAG_ALLOC) {
                assert_int_equal(d->bytes[k] % 256, 0);
                live += size[d->id[k]] = d->bytes[k];
                allocs++;
                assert_true(live <= FRAG_MIB);
                continue;
            }
            if (d->op[k - 1] == FRAG_ALLOC)
                assert_int_equal(live, FRAG_MIB);
            live -= size[d->id[k]];
        }
        assert_int_equal(allocs, 300);
        assert_int_equal(live, FRAG_MIB);
        assert_int_equal(d->count, 600);
        free(size);
        frag_trace_close(t);
    }
}

/* Places blocks k.. of a tiling one after the other at any free units; whether
 * all find a place. Times are events, live is the map of memory. */
static bool fits(const struct frag_device_trace *d, uint64_t k, uint32_t map,
                 uint32_t *masks, unsigned units)
{
    if (k == d->count)
        return true;
    if (d->op[k] == FRAG_FREE)
        return fits(d, k + 1, map & ~masks[d->id[k]], masks, units);
    for (unsigned at = 0; at + d->bytes[k] <= units; at++) {
        const uint32_t mask = ((1u << d->bytes[k]) - 1) << at;
        const uint32_t old = masks[d->id[k]];

        if (map & mask)
            continue;
        masks[d->id[k]] = mask;
        if (fits(d, k + 1, map | mask, masks, units))
            return true;
        masks[d->id[k]] = old;
    }
    return false;
}

static void a_search_finds_a_place_for_all_of_a_small_tiling(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed < 50; seed++) {
        struct frag_trace *t =
            made("tiling", "blocks=9,bytes=12,unit=1,ticks=12", seed);
        uint32_t masks[16] = {0};

        assert_true(t->devices->slots <= 16);
        assert_true(fits(t->devices, 0, 0, masks, 12));
        frag_trace_close(t);
    }
}

/* ---- fleetbench ---- */

static void a_profile_gives_shares_of_requests_and_of_live_blocks(void **state)
{
    enum { LIVE = 3000, ALLOCS = 40000 };
    struct frag_trace *t;
    const struct frag_device_trace *d;
    double large_at_start = 0, large = 0, live = 0, lives = 0, allocs = 0;
    char params[160];

    (void)state;
    snprintf(params, sizeof(params), "live=%d,allocs=%d,profile=%s", LIVE,
             ALLOCS, profile_path);
    t = made("fleetbench", params, 1);
    d = t->devices;
    for (uint64_t k = 0; k < d->count && allocs < LIVE + ALLOCS; k++) {
        if (d->op[k] != FRAG_ALLOC) {
            assert_true(k >= LIVE);
            live--;
            continue;
        }
        assert_true(d->bytes[k] == 100 || d->bytes[k] == 7);
        *(allocs < LIVE ? &large_at_start : &large) += d->bytes[k] == 100;
        allocs++;
        live++;
        lives += allocs > LIVE ? live : 0;
    }
    assert_true(fabs(large_at_start / LIVE - 10.0 / 12) < 0.02);
    assert_true(fabs(large / ALLOCS - 1.0 / 4) < 0.01);
    assert_true(fabs(lives / ALLOCS / LIVE - 1) < 0.03);
    frag_trace_close(t);
}

static void a_malformed_profile_is_answered_with_its_line(void **state)
{
    struct frag_trace *t = NULL;
    struct frag_error e;
    char params[160], words[256], path[96];

    (void)state;
    snprintf(path, sizeof(path), "%s/bad.csv", folder);
    write_text(path, "8, 1, 1\n8, 0, 1\n");
    snprintf(params, sizeof(params), "profile=%s", path);
    snprintf(words, sizeof(words),
             "%s:2: expected size, rate, live, all above 0 (size at most 2^40, "
             "others below 1e15), found \"8, 0, 1\"",
             path);
    assert_int_equal(
        frag_generate(frag_generator_find("fleetbench"), params, 1, &t, &e),
        FRAG_CORRUPT);
    assert_string_equal(e.text, words);
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_seed_gives_the_same_events_and_another_one_others),
        cmocka_unit_test(every_block_is_freed_in_the_end),
        cmocka_unit_test(a_wrong_parameter_is_answered_with_what_is_right),
        cmocka_unit_test(stationary_meets_its_means),
        cmocka_unit_test(exponential_lifetimes_have_an_exponential_tail),
        cmocka_unit_test(training_keeps_weights_and_states_between_steps),
        cmocka_unit_test(a_cache_grows_by_a_chunk_while_the_old_one_is_live),
        cmocka_unit_test(fitted_requests_keep_size_and_lifetime_together),
        cmocka_unit_test(of_equals_the_older_block_dies_first),
        cmocka_unit_test(a_tiling_is_full_at_all_times),
        cmocka_unit_test(a_search_finds_a_place_for_all_of_a_small_tiling),
        cmocka_unit_test(a_profile_gives_shares_of_requests_and_of_live_blocks),
        cmocka_unit_test(a_malformed_profile_is_answered_with_its_line),
    };

    return cmocka_run_group_tests(tests, make_inputs, remove_inputs);
}
