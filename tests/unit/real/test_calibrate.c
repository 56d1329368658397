/* test_calibrate.c - tests calibration: on the arena, whose cost model is
 * known, it must find that model; the regression must find the lines of times
 * made by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "real/device/calibrate.h"
#include "real/device/regression.h"
#include "sim/arena/arena.h"
#include "sim/experiments/contract/faulty.h"

#define DATA FRAG_SOURCE_DIR "/real/data/nvidia-h200-"

static bool near(double a, double b, double part)
{
    return a >= b * (1 - part) - 1 && a <= b * (1 + part) + 1;
}

/* ---- measuring ---- */

static struct frag_backend *arena_of(const struct frag_costs *costs)
{
    return frag_arena_open(&(const struct frag_arena_options){
        .capacity = 16 * FRAG_GIB, .rule = FRAG_RULE_DRIVER, .costs = costs});
}

static void the_arenas_model_comes_out(void **state)
{
    struct frag_timings t = {0};
    struct frag_costs_regression found;
    struct frag_costs costs;
    struct frag_backend *mem;

    (void)state;
    for (int i = 0; i < FRAG_DRIVER_CALL_COUNT; i++)
        costs.call[i] = (struct frag_cost){1000 + 700 * i, 30 + 11 * i};
    costs.call[FRAG_DRIVER_SYNCHRONIZE].ns_per_mib = 0; /* of no size */
    mem = arena_of(&costs);
    assert_int_equal(frag_calibrate(
                         &(const struct frag_calibration){
                             .mem = mem, .room = 16 * FRAG_GIB, .rounds = 2},
                         &t, NULL),
                     FRAG_OK);
    assert_int_equal(frag_arena_used(mem), 0);
    assert_int_equal(frag_arena_reserved_va(mem), 0);
    assert_int_equal(frag_costs_regress(&t, &found, NULL), FRAG_OK);
    /* A copy is timed until it is done, with the wait for that. */
    costs.call[FRAG_DRIVER_COPY].fixed_ns +=
        costs.call[FRAG_DRIVER_SYNCHRONIZE].fixed_ns;
    for (int i = 0; i < FRAG_DRIVER_CALL_COUNT; i++) {
        const struct frag_cost_regression *f = &found.call[i];

        assert_true(near(f->cost.fixed_ns, costs.call[i].fixed_ns, 0.002));
        assert_true(near(f->cost.ns_per_mib, costs.call[i].ns_per_mib, 0.05));
        assert_true(f->worst < 0.01);
    }
    frag_timings_free(&t);
    frag_arena_close(mem);
}

/* An arena with uneven calls: of every 16 calls, eight last 400 ns longer and
 * one lasts a millisecond longer. */
struct uneven {
    struct frag_backend base;
    struct frag_backend_ops ops;
    struct frag_backend *arena;
    uint64_t asked; /* for the time: before a call and after it, in turn */
    frag_time late;
};

static frag_time uneven_now(struct frag_backend *mem)
{
    struct uneven *u = (struct uneven *)mem;
    const uint64_t call = u->asked / 2 % 16;

    if (u->asked++ % 2)
        u->late += call == 5 ? 1000000 : call % 2 ? 0 : 400;
    return u->arena->ops->now(u->arena) + u->late;
}

static enum frag_err uneven_alloc(struct frag_backend *mem, frag_size size,
                                  frag_addr *addr)
{
    struct frag_backend *arena = ((struct uneven *)mem)->arena;

    return arena->ops->segment_alloc(arena, size, addr);
}

static enum frag_err uneven_free(struct frag_backend *mem, frag_addr addr,
                                 frag_size size)
{
    struct frag_backend *arena = ((struct uneven *)mem)->arena;

    return arena->ops->segment_free(arena, addr, size);
}

static enum frag_err uneven_reserve(struct frag_backend *mem, frag_size size,
                                    frag_addr *addr)
{
    (void)mem;
    (void)size;
    (void)addr;
    return FRAG_OOM;
}

/* The calibration ends at the first reservation; the segments were timed
 * before. */
