/* test_plan_history.c - tests which repetitions a history detects, and when;
 * and which addresses of a step are known. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "policies/plan/step.h"

static void note(struct history *h, frag_size size)
{
    assert_int_equal(history_reserve(h), FRAG_OK);
    history_note(h, size);
}

/* `count` requests, of a size each, the first of size `from`. */
static void note_all(struct history *h, frag_size from, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        note(h, from + i);
}

static void a_period_is_believed_when_it_was_repeated_whole(void **state)
{
    struct history h = {0};

    (void)state;
    note_all(&h, 1000, 100); /* something else before */
    note_all(&h, 1, 40);
    note_all(&h, 1, 40);
    assert_int_equal(history_period(&h, 1), 0);
    note_all(&h, 1, CONTEXT - 1);
    assert_int_equal(history_period(&h, 1), 0);
    note(&h, CONTEXT);
    assert_int_equal(history_period(&h, 1), 40);
    note(&h, 7777); /* out of step */
    assert_int_equal(history_period(&h, 1), 0);
    history_close(&h);
}

static void a_repetition_must_last(void **state)
{
    struct history h = {0};

    (void)state;
    for (int i = 0; i < 20; i++)
        note_all(&h, 1, 5);
    assert_int_equal(history_period(&h, 80), 5);
    assert_int_equal(history_period(&h, 100), 0);
    history_close(&h);
}

/* More room is made at 256 requests; what was seen before is still known. */
static void a_growing_history_forgets_nothing(void **state)
{
    struct history h = {0};

    (void)state;
    note_all(&h, 1, 250);
    history_freed(&h, 200);
    note_all(&h, 1, 250);
    assert_int_equal(history_at(&h, 200)->life, 50);
    note_all(&h, 1, CONTEXT + CONTEXT);
    assert_int_equal(history_period(&h, 1), 250);
    history_close(&h);
}

static void a_full_history_forgets_the_oldest(void **state)
{
    struct history h = {0};

    (void)state;
    note_all(&h, 1, HISTORY_MOST + 5);
    assert_int_equal(h.room, HISTORY_MOST);
    history_freed(&h, 3); /* remembered no more */
    history_freed(&h, HISTORY_MOST + 1);
    assert_int_equal(history_at(&h, HISTORY_MOST + 3)->life, 0);
    assert_int_equal(history_at(&h, HISTORY_MOST + 1)->life, 4);
    note_all(&h, 1, 100);
    assert_int_equal(history_period(&h, 1), 0);
    history_close(&h);
}

/* Twenty requests, each freed at once. */
static void note_stretch(struct history *h, frag_size last)
{
    for (uint32_t i = 0; i < 20; i++) {
        note(h, i < 19 ? 512 * (i + 1) : last);
        history_freed(h, h->count - 1);
    }
}

/* A step of two stretches that differ in their last request alone: only the
 * context of that one tells them apart. */
static void a_place_that_two_stretches_share_is_not_known(void **state)
{
    struct history h = {0};
    struct plan_step *s;
    uint64_t start;

    (void)state;
    for (int i = 0; i < 3; i++) {
        note_stretch(&h, 4096);
        note_stretch(&h, 8192);
    }
    start = h.count - 40;
    assert_int_equal(history_period(&h, 1), 40);
    assert_int_equal(step_make(&h, 40, 0, &s), FRAG_OK);
    assert_non_null(s);
    assert_int_equal(s->next, 0); /* all are equally good to start with */
    assert_int_equal(
        step_follow(s, 512 * 19, history_at(&h, start + 18)->context), NO_SLOT);
    assert_int_equal(s->next, 0);
    assert_int_equal(step_follow(s, 512, 0), 0);
    assert_int_equal(step_follow(s, 8192, history_at(&h, start + 39)->context),
                     39);
    assert_int_equal(s->next, 0);
    assert_int_equal(step_follow(s, 4096, history_at(&h, start + 39)->context),
                     NO_SLOT);
    step_close(s);
    history_close(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_period_is_believed_when_it_was_repeated_whole),
        cmocka_unit_test(a_repetition_must_last),
        cmocka_unit_test(a_growing_history_forgets_nothing),
        cmocka_unit_test(a_full_history_forgets_the_oldest),
        cmocka_unit_test(a_place_that_two_stretches_share_is_not_known),
    };

    return cmocka_run_group_tests_name("plan history", tests, NULL, NULL);
}
