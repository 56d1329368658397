/* test_tune.c - the settings that tune tries, the memory that a job asks for,
 * and the decision. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "policies/torch/torch_conf.h"
#include "policies/torch/versions.h"
#include "sim/experiments/tune/ladder.h"
#include "sim/experiments/tune/requested_peak.h"
#include "traces/steps/complete.h"

/* ---- the rungs ---- */

/* A job of one block of 7 MiB, and one of 30 MiB. */
struct job {
    struct frag_device_trace device;
    struct frag_trace trace;
    struct tune_case as_case;
};

static const uint8_t job_op[] = {FRAG_ALLOC, FRAG_FREE, FRAG_ALLOC, FRAG_FREE};
static const uint32_t job_id[] = {0, 0, 0, 0};
static const uint64_t job_bytes[] = {7 * FRAG_MIB, 0, 30 * FRAG_MIB, 0};
static const frag_stream streams[4];
static const frag_pool pools[4];
static const uint64_t handles[1];
static const struct frag_pool_id pool_ids[1];

static void make_job(struct job *j, char *settings, char *releases)
{
    *j = (struct job){
        .device = {.count = 4,
                   .slots = 1,
                   .stream_count = 1,
                   .pool_count = 1,
                   .streams = handles,
                   .pools = pool_ids,
                   .op = job_op,
                   .id = job_id,
                   .bytes = job_bytes,
                   .stream = streams,
                   .pool = pools},
        .trace = {.path = "job", .settings = settings, .releases = releases},
    };
    j->as_case = (struct tune_case){.name = "job",
                                    .device = &j->device,
                                    .trace = &j->trace,
                                    .bound = FRAG_NO_BOUND,
                                    .recorded = FRAG_NO_BOUND};
}

static struct cell_settings settings_of(void)
{
    return (struct cell_settings){.backend = &cell_arena_backend,
                                  .costs = frag_costs_h200,
                                  .stop_at_oom = true};
}

static void climb(struct tune_ladder *l, const struct tune_case *cases,
                  size_t count, unsigned version, const struct texts *without)
{
    static struct cell_settings settings;
    struct frag_error e = {""};

    settings = settings_of();
    *l = (struct tune_ladder){
        .settings = &settings,
        .cases = cases,
        .case_count = count,
        .without = without,
        .version = version,
        .on = {.threads = 1},
    };
    if (tune_climb(l, &e) != FRAG_OK)
        fail_msg("%s", e.text);
}

static bool has(const struct tune_ladder *l, const char *part)
{
    for (size_t i = 0; i < l->count; i++)
        if (l->rungs[i].text && strstr(l->rungs[i].text, part))
            return true;
    return false;
}

/* Each text is one that PyTorch accepts and a shell can quote, has no list, and
 * has no key that the release does not know. */
static void releases_know_the_rungs(void **state)
{
    struct job j;
    struct tune_ladder l;
    struct torch_conf conf;
    struct frag_error e;

    (void)state;
    make_job(&j, NULL, NULL);
    for (unsigned v = TORCH_OLDEST; v <= TORCH_NEWEST; v++) {
        climb(&l, &j.as_case, 1, v, NULL);
        assert_int_equal(l.count, 2 + (v >= 1) + (v >= 11));
        for (size_t i = 0; i < l.count; i++) {
            const char *text = l.rungs[i].text;

            assert_int_equal(strspn(text, "abcdefghijklmnopqrstuvwxyzT"
                                          "0123456789_:,"),
                             strlen(text));
            assert_int_equal(torch_conf_parse(&conf, text, &e), FRAG_OK);
            for (const struct torch_setting *s = torch_known_settings; s->name;
                 s++)
                if (s->since > v)
                    assert_null(strstr(text, s->name));
            for (size_t k = 0; k < i; k++)
                assert_string_not_equal(text, l.rungs[k].text);
        }
        assert_true(has(&l, "expandable_segments:True") == (v >= 1));
        assert_true(has(&l, "large_segment_size_mb") == (v >= 11));
        tune_ladder_close(&l);
    }
}