static void a_round_is_the_mean_of_its_usual_calls(void **state)
{
    struct frag_backend *arena = arena_of(&frag_costs_h200);
    struct uneven u = {.arena = arena};
    struct frag_timings t = {0};

    (void)state;
    u.base = *arena;
    u.ops = *arena->ops;
    u.ops.now = uneven_now;
    u.ops.segment_alloc = uneven_alloc;
    u.ops.segment_free = uneven_free;
    u.ops.va_reserve = uneven_reserve;
    u.base.ops = &u.ops;
    assert_int_equal(frag_calibrate(
                         &(const struct frag_calibration){
                             .mem = &u.base, .room = FRAG_GIB, .rounds = 1},
                         &t, NULL),
                     FRAG_OOM);
    assert_true(t.count > 10);
    for (size_t i = 0; i < t.count; i++)
        if (t.rows[i].bytes <= FRAG_GIB / 64)
            assert_int_equal(t.rows[i].ns,
                             8 * 400 / 15 + frag_cost_ns(&frag_costs_h200,
                                                         t.rows[i].call,
                                                         t.rows[i].bytes));
    frag_timings_free(&t);
    frag_arena_close(arena);
}

static bool stop_in_round_two(void *user, uint64_t done, uint64_t total)
{
    assert_int_equal(total, 6);
    *(uint64_t *)user = done;
    return done == 2;
}

static void it_ends_when_told_to(void **state)
{
    struct frag_backend *mem = arena_of(&frag_costs_h200);
    struct frag_timings t = {0};
    uint64_t seen = 0;

    (void)state;
    assert_int_equal(
        frag_calibrate(
            &(const struct frag_calibration){.mem = mem,
                                             .room = 64 * FRAG_MIB,
                                             .rounds = 5,
                                             .progress = stop_in_round_two,
                                             .user = &seen},
            &t, NULL),
        FRAG_CANCELLED);
    assert_int_equal(seen, 2);
    for (size_t i = 0; i < t.count; i++)
        assert_true(t.rows[i].round < 2 && t.rows[i].bytes <= 1024 * FRAG_GIB);
    assert_true(t.count > 100);
    frag_timings_free(&t);
    frag_arena_close(mem);
}

/* The expected costs are once, half, and three times those of the arena. */
static void the_pace_is_what_calls_take_over_what_they_should(void **state)
{
    struct frag_backend *mem = arena_of(&frag_costs_h200);
    const double parts[] = {1, 0.5, 3};

    (void)state;
    for (size_t k = 0; k < 3; k++) {
        struct frag_costs costs = frag_costs_h200;
        double pace = 0;

        for (int i = 0; i < FRAG_DRIVER_CALL_COUNT; i++) {
            costs.call[i].fixed_ns *= parts[k];
            costs.call[i].ns_per_mib *= parts[k];
        }
        assert_int_equal(frag_pace(mem, FRAG_GIB, &costs, &pace, NULL),
                         FRAG_OK);
        assert_true(pace > 0.999 / parts[k] && pace < 1.001 / parts[k]);
        assert_int_equal(frag_pace(mem, FRAG_MIB, &costs, &pace, NULL),
                         FRAG_OK);
        assert_true(pace == 1);
        assert_int_equal(frag_arena_used(mem), 0);
        assert_int_equal(frag_arena_reserved_va(mem), 0);
    }
    frag_arena_close(mem);
}

static void a_pace_that_fails_holds_nothing(void **state)
{
    struct frag_backend *inner = arena_of(&frag_costs_h200);
    static struct faulty f;
    uint64_t fail_at = 0;
    enum frag_err err;

    (void)state;
    do {
        double pace = 77;

        faulty_init(&f, inner);
        f.fail_at = ++fail_at;
        f.error = FRAG_OOM;
        err = frag_pace(&f.base, FRAG_GIB, &frag_costs_h200, &pace, NULL);
        assert_true(err == FRAG_OK || (err == FRAG_OOM && pace == 77));
        assert_int_equal(f.count, 0);
        assert_int_equal(frag_arena_used(inner), 0);
    } while (err != FRAG_OK);
    assert_true(fail_at > 60);
    frag_arena_close(inner);
}

/* Whichever call fails, all memory is released and the message names a call. */
/* With sanitizers, which take seconds for all, one call in seven fails after
 * the first 64; the other build lets each one fail. */
