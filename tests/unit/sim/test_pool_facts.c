/* test_pool_facts.c - tests what a recording shows of its private pools:
 * whether a pool splits its blocks. A pool that does not split needs a segment
 * for each block, so what a replay reserves tells what it was told. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "policies/policies.h"
#include "sim/arena/arena.h"
#include "sim/replay/replay.h"
#include "traces/build/build.h"

#define MIB FRAG_MIB

static struct frag_error error;

/* A request of a pool; segment: of that many MiB, obtained for it, or 0. The
 * addresses are in MiB. */
struct request {
    frag_addr at;
    frag_size size, segment;
};

static void put(struct frag_build *b, enum frag_entry_kind kind, frag_addr at,
                frag_size size)
{
    const struct frag_entry entry = {.kind = kind,
                                     .has_pool = true,
                                     .addr = at * MIB,
                                     .size = size * MIB,
                                     .pool = {.owner = 1}};

    assert_int_equal(frag_build_entry(b, 0, &entry, 0, &error), FRAG_OK);
}

/* The MiB that the policy torch reserves for the requests. */
static frag_size reserved(const struct request *requests)
{
    struct frag_build *b = frag_build_open("x", "test");
    struct frag_trace *t = NULL;
    struct frag_run run;
    struct frag_backend *mem;
    frag_size sum;

    for (const struct request *q = requests; q->at; q++) {
        if (q->segment)
            put(b, FRAG_ENTRY_SEGMENT_ALLOC, q->at, q->segment);
        put(b, FRAG_ENTRY_ALLOC, q->at, q->size);
    }
    assert_int_equal(frag_build_finish(b, NULL, &t, &error), FRAG_OK);
    frag_build_close(b);
    mem = frag_arena_open(
        &(const struct frag_arena_options){.capacity = FRAG_UNLIMITED});
    assert_non_null(mem);
    assert_int_equal(
        frag_replay(&(struct frag_replay){.trace = &t->devices[0],
                                          .policy = &frag_policy_torch,
                                          .mem = mem},
                    &run, &error),
        FRAG_OK);
    sum = run.summary.peak_reserved / MIB;
    frag_run_free(&run);
    frag_arena_close(mem);
    frag_trace_close(t);
    return sum;
}

static void
a_pool_that_takes_a_segment_for_each_block_does_not_split(void **state)
{
    (void)state;
    assert_int_equal(
        reserved((const struct request[]){
            {2, 12, 12}, {100, 4, 20}, {200, 12, 12}, {300, 5, 20}, {0}}),
        64);
}

/* The second block lies in the rest of the first segment, so that the third one
 * finds no room there. */
static void a_pool_splits_if_a_block_found_room(void **state)
{
    (void)state;
    assert_int_equal(
        reserved((const struct request[]){
            {2, 12, 12}, {100, 4, 20}, {104, 16, 0}, {300, 5, 20}, {0}}),
        52);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(
            a_pool_that_takes_a_segment_for_each_block_does_not_split),
        cmocka_unit_test(a_pool_splits_if_a_block_found_room),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
