/* test_steps.c - tests the search for steps, and the completion of the traces
 * of dead jobs, on a training loop whose needs are known (dead_job.h) and on
 * recordings. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "tests/support/dead_job.h"
#include "traces/steps/align.h"
#include "traces/steps/complete.h"
#include "traces/steps/extend.h"
#include "traces/steps/predict.h"
#include "traces/steps/step_notes.h"

static struct frag_error error;

/* ---- naive figures ---- */

/* The most bytes that live blocks request, by counting. */
static frag_size peak_of(const struct frag_device_trace *d, uint64_t until)
{
    frag_size *held = calloc(d->slots + 1, sizeof(*held));
    frag_size live = 0, peak = 0;

    for (uint64_t i = 0; i < until; i++) {
        if (d->op[i] == FRAG_ALLOC)
            live += held[d->id[i]] = d->bytes[i];
        else if (d->op[i] == FRAG_FREE)
            live -= held[d->id[i]];
        if (live > peak)
            peak = live;
    }
    free(held);
    return peak;
}

static struct frag_trace *completed(const struct job *j, uint64_t further,
                                    struct frag_completion *c)
{
    const struct frag_completion_options options = {.further = further};
    struct frag_trace *t = job_trace(j);

    assert_non_null(t);
    assert_int_equal(frag_trace_complete(t, &options, c, &error), FRAG_OK);
    return t;
}

/* ---- the streams of frees ---- */

/* Frees of blocks of an odd number of MiB are on the second stream, which no
 * ALLOC of the recording uses; later columns of the trace that is completed
 * have other sizes, but each free is where its counterpart is. */
static void the_streams_of_frees_are_carried_on(void **state)
{
    static const uint64_t streams[] = {0, 9};
    const struct job j = {.steps = 12, .dies_in = 10, .dies_at = 9};
    struct frag_trace *t = job_trace(&j);
    struct frag_device_trace *d = &t->devices[0];
    frag_stream *stream = calloc(d->count + 1, sizeof(*stream));
    frag_size *held = calloc(d->slots + JOB_BLOCKS, sizeof(*held));
    struct frag_completion c;
    uint64_t elsewhere = 0;

    (void)state;
    for (uint64_t i = 0; i < d->count; i++) {
        held[d->id[i]] = d->op[i] == FRAG_ALLOC ? d->bytes[i] : held[d->id[i]];
        stream[i] = d->op[i] == FRAG_FREE && held[d->id[i]] >> 20 & 1 ? 2 : 0;
    }
    d->stream = stream;
    d->streams = streams;
    d->stream_count = 2;
    d->free_streams = true;
    assert_int_equal(frag_trace_complete(t, NULL, &c, &error), FRAG_OK);
    assert_true(c.added_steps >= 1 && d->free_streams);
    for (uint64_t i = 0; i < d->count; i++) {
        held[d->id[i]] = d->op[i] == FRAG_ALLOC ? d->bytes[i] : held[d->id[i]];
        if (d->op[i] != FRAG_FREE)
            continue;
        assert_int_equal(d->stream[i], held[d->id[i]] >> 20 & 1 ? 2 : 0);
        elsewhere += i >= d->count - d->added && d->stream[i];
    }
    assert_true(elsewhere >= c.added_steps);
    free(held);
    frag_trace_close(t);
    free(stream);
}

/* A block that stands for one of another stream may be of the stream of its
 * free: the FREE then states none. */
static void a_counterpart_of_another_stream_is_freed_on_its_own(void **state)
{
    static const uint8_t op[] = {FRAG_ALLOC, FRAG_ALLOC, FRAG_FREE};
    static const uint32_t id[] = {0, 1, 0};
    static const uint64_t bytes[] = {512, 512, 0}, streams[] = {0, 9};
    static const frag_stream stream[] = {0, 1, 2};
    static const frag_pool pool[] = {0, 0, 0};
    static const struct frag_pool_id pools[] = {{0, 0}};
    const struct frag_device_trace d = {.slots = 2,
                                        .count = 3,
                                        .op = op,
                                        .id = id,
                                        .bytes = bytes,
                                        .stream = stream,
                                        .pool = pool,
                                        .stream_count = 2,
                                        .pool_count = 1,
                                        .streams = streams,
                                        .pools = pools,
                                        .free_streams = true};
    struct extension x;
    struct blocks blocks;

    (void)state;
    assert_int_equal(blocks_open(&d, d.count, &blocks, &error), FRAG_OK);
    assert_int_equal(extension_open(&x, &d, &blocks, &error), FRAG_OK);
    x.counterpart[0] = 1;
    assert_int_equal(extension_play(&x, 2, 0), FRAG_OK);
    assert_int_equal(x.out.events.count, 4);
    assert_int_equal(x.out.events.stream[2], 2);
    assert_int_equal(x.out.events.id[3], 1);
    assert_int_equal(x.out.events.stream[3], 0);
    for (int twice = 0; twice < 2; twice++)
        assert_int_equal(extension_play(&x, 0, 512), FRAG_OK);
    assert_int_equal(x.out.slots, d.slots); /* the free ones are used */
    extension_close(&x);
    blocks_close(&blocks);
}

