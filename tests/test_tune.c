/* test_tune.c - the settings that tune may try, the memory that a job asks for,
 * and the choice of the simplest setting. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "policies/torch/conf.h"
#include "policies/torch/versions.h"
#include "sim/experiments/tune/choose.h"
#include "sim/experiments/tune/need.h"

enum { DIVISIONS = TUNE_DIVISIONS, CLASSES = 8 };

static struct tune_space everything(void)
{
    struct tune_space space = {.classes = CLASSES,
                               .reference = (frag_size)8 << 30,
                               .total = (frag_size)80 << 30};

    for (int k = 0; k < TUNE_KNOB_COUNT; k++)
        space.allowed[k] = true;
    return space;
}

/* Walks at random; each text holds only what single quotes can hold, and is a
 * text that PyTorch accepts. */
static void texts_are_quotable(void **state)
{
    const struct tune_space space = everything();
    gsl_rng *rng = gsl_rng_alloc(gsl_rng_mt19937);
    struct tune_point p = {{0}};
    struct torch_conf conf;
    struct frag_error e;
    char text[TUNE_TEXT];

    (void)state;
    for (int i = 0; i < 20000; i++) {
        p = tune_step(&space, &p, rng);
        tune_text(&space, &p, text);
        assert_int_equal(strspn(text, "abcdefghijklmnopqrstuvwxyzTE"
                                      "0123456789_:,.[]>"),
                         strlen(text));
        assert_int_equal(torch_conf_parse(&conf, text, &e), FRAG_OK);
        assert_true(tune_size(&p).knobs <= TUNE_MOST_KNOBS);
    }
    gsl_rng_free(rng);
}

/* The parser of PyTorch before 2.9: ">" begins at the last interval named. */
static void read_as_old(const char *text, uint64_t *divisions)
{
    const char *at = strchr(text, '[');
    unsigned interval, count, last = 0;
    int length;

    for (at++; sscanf(at, "%u:%u%n", &interval, &count, &length) == 2;
         at += length + 1) {
        const unsigned first = at[-1] == '[' ? 0 : last + 1;

        last = 0;
        while (interval >> (last + 1))
            last++;
        for (unsigned k = first < last ? first : last; k <= last; k++)
            divisions[k] = count;
    }
    assert_int_equal(sscanf(at, ">:%u]", &count), 1);
    for (unsigned k = last; k < TORCH_DIVISIONS; k++)
        divisions[k] = count;
}

/* A list means the same to every version of PyTorch. */
static void lists_have_one_meaning(void **state)
{
    struct tune_space space = everything();
    gsl_rng *rng = gsl_rng_alloc(gsl_rng_mt19937);
    struct tune_point p = {{0}};
    struct frag_error e;
    char text[TUNE_TEXT];
    unsigned lists = 0;

    (void)state;
    for (int k = 0; k < TUNE_KNOB_COUNT; k++)
        space.allowed[k] = k == TUNE_DIVISIONS;
    for (int i = 0; i < 5000; i++) {
        uint64_t old[TORCH_DIVISIONS] = {0};
        struct torch_conf conf;

        p = tune_step(&space, &p, rng);
        if (!strchr(tune_text(&space, &p, text), '['))
            continue;
        lists++;
        read_as_old(text, old);
        assert_int_equal(torch_conf_parse(&conf, text, &e), FRAG_OK);
        assert_memory_equal(conf.divisions, old, sizeof(old));
    }
    assert_true(lists > 1000);
    gsl_rng_free(rng);
}

static void sizes_count_knobs(void **state)
{
    struct tune_point p = {{0}};

    (void)state;
    assert_int_equal(tune_size(&p).knobs, 0);
    p.at[TUNE_EXPANDABLE] = 1;
    assert_int_equal(tune_size(&p).knobs, 1);
    tune_set_divisions(&p, 2);
    assert_int_equal(tune_size(&p).knobs, 2);
    p.at[DIVISIONS + 3] = 1; /* three intervals of sizes */
    assert_int_equal(tune_size(&p).knobs, 4);
    tune_reset(&p, TUNE_DIVISIONS);
    assert_int_equal(tune_size(&p).knobs, 1);
    assert_int_equal(tune_size(&p).weight, 1);
}