static void keys_are_left_out(void **state)
{
    const char *keys[] = {"expandable_segments", "max_split_size_mb"};
    const struct texts without = {keys, 2};
    struct job j;
    struct tune_ladder l;

    (void)state;
    make_job(&j, NULL, NULL);
    climb(&l, &j.as_case, 1, 11, &without);
    assert_false(has(&l, keys[0]) || has(&l, keys[1]));
    assert_int_equal(l.count, 1);
    assert_true(tune_has_key(keys[0]) && tune_has_key(keys[1]));
    assert_false(tune_has_key("expandable") || tune_has_key("backend"));
    tune_ladder_close(&l);
}

/* The first rung is what the job had: a list is one knob, the padding of an
 * Ascend is none. It is not tried twice. */
static void recorded_settings_come_first(void **state)
{
    char list[] = "padding:32,roundup_power2_divisions:[256:1,>:4],"
                  "max_split_size_mb:64";
    char expandable[] = "expandable_segments:True";
    struct job a, b;
    struct tune_ladder l;

    (void)state;
    make_job(&a, list, NULL);
    climb(&l, &a.as_case, 1, 11, NULL);
    assert_string_equal(l.rungs[0].text, strstr(list, "roundup"));
    assert_int_equal(l.rungs[0].knobs, 2);
    assert_true(l.rungs[0].recorded && !l.rungs[1].recorded);
    assert_true(l.rungs[0].results[0].peak == l.base[0].peak);
    tune_ladder_close(&l);
    make_job(&a, expandable, NULL);
    climb(&l, &a.as_case, 1, 10, NULL);
    assert_string_equal(l.rungs[0].text, expandable);
    assert_string_equal(l.rungs[1].text, "");
    assert_false(strstr(l.rungs[2].text, "expandable"));
    /* 7 MiB take a segment of 20, which does not grow to 30 */
    assert_true(l.base[0].peak < 50 * FRAG_MIB);
    assert_true(l.rungs[1].results[0].peak == 50 * FRAG_MIB);
    /* but is returned for 30: the default needs less */
    assert_ptr_equal(l.chosen, &l.rungs[1]);
    tune_ladder_close(&l);

    make_job(&b, NULL, NULL);
    const struct tune_case both[] = {a.as_case, b.as_case};
    climb(&l, both, 2, 10, NULL);
    assert_null(l.rungs[0].text); /* they differ */
    assert_true(l.base[0].peak < l.base[1].peak);
    assert_string_equal(l.chosen->text, "");
    tune_ladder_close(&l);
}

/* The job as it was recorded: under its bound, or without one if it died. */
static void the_recorded_bound_is_the_base(void **state)
{
    struct job j;
    struct tune_ladder l;

    (void)state;
    make_job(&j, NULL, NULL);
    j.as_case.recorded = frag_bound_at(40 * FRAG_MIB, FRAG_BOUND_LIMIT);
    j.as_case.peak = 30 * FRAG_MIB;
    climb(&l, &j.as_case, 1, 10, NULL);
    assert_true(l.base[0].peak == 30 * FRAG_MIB); /* the cache was returned */
    assert_true(tune_is_exact(&l, 0));
    assert_true(l.rungs[0].results[0].peak == 50 * FRAG_MIB);
    tune_ladder_close(&l);
    j.as_case.recorded.bytes = 29 * FRAG_MIB;
    climb(&l, &j.as_case, 1, 10, NULL);
    assert_true(l.base[0].peak == 50 * FRAG_MIB);
    assert_false(tune_is_exact(&l, 0)); /* nothing is compared with 30 MiB */
    tune_ladder_close(&l);
}

/* ---- the decision ---- */

/* A segment of 20 MiB and one of 30: the default needs 30 MiB, for the first
 * is returned, and so do expandable segments, which serve both from one. */
static void enough_settings_stay(void **state)
{
    struct job j;
    struct tune_ladder l;

    (void)state;
    make_job(&j, NULL, NULL);
    j.as_case.bound = frag_bound_at(60 * FRAG_MIB, FRAG_BOUND_LIMIT);
    climb(&l, &j.as_case, 1, 10, NULL);
    assert_ptr_equal(l.chosen, &l.rungs[0]);
    assert_ptr_equal(l.best, l.chosen);
    for (size_t i = 0; i < l.count; i++) {
        const struct tune_result *r = &l.rungs[i].results[0];

        assert_true(r->need >= 30 * FRAG_MIB && r->need <= 60 * FRAG_MIB);
        assert_int_equal(r->odds.verdict, ODDS_ENOUGH);
    }
    tune_ladder_close(&l);
    j.as_case.bound.bytes = 29 * FRAG_MIB;
    climb(&l, &j.as_case, 1, 10, NULL);
    assert_null(l.chosen);
    assert_int_equal(l.best->odds.verdict, ODDS_NOT);
    assert_true(l.best->results[0].need > j.as_case.bound.bytes);
    tune_ladder_close(&l);
}

