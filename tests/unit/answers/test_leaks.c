/* test_leaks.c - tests which programs leak, and what each step of a trace
 * needs, on training loops that are made by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "policies/policy.h"
#include "sim/answers/sites.h"
#include "sim/answers/steps/leaks.h"
#include "sim/answers/steps/step_table.h"
#include "traces/build/build.h"

static struct frag_error error;

enum { KIB = 1 << 10, CACHE = 12, HELD = 4096 };

/* ---- programs ---- */

/* A loop of `steps` steps. Each allocates and frees activations, and calls
 * `extra`. Blocks that it keeps are in held[]. */
struct loop {
    struct frag_build *build;
    frag_time time;
    frag_addr next, held[HELD];
    frag_size sizes[HELD];
    unsigned count; /* of held */
    uint32_t stack;
    uint64_t stream;
};

static void put(struct loop *l, enum frag_entry_kind k, frag_addr a,
                frag_size size)
{
    const struct frag_entry entry = {
        .kind = k,
        .addr = a,
        .size = size,
        .time = l->time += 1000,
        .stack = l->stack,
        .stream = l->stream,
    };

    assert_int_equal(
        frag_build_entry(l->build, 0, &entry, l->time / 1000, &error), FRAG_OK);
}

static unsigned keep(struct loop *l, frag_size size)
{
    const unsigned at = l->count++;

    assert_in_range(at, 0, HELD - 1);
    l->held[at] = l->next += (frag_addr)1 << 30;
    l->sizes[at] = size;
    put(l, FRAG_ENTRY_ALLOC, l->held[at], size);
    return at;
}

static void drop_begin(struct loop *l, unsigned at)
{
    put(l, FRAG_ENTRY_FREE_REQUESTED, l->held[at], l->sizes[at]);
}

static void drop_end(struct loop *l, unsigned at)
{
    put(l, FRAG_ENTRY_FREE_COMPLETED, l->held[at], l->sizes[at]);
    l->held[at] = 0;
}

static void drop(struct loop *l, unsigned at)
{
    if (!l->held[at])
        return;
    drop_begin(l, at);
    drop_end(l, at);
}

typedef void extra(struct loop *l, unsigned step);

static void mark(struct loop *l)
{
    static const char name[] = "Optimizer.step#SGD.step";

    assert_int_equal(frag_build_mark(l->build, 0, FRAG_MARK_END, l->time + 1,
                                     name, sizeof(name) - 1, &error),
                     FRAG_OK);
}

static struct frag_trace *program(unsigned steps, extra *each)
{
    struct loop l = {.build = frag_build_open("loop", "test")};
    struct frag_trace *t;

    keep(&l, 4096 * KIB); /* weights */
    for (unsigned s = 0; s < steps; s++) {
        unsigned at[6];

        for (unsigned k = 0; k < 6; k++)
            at[k] = keep(&l, (k + 1) * 512 * KIB);
        each(&l, s);
        for (unsigned k = 6; k-- > 0;)
            drop(&l, at[k]);
        mark(&l);
    }
    assert_int_equal(frag_build_finish(l.build, NULL, &t, &error), FRAG_OK);
    frag_build_close(l.build);
    return t;
}

/* The values of a leak are those of which its growth was judged. */
static void check_values(const struct leaks *l)
{
    for (uint64_t i = 0; i < l->count; i++) {
        const struct leak *leak = &l->items[i];
        const struct growth growth =
            growth_judge(leak->values, leak->value_count, leak->from);

        assert_int_equal(leak->value_count,
                         l->windows.count - (leak->replaced ? 0 : 1));
        assert_int_equal(growth.rises, leak->growth.rises);
        assert_int_equal(growth.steps, leak->growth.steps);
        assert_true(growth.slope == leak->growth.slope);
    }
}

static struct leaks examine(unsigned steps, extra *each)
{
    struct frag_trace *t = program(steps, each);
    struct leaks l;

    assert_int_equal(
        leaks_find(t, t->devices, t->devices->count, NULL, &l, &error),
        FRAG_OK);
    check_values(&l);
    l.windows.steps.mark = NULL; /* it belongs to the trace */
    frag_trace_close(t);
    return l;
}

static void expect(unsigned steps, extra *each, enum leaks_verdict verdict)
{
    struct leaks l = examine(steps, each);

    assert_int_equal(l.verdict, verdict);
    leaks_close(&l);
}

/* ---- what leaks ---- */

static void keeps_one(struct loop *l, unsigned step)
{
    (void)step;
    keep(l, 100 * KIB);
}

