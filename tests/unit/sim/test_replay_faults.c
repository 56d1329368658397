/* test_replay_faults.c - tests the replay engine when the host has no memory:
 * at the k-th malloc, for every k, a run, whole or in windows, ends with that
 * error or with a result, all device memory is released, and nothing leaks
 * (ASan). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "sim/arena/arena.h"
#include "sim/replay/serve.h"
#include "tests/support/failing_malloc.h"

#define MIB      FRAG_MIB
#define COUNT(a) (sizeof(a) / sizeof(*(a)))

/* ------------------------------------------------------------- the trace */

enum { BLOCKS = 12, EVENTS = 64 };

struct script {
    uint64_t count;
    uint8_t op[EVENTS];
    uint32_t id[EVENTS];
    uint64_t bytes[EVENTS];
    frag_stream stream[EVENTS];
    frag_pool pool[EVENTS];
};

static const uint64_t raw_streams[] = {0, 7};
static const struct frag_pool_id raw_pool;

static void emit(struct script *s, enum frag_op op, uint32_t id)
{
    const uint64_t i = s->count++;

    assert_true(i < EVENTS);
    s->op[i] = (uint8_t)op;
    s->id[i] = id;
    s->bytes[i] = op == FRAG_ALLOC ? (id + 1) * MIB / 2 + 100 : 0;
    s->stream[i] = op == FRAG_ALLOC && id % 4 == 3;
}

/* Blocks of growing sizes on two streams, of which each third is freed late,
 * after an empty_cache; then the same blocks again, some never freed. */
static struct frag_device_trace write_script(struct script *s)
{
    *s = (struct script){0};
    for (uint32_t id = 0; id < BLOCKS; id++)
        emit(s, FRAG_ALLOC, id);
    for (uint32_t id = 0; id < BLOCKS; id++)
        emit(s, id % 3 ? FRAG_FREE : FRAG_FREE_REQUESTED, id);
    emit(s, FRAG_EMPTY_CACHE, 0);
    for (uint32_t id = 0; id < BLOCKS; id += 3)
        emit(s, FRAG_FREE, id);
    for (uint32_t id = 0; id < BLOCKS; id++)
        emit(s, FRAG_ALLOC, id);
    for (uint32_t id = 0; id < BLOCKS; id += 2)
        emit(s, FRAG_FREE, id);
    return (struct frag_device_trace){.slots = BLOCKS,
                                      .count = s->count,
                                      .op = s->op,
                                      .id = s->id,
                                      .bytes = s->bytes,
                                      .stream = s->stream,
                                      .pool = s->pool,
                                      .stream_count = 2,
                                      .pool_count = 1,
                                      .streams = raw_streams,
                                      .pools = &raw_pool};
}

/* -------------------------------------------------------------- the host */

static const struct subject {
    const char *policy, *params;
    enum frag_address_rule rule;
} subjects[] = {
    {"direct", NULL, FRAG_RULE_DRIVER},
    {"best_fit", NULL, FRAG_RULE_HOSTILE},
    {"torch", NULL, FRAG_RULE_DRIVER},
    {"torch", "expandable_segments:True", FRAG_RULE_DRIVER},
};

/* The run with the k-th malloc failing; whether it got as far as that. */
static bool run_with_fault(const struct subject *s,
                           const struct frag_device_trace *t,
                           frag_size capacity, uint64_t k)
{
    struct frag_backend *mem = frag_arena_open(
        &(struct frag_arena_options){.capacity = capacity, .rule = s->rule});
    struct frag_replay spec = {.trace = t,
                               .policy = frag_policy_find(s->policy),
                               .params = s->params,
                               .mem = mem,
                               .check = true,
                               .repeat = 2,
                               .points = 5,
                               .max_ooms = 100};
    struct frag_error e = {""};
    struct frag_run run;
    enum frag_err err;
    bool failed;

    assert_non_null(mem);
    calls_to_failure = k;
    err = frag_replay(&spec, &run, &e);
    failed = !calls_to_failure;
    calls_to_failure = 0;
    if (err == FRAG_OK)
        frag_run_free(&run);
    else if (err != FRAG_NOMEM)
        fail_msg("%s: malloc %llu: %s: %s", s->policy, (unsigned long long)k,
                 frag_err_text(err), e.text);
    assert_error_says(err, e);
    assert_int_equal(frag_arena_used(mem), 0);
    assert_int_equal(frag_arena_reserved_va(mem), 0);
    frag_arena_close(mem);
    return failed;
}

