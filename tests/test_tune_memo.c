/* test_tune_memo.c - what tune's memo saves: a result that it puts together,
 * and a brief run, are those of a full replay to the last bit, and so are all
 * trials of a search. The judge is the replay without a memo. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <gsl/gsl_randist.h>

#include "sim/experiments/tune/hold_out.h"
#include "sim/experiments/tune/memo.h"
#include "sim/experiments/tune/run.h"
#include "sim/experiments/tune/stretch.h"

#define TOTAL ((frag_size)1200 * FRAG_MIB)

enum { EVENTS = 2400, SLOTS = 120, STREAMS = 3, POOLS = 2 };

/* A made-up trace. */
struct made {
    struct frag_device_trace device;
    struct frag_trace trace;
    uint8_t op[EVENTS];
    uint32_t id[EVENTS];
    uint64_t bytes[EVENTS];
    frag_stream stream[EVENTS];
    frag_pool pool[EVENTS];
    uint64_t streams[STREAMS];
    struct frag_pool_id pools[POOLS];
};

static const struct stop never = {NULL, NULL};

static struct cell_settings settings_of(void)
{
    return (struct cell_settings){.backend = &cell_arena_backend,
                                  .costs = frag_costs_h200,
                                  .total = TOTAL,
                                  .stop_at_oom = true};
}

static unsigned below(gsl_rng *rng, unsigned n)
{
    return (unsigned)gsl_rng_uniform_int(rng, n);
}

/* Few sizes, so that free blocks are often equal: the limits of the pools and
 * of the segments are among them, and sizes that divisions round. */
static uint64_t any_size(gsl_rng *rng)
{
    static const uint64_t sizes[] = {
        512,           4096,          70000,        300000,
        FRAG_MIB - 1,  FRAG_MIB,      FRAG_MIB + 1, 1500000,
        5 * FRAG_MIB,  7 * FRAG_MIB,  9000000,      10 * FRAG_MIB,
        19 * FRAG_MIB, 20 * FRAG_MIB, 21000000,     24 * FRAG_MIB,
        40 * FRAG_MIB, 70000000,
    };

    return below(rng, 3) ? sizes[below(rng, 5)]
                         : sizes[below(rng, sizeof(sizes) / sizeof(*sizes))];
}

enum { IS_FREE, IS_LIVE, IS_PENDING };

/* Fills the events; `trims` of 1000 are an empty_cache. */
static void make(struct made *m, gsl_rng *rng, unsigned trims)
{
    uint8_t state[SLOTS] = {IS_FREE};

    *m = (struct made){.trace = {.path = (char *)(uintptr_t) "made"}};
    for (size_t i = 0; i < EVENTS; i++) {
        const uint32_t id = below(rng, i % 800 < 400 ? SLOTS : SLOTS / 4);

        m->id[i] = id;
        if (below(rng, 1000) < trims) {
            m->op[i] = FRAG_EMPTY_CACHE;
            m->id[i] = 0;
        } else if (state[id] == IS_FREE) {
            m->op[i] = FRAG_ALLOC;
            m->bytes[i] = any_size(rng);
            m->stream[i] =
                (frag_stream)(below(rng, 8) ? 0 : below(rng, STREAMS));
            m->pool[i] = (frag_pool)(below(rng, 8) == 0);
            state[id] = IS_LIVE;
        } else if (state[id] == IS_LIVE && below(rng, 4) == 0) {
            m->op[i] = FRAG_FREE_REQUESTED;
            state[id] = IS_PENDING;
        } else {
            m->op[i] = FRAG_FREE;
            state[id] = IS_FREE;
        }
    }
    for (unsigned k = 0; k < STREAMS; k++)
        m->streams[k] = k;
    m->device = (struct frag_device_trace){.slots = SLOTS,
                                           .count = EVENTS,
                                           .op = m->op,
                                           .id = m->id,
                                           .bytes = m->bytes,
                                           .stream = m->stream,
                                           .pool = m->pool,
                                           .stream_count = STREAMS,
                                           .pool_count = POOLS,
                                           .streams = m->streams,
                                           .pools = m->pools};
}

/* Requests and frees only, as stretches need them. The first slots stay live;
 * all others are freed now and then, so that layouts come again, and each time
 * more are used, so that segments are made up to the end. */