/* A job that died at its bound did so with the recorded settings: they are not
 * enough, and if their replay lives there, that of other settings proves
 * nothing. */
static void a_death_is_believed(void **state)
{
    struct job j;
    struct tune_ladder l;

    (void)state;
    make_job(&j, NULL, NULL);
    j.as_case.completion =
        (struct frag_completion){.reach = FRAG_REACH_COMPLETED, .spread = 1.01};
    j.as_case.bound = frag_bound_at(600 * FRAG_MIB, FRAG_BOUND_LIMIT);
    j.as_case.recorded = j.as_case.bound;
    climb(&l, &j.as_case, 1, 10, NULL);
    assert_int_equal(l.rungs[0].odds.verdict, ODDS_NOT);
    assert_null(l.chosen);
    assert_int_equal(l.best->odds.verdict, ODDS_TRY);
    tune_ladder_close(&l);
    j.as_case.bound.bytes *= 2; /* more than it had */
    climb(&l, &j.as_case, 1, 10, NULL);
    assert_int_equal(l.rungs[0].odds.verdict, ODDS_ENOUGH);
    tune_ladder_close(&l);
}

static void the_oldest_release_counts(void **state)
{
    char some[] = "2.10 to 2.11", old[] = "2.5 to 2.7",
         late[] = "2.12 or later";
    struct job a, b, c;

    (void)state;
    make_job(&a, NULL, some);
    make_job(&b, NULL, NULL);
    make_job(&c, NULL, late);
    const struct tune_case cases[] = {c.as_case, b.as_case, a.as_case};
    assert_int_equal(tune_release(cases, 1), 12);
    assert_int_equal(tune_release(cases, 2), 12);
    assert_int_equal(tune_release(cases, 3), 10);
    a.trace.releases = old;
    assert_int_equal(tune_release(cases, 3), 5);
}

static void versions_are_read(void **state)
{
    static const char *const bad[] = {"",    "2",     "2.",   "1.13",
                                      "2.x", "2.6rc", "2.-1", "v2.6"};
    struct frag_error e;
    unsigned version = 77;

    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        assert_int_equal(torch_version_read(bad[i], &version, &e),
                         FRAG_INVALID);
        assert_non_null(strstr(e.text, "2.0 to 2.15"));
        assert_int_equal(version, 77);
    }
    assert_int_equal(torch_version_read("2.6.0+cu124", &version, &e), FRAG_OK);
    assert_int_equal(version, 6);
    assert_int_equal(torch_version_read("2.11", &version, &e), FRAG_OK);
    assert_int_equal(version, 11);
    assert_int_equal(torch_version_read("2.16", &version, &e), FRAG_OK);
    assert_int_equal(version, TORCH_LATER);
    assert_int_equal(torch_version_read("3.0", &version, &e), FRAG_OK);
    assert_int_equal(version, TORCH_LATER);
}

/* ---- need ---- */

static void needs_are_peaks(void **state)
{
    const uint8_t op[] = {FRAG_ALLOC, FRAG_ALLOC,          FRAG_FREE,
                          FRAG_ALLOC, FRAG_FREE_REQUESTED, FRAG_ALLOC,
                          FRAG_FREE,  FRAG_EMPTY_CACHE};
    const uint32_t id[] = {0, 1, 0, 0, 1, 2, 1, 0};
    uint64_t bytes[] = {512, 513, 0, 1, 0, 100, 0, 0};
    struct frag_device_trace trace = {
        .count = 8, .slots = 3, .op = op, .id = id, .bytes = bytes};
    struct requested_peak peak;
    struct frag_error e;

    (void)state;
    assert_int_equal(requested_peak_find(&trace, &peak, &e), FRAG_OK);
    assert_int_equal(peak.bytes, 1025); /* block 1 is pending at event 5 */
    assert_int_equal(peak.event, 1);
    trace.added = 7; /* what was added is not the job's */
    assert_int_equal(requested_peak_find(&trace, &peak, &e), FRAG_OK);
    assert_int_equal(peak.bytes, 512);
    trace.added = 0;
    bytes[5] = UINT64_MAX;
    assert_int_equal(requested_peak_find(&trace, &peak, &e), FRAG_OK);
    assert_true(peak.bytes == FRAG_UNLIMITED);
    assert_int_equal(peak.event, 5);
}