static void nothing_is_held_after_a_failure(void **state)
{
    const uint64_t stride = FRAG_SANITIZED ? 7 : 1;
    struct frag_backend *inner = arena_of(&frag_costs_h200);
    static struct faulty f;
    uint64_t fail_at = 0;
    enum frag_err err;

    (void)state;
    do {
        struct frag_timings t = {0};
        struct frag_error e = {""};

        faulty_init(&f, inner);
        fail_at += fail_at < 64 ? 1 : stride;
        f.fail_at = fail_at;
        f.error = FRAG_OOM;
        err = frag_calibrate(
            &(const struct frag_calibration){
                .mem = &f.base, .room = 32 * FRAG_MIB, .rounds = 1},
            &t, &e);
        assert_true(err == FRAG_OK ||
                    (err == FRAG_OOM && strstr(e.text, " of ")));
        assert_null(f.misuse);
        assert_int_equal(f.count, 0);
        assert_int_equal(frag_arena_used(inner), 0);
        assert_int_equal(frag_arena_reserved_va(inner), 0);
        frag_timings_free(&t);
    } while (err != FRAG_OK);
    assert_true(fail_at > 100);
    frag_arena_close(inner);
}

/* ---- regression ---- */

static void add(struct frag_timings *t, int call, uint32_t round,
                frag_size bytes, double ns)
{
    const struct frag_timing row = {(enum frag_driver_call)call, round, bytes,
                                    (frag_time)ns};

    assert_int_equal(frag_timings_add(t, row), FRAG_OK);
}

/* All calls at ten sizes: ns = 2000 + 50 a MiB. */
static struct frag_timings plain(void)
{
    struct frag_timings t = {.about = "a test"};

    for (int i = 0; i < FRAG_DRIVER_CALL_COUNT; i++)
        for (int k = 0; k < 10; k++)
            add(&t, i, 1, FRAG_MIB << k, 2000 + 50 * (1 << k));
    return t;
}

static void the_least_round_counts_and_the_warm_up_does_not(void **state)
{
    struct frag_timings t = {0};
    struct frag_typical *list;
    size_t count;

    (void)state;
    add(&t, FRAG_DRIVER_MAP, 2, 10, 700);
    add(&t, FRAG_DRIVER_MAP, 0, 10, 100);
    add(&t, FRAG_DRIVER_UNMAP, 1, 10, 50);
    add(&t, FRAG_DRIVER_MAP, 3, 10, 600);
    add(&t, FRAG_DRIVER_MAP, 1, 9, 900);
    assert_int_equal(frag_timings_typical(&t, FRAG_DRIVER_MAP, &list, &count),
                     FRAG_OK);
    assert_int_equal(count, 2);
    assert_true(list[0].bytes == 9 && list[0].ns == 900);
    assert_true(list[1].bytes == 10 && list[1].ns == 600);
    free(list);
    frag_timings_free(&t);
}

static void two_sizes_far_off_do_not_bend_the_line(void **state)
{
    struct frag_timings t = plain();
    struct frag_costs_regression found;

    (void)state;
    for (size_t i = 0; i < t.count; i++)
        if (t.rows[i].call == FRAG_DRIVER_MAP &&
            (t.rows[i].bytes == 8 * FRAG_MIB ||
             t.rows[i].bytes == 512 * FRAG_MIB))
            t.rows[i].ns *= 100;
    assert_int_equal(frag_costs_regress(&t, &found, NULL), FRAG_OK);
    assert_true(near(found.call[FRAG_DRIVER_MAP].cost.fixed_ns, 2000, 0.02));
    assert_true(near(found.call[FRAG_DRIVER_MAP].cost.ns_per_mib, 50, 0.02));
    assert_true(found.call[FRAG_DRIVER_MAP].residual < 0.01);
    assert_true(found.call[FRAG_DRIVER_MAP].worst > 0.9);
    frag_timings_free(&t);
}

/* Times that fall with the size, and times that would begin below 0. */
static void no_cost_is_negative(void **state)
{
    struct frag_timings t = plain();
    struct frag_costs_regression found;

    (void)state;
    for (size_t i = 0; i < t.count; i++) {
        double mib = (double)t.rows[i].bytes / (double)FRAG_MIB;

        if (t.rows[i].call == FRAG_DRIVER_MAP)
            t.rows[i].ns = (frag_time)(3000 - 2 * mib);
        if (t.rows[i].call == FRAG_DRIVER_COPY)
            t.rows[i].ns = (frag_time)(900 * mib - 300);
    }
    assert_int_equal(frag_costs_regress(&t, &found, NULL), FRAG_OK);
    assert_true(near(found.call[FRAG_DRIVER_MAP].cost.fixed_ns, 2952, 0.02));
    assert_true(found.call[FRAG_DRIVER_MAP].cost.ns_per_mib == 0);
    assert_true(found.call[FRAG_DRIVER_COPY].cost.fixed_ns == 0);
    assert_true(near(found.call[FRAG_DRIVER_COPY].cost.ns_per_mib, 900, 0.02));
    frag_timings_free(&t);
}

