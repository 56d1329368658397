/* test_plan_online.c - tests how plan_online learns from requests, step by
 * step. The judge of traffic.h compares every answer with all live blocks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "sim/experiments/contract/traffic.h"

/* ---- a program ---- */

static struct traffic t;

static void start(const char *params, frag_size capacity)
{
    const struct traffic_options opts = {.capacity = capacity, .scale = 1};

    assert_int_equal(
        traffic_open(&t, frag_policy_find("plan_online"), params, &opts),
        FRAG_OK);
}

static void end(void)
{
    assert_null(traffic_close(&t));
}

static void act(const struct step *step)
{
    const char *fault;

    traffic_step(&t, step);
    fault = traffic_judge(&t);
    if (fault)
        fail_msg("%s", fault);
}

static frag_addr ask_on(frag_stream stream, uint32_t id, frag_size mib)
{
    const struct step step = {
        .kind = STEP_ALLOC, .id = id, .size = mib * FRAG_MIB, .stream = stream};

    act(&step);
    return t.live[id].block.addr;
}

static frag_addr ask(uint32_t id, frag_size mib)
{
    return ask_on(0, id, mib);
}

static void let_go(uint32_t id)
{
    const struct step step = {.kind = STEP_FREE, .id = id};

    act(&step);
}

static void trim(void)
{
    const struct step step = {.kind = STEP_TRIM};

    act(&step);
}

/* A step of five blocks, most of it live with 20 MiB, least at its start. */
enum { A, B, C, D, E, BLOCKS, KEPT = 20 };

static const frag_size sizes[BLOCKS] = {8, 6, 10, 2, 4};

enum { HEIGHT = 20, REQUESTS = 5 };

struct places {
    frag_addr at[BLOCKS];
};

static struct places one_step_on(frag_stream stream, uint32_t first)
{
    struct places p;

    p.at[A] = ask_on(stream, first + A, sizes[A]);
    p.at[B] = ask_on(stream, first + B, sizes[B]);
    let_go(first + A);
    p.at[C] = ask_on(stream, first + C, sizes[C]);
    p.at[D] = ask_on(stream, first + D, sizes[D]);
    let_go(first + B);
    p.at[E] = ask_on(stream, first + E, sizes[E]);
    let_go(first + D);
    let_go(first + C);
    let_go(first + E);
    return p;
}

static struct places one_step(void)
{
    return one_step_on(0, 0);
}

static struct places steps(int count)
{
    struct places p;

    for (int i = 0; i < count; i++)
        p = one_step();
    return p;
}

static bool same(const struct places *a, const struct places *b)
{
    return !memcmp(a, b, sizeof(*a));
}

/* Enough steps for a period of five to be believed, if 10 requests do. */
enum { ENOUGH = 6 };

static const char eager[] = "sure=10";

static frag_size held_mib(void)
{
    return t.mem.used / FRAG_MIB;
}

/* Segments belong to a plan; mapped memory belongs to the policy for the
 * rest. */
static size_t count_segments(void)
{
    size_t count = 0;

    for (size_t i = 0; i < t.mem.count; i++)
        count += !t.mem.held[i].mapped;
    return count;
}

/* ---- planning ---- */

static void what_recurs_is_served_from_one_segment(void **state)
{
    struct places first, later;
    uint64_t calls;

    (void)state;
    start(eager, 0);
    steps(ENOUGH);
    first = one_step();
    assert_int_equal(held_mib(), 18); /* C, D and B are the most at once */
    assert_int_equal(t.mem.count, 1);
    assert_int_equal(count_segments(), 1);
    calls = t.mem.calls;
    later = steps(20);
    assert_true(same(&first, &later));
    assert_int_equal(t.mem.calls, calls);
    end();
}

static void what_does_not_recur_is_served_by_the_rest(void **state)
{
    (void)state;
    start(eager, 0);
    ask(KEPT, 2);
    steps(ENOUGH);
    one_step();
    assert_int_equal(held_mib(), 2 + 18);
    ask(KEPT + 1, 30);
    assert_int_equal(held_mib(), 2 + 18 + 30);
    end();
}

static void nothing_is_planned_before_it_is_sure(void **state)
{
    (void)state;
    start("sure=100", 0);
    steps(100 / REQUESTS);
    assert_int_equal(count_segments(), 0);
    steps(3);
    assert_int_equal(t.mem.count, 1);
    assert_int_equal(count_segments(), 1);
    end();
}