static void make_plain(struct made *m, gsl_rng *rng)
{
    enum { STAY = 25, PHASE = 400, FILL = 340 };
    static const uint64_t sizes[] = {131072, 262144, 393216, 524288, 786432};
    bool live[SLOTS] = {false};

    make(m, rng, 0);
    for (size_t i = 0; i < EVENTS; i++) {
        const uint32_t used = 10 + (uint32_t)((SLOTS - STAY - 10) *
                                              (i / PHASE + 1) * PHASE / EVENTS);
        uint32_t id = i < STAY ? (uint32_t)i : STAY + below(rng, used);

        for (unsigned k = 0; i % PHASE > FILL && !live[id] && k < used; k++)
            id = id + 1 < STAY + used ? id + 1 : STAY;
        m->op[i] = live[id] ? FRAG_FREE : FRAG_ALLOC;
        m->id[i] = id;
        m->bytes[i] = live[id]         ? 0
                      : below(rng, 30) ? sizes[below(rng, 5)]
                                       : any_size(rng);
        m->stream[i] = 0;
        m->pool[i] = 0;
        live[id] = !live[id];
    }
}

static struct tune_case case_of(const struct made *m, struct tune_memo *memo)
{
    return (struct tune_case){"made", &m->device, &m->trace, memo};
}

static struct tune_memo *open_memo(const struct made *m, const char *recorded)
{
    struct tune_memo *memo = NULL;
    struct frag_error e;

    assert_int_equal(tune_memo_open(&m->device, recorded, 1, &memo, &e),
                     FRAG_OK);
    return memo;
}

/* ---- one run ---- */

static struct tune_space everything(void)
{
    struct tune_space space = {
        .classes = 6, .reference = (frag_size)1 << 30, .total = TOTAL};

    for (int k = 0; k < TUNE_KNOB_COUNT; k++)
        space.allowed[k] = true;
    return space;
}

/* Runs a setting with the memo and as a full replay. Returns the replay's
 * result. */
static struct tune_result compare(const struct tune_case *with,
                                  unsigned version, frag_size capacity,
                                  const char *text)
{
    const struct cell_settings settings = settings_of();
    struct tune_result replayed, found;
    struct tune_case without = *with;
    struct frag_error e = {""};

    without.memo = NULL;
    assert_int_equal(tune_replay(version, &settings, &never, &without, capacity,
                                 text, &replayed, &e),
                     FRAG_OK);
    assert_int_equal(
        tune_run(version, &settings, &never, with, capacity, text, &found, &e),
        FRAG_OK);
    if (memcmp(&found, &replayed, sizeof(found)) != 0)
        fail_msg("2.%u \"%s\": peak %lu, not %lu; calls %lu, not %lu; first "
                 "OOM %lu, not %lu",
                 version, text, (unsigned long)found.peak,
                 (unsigned long)replayed.peak, (unsigned long)found.calls,
                 (unsigned long)replayed.calls, (unsigned long)found.first_oom,
                 (unsigned long)replayed.first_oom);
    return replayed;
}

/* Walks through the settings; each step is compared. */
static void walk(const struct made *m, gsl_rng *rng, unsigned version,
                 bool limits, bool prefixes, bool trims)
{
    struct tune_space space = everything();
    struct tune_memo *memo = open_memo(m, NULL);
    struct tune_case with = case_of(m, memo);
    const frag_size peak = compare(&with, version, FRAG_UNLIMITED, "").peak;
    const frag_size capacities[] = {FRAG_UNLIMITED, peak, peak,
                                    peak - peak / 8};
    struct tune_point p = {{0}};
    char text[TUNE_TEXT];

    tune_restrict(&space, version);
    if (!limits)
        space.allowed[TUNE_LIMIT] = space.allowed[TUNE_GC] = false;
    for (int i = 0; i < 90; i++) {
        struct frag_device_trace part = m->device;
        const frag_size capacity = capacities[limits ? below(rng, 4) : 0];

        for (unsigned k = below(rng, 4); k < 4; k++)
            p = tune_step(&space, &p, rng);
        if (prefixes && below(rng, 2))
            part.count = 1 + below(rng, EVENTS);
        with.device = &part;
        compare(&with, version, capacity, tune_text(&space, &p, text));
        with.device = &m->device;
    }
    if (!limits && !prefixes && !trims) {
        const struct tune_memo_counts n = tune_memo_counts(memo);

        assert_true(n.joined > 15 && n.large_replays > 5);
    }
    tune_memo_close(memo);
}

