/* test_conf.c - what releases of PyTorch make of settings: the status of each,
 * with its reason, and which are in force. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "policies/policies.h"
#include "sim/answers/conf/conf.h"

static const struct conf_item *worst(const struct conf_answer *a)
{
    for (size_t i = 0; i < a->count; i++)
        if (a->items[i].status == conf_verdict(a))
            return &a->items[i];
    return NULL;
}

static void texts_are_judged(void **state)
{
    static const struct {
        const char *text;
        unsigned version;
        enum conf_status verdict;
        const char *why; /* a part of the reason of that status */
    } cases[] = {
        {"", 11, CONF_ACCEPTED, ""},
        {"expandable_segments:True,", 11, CONF_ACCEPTED, ""},
        {"expandeable_segments:True", 11, CONF_UNKNOWN,
         "did you mean \"expandable_segments\"?"},
        {"expandable_segments=True", 11, CONF_REFUSED,
         "write expandable_segments:True"},
        {"expandable_segments:true", 11, CONF_REFUSED, "True or False"},
        {"expandable_segments:True", 0, CONF_REFUSED, "since 2.1"},
        {",expandable_segments:False", 11, CONF_REFUSED, "not an allocator"},
        {"max_split_size_mb", 11, CONF_REFUSED, "a colon and a value"},
        {"max_split_size_mb:19", 11, CONF_REFUSED, "at least 20"},
        {"max_split_size_mb:20", 9, CONF_REFUSED, "at least 21"},
        {"max_split_size_mb:20", 10, CONF_ACCEPTED, ""},
        {" max_split_size_mb : 9 00 MB", 11, CONF_ACCEPTED, ""},
        {"max_split_size_mb,900", 11, CONF_ACCEPTED, ""},
        {"max_split_size_mb,900", 9, CONF_REFUSED, "a colon and a value"},
        {"max_split_size_mb:900,max_split_size_mb:800", 11, CONF_IGNORED,
         "the last one counts"},
        {"max_split_size_mb:24,large_segment_size_mb:32", 11, CONF_REFUSED,
         "at least 32"},
        {"max_split_size_mb:600,large_segment_size_mb:10", 11, CONF_REFUSED,
         "at least 11"},
        {"large_segment_size_mb:32", 10, CONF_REFUSED, "since 2.11"},
        {"max_non_split_rounding_mb:64", 11, CONF_IGNORED,
         "together with max_split_size_mb"},
        {"max_non_split_rounding_mb:64,max_split_size_mb:80", 11, CONF_ACCEPTED,
         ""},
        {"garbage_collection_threshold:0.8", 11, CONF_IGNORED,
         "without a memory limit"},
        {"garbage_collection_threshold:0.8,per_process_memory_fraction:1", 11,
         CONF_IGNORED, "without a memory limit"},
        {"garbage_collection_threshold:0.8,per_process_memory_fraction:0.9", 11,
         CONF_ACCEPTED, ""},
        {"garbage_collection_threshold:0.8,per_process_memory_fraction:0.9,"
         "expandable_segments:True",
         11, CONF_IGNORED, "no memory of expandable segments"},
        {"roundup_power2_divisions:1", 11, CONF_IGNORED, "no division"},
        {"roundup_power2_divisions:1", 3, CONF_ACCEPTED, ""},
        {"roundup_power2_divisions:[>:2]", 11, CONF_ACCEPTED, ""},
        {"roundup_power2_divisions:3", 11, CONF_REFUSED, "power of two"},
        {"roundup_bypass_threshold_mb:64", 0, CONF_REFUSED, "1.13"},
        {"backend:native", 11, CONF_ACCEPTED, ""},
        {"backend:cudaMallocAsync,expandable_segments:True", 11, CONF_IGNORED,
         "the driver's allocator"},
        {"backend:cudaMallocAsync,pinned_num_register_threads:8", 11,
         CONF_ACCEPTED, ""},
        {"expandable_segments_reserve:nan", 15, CONF_IGNORED, "its default"},
        {"expandable_segments_reserve_by_class:[a:x]", 15, CONF_IGNORED,
         "its default"},
        {"page_size:1g", 11, CONF_REFUSED, "Only torch_npu"},
        {"padding:32", 11, CONF_REFUSED, "Only fragsim"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        const struct conf_input input = {.sources = {{NULL, cases[i].text}}};
        struct conf_answer a;
        struct frag_error e;

        assert_int_equal(conf_read(&input, cases[i].version, &a, &e), FRAG_OK);
        if (conf_verdict(&a) != cases[i].verdict ||
            (*cases[i].why && !strstr(worst(&a)->why, cases[i].why)))
            fail_msg("\"%s\" in 2.%u: %d, %s", cases[i].text, cases[i].version,
                     (int)conf_verdict(&a), a.count ? worst(&a)->why : "");
        conf_close(&a);
    }
}

