/* test_feed.c - tests that a replay in windows has the numbers of a replay of
 * the whole trace, whatever the windows are, and that the builder's windows
 * hold the events of the trace.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "sim/arena/arena.h"
#include "sim/meter/ledger.h"
#include "sim/replay/feed.h"
#include "traces/build/build.h"
#include "traces/gen/generator.h"

#define MIB      FRAG_MIB
#define COUNT(a) (sizeof(a) / sizeof(*(a)))

static struct frag_error error;

static struct frag_backend *device(frag_size capacity)
{
    struct frag_backend *mem = frag_arena_open(
        &(const struct frag_arena_options){.capacity = capacity});

    assert_non_null(mem);
    return mem;
}

/* More live blocks than a feed has slots at first. */
static struct frag_trace *made(const char *params)
{
    struct frag_trace *t;

    if (frag_generate(frag_generator_find("stationary"), params, 1, &t,
                      &error) != FRAG_OK)
        fail_msg("%s", error.text);
    return t;
}

/* The columns of the events [from, from + count), with the slots so far. */
static struct frag_device_trace window_of(const struct frag_device_trace *d,
                                          uint64_t from, uint64_t count,
                                          uint32_t *slots)
{
    struct frag_device_trace w = *d;

    w.count = count;
    w.op += from;
    w.id += from;
    w.bytes += from;
    w.stream += from;
    w.pool += from;
    for (uint64_t i = 0; i < count; i++)
        if (w.id[i] >= *slots)
            *slots = w.id[i] + 1;
    w.slots = *slots;
    return w;
}

static enum frag_err feed(const struct frag_replay *spec, uint64_t events,
                          struct frag_run *out)
{
    const struct frag_device_trace *d = spec->trace;
    struct frag_feed *f;
    uint32_t slots = 0;
    enum frag_err err = FRAG_OK;

    FRAG_TRY(frag_feed_open(spec, &f, &error));
    for (uint64_t i = 0; err == FRAG_OK && i < d->count; i += events) {
        const uint64_t left = d->count - i;
        const struct frag_device_trace w =
            window_of(d, i, left < events ? left : events, &slots);

        err = frag_feed_window(f, &w, &error);
    }
    if (err == FRAG_OK)
        return frag_feed_end(f, out, &error);
    frag_feed_close(f);
    return err;
}

static void are_equal(const struct frag_run *a, const struct frag_run *b,
                      const char *policy)
{
    struct frag_summary x = a->summary, y = b->summary;

    x.ns_per_event = y.ns_per_event = 0;
    if (memcmp(&x, &y, sizeof(x)) || memcmp(&a->end, &b->end, sizeof(a->end)) ||
        strcmp(a->params, b->params))
        fail_msg("%s: other numbers in windows", policy);
    assert_int_equal(a->oom_count, b->oom_count);
    assert_int_equal(a->segment_count, b->segment_count);
    for (uint64_t i = 0; i < a->oom_count; i++)
        assert_memory_equal(&a->ooms[i], &b->ooms[i], sizeof(*a->ooms));
    for (uint64_t i = 0; i < a->segment_count; i++)
        assert_memory_equal(&a->segments[i], &b->segments[i],
                            sizeof(*a->segments));
}

/* Runs the trace whole and in windows; false if the policy cannot. */
static bool compare(struct frag_replay spec, frag_size capacity,
                    uint64_t events)
{
    struct frag_run whole, parts;
    enum frag_err err;

    spec.mem = device(capacity);
    err = frag_replay(&spec, &whole, &error);
    frag_arena_close(spec.mem);
    if (err == FRAG_UNSUPPORTED)
        return false;
    assert_int_equal(err, FRAG_OK);
    spec.mem = device(capacity);
    if (feed(&spec, events, &parts) != FRAG_OK)
        fail_msg("%s", error.text);
    frag_arena_close(spec.mem);
    are_equal(&whole, &parts, spec.policy->name);
    frag_run_free(&whole);
    frag_run_free(&parts);
    return true;
}