static void results_are_those_of_a_replay(void **state)
{
    static const unsigned versions[] = {11, 11, 3, 11, 9, 4};
    gsl_rng *rng = gsl_rng_alloc(gsl_rng_mt19937);
    struct made m;

    (void)state;
    for (unsigned i = 0; i < 12; i++) {
        const bool trims = i % 3 == 2;

        make(&m, rng, trims ? 3 : 0);
        walk(&m, rng, versions[i % 6], i % 2, i % 4 > 1, trims);
    }
    gsl_rng_free(rng);
}

/* The small half is put together from stretches: of a first and of later orders
 * of addresses, over the whole trace and over the beginning. */
static void stretches_are_those_of_a_replay(void **state)
{
    gsl_rng *rng = gsl_rng_alloc(gsl_rng_mt19937);
    uint64_t reused = 0;
    struct made m;

    (void)state;
    for (unsigned i = 0; i < 12; i++) {
        struct tune_memo *memo;
        struct tune_case with;
        struct tune_memo_counts n;

        make_plain(&m, rng);
        memo = open_memo(&m, NULL);
        with = case_of(&m, memo);
        for (unsigned k = 12; k < 100; k++) {
            struct frag_device_trace part = m.device;
            char text[TUNE_TEXT];

            part.count -= k % 3 ? 0 : below(rng, EVENTS);
            with.device = &part;
            snprintf(text, sizeof(text),
                     "large_segment_size_mb:%u,roundup_power2_divisions:%u", k,
                     1u << k % 3);
            compare(&with, 11, FRAG_UNLIMITED, text);
        }
        n = tune_memo_counts(memo);
        reused += n.reused;
        assert_true(n.replays == 1 && n.stretches > 100);
        tune_memo_close(memo);
    }
    assert_true(reused > 20000);
    gsl_rng_free(rng);
}

/* The script for an order of addresses. */
static struct script script_of(struct stretches *s, const frag_addr *addr,
                               uint64_t ranges, uint64_t *reused)
{
    const struct stretch_order order = {.version = 11,
                                        .text = "",
                                        .count = EVENTS,
                                        .addr = addr,
                                        .ranges = ranges,
                                        .stop = &never};
    struct stretch_counts counts = {0};
    struct script script;

    assert_true(stretches_script(s, &order, &script, &counts));
    *reused = counts.reused;
    return script;
}

/* Compares the fields one by one: a row ends in padding, whose bytes are any.
 */
static void same_rows(const struct script *a, const struct script *b)
{
    assert_int_equal(a->count, b->count);
    for (uint64_t i = 0; i < a->count; i++) {
        const struct script_row *x = &a->rows[i], *y = &b->rows[i];

        assert_int_equal(x->event, y->event);
        assert_int_equal(x->at, y->at);
        assert_int_equal(x->size, y->size);
        assert_int_equal(x->call, y->call);
        assert_int_equal(x->range, y->range);
        assert_int_equal(x->phys, y->phys);
    }
}

/* Orders at random: the script from known stretches is that of a run from the
 * beginning. */
static void any_order_is_served(void **state)
{
    enum { RANGES = 12, ORDERS = 100 };
    gsl_rng *rng = gsl_rng_alloc(gsl_rng_mt19937);
    frag_addr addr[RANGES];
    uint64_t reused, sum = 0;
    unsigned differ = 0;
    struct made m;

    (void)state;
    for (unsigned k = 0; k < RANGES; k++)
        addr[k] = (frag_addr)(100 + k) << 21;
    for (unsigned i = 0; i < 4; i++) {
        struct small_half half;
        struct stretches *known;
        uint64_t first = 0;

        make_plain(&m, rng);
        assert_int_equal(small_half_open(&half, &m.device, 1), FRAG_OK);
        known = stretches_open(&half);
        for (unsigned k = 0; k < ORDERS; k++) {
            struct stretches *none = stretches_open(&half);
            struct script a, b;

            gsl_ran_shuffle(rng, addr, RANGES, sizeof(*addr));
            a = script_of(known, addr, RANGES, &reused);
            sum += reused;
            b = script_of(none, addr, RANGES, &reused);
            assert_int_equal(reused, 0);
            same_rows(&a, &b);
            assert_int_equal(a.ranges, b.ranges);
            assert_memory_equal(a.addr, b.addr, a.ranges * sizeof(*a.addr));
            first = k ? first : a.count;
            differ += a.count != first;
            script_free(&a);
            script_free(&b);
            stretches_close(none);
        }
        stretches_close(known);
        small_half_close(&half);
    }
    assert_true(differ > 0 && sum > 10000);
    gsl_rng_free(rng);
}