/* ---- the choice ---- */

/* Adds a rung that needs so many per cent less. */
static void add(struct tune_ladder *l, const char *text, unsigned knobs,
                double percent)
{
    l->rungs[l->count++] = (struct tune_rung){.text = text,
                                              .recorded = l->count == 1,
                                              .knobs = knobs,
                                              .ratio = 1 - percent / 100,
                                              .outcome = TUNE_SURVIVES,
                                              .odds = {.verdict = ODDS_ENOUGH}};
}

static size_t choose(const struct tune_ladder *l)
{
    return (size_t)(tune_choose(l) - l->rungs);
}

static void room_is_chosen_and_knobs_are_paid(void **state)
{
    struct tune_case c = {.bound = FRAG_NO_BOUND};
    struct tune_ladder l = {.cases = &c, .case_count = 1};

    (void)state;
    add(&l, "", 0, 0);
    add(&l, "a:1", 1, 7);
    add(&l, "b:1", 1, 7.9);
    add(&l, "a:1,b:1", 2, 8.5);
    assert_int_equal(choose(&l), 3); /* 1.5 % for one knob */
    l.rungs[3].ratio = 1 - 0.0799;
    assert_int_equal(choose(&l), 1); /* nothing further gives 1 % */
    c.bound = frag_capacity_bound(FRAG_GIB);
    assert_int_equal(choose(&l), 0); /* within a bound, enough is enough */
    l.rungs[0].odds.verdict = ODDS_TRY;
    assert_int_equal(choose(&l), 1);
    l.rungs[1].odds.verdict = ODDS_TRY;
    assert_int_equal(choose(&l), 2); /* odds go before room */
    l.rungs[2].odds.verdict = l.rungs[3].odds.verdict = ODDS_NOT;
    assert_int_equal(choose(&l), 1);
}

static void odds_are_ordered(void **state)
{
    static const struct odds ordered[] = {{ODDS_NOT, 0, 0},
                                          {ODDS_TRY, 1, 9},
                                          {ODDS_TRY, 8, 9},
                                          {ODDS_ENOUGH, 9, 10},
                                          {ODDS_ENOUGH, 99, 100}};
    const struct frag_completion whole = {.reach = FRAG_REACH_WHOLE};
    const struct frag_completion died = {.reach = FRAG_REACH_NO_STEP};
    struct odds_question q = {.completion = &whole, .bound = 1};

    (void)state;
    for (size_t i = 0; i < 5; i++)
        for (size_t k = 0; k < 5; k++)
            assert_int_equal(odds_less(&ordered[i], &ordered[k]), i < k);
    assert_int_equal(odds_of(&q).verdict, ODDS_NOT);
    q.serves = true;
    assert_int_equal(odds_of(&q).verdict, ODDS_ENOUGH);
    q.completion = &died;
    assert_int_equal(odds_of(&q).verdict, ODDS_TRY);
    q.need = 2;
    assert_int_equal(odds_of(&q).verdict, ODDS_NOT);
    q.serves = false;
    assert_int_equal(odds_of(&q).verdict, ODDS_NOT);
    q.went_on = true; /* as after other failures */
    assert_int_equal(odds_of(&q).verdict, ODDS_TRY);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(releases_know_the_rungs),
        cmocka_unit_test(keys_are_left_out),
        cmocka_unit_test(recorded_settings_come_first),
        cmocka_unit_test(the_recorded_bound_is_the_base),
        cmocka_unit_test(enough_settings_stay),
        cmocka_unit_test(a_death_is_believed),
        cmocka_unit_test(the_oldest_release_counts),
        cmocka_unit_test(versions_are_read),
        cmocka_unit_test(needs_are_peaks),
        cmocka_unit_test(room_is_chosen_and_knobs_are_paid),
        cmocka_unit_test(odds_are_ordered),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