static void windows_do_not_change_a_number(void **state)
{
    static const uint64_t events[] = {1, 7, 1000, 1 << 20};
    struct frag_trace *t = made("allocs=6000,live=2500,streams=3,mean=64KiB");
    size_t ran = 0;

    (void)state;
    for (const struct frag_policy *const *p = frag_policies; *p; p++) {
        if ((*p)->needs & FRAG_NEEDS_FUTURE)
            continue;
        for (size_t i = 0; i < COUNT(events); i++)
            for (int tight = 0; tight < 2; tight++)
                ran += compare(
                    (struct frag_replay){
                        .trace = t->devices,
                        .policy = *p,
                        .check = i == 2,
                        .stop_at_oom = tight && i == 1,
                        .max_ooms = 5,
                    },
                    tight ? 60 * MIB : FRAG_UNLIMITED, events[i]);
    }
    assert_true(ran > 100);
    frag_trace_close(t);
}

static void a_policy_of_the_future_is_refused(void **state)
{
    struct frag_backend *mem = device(FRAG_UNLIMITED);
    struct frag_feed *f = NULL;

    (void)state;
    assert_int_equal(frag_feed_open(
                         &(const struct frag_replay){
                             .policy = frag_policy_find("plan"), .mem = mem},
                         &f, &error),
                     FRAG_UNSUPPORTED);
    assert_non_null(strstr(error.text, "plan: it places blocks by the whole"));
    assert_null(f);
    frag_arena_close(mem);
}

static void a_feed_without_events_ends_and_closes(void **state)
{
    struct frag_backend *mem = device(FRAG_UNLIMITED);
    const struct frag_replay spec = {.policy = frag_policy_find("torch"),
                                     .mem = mem};
    struct frag_feed *f;
    struct frag_run run;

    (void)state;
    frag_feed_close(NULL);
    assert_int_equal(frag_feed_open(&spec, &f, &error), FRAG_OK);
    frag_feed_close(f);
    assert_int_equal(frag_feed_open(&spec, &f, &error), FRAG_OK);
    assert_int_equal(frag_feed_end(f, &run, &error), FRAG_OK);
    assert_int_equal(run.summary.events, 0);
    frag_run_free(&run);
    frag_arena_close(mem);
}

/* ------------------------------------------------------ of the builder --- */

struct collected {
    uint64_t count, windows, most;
    uint32_t slots;
    uint8_t op[200000];
    uint32_t id[200000];
    uint64_t bytes[200000], handle[200000];
    enum frag_err answer;
};

static enum frag_err collect(void *user, const struct frag_device_trace *w,
                             struct frag_error *e)
{
    struct collected *c = user;

    (void)e;
    for (uint64_t i = 0; i < w->count; i++, c->count++) {
        c->op[c->count] = w->op[i];
        c->id[c->count] = w->id[i];
        c->bytes[c->count] = w->bytes[i];
        c->handle[c->count] = w->streams[w->stream[i]];
        assert_true(w->id[i] < w->slots);
    }
    c->windows++;
    c->slots = w->slots;
    if (w->count > c->most)
        c->most = w->count;
    return c->answer;
}

/* Adds allocs on the streams 9 and 4 by turns and `late` at last, with the line
 * numbers from 1 on, and frees the oldest block after every second one. */
static enum frag_err build(struct frag_build *b, uint64_t allocs, uint64_t late)
{
    uint64_t line = 0;

    for (uint64_t i = 0; i < allocs; i++) {
        const uint64_t stream = i + 1 == allocs ? late : i % 2 ? 4 : 9;

        FRAG_TRY(frag_build_event(b, 0, FRAG_ALLOC, i, 512 + i, stream, ++line,
                                  &error));
        if (i % 2)
            FRAG_TRY(
                frag_build_event(b, 0, FRAG_FREE, i / 2, 0, 0, ++line, &error));
    }
    return FRAG_OK;
}

static struct collected *windowed(uint64_t allocs, uint64_t late,
                                  enum frag_err answer, enum frag_err *err,
                                  struct frag_trace **t)
{
    struct frag_build *b = frag_build_open("input", "csv");
    struct collected *c = calloc(1, sizeof(*c));
    const struct frag_windows windows = {collect, c};

    assert_true(b && c);
    c->answer = answer;
    frag_build_in_windows(b, &windows);
    *err = build(b, allocs, late);
    if (*err == FRAG_OK)
        *err = frag_build_finish(b, NULL, t, &error);
    frag_build_close(b);
    return c;
}

enum { ALLOCS = 100000 };