/* Settings at the edges of what a bound on splits decides: one block of 40 MiB
 * is the largest. */
static void bounds_on_splits(void **state)
{
    static const unsigned sizes[] = {20, 24, 38, 39, 40, 41, 42, 60};
    gsl_rng *rng = gsl_rng_alloc(gsl_rng_mt19937);
    struct made m;
    struct tune_memo *memo;
    struct tune_case with;
    char text[TUNE_TEXT];

    (void)state;
    make(&m, rng, 0);
    for (size_t i = 0; i < EVENTS; i++)
        if (m.bytes[i] > 40 * FRAG_MIB)
            m.bytes[i] = 40 * FRAG_MIB;
    memo = open_memo(&m, NULL);
    with = case_of(&m, memo);
    for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++)
        for (size_t k = 0; k < sizeof(sizes) / sizeof(*sizes); k++) {
            snprintf(text, sizeof(text),
                     "max_split_size_mb:%u,max_non_split_rounding_mb:%u",
                     sizes[i], sizes[k]);
            compare(&with, 11, FRAG_UNLIMITED, text);
            strcat(text, ",expandable_segments:True");
            compare(&with, 11, FRAG_UNLIMITED, text);
        }
    tune_memo_close(memo);
    gsl_rng_free(rng);
}

/* One memo serves several versions, whose rules for one division differ. */
static void versions_differ(void **state)
{
    gsl_rng *rng = gsl_rng_alloc(gsl_rng_mt19937);
    struct made m;
    struct tune_memo *memo;
    struct tune_case with;

    (void)state;
    make(&m, rng, 0);
    memo = open_memo(&m, NULL);
    with = case_of(&m, memo);
    for (unsigned version = 1; version <= 11; version++) {
        compare(&with, version, FRAG_UNLIMITED, "roundup_power2_divisions:1");
        compare(&with, version, FRAG_UNLIMITED, "expandable_segments:True");
    }
    tune_memo_close(memo);
    gsl_rng_free(rng);
}

/* Two blocks, one after the other. */
static void make_two(struct made *m, uint64_t first, uint64_t second)
{
    gsl_rng *rng = gsl_rng_alloc(gsl_rng_mt19937);

    make(m, rng, 0);
    gsl_rng_free(rng);
    for (uint32_t i = 0; i < 2; i++) {
        m->op[i] = FRAG_ALLOC;
        m->id[i] = i;
        m->bytes[i] = i ? second : first;
        m->stream[i] = 0;
        m->pool[i] = 0;
    }
    m->device.count = 2;
}

/* Each half fits the capacity, and the calls of the large one are served beside
 * those of the small one up to its last call. */
static void refusals_are_replayed(void **state)
{
    struct made m;
    struct tune_memo *memo;
    struct tune_case with;
    struct tune_result r;

    (void)state;
    make_two(&m, 5 * FRAG_MIB, 512);
    memo = open_memo(&m, NULL);
    with = case_of(&m, memo);
    r = compare(&with, 11, 34 * FRAG_MIB, "");
    assert_true(r.first_oom == FRAG_NEVER);
    r = compare(&with, 11, 34 * FRAG_MIB, "large_segment_size_mb:32");
    assert_true(r.first_oom == FRAG_NEVER);
    assert_int_equal(tune_memo_counts(memo).joined, 1);
    r = compare(&with, 11, 34 * FRAG_MIB, "large_segment_size_mb:34");
    assert_true(r.first_oom == 1);
    tune_memo_close(memo);
}

/* The padding of a recording moves requests to the large pool. */
static void padding_is_replayed(void **state)
{
    struct made m;
    struct tune_memo *memo;
    struct tune_case with;

    (void)state;
    make_two(&m, 19 * FRAG_MIB + 1, FRAG_MIB);
    m.trace.settings = (char *)(uintptr_t) "padding:32";
    memo = open_memo(&m, m.trace.settings);
    with = case_of(&m, memo);
    compare(&with, 11, FRAG_UNLIMITED, "");
    compare(&with, 11, FRAG_UNLIMITED, "large_segment_size_mb:32");
    tune_memo_close(memo);
}

/* A start from a recorded layout, several streams, and a trace of which the
 * memo joins halves. */
