/* test_faults.c - tests every policy when the device or the host fails once: at
 * the first call, at the second, and so on, until a run meets no failure. After
 * the failure the run continues or is closed; no memory leaks and no block is
 * lost.
 *
 * The arena detects leaks on the device, ASan detects leaks on the host.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "sim/experiments/contract/traffic.h"
#include "tests/support/failing_malloc.h"
#include "tests/support/subjects.h"

/* ---- subjects and faults ---- */

static const struct setting settings[] = {
    {"torch", "expandable_segments:True"},
    {"torch", "max_split_size_mb:32,garbage_collection_threshold:0.6,"
              "per_process_memory_fraction:0.001"},
    {"first_fit", "segment=2MiB"},
    {"best_fit", "segment=2MiB"},
    {"tlsf", "segment=2MiB,first_levels=4,second_levels=4"},
    {"size_class", "segment=2MiB,subdivisions=1"},
    {"size_class", "segment=6KiB"},
    {"bfc", "region=512KiB,split=64KiB,gc=no"},
    {"stitch", "fragment=512,reuse=1,pool=0"},
    {"stitch", "fragment=6MiB,reuse=2"},
    {"remap", "budget=2,span=96MiB"},
    {"remap", "slack=0"},
    {"compact", "threshold=1,span=96MiB"},
    {"plan_online", "sure=1,rest=expandable"},
    {"rmm_pool", "initial=1MiB,maximum=1GiB"},
    {"rmm_arena", "fraction=1"},
    {"rmm_binning", "smallest=4KiB,largest=1MiB,blocks=8"},
    {"cuda_async", "page=2MiB,sync=7,threshold=8MiB"},
    {"cuda_async", "page=4MiB,opportunistic=no"},
    {NULL, NULL},
};

enum fault { DEVICE_FULL, DEVICE_BROKEN, HOST_FULL, FAULTS };

static const char *const fault_names[FAULTS] = {
    "the device is full", "the device is broken", "the host is full"};

/* The actions after the failure. */
enum sequel { GO_ON, CLOSE };

enum { STEPS = 160 };

/* A run in which the k-th call fails, by the script so far. */
struct ordeal {
    const struct subject *subject;
    enum fault fault;
    enum sequel sequel;
    frag_size capacity; /* of the device; 0: unlimited */
    uint64_t k;
    bool failed;
};

static void complain(const struct ordeal *o, const char *words, size_t step)
{
    char text[128];

    fail_msg("%s: %s at call %llu, then %s: %s (step %zu)",
             subject_text(o->subject, text), fault_names[o->fault],
             (unsigned long long)o->k, o->sequel == GO_ON ? "on" : "closed",
             words, step);
}

static enum frag_err open_ordeal(struct ordeal *o, struct traffic *t)
{
    const struct traffic_options opts = {.capacity = o->capacity, .scale = 1};
    enum frag_err err;

    calls_to_failure = o->fault == HOST_FULL ? o->k : 0;
    err = traffic_open(t, o->subject->policy, o->subject->params, &opts);
    if (err != FRAG_OK) {
        assert_int_equal(err, FRAG_NOMEM);
        assert_int_equal(calls_to_failure, 0);
        o->failed = true;
        return err;
    }
    t->mem.error = o->fault == DEVICE_FULL ? FRAG_OOM : FRAG_DEVICE;
    t->mem.fail_at = o->fault == HOST_FULL ? 0 : o->k;
    return FRAG_OK;
}

static bool has_failed(const struct ordeal *o, const struct traffic *t)
{
    return o->fault == HOST_FULL ? !calls_to_failure
                                 : t->mem.calls >= t->mem.fail_at;
}

/* A step that may meet the failure; an equal request is then served, if the
 * device has the room. */
static void suffer(const struct ordeal *o, struct traffic *t,
                   const struct step *step, size_t i)
{
    const enum frag_err err = traffic_step(t, step);
    const char *wrong = traffic_judge(t);

    if (wrong)
        complain(o, wrong, i);
    if (err == FRAG_OK || (err == FRAG_OOM && o->capacity))
        return;
    if (!has_failed(o, t))
        complain(o, "an error that nothing caused", i);
    if (o->sequel == GO_ON && traffic_step(t, step) != FRAG_OK && !o->capacity)
        complain(o, "an equal request is refused afterwards", i);
}