/* ---- steps ---- */

static void steps_are_found_without_marks(void **state)
{
    const struct job j = {.steps = 20, .varies = true, .dies_in = UINT64_MAX};
    struct frag_trace *t = job_trace(&j);
    struct frag_steps s;

    (void)state;
    assert_int_equal(
        frag_steps_find(t, t->devices, t->devices->count, NULL, &s, &error),
        FRAG_OK);
    assert_int_equal(s.source, FRAG_STEPS_PERIOD);
    assert_null(s.mark);
    assert_in_range(s.count, 18, 20);
    for (uint64_t i = 0; i < s.count; i++)
        assert_int_equal(s.items[i].to - s.items[i].from,
                         s.items[0].to - s.items[0].from);
    assert_true(s.likeness > 0.99);
    for (uint64_t i = 1; i < s.count; i++) /* only the weights are live */
        assert_int_equal(s.items[i].live, (JOB_LAYERS * (JOB_LAYERS + 1) / 2)
                                              << 18);
    frag_steps_close(&s);
    frag_trace_close(t);
}

static void marks_win(void **state)
{
    const struct job j = {
        .steps = 9, .varies = true, .marks = true, .dies_in = UINT64_MAX};
    struct frag_trace *t = job_trace(&j);
    struct frag_steps s;

    (void)state;
    assert_int_equal(
        frag_steps_find(t, t->devices, t->devices->count, NULL, &s, &error),
        FRAG_OK);
    assert_int_equal(s.source, FRAG_STEPS_MARKS);
    assert_string_equal(s.mark, "Optimizer.step#7");
    assert_int_equal(s.count, 8);
    for (uint64_t i = 0; i < s.count; i++)
        assert_int_equal(s.items[i].live, s.live_after);
    frag_steps_close(&s);
    assert_int_equal(
        frag_steps_find(t, t->devices, t->devices->count, "nobody", &s, &error),
        FRAG_INVALID);
    assert_non_null(strstr(error.text, "no mark named \"nobody\""));
    frag_trace_close(t);
}

static void noise_has_no_steps(void **state)
{
    struct frag_build *b = frag_build_open("noise", "test");
    struct frag_trace *t;
    struct frag_steps s;
    uint64_t seed = 12345;
    bool live[64] = {false};

    (void)state;
    for (uint64_t i = 0; i < 4000; i++) {
        uint64_t id;

        seed = seed * 6364136223846793005u + 1442695040888963407u;
        id = seed >> 58;
        assert_int_equal(frag_build_event(b, 0,
                                          live[id] ? FRAG_FREE : FRAG_ALLOC, id,
                                          1 + (seed >> 40), 0, i, &error),
                         FRAG_OK);
        live[id] = !live[id];
    }
    assert_int_equal(frag_build_finish(b, NULL, &t, &error), FRAG_OK);
    frag_build_close(b);
    assert_int_equal(
        frag_steps_find(t, t->devices, t->devices->count, NULL, &s, &error),
        FRAG_OK);
    assert_int_equal(s.source, FRAG_STEPS_NONE);
    assert_int_equal(s.count, 0);
    frag_steps_close(&s);
    frag_trace_close(t);
}

/* ---- completion ---- */

static void a_living_job_is_left_alone(void **state)
{
    const struct job j = {.steps = 6, .dies_in = UINT64_MAX};
    struct frag_completion c;
    struct frag_trace *t = completed(&j, 0, &c);
    struct frag_trace *same = job_trace(&j);

    (void)state;
    assert_int_equal(c.reach, FRAG_REACH_WHOLE);
    assert_int_equal(t->devices->count, same->devices->count);
    assert_int_equal(t->note_count, same->note_count);
    frag_trace_close(t);
    frag_trace_close(same);
}