static void what_grows_is_no_step(void **state)
{
    uint32_t id = 10;

    (void)state;
    start(eager, 0);
    for (int i = 0; i < 40; i++) {
        ask(A, 8);
        ask(B, 2);
        let_go(A);
        ask(id++, 2);
        let_go(B);
    }
    assert_int_equal(count_segments(), 0);
    end();
}

/* A block that lives across the start of the step, wherever that is cut. */
static void a_block_may_live_into_the_next_step(void **state)
{
    frag_addr last[2] = {0};

    (void)state;
    start(eager, 0);
    for (uint32_t i = 0; i < 40; i++) {
        ask(A, 8);
        if (i)
            let_go(B + (i - 1) % 2);
        last[i % 2] = ask(B + i % 2, 4);
        let_go(A);
    }
    assert_int_equal(last[0], last[1]);
    assert_int_equal(t.mem.count, 1);
    assert_int_equal(held_mib(), 12);
    end();
}

/* Two of eight blocks live from where they are asked for nearly until they are
 * again, so that one is live wherever the step is said to start. */
static void it_keeps_its_place_all_around(void **state)
{
    enum { FIRST = 1, BIGGEST = 3, SECOND = 5 };

    (void)state;
    start(eager, 0);
    for (int i = 0; i < 12; i++)
        for (uint32_t k = 0; k < 8; k++) {
            ask(k, k == BIGGEST ? 18 : k == SECOND ? 2 : 4);
            if (i && (k == FIRST - 1 || k == SECOND - 1))
                let_go(k + 1);
            if (k != FIRST && k != SECOND)
                let_go(k);
        }
    assert_int_equal(t.mem.count, 1);
    assert_int_equal(held_mib(), 18 + 2 + 4);
    end();
}

/* Two lives of a block alternate; the plan, made at the end of a step, is for
 * the longer one. */
static void a_block_may_live_longer_every_other_time(void **state)
{
    (void)state;
    for (int odd = 0; odd < 2; odd++) {
        start("sure=21", 0);
        for (int i = 0; i < 20; i++) {
            ask(A, 8);
            if (i % 2 == odd)
                let_go(A);
            ask(B, 8);
            let_go(B);
            if (i % 2 != odd)
                let_go(A);
            ask(C, 16);
            let_go(C);
        }
        assert_int_equal(t.mem.count, 1);
        assert_int_equal(held_mib(), 16);
        end();
    }
}

static void who_lives_for_more_than_a_step_is_not_planned(void **state)
{
    (void)state;
    start(eager, 0);
    for (uint32_t i = 0; i < 20; i++) {
        ask(A, 40);
        ask(B + i % 2, 2);
        let_go(A);
        if (i)
            let_go(B + (i + 1) % 2);
    }
    assert_int_equal(count_segments(), 1);
    for (size_t i = 0; i < t.mem.count; i++)
        if (!t.mem.held[i].mapped)
            assert_int_equal(t.mem.held[i].size, 40 * FRAG_MIB);
    end();
}

static void streams_are_planned_apart(void **state)
{
    struct places p[2];

    (void)state;
    start(eager, 0);
    for (int i = 0; i < 2 * ENOUGH; i++) {
        p[0] = one_step_on(0, 0);
        p[1] = one_step_on(1, BLOCKS);
    }
    assert_int_equal(t.mem.count, 2);
    assert_int_equal(held_mib(), 2 * 18);
    for (int i = 0; i < BLOCKS; i++)
        for (int j = 0; j < BLOCKS; j++)
            assert_true(p[0].at[i] + sizes[i] * FRAG_MIB <= p[1].at[j] ||
                        p[1].at[j] + sizes[j] * FRAG_MIB <= p[0].at[i]);
    end();
}

/* ---- out of step ---- */

static void a_late_block_keeps_its_place(void **state)
{
    struct places usual, now;
    frag_addr late;

    (void)state;
    start(eager, 0);
    usual = steps(ENOUGH + 1);
    late = ask(A, sizes[A]);
    assert_int_equal(late, usual.at[A]);
    ask(B, sizes[B]);
    t.live[KEPT] = t.live[A]; /* A stays live */
    t.live[A].is_live = false;
    ask(C, sizes[C]);
    ask(D, sizes[D]);
    let_go(B);
    ask(E, sizes[E]);
    let_go(D);
    let_go(C);
    let_go(E);
    now = one_step();
    assert_int_not_equal(now.at[A], usual.at[A]);
    let_go(KEPT);
    now = one_step();
    assert_true(same(&usual, &now));
    end();
}