/* As a program whose first epoch behaves well. */
static void keeps_later(struct loop *l, unsigned step)
{
    if (step > 12)
        keep(l, 100 * KIB);
}

/* It leaks in the last quarter only. */
static void keeps_at_last(struct loop *l, unsigned step)
{
    if (step >= 30)
        keep(l, 100 * KIB);
}

static void keeps_seldom(struct loop *l, unsigned step)
{
    if (step % 4 == 0)
        keep(l, 4 * KIB);
}

static void keeps_varying(struct loop *l, unsigned step)
{
    keep(l, (100 + step * 7 % 13 * 3) * KIB);
}

static void extends(struct loop *l, unsigned step)
{
    static unsigned before;
    const unsigned now = keep(l, (step + 1) * 64 * KIB);

    if (step)
        drop(l, before);
    before = now;
}

static void a_block_a_step_leaks(void **state)
{
    struct leaks l = examine(30, keeps_one);

    (void)state;
    assert_int_equal(l.verdict, LEAKS_FOUND);
    assert_int_equal(l.count, 1);
    assert_true(l.rate == 100 * KIB);
    assert_int_equal(l.items[0].least, 100 * KIB);
    assert_int_equal(l.items[0].most, 100 * KIB);
    assert_int_equal(l.items[0].growth.rises, l.items[0].growth.steps);
    assert_false(l.items[0].replaced);
    assert_int_equal(l.held, l.items[0].held);
    /* the block of the last complete step is not known to stay */
    assert_in_range(l.items[0].blocks, 28, 29);
    assert_int_equal(leaks_units_left(&l, 0, 1000 * KIB), 10);
    assert_int_equal(leaks_units_left(&l, 1000 * KIB, 1000 * KIB), 0);
    leaks_close(&l);
}

static void a_leak_that_begins_later_is_found(void **state)
{
    (void)state;
    expect(30, keeps_later, LEAKS_FOUND);
    expect(42, keeps_at_last, LEAKS_FOUND);
    expect(60, keeps_seldom, LEAKS_FOUND);
}

static void sizes_that_vary_leak_together(void **state)
{
    struct leaks l = examine(30, keeps_varying);

    (void)state;
    assert_int_equal(l.verdict, LEAKS_FOUND);
    assert_int_equal(l.count, 1);
    assert_int_equal(l.items[0].least, 100 * KIB);
    assert_int_equal(l.items[0].most, 136 * KIB);
    assert_true(l.rate > 110 * KIB && l.rate < 126 * KIB);
    leaks_close(&l);
}

static void a_block_that_is_extended_leaks(void **state)
{
    struct leaks l = examine(30, extends);

    (void)state;
    assert_int_equal(l.verdict, LEAKS_FOUND);
    assert_int_equal(l.count, 1);
    assert_true(l.items[0].replaced);
    assert_int_equal(l.items[0].blocks, 1);
    assert_true(l.rate == 64 * KIB);
    leaks_close(&l);
}

/* ---- what does not ---- */

static void keeps_nothing(struct loop *l, unsigned step)
{
    (void)l;
    (void)step;
}

static void warms_up(struct loop *l, unsigned step)
{
    if (step < 12)
        keep(l, 100 * KIB);
}

static void makes_state(struct loop *l, unsigned step)
{
    for (unsigned k = 0; !step && k < 8; k++)
        keep(l, (k + 1) * 100 * KIB);
}

/* Keeps the last `room` blocks. */
static void caches(struct loop *l, unsigned step, unsigned room)
{
    static unsigned slots[64];

    if (step >= room)
        drop(l, slots[step % room]);
    slots[step % room] = keep(l, 100 * KIB);
}

static void caches_12(struct loop *l, unsigned step)
{
    caches(l, step, CACHE);
}

/* The cache is full only after three quarters of the steps. */
static void caches_24(struct loop *l, unsigned step)
{
    caches(l, step, 24);
}

/* Empties what it has gathered every eight steps. */
static void gathers(struct loop *l, unsigned step)
{
    static unsigned slots[8];

    if (step && step % 8 == 0)
        for (unsigned k = 0; k < 8; k++)
            drop(l, slots[k]);
    slots[step % 8] = keep(l, 100 * KIB);
}

/* The next step takes over what this one made. */
static void hands_over(struct loop *l, unsigned step)
{
    static unsigned before;
    const unsigned now = keep(l, (100 + step * 11 % 17) * KIB);

    if (step)
        drop(l, before);
    before = now;
}

/* Frees that other streams delay by three steps. */
static void delays(struct loop *l, unsigned step)
{
    static unsigned slots[64];

    slots[step] = keep(l, 100 * KIB);
    drop_begin(l, slots[step]);
    if (step >= 3)
        drop_end(l, slots[step - 3]);
}