static void bundled_traces(void **state)
{
    static const char *const names[] = {"late_start", "multistream",
                                        "gpt2_train"};
    static const char *const texts[] = {
        "",
        "large_segment_size_mb:32",
        "expandable_segments:True",
        "expandable_segments:True,large_segment_size_mb:64",
        "max_split_size_mb:24,roundup_power2_divisions:4",
        "max_split_size_mb:4096",
        "roundup_power2_divisions:[2:4,4:8,>:8]"};
    uint64_t joined = 0;

    (void)state;
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        char path[512];
        struct frag_trace *trace;
        struct tune_case with = {.name = names[i]};
        struct frag_error e = {""};

        snprintf(path, sizeof(path), "%s/traces/bundled/%s.pickle.xz",
                 FRAG_SOURCE_DIR, names[i]);
        assert_int_equal(frag_trace_open(path, NULL, &trace, &e), FRAG_OK);
        with.trace = trace;
        with.device = &trace->devices[0];
        assert_int_equal(
            tune_memo_open(with.device, trace->settings, 1, &with.memo, &e),
            FRAG_OK);
        for (size_t k = 0; k < sizeof(texts) / sizeof(*texts); k++)
            compare(&with, 11, FRAG_UNLIMITED, texts[k]);
        joined += tune_memo_counts(with.memo).joined;
        tune_memo_close(with.memo);
        frag_trace_close(trace);
    }
    assert_true(joined > 3);
}

/* ---- a search ---- */

static struct tune_search search_of(const struct tune_case *on,
                                    const struct cell_settings *settings,
                                    size_t threads)
{
    struct tune_search s = {.settings = settings,
                            .cases = on,
                            .case_count = 1,
                            .goal = {FRAG_UNLIMITED, 0.2, 0.5},
                            .space = everything(),
                            .seed = 3,
                            .evaluations = 60,
                            .on = {threads, {NULL, NULL}}};

    s.space.reference = 0;
    return s;
}

/* Compares all trials in their order, and what is held out. */
static void compare_searches(const struct made *m, struct tune_memo *memo,
                             size_t threads)
{
    const struct cell_settings settings = settings_of();
    const struct tune_rule rule = {0.01};
    const struct tune_case on[2] = {case_of(m, NULL), case_of(m, memo)};
    struct tune_search s[2] = {search_of(&on[0], &settings, 1),
                               search_of(&on[1], &settings, threads)};
    struct tune_held_outs held[2];
    struct frag_error e = {""};

    for (int k = 0; k < 2; k++) {
        assert_int_equal(tune_search_run(&s[k], &e), FRAG_OK);
        assert_int_equal(tune_hold_out(&s[k], &rule, &held[k], &e), FRAG_OK);
    }
    assert_int_equal(s[0].trial_count, s[1].trial_count);
    for (size_t i = 0; i < s[0].trial_count; i++) {
        assert_string_equal(s[0].trials[i]->text, s[1].trials[i]->text);
        assert_memory_equal(s[0].trials[i]->results, s[1].trials[i]->results,
                            sizeof(struct tune_result));
    }
    assert_int_equal(held[0].count, 1);
    assert_string_equal(held[0].parts[0].text, held[1].parts[0].text);
    assert_memory_equal(&held[0].parts[0].found, &held[1].parts[0].found,
                        sizeof(struct tune_result));
    for (int k = 0; k < 2; k++) {
        tune_held_outs_close(&held[k]);
        tune_search_close(&s[k]);
    }
}

static void searches_are_equal(void **state)
{
    gsl_rng *rng = gsl_rng_alloc(gsl_rng_mt19937);
    struct made m;

    (void)state;
    for (size_t threads = 1; threads < 4; threads += 2) {
        struct tune_memo *memo;

        make(&m, rng, threads == 1 ? 0 : 2);
        memo = open_memo(&m, NULL);
        compare_searches(&m, memo, threads);
        tune_memo_close(memo);
    }
    gsl_rng_free(rng);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(results_are_those_of_a_replay),
        cmocka_unit_test(stretches_are_those_of_a_replay),
        cmocka_unit_test(any_order_is_served),
        cmocka_unit_test(bounds_on_splits),
        cmocka_unit_test(versions_differ),
        cmocka_unit_test(refusals_are_replayed),
        cmocka_unit_test(padding_is_replayed),
        cmocka_unit_test(bundled_traces),
        cmocka_unit_test(searches_are_equal),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