static void one_request_more_changes_nothing(void **state)
{
    struct places usual, now;

    (void)state;
    start(eager, 0);
    usual = steps(ENOUGH + 1);
    ask(KEPT, 3);
    now = one_step();
    assert_true(same(&usual, &now));
    end();
}

/* A step of twenty blocks in which no size comes twice; skipping some of them
 * leaves the place in the step unknown until sixteen others have come. */
static frag_addr long_step(uint32_t from)
{
    frag_addr last = 0;

    for (uint32_t i = from; i < 20; i++) {
        last = ask(i, 2 * (i + 1));
        let_go(i);
    }
    return last;
}

static void a_place_in_the_step_is_found_again(void **state)
{
    (void)state;
    start("sure=10", 0);
    for (int i = 0; i < 5; i++)
        long_step(0);
    assert_int_equal(held_mib(), 40);
    long_step(2); /* from 2 on no request was expected, from 17 on the place is
                   * known again */
    trim();
    assert_int_equal(held_mib(), 0);
    long_step(0);
    assert_int_equal(held_mib(), 40);
    assert_int_equal(t.mem.count, 1);
    end();
}

static void random_steps(uint64_t *rng, int count)
{
    for (int i = 0; i < count; i++) {
        const uint32_t id = (uint32_t)(random_next(rng) % 10);

        if (t.live[id].is_live)
            let_go(id);
        ask(id, 1 + random_next(rng) % 40);
    }
    for (uint32_t id = 0; id < 10; id++)
        let_go(id);
}

static void a_plan_out_of_use_is_dropped(void **state)
{
    uint64_t rng = 1;

    (void)state;
    start("sure=40", 0);
    steps(40 / REQUESTS + 2);
    assert_int_equal(count_segments(), 1);
    random_steps(&rng, 5 * REQUESTS);
    assert_int_equal(count_segments(), 0);
    steps(80 / REQUESTS - 1); /* by now it wants to be sure for 80 requests */
    assert_int_equal(count_segments(), 0);
    steps(3);
    assert_int_equal(count_segments(), 1);
    end();
}

static void a_dropped_plan_is_lived_in_to_the_end(void **state)
{
    uint64_t rng = 1;

    (void)state;
    start(eager, 0);
    steps(ENOUGH + 1);
    ask(A, sizes[A]);
    t.live[KEPT] = t.live[A];
    t.live[A].is_live = false;
    random_steps(&rng, 6 * REQUESTS);
    assert_int_equal(count_segments(), 1);
    let_go(KEPT);
    assert_int_equal(count_segments(), 0);
    end();
}

/* Three equal stretches and a request that ends the step: first the stretch is
 * believed, in the end the step. */
static void a_longer_period_replaces_a_shorter_one(void **state)
{
    (void)state;
    start("sure=10", 0);
    for (int i = 0; i < 12; i++) {
        steps(6);
        ask(KEPT, 40);
        ask(KEPT + 1, 6);
        let_go(KEPT);
        let_go(KEPT + 1);
    }
    assert_int_equal(t.mem.count, 1);
    assert_int_equal(held_mib(), 46);
    end();
}

/* ---- the device ---- */

static void trim_returns_an_empty_segment(void **state)
{
    struct places p;

    (void)state;
    start(eager, 0);
    steps(ENOUGH + 1);
    trim();
    assert_int_equal(t.mem.used, 0);
    p = one_step();
    assert_int_equal(held_mib(), 18);
    assert_int_equal(t.mem.held[0].addr, p.at[A] < p.at[B]   ? p.at[A]
                                         : p.at[B] < p.at[C] ? p.at[B]
                                                             : p.at[C]);
    end();
}

/* The call that requests the segment from the device, found in a first run. */
static uint64_t segment_call(void)
{
    uint64_t calls = 0;

    start(eager, 0);
    t.mem.error = FRAG_OOM;
    while (!count_segments()) {
        calls = t.mem.calls;
        one_step();
    }
    end();
    return calls + 1;
}