/* Frees that no stream completes before the recording ends. */
static void waits(struct loop *l, unsigned step)
{
    (void)step;
    drop_begin(l, keep(l, 100 * KIB));
}

/* Moves its blocks to another size, one a step: the sum stays. */
static void moves(struct loop *l, unsigned step)
{
    static unsigned slots[64];

    if (!step)
        for (unsigned k = 0; k < 64; k++)
            slots[k] = keep(l, 100 * KIB);
    drop(l, slots[step]);
    keep(l, 100 * KIB - 512);
}

/* Each step is larger than the one before, and hands a block over. */
static void warms_up_slowly(struct loop *l, unsigned step)
{
    static unsigned before;
    const unsigned now = keep(l, (step + 1) * 64 * KIB);

    drop(l, keep(l, (step + 1) * 4096 * KIB));
    if (step)
        drop(l, before);
    before = now;
}

/* Keeps blocks in the last two steps only, where a recording may end in the
 * middle of something. */
static void ends_early(struct loop *l, unsigned step)
{
    if (step >= 28)
        keep(l, 100 * KIB);
}

static void no_alarm(void **state)
{
    (void)state;
    expect(30, keeps_nothing, LEAKS_NONE);
    expect(30, warms_up, LEAKS_NONE);
    expect(30, makes_state, LEAKS_NONE);
    expect(30, caches_12, LEAKS_NONE);
    expect(32, caches_24, LEAKS_NONE);
    expect(30, gathers, LEAKS_NONE);
    expect(30, hands_over, LEAKS_NONE);
    expect(30, delays, LEAKS_NONE);
    expect(30, waits, LEAKS_NONE);
    expect(40, moves, LEAKS_NONE);
    expect(30, warms_up_slowly, LEAKS_NONE);
    expect(30, ends_early, LEAKS_NONE);
}

static void few_steps_say_nothing(void **state)
{
    (void)state;
    /* the first step ends at the first mark, and is setup */
    expect(WINDOWS_LEAST_STEPS, keeps_one, LEAKS_UNKNOWN);
    expect(WINDOWS_LEAST_STEPS + 1, keeps_one, LEAKS_FOUND);
    expect(0, keeps_one, LEAKS_UNKNOWN);
}

/* ---- growth ---- */

static void growth_is_judged(void **state)
{
    const frag_size rises[] = {0, 1, 2, 3, 4};
    const frag_size jump[] = {0, 1, 2, 90, 91, 92, 93, 94};
    const frag_size seldom[] = {0, 1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 4};
    const frag_size stops[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 9, 9, 9};
    const frag_size gap[] = {0, 1, 2, 3, 3, 3, 3, 4, 5, 6, 7, 8, 9};
    const frag_size teeth[] = {0,  10, 20, 30, 5,  15, 25, 35,
                               10, 20, 30, 40, 15, 25, 35, 45};
    const frag_size fell[] = {0, 0, 9, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8};
    const frag_size slows[] = {0, 50, 90, 94, 97, 99, 100, 101, 102};

    (void)state;
    assert_true(growth_judge(rises, 5, 0).grows);
    assert_true(growth_judge(rises, 5, 0).slope == 1);
    assert_int_equal(growth_judge(rises, 5, 0).rises, 4);
    assert_false(growth_judge(rises, 4, 0).grows);
    assert_true(growth_judge(jump, 8, 0).grows);
    assert_true(growth_judge(seldom, 13, 0).grows);
    assert_int_equal(growth_judge(seldom, 13, 0).rises, 4);
    assert_int_equal(growth_judge(seldom, 13, 0).steps, 12);
    assert_false(growth_judge(stops, 13, 0).grows);
    assert_true(
        growth_judge(stops, 11, 0).grows); /* one step of rest is no end */
    assert_false(growth_judge(gap, 13, 0).grows); /* a quarter without a rise */
    assert_false(growth_judge(teeth, 16, 0).grows);
    assert_true(growth_judge(teeth, 16, 0).slope > 0);
    assert_false(growth_judge(fell, 13, 4).grows); /* it once came back */
    assert_true(growth_judge(fell + 4, 9, 0).grows);
    assert_true(growth_judge(slows, 9, 0).slows);
    assert_false(growth_judge(rises, 5, 0).slows);
    assert_false(growth_judge(rises, 1, 0).grows);
    assert_int_equal(growth_judge(rises, 1, 0).steps, 0);
}

/* ---- an end ---- */

