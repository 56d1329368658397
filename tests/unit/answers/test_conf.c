/* test_conf.c - the answers about values of PYTORCH_CUDA_ALLOC_CONF: the table
 * of settings, what is refused, ignored and dangerous, and the shortest text.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "sim/answers/conf/conf.h"

/* A text, the version that reads it, the most serious level, a part of the
 * finding of that level, and the shortest text. */
struct expected {
    const char *text;
    unsigned version;
    enum conf_level level;
    const char *finding, *canonical;
};

static const struct expected cases[] = {
    {"", 11, CONF_FINE, "", ""},
    {"expandable_segments:False", 11, CONF_FINE, "", ""},
    {"expandable_segments:True,", 11, CONF_NOTE, "Windows",
     "expandable_segments:True"},
    {"expandeable_segments:True", 11, CONF_UNKNOWN,
     "did you mean \"expandable_segments\"?", ""},
    {"expandable_segments=True", 11, CONF_REFUSED,
     "Write expandable_segments:True", ""},
    {"expandable_segments:true", 11, CONF_REFUSED, "True or False", ""},
    {"expandable_segments:True", 0, CONF_REFUSED, "PyTorch 2.1 and later", ""},
    {",expandable_segments:False", 11, CONF_REFUSED, "Remove the comma", ""},
    {"max_split_size_mb", 11, CONF_REFUSED, "has no value", ""},
    {"max_split_size_mb:19", 11, CONF_REFUSED, "at least 20", ""},
    {"max_split_size_mb:20", 9, CONF_REFUSED, "at least 21", ""},
    {"max_split_size_mb:20", 10, CONF_DANGER, "5.3 times",
     "max_split_size_mb:20"},
    {"max_split_size_mb:64", 11, CONF_DANGER, "5.3 times",
     "max_split_size_mb:64"},
    {"max_split_size_mb:65", 11, CONF_DANGER, "5.1 times",
     "max_split_size_mb:65"},
    {"max_split_size_mb:512", 11, CONF_DANGER, "3.1 times",
     "max_split_size_mb:512"},
    {"max_split_size_mb:513", 11, CONF_FINE, "", "max_split_size_mb:513"},
    {" max_split_size_mb : 9 00 MB", 11, CONF_NOTE, "reads 900",
     "max_split_size_mb:900"},
    {"max_split_size_mb:900,max_split_size_mb:800", 11, CONF_IGNORED,
     "the last one counts", "max_split_size_mb:800"},
    {"max_split_size_mb:900,expandable_segments:True", 11, CONF_DANGER,
     "Use one of the two", "expandable_segments:True,max_split_size_mb:900"},
    {"max_split_size_mb:24,large_segment_size_mb:32", 11, CONF_REFUSED,
     "at least 32", "large_segment_size_mb:32"},
    {"max_split_size_mb:600,large_segment_size_mb:10", 11, CONF_REFUSED,
     "at least 11", "max_split_size_mb:600"},
    {"large_segment_size_mb:32", 10, CONF_REFUSED, "PyTorch 2.11 and later",
     ""},
    {"large_segment_size_mb:15,expandable_segments:True", 11, CONF_DANGER,
     "even number", "expandable_segments:True,large_segment_size_mb:15"},
    {"max_non_split_rounding_mb:64", 11, CONF_IGNORED,
     "together with max_split_size_mb", ""},
    {"garbage_collection_threshold:0.8", 11, CONF_IGNORED,
     "without a memory limit", "garbage_collection_threshold:0.8"},
    {"garbage_collection_threshold:0.8,per_process_memory_fraction:1", 11,
     CONF_IGNORED, "without a memory limit",
     "garbage_collection_threshold:0.8"},
    {"garbage_collection_threshold:0.8,per_process_memory_fraction:0.9", 11,
     CONF_DANGER, "90 %",
     "garbage_collection_threshold:0.8,per_process_memory_fraction:0.9"},
    {"garbage_collection_threshold:0.8,per_process_memory_fraction:0.9,"
     "expandable_segments:True",
     11, CONF_IGNORED, "contradicts expandable_segments",
     "expandable_segments:True,per_process_memory_fraction:0.9"},
    {"garbage_collection_threshold:1", 11, CONF_REFUSED, "below 1", ""},
    {"roundup_power2_divisions:1", 11, CONF_IGNORED, "no division", ""},
    {"roundup_power2_divisions:2", 11, CONF_DANGER, "takes 768 MiB",
     "roundup_power2_divisions:2"},
    {"roundup_power2_divisions:[>:2]", 11, CONF_DANGER, "takes 768 MiB",
     "roundup_power2_divisions:[>:2]"},
    {"roundup_power2_divisions:8", 11, CONF_NOTE, "12.5 %",
     "roundup_power2_divisions:8"},
    {"roundup_power2_divisions:3", 11, CONF_REFUSED, "power of two", ""},
    {"roundup_power2_divisions:[256:8,65536:4]", 11, CONF_IGNORED,
     "the interval 65536 as 32768", "roundup_power2_divisions:[256:8,65536:4]"},
    {"roundup_power2_divisions:[256:8,32768:4]", 11, CONF_NOTE, "25 %",
     "roundup_power2_divisions:[256:8,32768:4]"},
    {"roundup_power2_divisions:[256:8,>:16]", 9, CONF_NOTE, "before 2.10",
     "roundup_power2_divisions:[256:8,>:16]"},
    {"roundup_power2_divisions:[64:8,256:8]", 11, CONF_NOTE,
     "Sizes from 128 to 256 MiB are not rounded",
     "roundup_power2_divisions:[64:8,256:8]"},
    {"roundup_bypass_threshold_mb:64", 0, CONF_REFUSED, "1.13 only", ""},
    {"backend:native", 11, CONF_FINE, "", ""},
    {"backend:async", 11, CONF_REFUSED, "native or cudaMallocAsync", ""},
    {"backend:cudaMallocAsync,expandable_segments:True", 11, CONF_IGNORED,
     "contradicts backend:cudaMallocAsync", "backend:cudaMallocAsync"},
    {"backend:cudaMallocAsync,pinned_num_register_threads:8", 11, CONF_NOTE,
     "pinned memory of the host",
     "backend:cudaMallocAsync,pinned_num_register_threads:8"},
    {"pinned_num_register_threads:12", 11, CONF_REFUSED, "at most 128", ""},
    {"pinned_reserve_segment_size_mb:0", 11, CONF_REFUSED, "at least 1", ""},
    {"throw_on_cudamalloc_oom:True", 11, CONF_REFUSED, "2.12 and later", ""},
    {"throw_on_cudamalloc_oom:True", 12, CONF_NOTE,
     "per_process_memory_fraction", "throw_on_cudamalloc_oom:True"},
    {"graph_capture_record_stream_reuse:True", 9, CONF_FINE, "",
     "graph_capture_record_stream_reuse:True"},
};

