/* test_scale.c - tests the traces that recordings at two or more batch sizes
 * predict, against the traces of a program that is known in closed form. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/support/batch_job.h"
#include "traces/scale/scale.h"

enum { MOST = 4 };

struct fixture {
    struct batch_trace traces[MOST];
    struct scale_recording recordings[MOST];
    size_t count;
    struct frag_error e;
};

static void record(struct fixture *f, struct batch_job j)
{
    f->recordings[f->count] = (struct scale_recording){
        j.batch, batch_trace(&f->traces[f->count], &j), "recording"};
    f->count++;
}

static struct scaling opened(struct fixture *f)
{
    struct scaling s;

    assert_int_equal(scale_open(f->recordings, f->count, &s, &f->e), FRAG_OK);
    return s;
}

/* Asserts that the prediction has the events of the program. */
static void predicts(const struct scaling *s, struct batch_job j)
{
    struct batch_trace true_trace;
    const struct frag_device_trace *d = batch_trace(&true_trace, &j);
    struct scaled made;

    assert_int_equal(scale_make(s, j.batch, NULL, &made, NULL), FRAG_OK);
    assert_int_equal(made.device.count, d->count);
    for (uint64_t i = 0; i < d->count; i++) {
        assert_int_equal(made.device.op[i], d->op[i]);
        assert_int_equal(made.device.id[i], d->id[i]);
        assert_int_equal(made.device.bytes[i], d->bytes[i]);
    }
    assert_int_equal(frag_trace_check(&made.device, "made", NULL), FRAG_OK);
    assert_null(made.device.recorded.addr);
    scaled_close(&made);
}

static const uint64_t batches[] = {1, 2, 3, 5, 9, 16, 31, 100, 1000};

/* Three recordings show that the workspace has one algorithm. */
static void three_recordings_give_every_size(void **state)
{
    struct fixture f = {.count = 0};
    struct scaling s;

    (void)state;
    record(&f, (struct batch_job){.batch = 8});
    record(&f, (struct batch_job){.batch = 4});
    record(&f, (struct batch_job){.batch = 6});
    s = opened(&f);
    assert_int_equal(s.requests[SCALE_CONSTANT].count, BATCH_LAYERS);
    assert_int_equal(s.requests[SCALE_GROWING].count,
                     2 * BATCH_LAYERS * BATCH_STEPS);
    for (size_t i = 0; i < sizeof(batches) / sizeof(*batches); i++)
        predicts(&s, (struct batch_job){.batch = batches[i]});
    scale_close(&s);
}

/* Two do not: the workspace grows in proportion to the batch, and everything
 * else is exact. */
static void a_workspace_of_two_is_proportional(void **state)
{
    struct fixture f = {.count = 0};
    struct scaled made;
    struct scaling s;

    (void)state;
    record(&f, (struct batch_job){.batch = 4});
    record(&f, (struct batch_job){.batch = 8});
    s = opened(&f);
    assert_int_equal(s.requests[SCALE_CHANGED].count,
                     BATCH_LAYERS * BATCH_STEPS);
    assert_int_equal(s.requests[SCALE_CHANGED].peak_bytes,
                     batch_workspace(&(struct batch_job){.batch = 8}));
    assert_int_equal(scale_make(&s, 24, NULL, &made, NULL), FRAG_OK);
    assert_int_equal(made.device.bytes[BATCH_LAYERS], batch_activation(0, 24));
    assert_int_equal(made.device.bytes[BATCH_LAYERS + 1],
                     3 * batch_workspace(&(struct batch_job){.batch = 8}));
    scaled_close(&made);
    scale_close(&s);
}

static void another_algorithm_follows_the_template(void **state)
{
    struct fixture f = {.count = 0};
    struct scaling s;

    (void)state;
    record(&f, (struct batch_job){.batch = 4});
    record(&f, (struct batch_job){.batch = 8, .algorithm = true});
    s = opened(&f);
    predicts(&s, (struct batch_job){.batch = 12, .algorithm = true});
    scale_close(&s);
}