static void a_device_without_room_has_no_plan_until_trim(void **state)
{
    const uint64_t call = segment_call();

    (void)state;
    start(eager, 0);
    t.mem.error = FRAG_OOM;
    t.mem.fail_at = call;
    while (t.mem.calls < call)
        one_step();
    steps(3);
    assert_int_equal(count_segments(), 0);
    trim();
    one_step();
    assert_int_equal(count_segments(), 1);
    assert_int_equal(t.mem.count, 1);
    end();
}

static void an_idle_segment_is_given_up_for_a_request(void **state)
{
    (void)state;
    start(eager, 40 * FRAG_MIB);
    steps(ENOUGH + 1);
    assert_int_equal(held_mib(), 18);
    ask(KEPT, 30);
    assert_true(t.live[KEPT].is_live);
    assert_int_equal(held_mib(), 30);
    end();
}

/* ---- whatever comes ---- */

/* A step on three streams in turn, each block freed by the one eleven behind
 * it. In trouble now and then a request is left out, is another, or lives on,
 * and memory is trimmed. */
static void ragged_step(uint64_t *rng, bool trouble)
{
    for (uint32_t i = 0; i < 24; i++) {
        const uint64_t dice = trouble ? random_next(rng) % 100 : 50;
        const uint32_t id = dice < 3 ? 24 + i : i, old = (i + 13) % 24;
        const struct step request = {
            .kind = STEP_ALLOC,
            .id = id,
            .size = dice < 3 ? random_size(rng) : 350000 * (i * i % 37 + 1),
            .stream = (frag_stream)(i / 8)};

        if (dice == 99)
            trim();
        if (dice > 96)
            continue;
        if (t.live[id].is_live)
            let_go(id);
        act(&request);
        if (dice != 49 && t.live[old].is_live)
            let_go(old);
    }
}

static void no_two_blocks_meet_whatever_comes(void **state)
{
    static const char *const params[] = {"sure=1,effort=0",
                                         "sure=40,effort=1000,rest=remap",
                                         "sure=100,rest=expandable"};

    (void)state;
    for (uint64_t seed = 0; seed < 12; seed++) {
        uint64_t rng = seed;
        size_t segments = 0;

        start(params[seed % 3], seed % 4 == 3 ? 300 * FRAG_MIB : 0);
        for (int i = 0; i < 100; i++) {
            ragged_step(&rng, i % 20 > 13);
            segments += count_segments();
        }
        assert_true(segments > 0);
        end();
    }
}

/* The policy may receive the future, and does not use it. */
static void the_future_changes_nothing(void **state)
{
    static const struct frag_future_request lie = {.size = 1, .frees_at = 1};
    const struct frag_future future = {.count = 1, .requests = &lie};
    struct places known, unknown;

    (void)state;
    start(eager, 0);
    unknown = steps(ENOUGH + 3);
    end();
    start(eager, 0);
    t.heap.future = &future;
    known = steps(ENOUGH + 3);
    assert_true(same(&known, &unknown));
    end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_recurs_is_served_from_one_segment),
        cmocka_unit_test(what_does_not_recur_is_served_by_the_rest),
        cmocka_unit_test(nothing_is_planned_before_it_is_sure),
        cmocka_unit_test(what_grows_is_no_step),
        cmocka_unit_test(a_block_may_live_into_the_next_step),
        cmocka_unit_test(it_keeps_its_place_all_around),
        cmocka_unit_test(a_block_may_live_longer_every_other_time),
        cmocka_unit_test(who_lives_for_more_than_a_step_is_not_planned),
        cmocka_unit_test(streams_are_planned_apart),
        cmocka_unit_test(a_late_block_keeps_its_place),
        cmocka_unit_test(one_request_more_changes_nothing),
        cmocka_unit_test(a_place_in_the_step_is_found_again),
        cmocka_unit_test(a_plan_out_of_use_is_dropped),
        cmocka_unit_test(a_dropped_plan_is_lived_in_to_the_end),
        cmocka_unit_test(a_longer_period_replaces_a_shorter_one),
        cmocka_unit_test(trim_returns_an_empty_segment),
        cmocka_unit_test(a_device_without_room_has_no_plan_until_trim),
        cmocka_unit_test(an_idle_segment_is_given_up_for_a_request),
        cmocka_unit_test(no_two_blocks_meet_whatever_comes),
        cmocka_unit_test(the_future_changes_nothing),
    };

    return cmocka_run_group_tests_name("plan online", tests, NULL, NULL);
}