static void what_follows_the_end_does_not_count(void **state)
{
    struct frag_trace *t = program(60, keeps_later);
    struct leaks l;

    (void)state;
    assert_int_equal(
        leaks_find(t, t->devices, t->devices->count / 5, NULL, &l, &error),
        FRAG_OK);
    assert_int_equal(l.verdict, LEAKS_NONE);
    leaks_close(&l);
    frag_trace_close(t);
}

/* ---- the table of steps ---- */

static void shrinks(struct loop *l, unsigned step)
{
    drop(l, keep(l, (20 - step) * 4096 * KIB));
}

static struct step_table table_of(const struct frag_trace *t,
                                  const char *policy, frag_size capacity)
{
    struct cell_settings settings = {.costs = frag_costs_h200};
    struct frag_params *read;
    struct step_table table;
    struct step_spec spec = {
        .trace = t,
        .device = t->devices,
        .settings = &settings,
        .bound = frag_capacity_bound(capacity),
    };

    assert_int_equal(
        frag_params_read(frag_policy_find(policy), "", &read, &error), FRAG_OK);
    spec.policy = read;
    assert_int_equal(step_table_make(&spec, &table, &error), FRAG_OK);
    free(read);
    return table;
}

static void the_parts_make_up_the_run(void **state)
{
    struct frag_trace *t = program(12, keeps_one);
    struct step_table table = table_of(t, "torch", FRAG_UNLIMITED);
    const struct step_part *p = table.items;
    frag_size requested = 0, reserved = 0;
    uint64_t calls = 0, event = 0;

    (void)state;
    assert_int_equal(table.steps.count, 11);
    assert_int_equal(table.count, 12); /* and what comes before them */
    assert_int_equal(p[0].kind, STEP_BEFORE);
    assert_int_equal(p[0].live, 0);
    for (uint64_t i = 0; i < table.count; i++) {
        assert_int_equal(p[i].from, event);
        event = p[i].to;
        calls += p[i].driver_calls;
        requested =
            p[i].peak_requested > requested ? p[i].peak_requested : requested;
        reserved =
            p[i].peak_reserved > reserved ? p[i].peak_reserved : reserved;
        if (p[i].kind != STEP_COMPLETE)
            continue;
        assert_int_equal(p[i].step, i);
        assert_int_equal(p[i].live, (4096 + i * 100) * KIB);
        assert_int_equal(p[i].peak_requested,
                         (4096 + (i + 1) * 100 + 21 * 512) * KIB);
        assert_true(p[i].seconds > 0);
    }
    assert_int_equal(event, t->devices->count);
    assert_int_equal(requested, table.summary.peak_requested);
    assert_int_equal(reserved, table.summary.peak_reserved);
    for (int k = 0; k < FRAG_CALL_COUNT; k++)
        calls -= table.summary.calls[k];
    assert_int_equal(calls, 0);
    step_table_close(&table);
    frag_trace_close(t);
}

/* A policy that returns what is freed: each part has its own peaks. */
static void each_part_has_its_own_peaks(void **state)
{
    struct frag_trace *t = program(12, shrinks);
    struct step_table table = table_of(t, "direct", FRAG_UNLIMITED);

    (void)state;
    for (uint64_t i = 1; i < table.count; i++) {
        const struct step_part *p = &table.items[i];

        assert_int_equal(p->peak_allocated, p->peak_requested);
        assert_in_range(p->peak_reserved, p->peak_allocated,
                        p[-1].peak_reserved - 1);
        assert_true(p->fragmentation >= 0 && p->fragmentation < 0.5);
    }
    step_table_close(&table);
    frag_trace_close(t);
}

static void failed_requests_are_counted(void **state)
{
    struct frag_trace *t = program(12, keeps_one);
    struct step_table table = table_of(t, "direct", 12 << 20);
    uint64_t ooms = 0;

    (void)state;
    for (uint64_t i = 0; i < table.count; i++)
        ooms += table.items[i].ooms;
    assert_true(ooms > 0);
    assert_int_equal(ooms, table.summary.num_ooms);
    step_table_close(&table);
    frag_trace_close(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_block_a_step_leaks),
        cmocka_unit_test(a_leak_that_begins_later_is_found),
        cmocka_unit_test(sizes_that_vary_leak_together),
        cmocka_unit_test(a_block_that_is_extended_leaks),
        cmocka_unit_test(no_alarm),
        cmocka_unit_test(few_steps_say_nothing),
        cmocka_unit_test(growth_is_judged),
        cmocka_unit_test(what_follows_the_end_does_not_count),
        cmocka_unit_test(the_parts_make_up_the_run),
        cmocka_unit_test(each_part_has_its_own_peaks),
        cmocka_unit_test(failed_requests_are_counted),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