/* ---- versions ---- */

/* Every text that a restricted space can write has only settings that the
 * version knows, with values that it accepts. */
static void versions_restrict(void **state)
{
    gsl_rng *rng = gsl_rng_alloc(gsl_rng_mt19937);
    char text[TUNE_TEXT];

    (void)state;
    for (unsigned version = TORCH_OLDEST; version <= TORCH_NEWEST; version++) {
        struct tune_space space = everything();
        struct tune_point p = {{0}};
        bool splits_at_20 = false;

        tune_restrict(&space, version);
        for (int i = 0; i < 5000; i++) {
            p = tune_step(&space, &p, rng);
            tune_text(&space, &p, text);
            for (int k = 0; k < TUNE_KNOB_COUNT; k++)
                if (torch_setting_find(tune_knob_names[k])->since > version)
                    assert_null(strstr(text, tune_knob_names[k]));
            splits_at_20 |= strstr(text, "max_split_size_mb:20") != NULL &&
                            !strstr(text, "max_split_size_mb:204");
        }
        assert_int_equal(splits_at_20, version >= 10);
    }
    gsl_rng_free(rng);
}

static void versions_are_read(void **state)
{
    static const char *const bad[] = {"",    "2",     "2.",   "1.13", "2.99",
                                      "2.x", "2.6rc", "3.11", "2.-1", "v2.6"};
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
}

static void every_knob_has_a_version(void **state)
{
    (void)state;
    for (int k = 0; k < TUNE_KNOB_COUNT; k++)
        assert_non_null(torch_setting_find(tune_knob_names[k]));
    assert_null(torch_setting_find("segment_size_mb"));
    assert_int_equal(torch_setting_find("backend")->since, 0);
    assert_int_equal(torch_setting_find("expandable_segments")->since, 1);
    assert_int_equal(torch_setting_find("max_non_split_rounding_mb")->since, 6);
    assert_int_equal(torch_setting_find("large_segment_size_mb")->since, 11);
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
    struct tune_need need;
    struct frag_error e;

    (void)state;
    assert_int_equal(tune_need(&trace, FRAG_UNLIMITED, &need, &e), FRAG_OK);
    assert_int_equal(need.bytes, 3 * 512); /* block 1 is pending at event 5 */
    assert_int_equal(need.event, 1);
    assert_false(need.predicted);
    trace.added = 7;
    assert_int_equal(tune_need(&trace, 600, &need, &e), FRAG_OK);
    assert_true(need.predicted && need.event == 1);
    assert_int_equal(tune_need(&trace, 511, &need, &e), FRAG_OK);
    assert_false(need.predicted);
    assert_int_equal(need.bytes, 512);
    bytes[5] = UINT64_MAX - 5;
    assert_int_equal(tune_need(&trace, FRAG_UNLIMITED, &need, &e), FRAG_OK);
    assert_true(need.bytes == FRAG_UNLIMITED);
    assert_int_equal(need.event, 5);
}

/* ---- the choice ---- */

enum { MOST = 8 };

struct rows {
    struct tune_trial trials[MOST], *list[MOST];
    struct tune_search search;
};

static int better_first(const void *a, const void *b)
{
    return tune_compare(*(struct tune_trial *const *)a,
                        *(struct tune_trial *const *)b);
}

/* Adds a trial with so many knobs that saves so many per cent. */
static struct tune_trial *add(struct rows *r, unsigned knobs, double percent)
{
    struct tune_trial *t = &r->trials[r->search.trial_count];

    *t = (struct tune_trial){.text = "", .survives = true};
    t->size = (struct tune_size){knobs, knobs};
    t->value = log(1 - percent / 100);
    r->list[r->search.trial_count++] = t;
    r->search.trials = r->list;
    qsort(r->list, r->search.trial_count, sizeof(*r->list), better_first);
    return t;
}

