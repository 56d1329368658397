/* test_moves.c - tests that a segment whose first block came by a move gets the
 * stream and the pool of the segment that the block came from. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "sim/arena/arena.h"
#include "sim/replay/replay.h"
#include "traces/trace.h"

#define SEGMENT (2 * FRAG_MIB)
#define BLOCK   FRAG_MIB

/* The policy's first block lies in a segment. At the second request it
 * allocates a second segment, moves the first block there, and allocates the
 * second block in the freed memory. */
struct mover {
    frag_addr first, second;
};

static enum frag_err mover_alloc(struct frag_heap *heap,
                                 const struct frag_request *req,
                                 struct frag_block *out)
{
    struct mover *s = heap->state;
    const struct frag_backend_ops *ops = heap->mem->ops;
    struct frag_block moved = {0, BLOCK, NULL};

    if (!s->first) {
        FRAG_TRY(ops->segment_alloc(heap->mem, SEGMENT, &s->first));
    } else {
        FRAG_TRY(ops->segment_alloc(heap->mem, SEGMENT, &s->second));
        FRAG_TRY(ops->copy(heap->mem, s->second, s->first, BLOCK, 0));
        moved.addr = s->second;
        heap->moved(heap->user, req->owner - 1, &moved);
    }
    *out = (struct frag_block){s->first, BLOCK, NULL};
    return FRAG_OK;
}

static void mover_free(struct frag_heap *heap, const struct frag_block *block)
{
    (void)heap;
    (void)block;
}

static void mover_fini(struct frag_heap *heap)
{
    struct mover *s = heap->state;

    heap->mem->ops->segment_free(heap->mem, s->first, SEGMENT);
    heap->mem->ops->segment_free(heap->mem, s->second, SEGMENT);
}

static const struct frag_policy mover = {.name = "mover",
                                         .summary = "moves its first block",
                                         .source = "this test",
                                         .quantum = FRAG_QUANTUM,
                                         .needs = FRAG_NEEDS_MOVES,
                                         .state_size = sizeof(struct mover),
                                         .fini = mover_fini,
                                         .alloc = mover_alloc,
                                         .free = mover_free};

/* Allocates two blocks with the given streams and pools; returns where bytes
 * are free then. */
static struct frag_breakdown peak_of(const frag_stream stream[2],
                                     const frag_pool pool[2])
{
    static const uint8_t op[] = {FRAG_ALLOC, FRAG_ALLOC};
    static const uint32_t id[] = {0, 1};
    static const uint64_t bytes[] = {BLOCK, BLOCK}, streams[] = {0, 7};
    static const struct frag_pool_id pools[] = {{0, 0}, {0, 1}};
    const struct frag_device_trace trace = {.slots = 2,
                                            .count = 2,
                                            .op = op,
                                            .id = id,
                                            .bytes = bytes,
                                            .stream = stream,
                                            .pool = pool,
                                            .stream_count = 2,
                                            .pool_count = 2,
                                            .streams = streams,
                                            .pools = pools};
    struct frag_backend *mem = frag_arena_open(
        &(struct frag_arena_options){.capacity = FRAG_UNLIMITED});
    const struct frag_replay spec = {.trace = &trace,
                                     .policy = &mover,
                                     .mem = mem,
                                     .check = true,
                                     .repeat = 1};
    struct frag_breakdown found;
    struct frag_error e = {""};
    struct frag_run run;

    assert_non_null(mem);
    if (frag_replay(&spec, &run, &e) != FRAG_OK)
        fail_msg("%s", e.text);
    assert_int_equal(run.summary.peak_reserved, 2 * SEGMENT);
    found = run.summary.at_peak;
    frag_run_free(&run);
    frag_arena_close(mem);
    return found;
}

/* Half of each segment is free, all of it of the first block's stream or pool.
 */
static void
a_segment_filled_by_a_move_has_the_owner_of_where_it_came_from(void **state)
{
    const frag_stream same[2] = {0, 0}, other[2] = {1, 0};
    const frag_pool none[2] = {0, 0}, private[2] = {1, 0};
    struct frag_breakdown at;

    (void)state;
    at = peak_of(same, none);
    assert_int_equal(at.free_here, SEGMENT);
    at = peak_of(other, none);
    assert_int_equal(at.free_stream, SEGMENT);
    assert_int_equal(at.free_here, 0);
    at = peak_of(same, private);
    assert_int_equal(at.free_pool, SEGMENT);
    assert_int_equal(at.free_here, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(
            a_segment_filled_by_a_move_has_the_owner_of_where_it_came_from),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