static void a_square_is_found(void **state)
{
    struct fixture f = {.count = 0};
    struct scaling s;

    (void)state;
    record(&f, (struct batch_job){.batch = 3, .squares = true});
    record(&f, (struct batch_job){.batch = 7, .squares = true});
    record(&f, (struct batch_job){.batch = 5, .squares = true});
    s = opened(&f);
    assert_int_equal(s.requests[SCALE_SQUARE].count, BATCH_STEPS);
    predicts(&s, (struct batch_job){.batch = 20, .squares = true});
    assert_true(
        scale_at(&s, BATCH_LAYERS + 2 * BATCH_LAYERS, 20, NULL).per_sample >
        1.59e6);
    scale_close(&s);
}

static void a_request_without_a_partner_grows(void **state)
{
    struct fixture f = {.count = 0};
    struct scaling s;

    (void)state;
    record(&f, (struct batch_job){.batch = 4});
    record(&f, (struct batch_job){.batch = 6});
    record(&f, (struct batch_job){.batch = 8, .extra = true});
    s = opened(&f);
    assert_int_equal(s.requests[SCALE_ALONE].count, BATCH_STEPS);
    assert_int_equal(s.requests[SCALE_ALONE].bytes,
                     BATCH_STEPS * 8 * (frag_size)50001);
    assert_int_equal(s.requests[SCALE_ALONE].peak_bytes, 0);
    predicts(&s, (struct batch_job){.batch = 16, .extra = true});
    scale_close(&s);
}

/* The request of a size that others have with partners is like those. */
static void a_lone_request_is_like_others(void **state)
{
    enum { CONSTANT = 5 };
    struct fixture f = {.count = 0};
    struct scaled made;
    struct scaling s;

    (void)state;
    record(&f, (struct batch_job){.batch = 4});
    record(&f, (struct batch_job){.batch = 8});
    batch_put(&f.traces[1], FRAG_ALLOC, CONSTANT + 20, batch_weight(2));
    f.traces[0].d.slots = f.traces[1].d.slots;
    s = opened(&f);
    assert_int_equal(s.requests[SCALE_ALONE].count, 1);
    assert_int_equal(scale_make(&s, 16, NULL, &made, NULL), FRAG_OK);
    assert_int_equal(made.device.bytes[made.device.count - 1], batch_weight(2));
    scaled_close(&made);
    scale_close(&s);
}

/* ---- guesses ---- */

enum { FIRST_WORKSPACE = BATCH_LAYERS + 1 }; /* event and block */

/* The size of the first workspace under a law times a factor; all requests but
 * the guessed ones have the predicted sizes. */
static frag_size guessed(const struct scaling *s, uint64_t batch,
                         enum scale_law law, double factor)
{
    const struct scale_guess guess = {law, factor, ""};
    struct scaled as_predicted, made;
    uint64_t others = 0;
    frag_size bytes;

    assert_int_equal(scale_make(s, batch, NULL, &as_predicted, NULL), FRAG_OK);
    assert_int_equal(scale_make(s, batch, &guess, &made, NULL), FRAG_OK);
    for (uint64_t i = 0; i < made.device.count; i++)
        others += made.device.bytes[i] != as_predicted.device.bytes[i];
    assert_true(others <= s->guessed.count);
    bytes = made.device.bytes[FIRST_WORKSPACE];
    scaled_close(&made);
    scaled_close(&as_predicted);
    return bytes;
}