static void a_run_survives_each_failing_malloc(void **state)
{
    static const frag_size capacities[] = {FRAG_UNLIMITED, 24 * MIB};
    struct script script;
    const struct frag_device_trace trace = write_script(&script);

    (void)state;
    for (size_t i = 0; i < COUNT(subjects); i++)
        for (size_t c = 0; c < COUNT(capacities); c++) {
            uint64_t k = 1;

            while (run_with_fault(&subjects[i], &trace, capacities[c], k))
                k++;
            assert_true(k > 10);
        }
}

/* A program frees its blocks late, with the k-th malloc failing. A free that
 * fails leaves the block live, and can be asked for again. Returns whether a
 * free failed. */
static bool serve_with_fault(uint64_t k)
{
    struct frag_backend *mem =
        frag_arena_open(&(struct frag_arena_options){.capacity = 64 * MIB});
    const struct frag_serve_options options = {
        .policy = frag_policy_find("best_fit"), .mem = mem};
    struct frag_served at[2], found;
    struct frag_serve *s = NULL;
    struct frag_error e = {""};
    uint32_t ticket[2];
    bool failed = false;

    assert_int_equal(frag_serve_open(&options, &s, &e), FRAG_OK);
    for (size_t i = 0; i < 2; i++)
        assert_int_equal(frag_serve_alloc(s, MIB, 0, 0, &at[i], &e), FRAG_OK);
    calls_to_failure = k;
    for (size_t i = 0; i < 2; i++) {
        enum frag_err err =
            frag_serve_free_later(s, at[i].addr, &ticket[i], &e);

        assert_error_says(err, e);
        if (err == FRAG_OK)
            continue;
        assert_int_equal(err, FRAG_NOMEM);
        failed = true;
        assert_true(frag_serve_find(s, at[i].addr, &found));
        assert_int_equal(frag_serve_free_later(s, at[i].addr, &ticket[i], &e),
                         FRAG_OK);
    }
    calls_to_failure = 0;
    for (size_t i = 0; i < 2; i++)
        assert_int_equal(frag_serve_complete(s, ticket[i], &e), FRAG_OK);
    assert_false(frag_serve_find(s, at[0].addr, &found));
    frag_serve_close(s);
    assert_int_equal(frag_arena_used(mem), 0);
    frag_arena_close(mem);
    return failed;
}

static void a_late_free_that_fails_loses_no_block(void **state)
{
    (void)state;
    assert_true(serve_with_fault(1)); /* the queue of pending frees */
    assert_false(serve_with_fault(2));
}

static void the_arena_survives_each_failing_malloc(void **state)
{
    static const frag_addr bases[] = {0x7f1200000000, 0x7f1100000000};
    static const frag_size sizes[] = {20 * MIB, 2 * MIB};
    const struct frag_arena_options opts = {.capacity = FRAG_UNLIMITED,
                                            .rule = FRAG_RULE_ANCHORED,
                                            .bases = bases,
                                            .sizes = sizes,
                                            .base_count = 2};
    uint64_t k;

    (void)state;
    for (k = 1; !calls_to_failure; k++) {
        struct frag_backend *mem;
        enum frag_err err;

        calls_to_failure = k;
        mem = frag_arena_open(&opts);
        if (!mem)
            continue;
        err = frag_arena_hold(mem, 0x302000000 + 4 * MIB, 6 * MIB,
                              FRAG_HOLD_RESERVATION);
        assert_true(err == FRAG_OK || err == FRAG_NOMEM);
        if (err == FRAG_OK)
            err = frag_arena_hold(mem, 0x302000000 + 4 * MIB, 6 * MIB,
                                  FRAG_HOLD_MAPS);
        assert_true(err == FRAG_OK || err == FRAG_NOMEM);
        assert_int_equal(frag_arena_used(mem), err == FRAG_OK ? 6 * MIB : 0);
        err = frag_arena_hold(mem, 0x600000000000, 2 * MIB, FRAG_HOLD_SEGMENT);
        assert_true(err == FRAG_OK || err == FRAG_NOMEM);
        frag_arena_close(mem);
    }
    calls_to_failure = 0;
    assert_true(k > 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_run_survives_each_failing_malloc),
        cmocka_unit_test(a_late_free_that_fails_loses_no_block),
        cmocka_unit_test(the_arena_survives_each_failing_malloc),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