static void the_windows_hold_the_events_of_the_trace(void **state)
{
    struct frag_build *b = frag_build_open("input", "csv");
    const struct frag_device_trace *d;
    struct frag_trace *whole, *t;
    struct collected *c;
    enum frag_err err;

    (void)state;
    assert_int_equal(build(b, ALLOCS, 9), FRAG_OK);
    assert_int_equal(frag_build_finish(b, NULL, &whole, &error), FRAG_OK);
    frag_build_close(b);
    d = whole->devices;
    c = windowed(ALLOCS, 9, FRAG_OK, &err, &t);
    assert_int_equal(err, FRAG_OK);
    assert_int_equal(c->count, d->count);
    assert_int_equal(t->devices->count, d->count);
    assert_int_equal(t->devices->slots, d->slots);
    assert_null(t->devices->op);
    assert_int_equal(c->slots, d->slots);
    assert_int_equal(c->most, FRAG_WINDOW_EVENTS);
    assert_int_equal(c->windows, 1 + (d->count - 1) / FRAG_WINDOW_EVENTS);
    assert_memory_equal(c->op, d->op, d->count * sizeof(*d->op));
    assert_memory_equal(c->id, d->id, d->count * sizeof(*d->id));
    assert_memory_equal(c->bytes, d->bytes, d->count * sizeof(*d->bytes));
    for (uint64_t i = 0; i < d->count; i++)
        assert_int_equal(c->handle[i], d->streams[d->stream[i]]);
    assert_int_equal(t->devices->stream_count, 2);
    free(c);
    frag_trace_close(t);
    frag_trace_close(whole);
}

/* A stream that is first seen after the first window keeps its number only if
 * its handle is the highest. */
static void a_late_stream_must_be_the_highest(void **state)
{
    struct frag_trace *t;
    enum frag_err err;

    (void)state;
    free(windowed(ALLOCS + 1, 20, FRAG_OK, &err, &t));
    assert_int_equal(err, FRAG_OK);
    assert_int_equal(t->devices->stream_count, 3);
    frag_trace_close(t);
    free(windowed(ALLOCS + 1, 5, FRAG_OK, &err, &t));
    assert_int_equal(err, FRAG_CORRUPT);
    assert_non_null(strstr(error.text, "input:150001: expected a stream"));
    assert_non_null(strstr(error.text, "found stream 5"));
}

static void an_error_of_the_receiver_ends_the_reading(void **state)
{
    struct frag_trace *t;
    struct collected *c;
    enum frag_err err;

    (void)state;
    c = windowed(ALLOCS, 9, FRAG_DEVICE, &err, &t);
    assert_int_equal(err, FRAG_DEVICE);
    assert_int_equal(c->windows, 1);
    free(c);
}

/* ------------------------------------------------------- of the ledger --- */

static void a_ledger_grows(void **state)
{
    struct frag_ledger *l = frag_ledger_open(1);
    const struct frag_block first = {0x1000, 512, NULL},
                            later = {0x1200, 512, NULL};
    enum frag_disturbance by;
    uint32_t owner;

    (void)state;
    assert_int_equal(frag_ledger_hold(l, 0x1000, 0x1000, 0, 0), FRAG_OK);
    assert_int_equal(frag_ledger_alloc(l, 0, 512, &first), FRAG_OK);
    assert_int_equal(frag_ledger_grow(l, 5000), FRAG_OK);
    assert_int_equal(frag_ledger_alloc(l, 4999, 512, &later), FRAG_OK);
    frag_ledger_copied(l, 0x1200, 512);
    assert_true(frag_ledger_disturbed(l, &owner, &by));
    assert_int_equal(owner, 4999);
    assert_int_equal(frag_ledger_free(l, 0, &first), FRAG_OK);
    assert_int_equal(frag_ledger_alloc(l, 1500, 512, &later), FRAG_CONTRACT);
    frag_ledger_close(l);
    l = frag_ledger_open(5);
    assert_int_equal(frag_ledger_alloc(l, 5, 512, &first), FRAG_CONTRACT);
    frag_ledger_close(l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(windows_do_not_change_a_number),
        cmocka_unit_test(a_policy_of_the_future_is_refused),
        cmocka_unit_test(a_feed_without_events_ends_and_closes),
        cmocka_unit_test(the_windows_hold_the_events_of_the_trace),
        cmocka_unit_test(a_late_stream_must_be_the_highest),
        cmocka_unit_test(an_error_of_the_receiver_ends_the_reading),
        cmocka_unit_test(a_ledger_grows),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
