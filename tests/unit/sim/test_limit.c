/* test_limit.c - tests the memory limit that recorded OOMs and retries show. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "sim/arena/arena.h"
#include "sim/validate/validate_limit.h"

#define MIB FRAG_MIB

/* The requests: events 0 to 4 are ALLOCs of 30 MiB, event 5 is an
 * EMPTY_CACHE. The history ends before the answer to event 6, so its row is
 * not part of the trace. */
enum { EVENTS = 6 };
static const uint8_t ops[EVENTS + 1] = {[5] = FRAG_EMPTY_CACHE};
static const uint64_t bytes[EVENTS + 1] = {
    30 * MIB, 30 * MIB, 30 * MIB, 30 * MIB, 30 * MIB, 0, 30 * MIB};

struct limit_case {
    const char *settings;
    enum frag_limit_source source;
    frag_size limit, least, most; /* of `most`, MiB are compared, rounded up */
    struct frag_recorded_action actions[5];
};

/* clang-format off */
#define TAKE(e, n)    {.event = (e), .action = FRAG_SEGMENT_ALLOC, .size = (n) * MIB}
#define MAP(e, n)     {.event = (e), .action = FRAG_SEGMENT_MAP, .size = (n) * MIB}
#define RETURN(e, n)  {.event = (e), .action = FRAG_SEGMENT_FREE, .size = (n) * MIB}
#define FAIL(e, n, f) {.event = (e), .action = FRAG_OOM_REPORTED, .size = (n) * MIB, .device_free = (f) * MIB + FRAG_DRIVER_KEEPS}
#define NONE FRAG_UNLIMITED

static const struct limit_case cases[] = {
    /* Without an OOM, no limit is needed, whatever was returned. */
    {"", FRAG_LIMIT_NONE, NONE, 100 * MIB, NONE, {TAKE(0, 100)}},
    {"", FRAG_LIMIT_NONE, NONE, 100 * MIB, NONE, {TAKE(0, 100), RETURN(1, 50), TAKE(1, 30)}},
    /* The device had enough: the process had a limit. */
    {"", FRAG_LIMIT_INFERRED, 115 * MIB - 1, 100 * MIB, 130 * MIB, {TAKE(0, 100), FAIL(1, 30, 500)}},
    /* A request of 5 MiB needs a segment of 20, or of the set size. */
    {"", FRAG_LIMIT_INFERRED, 110 * MIB - 1, 100 * MIB, 120 * MIB, {TAKE(0, 100), FAIL(1, 5, 20)}},
    {"large_segment_size_mb:40", FRAG_LIMIT_DEVICE, 120 * MIB, 100 * MIB, 140 * MIB, {TAKE(0, 100), FAIL(1, 5, 20)}},
    /* The device refused. */
    {"", FRAG_LIMIT_DEVICE, 110 * MIB, 100 * MIB, 130 * MIB, {TAKE(0, 100), FAIL(1, 30, 10)}},
    /* The first sum counts; it is raised to the peak, or lowered. */
    {"", FRAG_LIMIT_DEVICE, 110 * MIB, 100 * MIB, 130 * MIB, {TAKE(0, 100), FAIL(1, 30, 10), FAIL(2, 30, 20)}},
    {"", FRAG_LIMIT_DEVICE, 100 * MIB, 100 * MIB, 120 * MIB, {TAKE(0, 100), RETURN(1, 10), FAIL(1, 30, 5)}},
    {"", FRAG_LIMIT_DEVICE, 110 * MIB - 1, 100 * MIB, 110 * MIB, {TAKE(0, 100), FAIL(1, 30, 20), FAIL(2, 10, 500)}},
    /* A retry lowers the range: 100 + 20 were too much at event 1. */
    {"", FRAG_LIMIT_INFERRED, 110 * MIB - 1, 100 * MIB, 120 * MIB, {TAKE(0, 100), RETURN(1, 40), TAKE(1, 20), FAIL(2, 60, 500)}},
    /* No retry: the garbage collection, empty_cache, two events, no answer. */
    {"garbage_collection_threshold:0.6", FRAG_LIMIT_INFERRED, 120 * MIB - 1, 100 * MIB, 140 * MIB, {TAKE(0, 100), RETURN(1, 40), TAKE(1, 20), FAIL(2, 60, 500)}},
    {"", FRAG_LIMIT_INFERRED, 120 * MIB - 1, 100 * MIB, 140 * MIB, {TAKE(0, 100), RETURN(5, 40), TAKE(5, 20), FAIL(5, 60, 500)}},
    {"", FRAG_LIMIT_INFERRED, 120 * MIB - 1, 100 * MIB, 140 * MIB, {TAKE(0, 100), RETURN(1, 40), TAKE(2, 20), FAIL(3, 60, 500)}},
    {"", FRAG_LIMIT_INFERRED, 120 * MIB - 1, 100 * MIB, 140 * MIB, {TAKE(0, 100), RETURN(6, 40), TAKE(6, 20), FAIL(6, 60, 500)}},
    /* A map counts with the segment of its request, 30 MiB, if that is known. */
    {"", FRAG_LIMIT_INFERRED, 115 * MIB - 1, 100 * MIB, 130 * MIB, {TAKE(0, 100), RETURN(1, 40), MAP(1, 2), FAIL(2, 90, 500)}},
    {"roundup_power2_divisions:4", FRAG_LIMIT_INFERRED, 126 * MIB - 1, 100 * MIB, 152 * MIB, {TAKE(0, 100), RETURN(1, 40), MAP(1, 2), FAIL(2, 90, 500)}},
    {"padding:32", FRAG_LIMIT_INFERRED, 116 * MIB - 1, 100 * MIB, 132 * MIB, {TAKE(0, 100), RETURN(1, 40), MAP(1, 2), FAIL(2, 90, 500)}},
    /* More was reserved before than the failed request needed. */
    {"", FRAG_LIMIT_CONTRADICTED, NONE, 100 * MIB, 60 * MIB, {TAKE(0, 100), RETURN(5, 70), FAIL(1, 30, 10)}},
};
/* clang-format on */