static void nothing_is_promised_without_a_step(void **state)
{
    const struct job j = {.steps = 6, .dies_in = 0, .dies_at = 9};
    struct frag_completion c;
    struct frag_trace *t = completed(&j, 0, &c);

    (void)state;
    assert_int_equal(c.reach, FRAG_REACH_NO_STEP);
    assert_int_equal(c.steps, 0);
    assert_non_null(strstr(t->notes[t->note_count - 1], "not known"));
    frag_trace_close(t);
}

/* The completed trace of a job needs what the job needs that did not die, at
 * whatever request it died, with equal and with varying shapes. */
static void a_dead_job_needs_what_a_living_one_needs(void **state)
{
    struct job living = {.steps = 25, .dies_in = UINT64_MAX};

    (void)state;
    for (int kind = 0; kind < 8; kind++) {
        struct frag_trace *whole;
        frag_size peak;

        living.varies = kind & 1;
        living.leaks = kind & 2;
        living.marks = kind & 4;
        whole = job_trace(&living);
        peak = peak_of(whole->devices, whole->devices->count);
        for (unsigned at = 4; at < 18; at++) {
            struct job dead = living;
            struct frag_completion c;
            struct frag_trace *t;
            frag_size found;

            dead.dies_in = 19;
            dead.dies_at = at;
            t = completed(&dead, 5, &c);
            assert_int_equal(c.reach, FRAG_REACH_COMPLETED);
            assert_true(c.finished);
            assert_int_equal(c.added_steps, 5);
            assert_in_range(c.steps, 18, 19);
            found = peak_of(t->devices, t->devices->count);
            assert_int_equal(found, c.peak);
            /* a leak keeps 256 KiB a step, and the largest shape returns every
             * five steps */
            assert_in_range(found, peak - (5 << 18), peak + (5 << 18));
            if (!living.leaks)
                assert_int_equal(found, peak);
            assert_in_range(c.growth, living.leaks ? 256 << 10 : 0,
                            living.leaks ? 256 << 10 : 0);
            frag_trace_close(t);
        }
        frag_trace_close(whole);
    }
}

static void growth_is_carried_on(void **state)
{
    const struct job j = {
        .steps = 30, .marks = true, .leaks = true, .dies_in = 20, .dies_at = 5};
    frag_size peaks[2];

    (void)state;
    for (unsigned k = 0; k < 2; k++) {
        struct frag_completion c;
        struct frag_trace *t = completed(&j, 10 + 100 * k, &c);

        peaks[k] = c.peak;
        assert_non_null(
            strstr(t->notes[t->note_count - 1], "grows by 256 KiB"));
        frag_trace_close(t);
    }
    assert_int_equal(peaks[1] - peaks[0], 100 * (256 << 10));
}

static void the_events_before_death_are_kept(void **state)
{
    const struct job j = {
        .steps = 12, .varies = true, .dies_in = 8, .dies_at = 7};
    struct frag_completion c;
    struct frag_trace *was = job_trace(&j), *t = completed(&j, 0, &c);
    const struct frag_device_trace *a = was->devices, *b = t->devices;

    (void)state;
    assert_in_range(c.event, 1, a->count - 1);
    for (uint64_t i = 0; i <= c.event; i++) {
        assert_int_equal(a->op[i], b->op[i]);
        assert_int_equal(a->id[i], b->id[i]);
        assert_int_equal(a->bytes[i], b->bytes[i]);
        assert_int_equal(a->time[i], b->time[i]);
    }
    for (uint64_t i = 1; i < b->count; i++)
        assert_true(b->time[i] >= b->time[i - 1]);
    assert_int_equal(c.added_events, b->count - c.event - 1);
    assert_false(b->recorded.has_actions);
    frag_trace_close(was);
    frag_trace_close(t);
}

static void a_job_that_goes_on_did_not_die(void **state)
{
    const struct job j = {
        .steps = 9, .dies_in = 6, .dies_at = 7, .goes_on = true};
    struct frag_completion c;

    (void)state;
    frag_trace_close(completed(&j, 0, &c));
    assert_int_equal(c.reach, FRAG_REACH_WHOLE);
}