/* Whether a finding of the level contains the text. */
static bool says(const struct conf_answer *a, enum conf_level level,
                 const char *text)
{
    for (size_t i = 0; i < a->finding_count; i++)
        if (a->findings[i].level == level && strstr(a->findings[i].text, text))
            return true;
    return false;
}

static void texts_are_judged(void **state)
{
    struct conf_answer a;
    struct frag_error e;

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        const struct expected *x = &cases[i];

        assert_int_equal(conf_read(x->text, x->version, CONF_WHOLE, &a, &e),
                         FRAG_OK);
        if (conf_level(&a) != x->level ||
            (x->level != CONF_FINE && !says(&a, x->level, x->finding)) ||
            strcmp(a.canonical, x->canonical) != 0)
            fail_msg("\"%s\" in 2.%u: level %d, \"%s\", canonical \"%s\"",
                     x->text, x->version, (int)conf_level(&a),
                     a.finding_count ? a.findings[0].text : "", a.canonical);
        conf_close(&a);
    }
}

/* Every setting is explained, and has a row in the table of versions. */
static void keys_are_explained(void **state)
{
    (void)state;
    for (const struct conf_key *k = conf_keys; k->name; k++) {
        const char *const texts[] = {k->values, k->init, k->effect, k->use,
                                     k->price};

        assert_true(torch_setting_find(k->name) ||
                    strstr(k->effect, "torch_npu"));
        for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
            assert_true(texts[i] && *texts[i]);
    }
    for (const struct torch_setting *s = torch_known_settings; s->name; s++)
        assert_non_null(conf_key_find(s->name));
}

