/* test_plan_faults.c - tests the planners when the host or the device fails
 * once: at the first call, at the second, and so on, until a run meets no
 * failure. `plan` knows the future here, and the steps of `plan_online` recur,
 * which makes both of them plan.
 *
 * The arena detects leaks on the device, ASan detects leaks on the host.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "sim/experiments/contract/traffic.h"
#include "tests/support/failing_malloc.h"

static struct traffic t;

static void check(const char *fault, uint64_t k)
{
    if (fault)
        fail_msg("failure %llu: %s", (unsigned long long)k, fault);
}

/* ---- a future ---- */

/* Blocks for the search, and more than the search accepts. */
enum { FEW = 40, MANY = 2100 };

/* Blocks that each live for one to four later requests, with sizes that need a
 * search. */
static void foretell(struct frag_future_request *requests)
{
    for (uint64_t i = 0; i < MANY; i++)
        requests[i] = (struct frag_future_request){
            .size = (1 + i * i % 7) * 512,
            .allocs_at = 2 * i,
            .frees_at = 2 * (i + 1 + i * 5 % 4) + 1};
}

/* Opens the heap with a future while the k-th call fails; true if none did. */
static bool plan_with_a_failure(size_t count, uint64_t k)
{
    static struct frag_future_request requests[MANY];
    const struct frag_future future = {.count = count, .requests = requests};
    const struct frag_policy *plan = frag_policy_find("plan");
    const struct traffic_options opts = {.scale = 1};
    bool failed;
    enum frag_err err;

    foretell(requests);
    assert_int_equal(traffic_open(&t, frag_policy_find("direct"), NULL, &opts),
                     FRAG_OK);
    frag_heap_close(&t.heap);
    calls_to_failure = k;
    err = frag_heap_open_with(&t.heap, plan, &t.mem.base, "effort=20000",
                              &future, NULL);
    failed = !calls_to_failure;
    calls_to_failure = 0;
    assert_int_equal(err, failed ? FRAG_NOMEM : FRAG_OK);
    if (err != FRAG_OK) {
        assert_int_equal(t.mem.used, 0);
        assert_int_equal(frag_heap_open(&t.heap, plan, &t.mem.base, NULL, NULL),
                         FRAG_OK);
    }
    check(traffic_close(&t), k);
    return !failed;
}

static void a_full_host_has_no_plan_and_no_leak(void **state)
{
    uint64_t k = 1;

    (void)state;
    while (!plan_with_a_failure(FEW, k))
        k++;
    assert_true(k > 20);
    for (k = 1; !plan_with_a_failure(MANY, k); k++)
        ;
    assert_true(k > 200);
}

/* ---- steps that recur ---- */

enum { SLOTS = 12, LIFE = 7, STEPS = 14 };

static void make_script(struct script *s)
{
    s->count = 0;
    for (uint32_t i = 0; i < STEPS * SLOTS; i++) {
        const uint32_t id = i % SLOTS;

        if (i >= LIFE)
            s->steps[s->count++] =
                (struct step){.kind = STEP_FREE, .id = (i - LIFE) % SLOTS};
        if (i / SLOTS == 10 && id == 3)
            s->steps[s->count++] = (struct step){.kind = STEP_TRIM};
        s->steps[s->count++] =
            (struct step){.kind = STEP_ALLOC,
                          .id = id,
                          .size = (1 + id * id % 7) * 700 * FRAG_KIB};
    }
    for (uint32_t id = 0; id < SLOTS; id++)
        s->steps[s->count++] = (struct step){.kind = STEP_FREE, .id = id};
}

enum fault { DEVICE_FULL, DEVICE_BROKEN, HOST_FULL };

static bool has_failed(enum fault fault, uint64_t k)
{
    return fault == HOST_FULL ? !calls_to_failure : t.mem.calls >= k;
}

/* A step of the script, and once more if it met the failure. */
static void suffer(const struct step *step, enum fault fault, uint64_t k)
{
    const enum frag_err err = traffic_step(&t, step);

    check(traffic_judge(&t), k);
    if (err == FRAG_OK)
        return;
    assert_true(has_failed(fault, k));
    calls_to_failure = 0;
    assert_int_equal(traffic_step(&t, step), FRAG_OK);
    check(traffic_judge(&t), k);
}

/* Runs the script while the k-th call fails; true if none did. */
static bool steps_with_a_failure(enum fault fault, const char *params,
                                 uint64_t k)
{
    static struct script script;
    const struct traffic_options opts = {.scale = 1};
    const struct frag_policy *policy = frag_policy_find("plan_online");
    size_t segments = 0;
    bool failed;

    make_script(&script);
    assert_int_equal(traffic_open(&t, policy, params, &opts), FRAG_OK);
    t.mem.error = fault == DEVICE_FULL ? FRAG_OOM : FRAG_DEVICE;
    t.mem.fail_at = fault == HOST_FULL ? 0 : k;
    calls_to_failure = fault == HOST_FULL ? k : 0;
    for (size_t i = 0; i < script.count; i++) {
        suffer(&script.steps[i], fault, k);
        for (size_t n = 0; n < t.mem.count; n++)
            segments += !t.mem.held[n].mapped;
    }
    failed = has_failed(fault, k);
    calls_to_failure = 0;
    t.mem.fail_at = 0;
    assert_true(segments > 0); /* a plan was made, before or after */
    policy->trim(&t.heap);
    assert_int_equal(t.mem.used, 0);
    check(traffic_close(&t), k);
    return !failed;
}

static void steps_survive(enum fault fault)
{
    uint64_t k;

    for (k = 1; !steps_with_a_failure(fault, "sure=1,effort=2000", k); k++)
        ;
    assert_true(k > 5);
    for (k = 1; !steps_with_a_failure(fault, "sure=30,effort=0,rest=remap", k);
         k++)
        ;
    assert_true(k > 5);
}

static void steps_survive_a_full_device(void **state)
{
    (void)state;
    steps_survive(DEVICE_FULL);
}

static void steps_survive_a_broken_device(void **state)
{
    (void)state;
    steps_survive(DEVICE_BROKEN);
}

static void steps_survive_a_full_host(void **state)
{
    (void)state;
    steps_survive(HOST_FULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_full_host_has_no_plan_and_no_leak),
        cmocka_unit_test(steps_survive_a_full_device),
        cmocka_unit_test(steps_survive_a_broken_device),
        cmocka_unit_test(steps_survive_a_full_host),
    };

    return cmocka_run_group_tests_name("plan faults", tests, NULL, NULL);
}
