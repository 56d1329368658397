/* test_rmm_places.c - replays logs that were recorded above RMM's own pool and
 * arena, and compares the address of each block with the recorded one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>
#include <unistd.h>

#include "sim/arena/arena.h"
#include "sim/replay/replay.h"
#include "traces/trace.h"

/* A log of 6359 or more blocks, the policy with the parameters of the recorded
 * resource, and how many blocks of its first segment lie where RMM placed them.
 * Three threads used the arena. RMM logs a free before it and an allocation
 * after it, so two calls of two threads may be logged in the other order; the
 * arena's blocks differ after such places. */
static const struct recording {
    const char *name, *path, *policy, *params;
    uint64_t equal, blocks;
} recordings[] = {
    {"pool", FRAG_SHARED_DIR "/foreign/rmm/cupy_pool.csv.xz", "rmm_pool",
     "initial=64MiB", 6359, 6368},
    {"arena", FRAG_SHARED_DIR "/foreign/rmm/cupy_arena.csv.xz", "rmm_arena",
     "size=1GiB", 6255, 6359},
};

/* Recorded and replayed addresses of a segment differ by one number, the shift;
 * the first segment has that of the first block. */
struct places {
    const struct frag_device_trace *device;
    frag_addr shift;
    uint64_t equal, compared;
};

static void compare(void *user, uint64_t event, const struct frag_block *block)
{
    struct places *p = user;
    frag_addr shift;

    if (!block)
        return;
    shift = p->device->recorded.addr[event] - block->addr;
    if (!p->compared++)
        p->shift = shift;
    p->equal += shift == p->shift;
}

static void blocks_lie_where_rmm_placed_them(void **state)
{
    const struct recording *r = *state;
    const struct frag_arena_options options = {.capacity = (frag_size)79 << 30,
                                               .rule = FRAG_RULE_HOSTILE};
    struct frag_error e = {""};
    struct frag_trace *t = NULL;
    struct frag_run run;
    struct places places = {.equal = 0};
    const struct frag_replay_watch watch = {.user = &places, .done = compare};
    struct frag_replay spec = {.watch = &watch,
                               .policy = frag_policy_find(r->policy),
                               .params = r->params,
                               .repeat = 1};

    if (access(r->path, R_OK)) {
        print_message("no %s\n", r->path);
        skip();
    }
    assert_int_equal(frag_trace_open(r->path, NULL, &t, &e), FRAG_OK);
    spec.trace = places.device = &t->devices[0];
    spec.mem = frag_arena_open(&options);
    if (frag_replay(&spec, &run, &e) != FRAG_OK)
        fail_msg("%s", e.text);
    assert_int_equal(run.summary.num_ooms, 1);
    assert_int_equal(places.compared, r->blocks);
    assert_int_equal(places.equal, r->equal);
    frag_run_free(&run);
    frag_arena_close(spec.mem);
    frag_trace_close(t);
}

int main(void)
{
    enum { COUNT = sizeof(recordings) / sizeof(*recordings) };
    struct CMUnitTest tests[COUNT];

    for (size_t i = 0; i < COUNT; i++) {
        const void *row = &recordings[i];

        tests[i] =
            (struct CMUnitTest){.name = recordings[i].name,
                                .test_func = blocks_lie_where_rmm_placed_them};
        memcpy(&tests[i].initial_state, &row, sizeof(row));
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