/* Which of two values of large_segment_size_mb bounds the other settings is not
 * known. */
static bool has_two_large(const char *text)
{
    const char *first = strstr(text, "large_segment");

    return first && strstr(first + 1, "large_segment");
}

static bool has_useless(const struct conf_answer *a)
{
    for (size_t i = 0; i < a->item_count; i++)
        if (a->items[i].useless)
            return true;
    return false;
}

/* A text of settings of placement is refused if and only if the torch policy
 * refuses it. The shortest text has the same effect. */
static void agrees_with_the_policy(void **state)
{
    static const char *const items[] = {
        "expandable_segments:True",
        "expandable_segments:no",
        "max_split_size_mb:20",
        "max_split_size_mb:128MB",
        "max_split_size_mb:9",
        "max_non_split_rounding_mb:40",
        "max_non_split_rounding_mb:-1",
        "large_segment_size_mb:12",
        "large_segment_size_mb:32",
        "large_segment_size_mb:10",
        "garbage_collection_threshold:0.75",
        "garbage_collection_threshold:1",
        "roundup_power2_divisions:4",
        "roundup_power2_divisions:[256:1,512:2,>:8]",
        "roundup_power2_divisions:[4:3]",
        "roundup_power2_divisions:[4:4",
        "per_process_memory_fraction:0.5",
        "per_process_memory_fraction:1.5",
        "backend:native",
        "backend:mine",
        "per_process_memory_fraction",
        "segments:1",
    };
    const struct frag_policy *torch = frag_policy_find("torch");
    const size_t count = sizeof(items) / sizeof(*items);
    struct conf_answer a;
    struct frag_error e;

    (void)state;
    for (size_t n = 0; n < count * count * count; n++) {
        struct frag_params *used = NULL, *shortest;
        char text[256];
        bool accepted;

        snprintf(text, sizeof(text), "%s,%s,%s", items[n % count],
                 items[n / count % count], items[n / count / count]);
        if (has_two_large(text))
            continue;
        accepted = frag_params_read(torch, text, &used, &e) == FRAG_OK;
        assert_int_equal(conf_read(text, TORCH_MODEL, CONF_WHOLE, &a, &e),
                         FRAG_OK);
        if (accepted != (conf_level(&a) != CONF_REFUSED))
            fail_msg("%s: the policy says %d", text, accepted);
        if (accepted) {
            assert_string_equal(a.used->text, used->text);
            assert_int_equal(
                frag_params_read(torch, a.canonical, &shortest, &e), FRAG_OK);
            if (!has_useless(&a))
                assert_string_equal(shortest->text, used->text);
            free(shortest);
            free(used);
        }
        conf_close(&a);
    }
}