/* What a single complete step leaves behind is not taken for growth. */
static void one_step_shows_no_growth(void **state)
{
    const struct job j = {
        .steps = 9, .marks = true, .leaks = true, .dies_in = 2, .dies_at = 9};
    frag_size peaks[2];

    (void)state;
    for (unsigned k = 0; k < 2; k++) {
        struct frag_completion c;
        struct frag_trace *t = completed(&j, 5 + 50 * k, &c);

        assert_int_equal(c.steps, 1);
        assert_int_equal(c.growth, 0);
        peaks[k] = c.peak;
        assert_non_null(
            strstr(t->notes[t->note_count - 1], "only one step was complete"));
        frag_trace_close(t);
    }
    assert_int_equal(peaks[0], peaks[1]);
}

static void few_steps_do_not_prove_growth(void **state)
{
    const struct job j = {
        .steps = 9, .marks = true, .leaks = true, .dies_in = 5, .dies_at = 9};
    struct frag_completion c;
    struct frag_trace *t = completed(&j, 3, &c);

    (void)state;
    assert_int_equal(c.steps, 4);
    assert_non_null(strstr(t->notes[t->note_count - 1], "over 4 steps"));
    frag_trace_close(t);
}

/* The layers of the first forward pass recur, but are no steps. */
static void layers_are_no_steps(void **state)
{
    struct frag_build *b = frag_build_open("layers", "test");
    struct frag_trace *t;
    struct frag_steps s;
    uint64_t where = 0;

    (void)state;
    for (uint64_t layer = 0; layer < 12; layer++)
        for (uint64_t k = 0; k < 20; k++) {
            const uint64_t id = layer * 100 + k;

            assert_int_equal(frag_build_event(b, 0, FRAG_ALLOC, id, 1 << 20, 0,
                                              where++, &error),
                             FRAG_OK);
            if (k % 5)
                assert_int_equal(frag_build_event(b, 0, FRAG_FREE, id, 0, 0,
                                                  where++, &error),
                                 FRAG_OK);
        }
    assert_int_equal(frag_build_finish(b, NULL, &t, &error), FRAG_OK);
    frag_build_close(b);
    assert_int_equal(
        frag_steps_find(t, t->devices, t->devices->count, NULL, &s, &error),
        FRAG_OK);
    assert_int_equal(s.count, 0);
    frag_steps_close(&s);
    frag_trace_close(t);
}

/* A step that cannot be finished plausibly ends where the job died. */
static void implausible_steps_are_not_finished(void **state)
{
    const struct job wild[] = {
        {.steps = 15,
         .varies = true,
         .marks = true,
         .dies_in = 9,
         .dies_at = 1,
         .jump = 400},
        {.steps = 15, .marks = true, .dies_in = 9, .giant = 1ull << 40},
    };

    (void)state;
    for (unsigned k = 0; k < 2; k++) {
        struct frag_completion c;

        frag_trace_close(completed(&wild[k], 3, &c));
        assert_int_equal(c.reach, FRAG_REACH_COMPLETED);
        assert_false(c.finished);
        assert_int_equal(c.added_steps, 3);
    }
}

/* A failed request of another size than its counterparts is not learned. */
static void a_giant_request_teaches_nothing(void **state)
{
    const struct job j = {
        .steps = 15, .dies_in = 9, .dies_at = 8, .giant = 1ull << 36};
    struct frag_completion c;

    (void)state;
    frag_trace_close(completed(&j, 3, &c));
    assert_true(c.peak < (1ull << 36) + (1ull << 30));
}

static const struct frag_completion_options only_reach = {.only_reach = true};

static void reach_adds_nothing(void **state)
{
    const struct job j = {.steps = 12, .dies_in = 8, .dies_at = 7};
    struct frag_completion c;
    struct frag_trace *was = job_trace(&j), *t = job_trace(&j);

    (void)state;
    assert_int_equal(frag_trace_complete(t, &only_reach, &c, &error), FRAG_OK);
    assert_int_equal(c.reach, FRAG_REACH_CUT);
    assert_int_equal(t->devices->count, was->devices->count);
    assert_in_range(c.steps, 7, 8);
    assert_true(t->note_count > was->note_count);
    frag_trace_close(was);
    frag_trace_close(t);
}

/* ---- the spread ---- */

enum { PEAKS = 12 };

/* The peaks of complete steps, that of the step that was finished, and what is
 * told of further ones. */