static const struct tune_trial *choose(const struct rows *r, double tolerance)
{
    return tune_choose(&r->search, &(struct tune_rule){tolerance});
}

static void the_simplest_is_chosen(void **state)
{
    struct rows r = {0};
    struct tune_trial *none = add(&r, 0, 0), *one = add(&r, 1, 19.9),
                      *two = add(&r, 2, 20.0);

    (void)state;
    assert_ptr_equal(choose(&r, 0.01), one); /* 0.1 % of 20 % are less */
    assert_ptr_equal(choose(&r, 0.001), two);
    assert_ptr_equal(choose(&r, 0), two);
    assert_ptr_equal(choose(&r, 1), none);
    assert_ptr_equal(choose(&r, INFINITY), none);
    none->excess = one->excess = 1;
    one->survives = none->survives = false;
    qsort(r.list, 3, sizeof(*r.list), better_first);
    assert_ptr_equal(choose(&r, INFINITY), two);
    two->excess = 1;
    assert_null(choose(&r, INFINITY));
    assert_null(choose(&r, 0.01));
}

/* Each further knob must save a tenth of the tolerance. */
static void lists_must_pay(void **state)
{
    struct rows r = {0};
    struct tune_trial *none = add(&r, 0, 0), *list = add(&r, 5, 0.4);

    (void)state;
    assert_ptr_equal(choose(&r, 0.01), none);
    assert_ptr_equal(choose(&r, 0), list);
    add(&r, 1, 0.35); /* but one knob for 0.35 % is worth it */
    assert_int_equal(choose(&r, 0.01)->size.knobs, 1);
    list = add(&r, 6, 5);
    assert_ptr_equal(choose(&r, 0.01), list);
}

static void equal_memory_takes_fewer_knobs(void **state)
{
    struct rows r = {0};
    struct tune_trial *slow, *heavy;

    (void)state;
    add(&r, 0, 0);
    heavy = add(&r, 1, 10);
    heavy->size.weight = 3;
    slow = add(&r, 1, 10);
    slow->seconds = 1;
    add(&r, 2, 10);
    qsort(r.list, r.search.trial_count, sizeof(*r.list), better_first);
    assert_ptr_equal(choose(&r, 0), slow);
    slow->size.weight = 3; /* as simple as the other one, which is faster */
    assert_ptr_equal(choose(&r, 0), heavy);
}

static void ladders_rise(void **state)
{
    struct rows r = {0};
    struct tune_ladder l;

    (void)state;
    add(&r, 0, 0);
    add(&r, 1, 10);
    add(&r, 2, 10.05); /* no step */
    add(&r, 3, 9);
    add(&r, 4, 11);
    add(&r, 5, 11.01); /* the best */
    l = tune_ladder(&r.search, choose(&r, 0.2));
    assert_int_equal(l.count, 4);
    assert_int_equal(l.rungs[1]->size.knobs, 1);
    assert_int_equal(l.rungs[2]->size.knobs, 4);
    assert_ptr_equal(l.rungs[3], r.list[0]);
    l = tune_ladder(&r.search, &r.trials[2]); /* chosen: is on the ladder */
    assert_int_equal(l.count, 5);
    assert_ptr_equal(l.rungs[2], &r.trials[2]);
    l = tune_ladder(&r.search, NULL);
    assert_int_equal(l.count, 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_are_quotable),
        cmocka_unit_test(lists_have_one_meaning),
        cmocka_unit_test(sizes_count_knobs),
        cmocka_unit_test(versions_restrict),
        cmocka_unit_test(versions_are_read),
        cmocka_unit_test(every_knob_has_a_version),
        cmocka_unit_test(needs_are_peaks),
        cmocka_unit_test(the_simplest_is_chosen),
        cmocka_unit_test(lists_must_pay),
        cmocka_unit_test(equal_memory_takes_fewer_knobs),
        cmocka_unit_test(ladders_rise),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