static void variables_have_an_order(void **state)
{
    const char *const all[] = {"a", "b", "c"}, *const last[] = {NULL, NULL, ""};
    const char *const none[CONF_VARIABLES] = {NULL};
    struct conf_answer a;
    struct frag_error e;

    (void)state;
    assert_int_equal(conf_variable_used(all, 11), 0);
    assert_int_equal(conf_variable_used(last, 10), 2);
    assert_int_equal(conf_variable_used(last, 9), CONF_VARIABLES);
    assert_int_equal(conf_variable_used(none, 11), CONF_VARIABLES);

    assert_int_equal(conf_read("", 9, CONF_WHOLE, &a, &e), FRAG_OK);
    assert_int_equal(conf_judge_variables(&a, last, false, &e), FRAG_OK);
    assert_true(says(&a, CONF_IGNORED, "2.9 does not use it"));
    assert_int_equal(conf_judge_variables(&a, none, true, &e), FRAG_OK);
    assert_true(says(&a, CONF_IGNORED, "cudaMalloc"));
    conf_close(&a);

    assert_int_equal(conf_read("", 11, CONF_WHOLE, &a, &e), FRAG_OK);
    assert_int_equal(conf_judge_variables(&a, all, false, &e), FRAG_OK);
    assert_int_equal(a.finding_count, 2);
    assert_true(says(&a, CONF_IGNORED, "here PYTORCH_CUDA_ALLOC_CONF"));
    conf_close(&a);
}

static void platforms_have_their_own_keys(void **state)
{
    static const struct {
        enum torch_platform_id platform;
        const char *text;
        enum conf_level level;
        const char *finding;
    } rows[] = {
        {TORCH_CUDA, "page_size:1g", CONF_REFUSED, "a setting of torch_npu"},
        {TORCH_NPU, "page_size:1g", CONF_FINE, ""},
        {TORCH_NPU, "page_size:2m", CONF_REFUSED, "expected 1g"},
        {TORCH_NPU, "segment_size_mb:19", CONF_REFUSED, "from 20 to 512"},
        {TORCH_NPU, "base_addr_aligned_kb:17", CONF_REFUSED, "0 to 16"},
        {TORCH_NPU, "throw_on_cudamalloc_oom:True", CONF_REFUSED,
         "torch_npu refuses"},
        {TORCH_NPU, "expandable_segments:True,max_split_size_mb:900",
         CONF_REFUSED, "together with"},
        {TORCH_XPU, "max_split_size_mb:900", CONF_IGNORED, "does not use"},
        {TORCH_XPU, "per_process_memory_fraction:0.5", CONF_REFUSED,
         "XPU does not know"},
        {TORCH_ROCM, "expandable_segments:True", CONF_NOTE, "ROCm 7.0"},
    };
    struct conf_answer a;
    struct frag_error e;

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        assert_int_equal(conf_read_for(rows[i].platform, rows[i].text,
                                       TORCH_MODEL, CONF_WHOLE, &a, &e),
                         FRAG_OK);
        assert_int_equal(conf_level(&a), rows[i].level);
        assert_true(!*rows[i].finding ||
                    says(&a, rows[i].level, rows[i].finding));
        conf_close(&a);
    }
    assert_int_equal(
        conf_read_for(TORCH_NPU,
                      "base_addr_aligned_kb:0,throw_on_npumalloc_oom:True",
                      TORCH_MODEL, CONF_WHOLE, &a, &e),
        FRAG_OK);
    assert_string_equal(a.canonical, a.text);
    conf_close(&a);
}

static void long_texts_are_refused(void **state)
{
    char text[2000];
    struct conf_answer a;
    struct frag_error e;

    (void)state;
    memset(text, 'x', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    assert_int_equal(conf_read(text, 11, CONF_WHOLE, &a, &e), FRAG_INVALID);
    conf_close(&a);
    memset(text, ',', 1000);
    text[1000] = '\0';
    assert_int_equal(conf_read(text, 11, CONF_WHOLE, &a, &e), FRAG_OK);
    assert_int_equal(a.finding_count, 1000);
    conf_close(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_are_judged),
        cmocka_unit_test(keys_are_explained),
        cmocka_unit_test(agrees_with_the_policy),
        cmocka_unit_test(variables_have_an_order),
        cmocka_unit_test(platforms_have_their_own_keys),
        cmocka_unit_test(long_texts_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
