/* test_ranks.c - tests the comparison of ranks, and the rule that tells buffers
 * of the communication from other blocks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "sim/answers/ranks/ranks.h"
#include "tests/support/dead_job.h"

static struct frag_error error;

/* ---- ranks ---- */

static const struct cell_settings cell = {.backend = &cell_arena_backend,
                                          .rule = 0};

static void add(struct ranks *r, const struct job *j)
{
    struct frag_trace *t = job_trace(j);
    const struct replay_settings s = {.cell = &cell};
    const struct input in = {t, t->devices, "job"};

    assert_int_equal(ranks_add(r, &s, &in, &error), FRAG_OK);
    frag_trace_close(t);
}

static void recorded_deaths_are_compared(void **state)
{
    const struct job lives = {.steps = 9, .dies_in = UINT64_MAX};
    const struct job late = {.steps = 9, .dies_in = 5, .dies_at = 3};
    const struct job early = {.steps = 9, .dies_in = 4, .dies_at = 3};
    struct ranks r = {.capacity = FRAG_UNLIMITED};
    struct ranks_first first;

    (void)state;
    add(&r, &lives);
    add(&r, &late);
    add(&r, &early);
    first = ranks_first(&r, offsetof(struct rank, recorded));
    assert_int_equal(first.rank, 2);
    assert_int_equal(first.dying, 2);
    assert_true(first.by_time);
    assert_int_equal(r.items[0].recorded.event, FRAG_NEVER);
    assert_int_equal(r.items[1].recorded_ooms, 1);
    assert_int_equal(r.items[1].recorded.bytes, 4 * 3 << 20);
    assert_true(r.items[2].recorded.after > 0);
    assert_int_equal(ranks_first(&r, offsetof(struct rank, replayed)).rank,
                     RANKS_NONE);
    ranks_free(&r);
}

static void a_capacity_is_replayed(void **state)
{
    const struct job small = {.steps = 9, .dies_in = UINT64_MAX};
    const struct job large = {
        .steps = 20, .varies = true, .leaks = true, .dies_in = UINT64_MAX};
    struct ranks r = {.capacity = FRAG_UNLIMITED};
    frag_size enough;
    struct ranks_first first;

    (void)state;
    add(&r, &small);
    enough = r.items[0].peak_reserved;
    ranks_free(&r);
    r.capacity = enough;
    add(&r, &small);
    add(&r, &large);
    first = ranks_first(&r, offsetof(struct rank, replayed));
    assert_int_equal(first.rank, 1);
    assert_int_equal(first.dying, 1);
    assert_int_equal(r.items[0].reserved_there, enough);
    assert_int_equal(r.items[0].ooms, 0);
    assert_true(r.items[1].ooms > 0);
    assert_int_equal(r.items[1].steps.growth, 256 << 10);
    assert_true(r.items[1].peak_requested > r.items[0].peak_requested);
    ranks_free(&r);
}

static void imbalance_is_largest_over_mean(void **state)
{
    struct rank items[] = {{.peak_reserved = 4},
                           {.peak_reserved = 8},
                           {.peak_reserved = 0},
                           {.peak_reserved = 8}};
    const struct ranks r = {.items = items, .count = 4};
    const struct rank_imbalance b =
        ranks_imbalance(&r, offsetof(struct rank, peak_reserved));
    const struct rank_imbalance none =
        ranks_imbalance(&r, offsetof(struct rank, peak_requested));

    (void)state;
    assert_int_equal(b.most, 1);
    assert_int_equal(b.least, 2);
    assert_int_equal(b.difference, 8);
    assert_true(b.ratio == 1.6);
    assert_true(none.ratio == 1);
}

static void without_times_the_event_decides(void **state)
{
    struct rank items[] = {{.recorded = {.event = 9, .time = 5}},
                           {.recorded = {.event = FRAG_NEVER}},
                           {.recorded = {.event = 7, .time = 6}}};
    const struct ranks r = {.items = items, .count = 3};
    const size_t recorded = offsetof(struct rank, recorded);

    (void)state;
    assert_int_equal(ranks_first(&r, recorded).rank, 0);
    items[0].recorded.time = 0;
    assert_int_equal(ranks_first(&r, recorded).rank, 2);
    assert_false(ranks_first(&r, recorded).by_time);
}

/* ---- communication ---- */