static void guesses_apply_to_workspaces(void **state)
{
    const frag_size at4 = batch_workspace(&(struct batch_job){.batch = 4}),
                    at8 = batch_workspace(&(struct batch_job){.batch = 8});
    struct fixture f = {.count = 0};
    struct scaling s;

    (void)state;
    record(&f, (struct batch_job){.batch = 4});
    record(&f, (struct batch_job){.batch = 8});
    s = opened(&f);
    assert_int_equal(s.guessed.count, BATCH_LAYERS * BATCH_STEPS);
    assert_int_equal(s.guessed.bytes, BATCH_LAYERS * BATCH_STEPS * at8);
    assert_int_equal(s.guessed.peak_bytes, at8);
    assert_int_equal(guessed(&s, 24, SCALE_LAW_SHARE, 1), 3 * at8);
    assert_in_range(guessed(&s, 24, SCALE_LAW_SHARE, 1.1), 3 * at8 * 11 / 10,
                    3 * at8 * 11 / 10 + 8);
    assert_int_equal(guessed(&s, 24, SCALE_LAW_FIRST, 1), 6 * at4);
    assert_int_equal(guessed(&s, 24, SCALE_LAW_LINE, 1),
                     batch_workspace(&(struct batch_job){.batch = 24}));
    assert_int_equal(guessed(&s, 24, SCALE_LAW_ABSENT, 1), 1);
    assert_int_equal(guessed(&s, 24, SCALE_LAW_SAME, 1), at8);
    assert_int_equal(guessed(&s, 6, SCALE_LAW_SAME, 1), at4);
    assert_int_equal(guessed(&s, 2, SCALE_LAW_SAME, 1), at4);
    assert_int_equal(guessed(&s, 8, SCALE_LAW_ABSENT, 1), at8); /* recorded */
    scale_close(&s);
}

/* A falling size is no line; the third recording does not make it sure. */
static void a_falling_size_is_no_line(void **state)
{
    const frag_size at8 = batch_workspace(&(struct batch_job){.batch = 8});
    struct fixture f = {.count = 0};
    struct scaling s;

    (void)state;
    record(&f, (struct batch_job){.batch = 4, .algorithm = true});
    record(&f, (struct batch_job){.batch = 8});
    s = opened(&f);
    assert_int_equal(guessed(&s, 16, SCALE_LAW_LINE, 1), 2 * at8);
    scale_close(&s);
    record(&f, (struct batch_job){.batch = 6});
    s = opened(&f);
    assert_int_equal(s.guessed.count, BATCH_LAYERS * BATCH_STEPS);
    scale_close(&s);
}

static void a_lone_request_is_guessed(void **state)
{
    struct fixture f = {.count = 0};
    struct scaling s;

    (void)state;
    record(&f, (struct batch_job){.batch = 4});
    record(&f, (struct batch_job){.batch = 8, .extra = true});
    s = opened(&f);
    assert_int_equal(s.guessed.count, (BATCH_LAYERS + 1) * BATCH_STEPS);
    scale_close(&s);
}

/* An activation that is larger at the smaller batch. */
static void an_uncertain_request_is_guessed(void **state)
{
    struct fixture f = {.count = 0};
    struct scaling s;

    (void)state;
    record(&f, (struct batch_job){.batch = 4});
    record(&f, (struct batch_job){.batch = 8});
    assert_int_equal(f.traces[0].bytes[BATCH_LAYERS], batch_activation(0, 4));
    f.traces[0].bytes[BATCH_LAYERS] = batch_activation(0, 8) + 100000;
    s = opened(&f);
    assert_int_equal(s.guessed.count, BATCH_LAYERS * BATCH_STEPS + 1);
    scale_close(&s);
}

/* Workspaces at batch 4 and 8: constant, small, a tensor, almost a tensor. */
static void workspaces_may_be_known(void **state)
{
    static const struct {
        frag_size bytes[2];
        bool is_guessed;
    } rows[] = {{{4096, 4096}, false},
                {{200, 400}, false},
                {{8192, 16384}, false},
                {{819200, 1638416}, true}};

    (void)state;
    for (size_t k = 0; k < sizeof(rows) / sizeof(*rows); k++) {
        struct fixture f = {.count = 0};
        struct scaling s;

        record(&f, (struct batch_job){.batch = 4});
        record(&f, (struct batch_job){.batch = 8});
        for (size_t r = 0; r < 2; r++)
            for (uint64_t i = FIRST_WORKSPACE; i < f.traces[r].d.count; i++)
                if (f.traces[r].op[i] == FRAG_ALLOC &&
                    f.traces[r].op[i + 1] == FRAG_FREE &&
                    f.traces[r].id[i] == f.traces[r].id[i + 1])
                    f.traces[r].bytes[i] = rows[k].bytes[r];
        s = opened(&f);
        assert_int_equal(s.guessed.count,
                         rows[k].is_guessed * BATCH_LAYERS * BATCH_STEPS);
        scale_close(&s);
    }
}