/* A text of settings of placement is refused if and only if the torch policy
 * refuses it, and the same is in force. */
static void agrees_with_the_policy(void **state)
{
    static const char *const items[] = {
        "expandable_segments:True",
        "expandable_segments:no",
        "max_split_size_mb:20",
        "max_split_size_mb:128MB",
        "max_split_size_mb:9",
        "max_non_split_rounding_mb:-1",
        "large_segment_size_mb:12",
        "large_segment_size_mb:10",
        "garbage_collection_threshold:0.75",
        "roundup_power2_divisions:[256:1,512:2,>:8]",
        "roundup_power2_divisions:[4:4",
        "per_process_memory_fraction:0.5",
        "backend:mine",
        "per_process_memory_fraction",
        "segments:1",
    };
    const size_t count = sizeof(items) / sizeof(*items);

    (void)state;
    for (size_t n = 0; n < count * count * count; n++) {
        char text[256];
        const struct conf_input input = {.sources = {{NULL, text}}};
        struct frag_params *used = NULL;
        struct conf_answer a;
        struct frag_error e;

        snprintf(text, sizeof(text), "%s,%s,%s", items[n % count],
                 items[n / count % count], items[n / count / count]);
        assert_int_equal(conf_read(&input, TORCH_MODEL, &a, &e), FRAG_OK);
        if ((frag_params_read(&frag_policy_torch, text, &used, &e) ==
             FRAG_OK) != (conf_verdict(&a) != CONF_REFUSED))
            fail_msg("%s: the policy says: %s", text, e.text);
        if (used)
            assert_string_equal(a.used->text, used->text);
        free(used);
        conf_close(&a);
    }
}

static void variables_have_an_order(void **state)
{
    static const struct {
        const char *values[CONF_SOURCES];
        unsigned version;
        const char *statuses; /* the first letter of each, in their order */
    } rows[] = {
        {{"backend:native", "page_size:1", "page_size:1"}, 11, "aii"},
        {{NULL, NULL, "max_split_size_mb:64"}, 10, "a"},
        {{NULL, NULL, "max_split_size_mb:1"}, 9, "i"},
        {{"", NULL, "max_split_size_mb:1"}, 10, "i"},
        {{NULL, "max_split_size_mb:64,backend:x",
          "backend:x,max_split_size_mb"},
         10,
         "airi"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        const struct conf_input input = {
            .sources = {{"C", rows[i].values[0]},
                        {"H", rows[i].values[1]},
                        {"A", rows[i].values[2]}},
        };
        struct conf_answer a;
        struct frag_error e;

        assert_int_equal(conf_read(&input, rows[i].version, &a, &e), FRAG_OK);
        assert_int_equal(a.count, strlen(rows[i].statuses));
        for (size_t k = 0; k < a.count; k++)
            assert_int_equal(*conf_status_names[a.items[k].status],
                             rows[i].statuses[k]);
        conf_close(&a);
    }
}

/* A setting has the same place in all releases. */
static void places_are_equal(void **state)
{
    const struct conf_input input = {
        .sources = {{NULL, "max_split_size_mb,64,a:1,expandable_segments\t,True"
                           ",b:1"}}};
    struct conf_answer before, after;
    struct frag_error e;

    (void)state;
    assert_int_equal(conf_read(&input, 9, &before, &e), FRAG_OK);
    assert_int_equal(conf_read(&input, 10, &after, &e), FRAG_OK);
    assert_int_equal(before.count, 6);
    assert_int_equal(after.count, 4);
    for (size_t i = 0; i < before.count; i++) {
        const struct conf_item *it = &before.items[i],
                               *same = conf_item_at(&after, it->place);

        assert_true(!strncmp(it->key, same->key, strlen(same->key)) ||
                    !strcmp(it->key, same->value));
    }
    assert_null(conf_item_at(&(struct conf_answer){0}, 1));
    conf_close(&before);
    conf_close(&after);
}

static void long_texts_are_refused(void **state)
{
    char text[2000];
    const struct conf_input input = {.sources = {{NULL, text}}};
    struct conf_answer a;
    struct frag_error e;

    (void)state;
    memset(text, 'x', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    assert_int_equal(conf_read(&input, 11, &a, &e), FRAG_INVALID);
    conf_close(&a);
    memset(text, ',', CONF_MOST);
    text[CONF_MOST] = '\0';
    assert_int_equal(conf_read(&input, 11, &a, &e), FRAG_OK);
    assert_int_equal(a.count, CONF_MOST);
    conf_close(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_are_judged),
        cmocka_unit_test(agrees_with_the_policy),
        cmocka_unit_test(variables_have_an_order),
        cmocka_unit_test(places_are_equal),
        cmocka_unit_test(long_texts_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