static void too_few_sizes_are_refused(void **state)
{
    struct frag_timings t = plain();
    struct frag_costs_regression found;
    struct frag_error e = {""};

    (void)state;
    for (size_t i = 0; i < t.count; i++)
        if (t.rows[i].call == FRAG_DRIVER_UNMAP &&
            t.rows[i].bytes > 4 * FRAG_MIB)
            t.rows[i].round = 0;
    assert_int_equal(frag_costs_regress(&t, &found, &e), FRAG_CORRUPT);
    assert_non_null(strstr(e.text, "unmap: expected 4"));
    assert_non_null(strstr(e.text, "found 3"));
    frag_timings_free(&t);
}

/* ---- files ---- */

static void the_kept_costs_are_the_regression_of_the_kept_calls(void **state)
{
    struct frag_costs_regression found;
    struct frag_timings t;
    struct frag_costs kept;

    (void)state;
    assert_int_equal(frag_timings_read(DATA "calls.csv", &t, NULL), FRAG_OK);
    assert_int_equal(strncmp(t.about, "device NVIDIA H200", 18), 0);
    assert_int_equal(frag_costs_regress(&t, &found, NULL), FRAG_OK);
    assert_int_equal(frag_costs_read(DATA "costs.csv", &kept, NULL), FRAG_OK);
    for (int i = 0; i < FRAG_DRIVER_CALL_COUNT; i++) {
        const struct frag_cost *c = &found.call[i].cost;

        /* The file has one and three decimals. */
        assert_float_equal(c->fixed_ns, kept.call[i].fixed_ns, 0.1);
        assert_float_equal(c->ns_per_mib, kept.call[i].ns_per_mib, 0.001);
    }
    frag_timings_free(&t);
}

static void what_is_written_is_read(void **state)
{
    char path[] = "/tmp/fragsim-timings-XXXXXX";
    struct frag_timings t = plain(), back;
    FILE *file = fdopen(mkstemp(path), "w");

    (void)state;
    frag_timings_write(&t, file);
    fclose(file);
    assert_int_equal(frag_timings_read(path, &back, NULL), FRAG_OK);
    assert_string_equal(back.about, t.about);
    assert_int_equal(back.count, t.count);
    assert_memory_equal(back.rows, t.rows, t.count * sizeof(*t.rows));
    frag_timings_free(&t);
    frag_timings_free(&back);
    unlink(path);
}

static void refused(const char *content, const char *words)
{
    char path[] = "/tmp/fragsim-timings-XXXXXX";
    FILE *file = fdopen(mkstemp(path), "w");
    struct frag_error e = {""};
    struct frag_timings t;

    fputs(content, file);
    fclose(file);
    assert_int_equal(frag_timings_read(path, &t, &e), FRAG_CORRUPT);
    assert_non_null(strstr(e.text, words));
    unlink(path);
}

static void a_broken_file_is_refused_with_its_line(void **state)
{
    struct frag_timings t;

    (void)state;
#define HEAD "# x\ncall,bytes,round,ns\n"
    refused("map,1,2,3\n", ":1: expected the header");
    refused(HEAD "map,1,2\n", ":3: expected call,bytes,round,ns");
    refused(HEAD "map,1,2,3,4\n", ":3: expected call,bytes,round,ns");
    refused(HEAD "map,-1,2,3\n", ":3: expected call,bytes,round,ns");
    refused(HEAD "map,1,2,3\nmalloc,1,2,3\n", ":4: \"malloc\" is not a driver");
    assert_int_equal(frag_timings_read("/nonexistent", &t, NULL), FRAG_IO);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_arenas_model_comes_out),
        cmocka_unit_test(the_pace_is_what_calls_take_over_what_they_should),
        cmocka_unit_test(a_pace_that_fails_holds_nothing),
        cmocka_unit_test(a_round_is_the_mean_of_its_usual_calls),
        cmocka_unit_test(it_ends_when_told_to),
        cmocka_unit_test(nothing_is_held_after_a_failure),
        cmocka_unit_test(the_least_round_counts_and_the_warm_up_does_not),
        cmocka_unit_test(two_sizes_far_off_do_not_bend_the_line),
        cmocka_unit_test(no_cost_is_negative),
        cmocka_unit_test(too_few_sizes_are_refused),
        cmocka_unit_test(the_kept_costs_are_the_regression_of_the_kept_calls),
        cmocka_unit_test(what_is_written_is_read),
        cmocka_unit_test(a_broken_file_is_refused_with_its_line),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