static const struct spread_row {
    unsigned peaks[PEAKS]; /* up to a 0 */
    unsigned finished;     /* 0: it was not */
    int64_t growth;
    enum frag_untold untold;
    unsigned draws; /* 0: every step */
} spread_rows[] = {
    {{500, 900, 700, 800, 600}, 1000, 0, FRAG_UNTOLD_NOTHING, 0},
    {{500, 900, 700}, 1000, 0, FRAG_UNTOLD_NOTHING, 0},
    {{500, 900}, 1000, 0, FRAG_UNTOLD_FEW, 0},
    {{500, 900, 700, 800, 600}, 0, 0, FRAG_UNTOLD_UNFINISHED, 0},
    {{500, 900, 700, 800, 600}, 1000, 2, FRAG_UNTOLD_GROWS, 0},
    {{500, 900, 700, 800, 600}, 1000, 1, FRAG_UNTOLD_GROWS, 0},
    {{500, 900, 700, 800, 600}, 1000, 0, FRAG_UNTOLD_UNMARKED, 0},
    {{500, 600, 700, 800, 900, 950}, 1000, 0, FRAG_UNTOLD_RISES, 0},
    {{500, 700, 600, 900, 800, 950, 940, 960}, 990, 0, FRAG_UNTOLD_RISES, 0},
    {{960, 940, 950, 800, 900, 600, 700, 500}, 990, 0, FRAG_UNTOLD_NOTHING, 0},
    {{500, 700, 600, 800, 900}, 1000, 0, FRAG_UNTOLD_RISES, 0},   /* z 1.71 */
    {{500, 700, 600, 900, 800}, 1000, 0, FRAG_UNTOLD_NOTHING, 0}, /* z 1.22 */
    {{700, 700, 700, 700}, 700, 0, FRAG_UNTOLD_FEW, 0},
    {{700, 800, 800, 800, 800}, 900, 0, FRAG_UNTOLD_FEW, 0},
    {{700, 800, 800, 800, 700}, 900, 0, FRAG_UNTOLD_NOTHING, 3},
    {{700, 600, 600, 800, 800, 500}, 900, 0, FRAG_UNTOLD_NOTHING, 4},
    {{600, 500, 600, 500, 600}, 1100, 0, FRAG_UNTOLD_NOTHING, 0},
};

static void steps_tell_of_further_ones(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(spread_rows) / sizeof(*spread_rows); i++) {
        const struct spread_row *row = &spread_rows[i];
        struct frag_step items[PEAKS];
        struct frag_steps s = {.items = items};
        struct frag_completion c = {
            .finished = row->finished,
            .finished_peak = row->finished,
            .growth = row->growth,
            .mark = row->untold == FRAG_UNTOLD_UNMARKED ? NULL : "step",
            .least_peak = row->peaks[0]};
        double least, more, draws;

        for (; s.count < PEAKS && row->peaks[s.count]; s.count++) {
            const frag_size peak = row->peaks[s.count];

            items[s.count].peak = peak;
            c.least_peak = peak < c.least_peak ? peak : c.least_peak;
            c.most_peak = peak > c.most_peak ? peak : c.most_peak;
        }
        c.steps = s.count;
        c.peak = row->finished > c.most_peak ? row->finished : c.most_peak;
        spread_find(&s, &c);
        if (c.untold != row->untold)
            fail_msg("row %zu: %d", i, c.untold);
        if (c.untold) {
            assert_true(c.spread <= 0);
            continue;
        }
        /* 1/2 (more / (peak - least))^(-draws / 2) = 0.1 */
        draws = row->draws ? row->draws : (double)s.count;
        least = (double)c.least_peak;
        more = (c.spread * (double)c.peak - least) / ((double)c.peak - least);
        assert_true(fabs(0.5 * pow(more, -draws / 2) - 0.1) < 1e-9);
    }
}

static void a_completion_tells_of_further_steps(void **state)
{
    const struct job varied = {.steps = 25,
                               .marks = true,
                               .varies = true,
                               .dies_in = 9,
                               .dies_at = 5},
                     leaky = {.steps = 25,
                              .marks = true,
                              .leaks = true,
                              .varies = true,
                              .dies_in = 9,
                              .dies_at = 5},
                     young = {.steps = 6, .dies_in = 0, .dies_at = 9};
    struct frag_completion c;
    struct frag_trace *t = completed(&varied, 3, &c);

    (void)state;
    assert_int_equal(c.untold, FRAG_UNTOLD_NOTHING);
    assert_true(c.spread > 1 && c.spread < 2);
    frag_trace_close(t);
    frag_trace_close(completed(&leaky, 3, &c));
    assert_int_equal(c.untold, FRAG_UNTOLD_GROWS);
    frag_trace_close(completed(&young, 3, &c));
    assert_int_equal(c.untold, FRAG_UNTOLD_NO_STEP);
    t = job_trace(&varied);
    assert_int_equal(frag_trace_complete(t, &only_reach, &c, &error), FRAG_OK);
    assert_int_equal(c.untold, FRAG_UNTOLD_CUT);
    frag_trace_close(t);
}