static void a_recorded_batch_is_the_recording(void **state)
{
    struct fixture f = {.count = 0};
    struct scaled made;
    struct scaling s;

    (void)state;
    record(&f, (struct batch_job){.batch = 4, .algorithm = true});
    record(&f, (struct batch_job){.batch = 8});
    s = opened(&f);
    assert_int_equal(scale_make(&s, 4, NULL, &made, NULL), FRAG_OK);
    assert_true(made.recorded);
    assert_ptr_equal(made.device.bytes, f.traces[0].bytes);
    scaled_close(&made);
    scale_close(&s);
}

static void refuses(struct fixture *f, const char *text)
{
    struct scaling s;

    assert_int_equal(scale_open(f->recordings, f->count, &s, &f->e),
                     FRAG_INVALID);
    if (!strstr(f->e.text, text))
        fail_msg("%s", f->e.text);
}

static void wrong_recordings_are_refused(void **state)
{
    struct fixture f = {.count = 0};

    (void)state;
    refuses(&f, "found 0");
    record(&f, (struct batch_job){.batch = 4});
    refuses(&f, "found 1");
    record(&f, (struct batch_job){.batch = 4});
    refuses(&f, "batch size 4 has two recordings");
    f.recordings[1].batch = 0;
    refuses(&f, "the batch size is 0");
    f.recordings[1].batch = 8; /* the same trace under another batch size */
    refuses(&f, "found none");
    f.traces[1].d.count = 0;
    refuses(&f, "expected requests");
}

/* Steps that the other recording lacks are like its steps. */
static void more_steps_are_no_other_program(void **state)
{
    struct fixture f = {.count = 0};
    struct scaling s;

    (void)state;
    record(&f, (struct batch_job){.batch = 4});
    record(&f, (struct batch_job){.batch = 8});
    for (unsigned k = 0; k < 6; k++)
        batch_step(&f.traces[1], &(struct batch_job){.batch = 8});
    s = opened(&f);
    assert_true(s.requests[SCALE_ALONE].count > s.blocks.count / 2);
    scale_close(&s);
}

static void another_program_is_refused(void **state)
{
    struct fixture f = {.count = 0};

    (void)state;
    record(&f, (struct batch_job){.batch = 4});
    record(&f, (struct batch_job){.batch = 8});
    for (uint64_t i = 0; i < f.traces[1].d.count; i++)
        if (f.traces[1].op[i] == FRAG_ALLOC)
            f.traces[1].bytes[i] = 1000 * (i + 1) * (i + 1);
    refuses(&f, "recordings of one program?");
}

static void wrong_batches_are_refused(void **state)
{
    struct fixture f = {.count = 0};
    struct scaled made;
    struct scaling s;

    (void)state;
    record(&f, (struct batch_job){.batch = 4});
    record(&f, (struct batch_job){.batch = 8});
    s = opened(&f);
    assert_int_equal(scale_make(&s, 0, NULL, &made, &f.e), FRAG_INVALID);
    assert_non_null(strstr(f.e.text, "batch size 0: expected 1 to"));
    assert_int_equal(scale_make(&s, UINT64_MAX, NULL, &made, &f.e),
                     FRAG_INVALID);
    scale_close(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(three_recordings_give_every_size),
        cmocka_unit_test(a_workspace_of_two_is_proportional),
        cmocka_unit_test(another_algorithm_follows_the_template),
        cmocka_unit_test(a_square_is_found),
        cmocka_unit_test(a_request_without_a_partner_grows),
        cmocka_unit_test(a_lone_request_is_like_others),
        cmocka_unit_test(guesses_apply_to_workspaces),
        cmocka_unit_test(a_falling_size_is_no_line),
        cmocka_unit_test(a_lone_request_is_guessed),
        cmocka_unit_test(an_uncertain_request_is_guessed),
        cmocka_unit_test(workspaces_may_be_known),
        cmocka_unit_test(a_recorded_batch_is_the_recording),
        cmocka_unit_test(wrong_recordings_are_refused),
        cmocka_unit_test(more_steps_are_no_other_program),
        cmocka_unit_test(another_program_is_refused),
        cmocka_unit_test(wrong_batches_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