static void run_ordeal(struct ordeal *o, const struct script *script)
{
    static struct traffic t;
    const char *wrong;
    size_t i;

    if (open_ordeal(o, &t) != FRAG_OK)
        return;
    for (i = 0; i < script->count; i++) {
        suffer(o, &t, &script->steps[i], i);
        if (o->sequel == CLOSE && has_failed(o, &t))
            break;
    }
    o->failed = has_failed(o, &t);
    calls_to_failure = 0;
    t.mem.fail_at = 0;
    if (i == script->count && o->subject->policy->trim) {
        o->subject->policy->trim(&t.heap);
        if (t.mem.used)
            complain(o, "memory is lost", i);
    }
    wrong = traffic_close(&t);
    if (wrong)
        complain(o, wrong, i);
}

static void check(const struct subject *s, enum fault fault, frag_size capacity)
{
    static struct script script;

    script_make(&script, 11, STEPS, 0);
    for (int sequel = GO_ON; sequel <= CLOSE; sequel++) {
        struct ordeal o = {.subject = s,
                           .fault = fault,
                           .sequel = (enum sequel)sequel,
                           .capacity = capacity,
                           .failed = true};

        for (o.k = 1; o.failed; o.k++) {
            o.failed = false;
            run_ordeal(&o, &script);
        }
        assert_true(o.k > 2); /* a policy may allocate all its memory in one
                               * call */
    }
}

static void a_full_device_costs_nothing_but_the_request(void **state)
{
    check(*state, DEVICE_FULL, 0);
}

static void a_broken_device_costs_nothing_but_the_request(void **state)
{
    check(*state, DEVICE_BROKEN, 0);
    check(*state, DEVICE_BROKEN, 96 * FRAG_MIB);
}

static void a_full_host_costs_nothing_but_the_request(void **state)
{
    check(*state, HOST_FULL, 0);
    check(*state, HOST_FULL, 96 * FRAG_MIB);
}

/* More blocks than fit any first helping of records, of sizes that leave the
 * ends of small segments to be cut. */
static void a_crowd_survives_a_full_host(void **state)
{
    enum { CROWD = 3000 };
    static struct frag_block blocks[CROWD];
    static struct traffic t;
    struct ordeal o = {
        .subject = *state, .fault = HOST_FULL, .k = 0, .failed = true};

    while (o.failed) {
        o.k += 1 + o.k / 8;
        o.failed = false;
        if (open_ordeal(&o, &t) != FRAG_OK)
            continue;
        for (size_t i = 0; i < CROWD; i++) {
            const struct frag_request req = {.size = (1 + (i + o.k) % 5) * 512};
            const struct frag_policy *p = o.subject->policy;
            enum frag_err err = p->alloc(&t.heap, &req, &blocks[i]);

            if (err != FRAG_OK)
                err = p->alloc(&t.heap, &req, &blocks[i]);
            assert_int_equal(err, FRAG_OK);
        }
        o.failed = has_failed(&o, &t);
        calls_to_failure = 0;
        for (size_t i = 0; i < CROWD; i++)
            o.subject->policy->free(&t.heap, &blocks[i]);
        assert_null(traffic_close(&t));
    }
    assert_true(o.k > 1); /* the host received a request for memory */
}

static void parameters_survive_a_full_host(void **state)
{
    const struct subject *s = *state;
    enum frag_err err = FRAG_NOMEM;

    for (uint64_t k = 1; err != FRAG_OK; k++) {
        struct frag_params *params = NULL;
        struct frag_error e = {""};

        calls_to_failure = k;
        err = frag_params_read(s->policy, s->params, &params, &e);
        calls_to_failure = 0;
        assert_true(err == FRAG_OK || err == FRAG_NOMEM);
        assert_error_says(err, e);
        assert_true((err == FRAG_OK) == (params != NULL));
        free(params);
    }
}

static const struct property properties[] = {
    PROPERTY(a_full_device_costs_nothing_but_the_request),
    PROPERTY(a_broken_device_costs_nothing_but_the_request),
    PROPERTY(a_full_host_costs_nothing_but_the_request),
    PROPERTY(a_crowd_survives_a_full_host),
    PROPERTY(parameters_survive_a_full_host),
    {NULL, NULL},
};

int main(void)
{
    return run_properties("faults", settings, properties);
}