static const char *const strings[] = {
    "/x/site-packages/torch/distributed/fsdp/_flat_param.py", /* 0 */
    "_alloc_storage",                                         /* 1 */
    "/x/site-packages/torch/nn/modules/linear.py",            /* 2 */
    "forward",                                                /* 3 */
    "/x/site-packages/torch/nn/parallel/distributed.py",      /* 4 */
    "/home/me/distributed/train.py",                          /* 5 */
    "step",                                                   /* 6 */
    "my_All_Reduce",                                          /* 7 */
    "allocate",                                               /* 8 */
};

static const struct frag_frame frames[] = {
    {0, 1, 1}, {4, 3, 1}, {5, 6, 1}, /* 1: a buffer of FSDP */
    {2, 3, 1}, {4, 3, 1}, {5, 6, 1}, /* 2: an activation under DDP */
    {2, 8, 1}, {5, 6, 1}, {0, 1, 1}, /* 3: a user's block */
    {2, 8, 1}, {5, 7, 1},            /* 4: the user's own all_reduce */
    {4, 8, 1},                       /* 5: a bucket of DDP */
};

static const uint64_t firsts[] = {0, 0, 3, 6, 9, 11, 12};

static const struct frag_trace stacks = {.strings = strings,
                                         .string_count = 9,
                                         .stack_count = 6,
                                         .stack_first = firsts,
                                         .frames = frames};

static void stacks_name_the_communication(void **state)
{
    static const bool expected[] = {false, true, false, false, true, true};

    (void)state;
    for (uint32_t i = 0; i < 6; i++)
        assert_int_equal(comm_is_stack(&stacks, i), expected[i]);
    assert_false(comm_is_stack(&stacks, 99));
}

enum { BLOCKS = 4 };

/* Four blocks; the third is on another stream, the last has the stack of a
 * bucket. */
static void buffers_are_measured(void **state)
{
    static const uint8_t op[BLOCKS] = {FRAG_ALLOC, FRAG_ALLOC, FRAG_ALLOC,
                                       FRAG_ALLOC};
    static const uint32_t id[BLOCKS] = {0, 1, 2, 3}, stack[] = {2, 3, 0, 5};
    static const uint64_t bytes[BLOCKS] = {1000, 500, 300, 200};
    static const frag_stream stream[BLOCKS] = {1, 1, 0, 1};
    static const frag_pool pool[BLOCKS] = {0};
    struct frag_device_trace d = {.count = BLOCKS,
                                  .slots = BLOCKS,
                                  .op = op,
                                  .id = id,
                                  .bytes = bytes,
                                  .stream = stream,
                                  .pool = pool,
                                  .stack = stack,
                                  .stream_count = 2};
    struct comm c;

    (void)state;
    assert_int_equal(comm_measure(&stacks, &d, &c, &error), FRAG_OK);
    assert_int_equal(c.basis, COMM_STACKS);
    assert_int_equal(c.main, 1);
    assert_int_equal(c.bytes, 500);
    assert_int_equal(c.blocks, 2);
    assert_int_equal(c.of, 2000);
    /* A request that failed is not live. */
    d.recorded.addr = (const frag_addr[BLOCKS]){1 << 9, 0, 2 << 9, 3 << 9};
    assert_int_equal(comm_measure(&stacks, &d, &c, &error), FRAG_OK);
    assert_int_equal(c.of, 1500);
    d.recorded.addr = NULL;
    d.stack = NULL;
    assert_int_equal(comm_measure(&stacks, &d, &c, &error), FRAG_OK);
    assert_int_equal(c.basis, COMM_STREAMS);
    assert_int_equal(c.bytes, 300);
    d.stream_count = 1;
    d.stream = (const frag_stream[BLOCKS]){0};
    assert_int_equal(comm_measure(&stacks, &d, &c, &error), FRAG_OK);
    assert_int_equal(c.basis, COMM_UNKNOWN);
    d.count = 0;
    assert_int_equal(comm_measure(&stacks, &d, &c, &error), FRAG_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(recorded_deaths_are_compared),
        cmocka_unit_test(a_capacity_is_replayed),
        cmocka_unit_test(imbalance_is_largest_over_mean),
        cmocka_unit_test(without_times_the_event_decides),
        cmocka_unit_test(stacks_name_the_communication),
        cmocka_unit_test(buffers_are_measured),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