static struct frag_recorded_limit limit_of(const struct limit_case *c)
{
    struct frag_device_trace d = {.count = EVENTS, .op = ops, .bytes = bytes};

    d.recorded.actions = c->actions;
    while (d.recorded.action_count < 5 &&
           c->actions[d.recorded.action_count].size)
        d.recorded.action_count++;
    return frag_recorded_limit(&d, c->settings[0] ? c->settings : NULL);
}

static void ooms_and_retries_bound_the_limit(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        const struct limit_case *c = &cases[i];
        const struct frag_recorded_limit l = limit_of(c);

        if (l.source != c->source || l.limit != c->limit ||
            l.least != c->least ||
            l.most != (c->most == NONE ? NONE : c->most - 1))
            fail_msg("case %zu: %s, limit %llu, from %llu to %llu", i,
                     frag_limit_source_words[l.source],
                     (unsigned long long)l.limit, (unsigned long long)l.least,
                     (unsigned long long)l.most);
    }
}

static void what_was_held_at_the_start_counts(void **state)
{
    static const struct frag_recorded_segment held = {.size = 50 * MIB};
    static const struct frag_recorded_action oom = FAIL(0, 30, 10);
    struct frag_device_trace d = {.count = EVENTS, .op = ops, .bytes = bytes};
    struct frag_recorded_limit l;

    (void)state;
    d.recorded.start.segments = &held;
    d.recorded.start.segment_count = 1;
    d.recorded.actions = &oom;
    d.recorded.action_count = 1;
    l = frag_recorded_limit(&d, NULL);
    assert_int_equal(l.least, 50 * MIB);
    assert_int_equal(l.limit, 60 * MIB);
    assert_int_equal(l.held, 50 * MIB);
    assert_int_equal(l.device_free, 10 * MIB + FRAG_DRIVER_KEEPS);
}

/* A limit among the changes at the start holds; that there is none explains no
 * OOM of the device, and a later change is not the limit of the start. */