/* ---- its parts ---- */

static void alignment_keeps_order(void **state)
{
    const struct aligned a[] = {{0, 0, 100, 5}, {1, 0, 7, 9}, {2, 0, 300, 2}};
    const struct aligned b[] = {
        {0, 0, 200, 5}, {1, 0, 5000, 1}, {2, 0, 7, 9}, {3, 0, 600, 2}};
    uint32_t pair[3];

    (void)state;
    assert_int_equal(align(a, 3, b, 4, pair, &error), FRAG_OK);
    assert_int_equal(pair[0], 0);
    assert_int_equal(pair[1], 2);
    assert_int_equal(pair[2], 3);
    /* the life tells which of two blocks it is, against the size */
    assert_int_equal(
        align((const struct aligned[]){{0, 0, 10, 5}}, 1,
              (const struct aligned[]){{0, 0, 10, 7}, {1, 0, 20, 5}}, 2, pair,
              &error),
        FRAG_OK);
    assert_int_equal(pair[0], 1);
    assert_int_equal(align(a, 3, b, 0, pair, &error), FRAG_OK);
    for (int k = 0; k < 3; k++)
        assert_int_equal(pair[k], UINT32_MAX);
}

static void sizes_follow_the_shape(void **state)
{
    struct sizes known[] = {
        {{10, 20, 30}, 50},     /* the shape: now 5 times the first */
        {{7, 7, 7}, 7},         /* does not depend on it */
        {{100, 200, 300}, 500}, /* ten times the shape */
    };
    struct prediction p = {.step_count = 3};

    (void)state;
    predict_learn(&p, known, 3);
    assert_int_equal(predict_size(&p, (frag_size[6]){10, 20, 30}), 50);
    assert_int_equal(predict_size(&p, (frag_size[6]){9, 9, 9}), 9);
    /* 4 * shape + 1000 */
    assert_int_equal(predict_size(&p, (frag_size[6]){1040, 1080, 1120}), 1200);
    /* with one step, what outlives it is constant */
    p = (struct prediction){
        .step_count = 1, .constant = (frag_size[]){9}, .constant_count = 1};
    predict_learn(&p, (struct sizes[]){{{10}, 50}}, 1);
    assert_int_equal(predict_size(&p, (frag_size[6]){9}), 9);
    assert_int_equal(predict_size(&p, (frag_size[6]){8}), 40);
    p = (struct prediction){.step_count = 3};
    predict_learn(&p, known, 3);
    /* no function of anything: the ratio of all */
    assert_int_equal(predict_size(&p, (frag_size[6]){11, 4000, 17}), 55);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_streams_of_frees_are_carried_on),
        cmocka_unit_test(a_counterpart_of_another_stream_is_freed_on_its_own),
        cmocka_unit_test(steps_are_found_without_marks),
        cmocka_unit_test(marks_win),
        cmocka_unit_test(noise_has_no_steps),
        cmocka_unit_test(a_living_job_is_left_alone),
        cmocka_unit_test(nothing_is_promised_without_a_step),
        cmocka_unit_test(a_dead_job_needs_what_a_living_one_needs),
        cmocka_unit_test(growth_is_carried_on),
        cmocka_unit_test(the_events_before_death_are_kept),
        cmocka_unit_test(a_job_that_goes_on_did_not_die),
        cmocka_unit_test(one_step_shows_no_growth),
        cmocka_unit_test(few_steps_do_not_prove_growth),
        cmocka_unit_test(layers_are_no_steps),
        cmocka_unit_test(implausible_steps_are_not_finished),
        cmocka_unit_test(a_giant_request_teaches_nothing),
        cmocka_unit_test(reach_adds_nothing),
        cmocka_unit_test(steps_tell_of_further_ones),
        cmocka_unit_test(a_completion_tells_of_further_steps),
        cmocka_unit_test(alignment_keeps_order),
        cmocka_unit_test(sizes_follow_the_shape),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