static void a_stated_limit_holds(void **state)
{
    static const struct {
        frag_size limit, free;
        uint64_t event;
        enum frag_limit_source source;
    } rows[] = {
        {120 * MIB, 500, 0, FRAG_LIMIT_GIVEN},
        {120 * MIB, 10, 0, FRAG_LIMIT_GIVEN},
        {FRAG_UNLIMITED, 10, 0, FRAG_LIMIT_DEVICE},
        {FRAG_UNLIMITED, 500, 0, FRAG_LIMIT_GIVEN},
        {120 * MIB, 500, 1, FRAG_LIMIT_INFERRED},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        const struct frag_setting_change changes[] = {
            {.kind = FRAG_CHANGE_SETTINGS},
            {.kind = FRAG_CHANGE_LIMIT,
             .event = rows[i].event,
             .limit = rows[i].limit}};
        const struct frag_recorded_action actions[] = {
            TAKE(0, 100), FAIL(1, 30, rows[i].free)};
        static const char *const none[] = {""};
        struct frag_device_trace d = {
            .count = EVENTS, .op = ops, .bytes = bytes};
        struct frag_recorded_limit l;

        d.changes = changes;
        d.change_count = 2;
        d.strings = none;
        d.recorded.actions = actions;
        d.recorded.action_count = 2;
        l = frag_recorded_limit(&d, NULL);
        assert_int_equal(l.source, rows[i].source);
        assert_true(l.source != FRAG_LIMIT_GIVEN || l.limit == rows[i].limit);
    }
}

/* As an H200 refused it: 470 MiB, with 471.5 MiB free. */
static void
a_device_that_reports_enough_as_free_may_have_been_full(void **state)
{
    static const struct frag_recorded_action oom = {.action = FRAG_OOM_REPORTED,
                                                    .size = 470 * MIB,
                                                    .device_free =
                                                        471 * MIB + MIB / 2};
    struct frag_device_trace d = {.count = EVENTS, .op = ops, .bytes = bytes};
    struct frag_recorded_limit l;

    (void)state;
    d.recorded.actions = &oom;
    d.recorded.action_count = 1;
    l = frag_recorded_limit(&d, NULL);
    assert_int_equal(l.source, FRAG_LIMIT_DEVICE);
    assert_int_equal(l.limit, oom.device_free - FRAG_DRIVER_KEEPS);
}

static void the_note_names_the_option_where_the_limit_is_open(void **state)
{
    static const struct {
        enum frag_limit_source source;
        frag_size limit;
        bool has_note, names_option;
    } rows[] = {
        {FRAG_LIMIT_NONE, FRAG_UNLIMITED, false, false},
        {FRAG_LIMIT_GIVEN, 5, false, false},
        {FRAG_LIMIT_DEVICE, 7, true, false},
        {FRAG_LIMIT_DEVICE, 8, true, true},
        {FRAG_LIMIT_INFERRED, 8, true, true},
        {FRAG_LIMIT_CONTRADICTED, FRAG_UNLIMITED, true, true},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        const struct frag_recorded_limit l = {.source = rows[i].source,
                                              .limit = rows[i].limit,
                                              .least = UINT64_MAX / 2,
                                              .most = UINT64_MAX - 1,
                                              .held = 3,
                                              .device_free =
                                                  4 + FRAG_DRIVER_KEEPS};
        char text[FRAG_LIMIT_TEXT];

        frag_recorded_limit_note(&l, text);
        assert_int_equal(text[0] != '\0', rows[i].has_note);
        assert_int_equal(strstr(text, "--recorded-limit") != NULL,
                         rows[i].names_option);
        assert_true(strlen(text) < FRAG_LIMIT_TEXT - 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ooms_and_retries_bound_the_limit),
        cmocka_unit_test(what_was_held_at_the_start_counts),
        cmocka_unit_test(a_stated_limit_holds),
        cmocka_unit_test(
            a_device_that_reports_enough_as_free_may_have_been_full),
        cmocka_unit_test(the_note_names_the_option_where_the_limit_is_open),
    };

    return cmocka_run_group_tests_name("limit", tests, NULL, NULL);
}
