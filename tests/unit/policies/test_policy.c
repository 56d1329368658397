/* test_policy.c - tests the list of policies, the parameters, and opening a
 * heap. */
#define _XOPEN_SOURCE 700 /* nftw */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "policies/policy.h"
#include "traces/text.h"

/* ---- parameters ---- */

struct knobs {
    frag_size size;
    uint64_t number;
    double ratio;
    uint32_t choice;
    bool on;
};

static const struct frag_param knob_rows[] = {
    {"size", FRAG_PARAM_SIZE, offsetof(struct knobs, size), "20MiB", NULL, 512,
     0x1p64, "bytes", NULL},
    {"number", FRAG_PARAM_NUMBER, offsetof(struct knobs, number), "7", NULL, 1,
     9, "things", NULL},
    {"ratio", FRAG_PARAM_RATIO, offsetof(struct knobs, ratio), "0.8", NULL, 0,
     1, "a part", NULL},
    {"choice", FRAG_PARAM_CHOICE, offsetof(struct knobs, choice), "low",
     "low|high|any", 0, 0, "which", NULL},
    {"on", FRAG_PARAM_SWITCH, offsetof(struct knobs, on), "no", NULL, 0, 0,
     "whether", NULL},
    {.name = NULL},
};

static const struct frag_policy knobs_policy = {
    .name = "knobs",
    .quantum = FRAG_QUANTUM,
    .state_size = sizeof(struct knobs),
    .params = knob_rows,
};

#define TEN "1111111111"

static struct frag_params *read_params(const struct frag_policy *policy,
                                       const char *text)
{
    struct frag_params *p = NULL;
    struct frag_error e = {""};

    if (frag_params_read(policy, text, &p, &e) != FRAG_OK)
        fail_msg("%s:%s: %s", policy->name, text, e.text);
    return p;
}

static void assert_refused(const struct frag_policy *policy, const char *text,
                           const char *words)
{
    struct frag_params *p;
    struct frag_error e;

    assert_int_equal(frag_params_read(policy, text, &p, &e), FRAG_INVALID);
    assert_string_equal(e.text, words);
}

static void parameters_read_back_as_they_were_given(void **state)
{
    static const struct {
        const char *params, *resolved;
    } rows[] = {
        {NULL, "size=20MiB,number=7,ratio=0.8,choice=low,on=no"},
        {"", "size=20MiB,number=7,ratio=0.8,choice=low,on=no"},
        {"size=1536", "size=1536,number=7,ratio=0.8,choice=low,on=no"},
        {"size=1.5KiB", "size=1536,number=7,ratio=0.8,choice=low,on=no"},
        {"size=2048GiB", "size=2TiB,number=7,ratio=0.8,choice=low,on=no"},
        {"size=inf", "size=inf,number=7,ratio=0.8,choice=low,on=no"},
        {"on=yes,choice=any",
         "size=20MiB,number=7,ratio=0.8,choice=any,on=yes"},
        {"choice=high", "size=20MiB,number=7,ratio=0.8,choice=high,on=no"},
        {"ratio=0.123456789012345,number=9",
         "size=20MiB,number=9,ratio=0.123456789012345,choice=low,on=no"},
        {"ratio=1,number=1", "size=20MiB,number=1,ratio=1,choice=low,on=no"},
        {"size=512,", "size=512,number=7,ratio=0.8,choice=low,on=no"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct frag_params *p = read_params(&knobs_policy, rows[i].params);

        assert_string_equal(p->text, rows[i].resolved);
        free(p);
    }
}

static void a_wrong_parameter_is_answered_with_what_is_right(void **state)
{
    static const struct {
        const char *params, *words;
    } rows[] = {
        {"sice=1", "knobs: unknown parameter sice; did you mean \"size\"? "
                   "The parameters are "
                   "size, number, ratio, choice, on"},
        {"xyzzy=1",
         "knobs: unknown parameter xyzzy; the parameters are size, number, "
         "ratio, choice, on"},
        {"size=511", "knobs: size=511 is out of range; expected 512 to inf"},
        {"size=big", "knobs: size=big: expected a size such as 20MiB"},
        {"size=", "knobs: size=: expected a size such as 20MiB"},
        {"size=-1", "knobs: size=-1: expected a size such as 20MiB"},
        {"number=0", "knobs: number=0 is out of range; expected 1 to 9"},
        {"number=10", "knobs: number=10 is out of range; expected 1 to 9"},
        {"number=1x", "knobs: number=1x: expected a whole number"},
        {"number=-1", "knobs: number=-1: expected a whole number"},
        {"number=", "knobs: number=: expected a whole number"},
        {"ratio=1.01", "knobs: ratio=1.01 is out of range; expected 0 to 1"},
        {"ratio=-0.5", "knobs: ratio=-0.5 is out of range; expected 0 to 1"},
        {"ratio=nan", "knobs: ratio=nan: expected a number"},
        {"ratio=0.5x", "knobs: ratio=0.5x: expected a number"},
        {"choice=lo", "knobs: choice=lo: expected one of low|high|any"},
        {"choice=lower", "knobs: choice=lower: expected one of low|high|any"},
        {"choice=", "knobs: choice=: expected one of low|high|any"},
        {"choice=low|high",
         "knobs: choice=low|high: expected one of low|high|any"},
        {"on=maybe", "knobs: on=maybe: expected yes or no"},
        {"number=2,number=3", "knobs: expected number once, found it twice"},
        {"size", "knobs: expected key=value in \"size\""},
        {"size=1KiB,,on=yes", "knobs: expected key=value in \"\""},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        assert_refused(&knobs_policy, rows[i].params, rows[i].words);
    }
}

static void a_policy_without_parameters_says_so(void **state)
{
    (void)state;
    assert_refused(frag_policy_find("direct"), "segment=1MiB",
                   "direct: unknown parameter segment; the policy has no "
                   "parameters");
}

static void a_long_parameter_is_refused_not_cut(void **state)
{
    char params[1024];

    (void)state;
    memset(params, '1', sizeof(params));
    memcpy(params, "number=", 7);
    params[sizeof(params) - 1] = '\0';
    assert_refused(&knobs_policy, params,
                   "knobs: the parameter \"number=" TEN TEN TEN "111...\" is "
                   "too long; expected at most 127 bytes");
}

/* Sixteen intervals with large numbers of divisions, all other settings, and
 * one of them many times: a text of thousands of characters and words. */
static void a_long_text_is_read_and_written_whole(void **state)
{
    char given[8192] = "", resolved[1024] = "";
    struct frag_params *p, *again;

    (void)state;
    for (int i = 0; i < 250; i++)
        text_add(given, sizeof(given), "", " max_split_size_mb:64,");
    for (unsigned k = 0; k < 16; k++)
        text_add(resolved, sizeof(resolved), ",", "%u:%llu", 1u << k,
                 1ull << (63 - k));
    snprintf(given + strlen(given), sizeof(given) - strlen(given),
             "torch_version:2.10,roundup_power2_divisions:[%s],"
             "garbage_collection_threshold:0.12345678901234568,"
             "max_split_size_mb:1234567890,"
             "max_non_split_rounding_mb:1234567890,"
             "per_process_memory_fraction:0.12345678901234568",
             resolved);
    p = read_params(frag_policy_find("torch"), given);
    again = read_params(frag_policy_find("torch"), p->text);
    assert_true(strlen(p->text) > 512);
    assert_non_null(strstr(p->text, resolved));
    assert_string_equal(p->text + strlen(p->text) - 19, "0.12345678901234568");
    assert_string_equal(p->text, again->text);
    free(again);
    free(p);
}

/* ---- the registry ---- */

static void every_policy_resolves_its_defaults_to_themselves(void **state)
{
    (void)state;
    for (size_t i = 0; frag_policies[i]; i++) {
        struct frag_params *first = read_params(frag_policies[i], NULL);
        struct frag_params *second = read_params(frag_policies[i], first->text);

        assert_string_equal(first->text, second->text);
        free(first);
        free(second);
        assert_ptr_equal(frag_policy_find(frag_policies[i]->name),
                         frag_policies[i]);
        assert_non_null(frag_policies[i]->summary);
        assert_non_null(frag_policies[i]->source);
        assert_true(!frag_policies[i]->check == !!frag_policies[i]->unchecked);
    }
    assert_null(frag_policy_find("nobody"));
}

/* Whether the file defines a policy. */
static bool defines_policy(const char *path)
{
    static const char wanted[] = "const struct frag_policy frag_policy_";
    char line[256];
    bool found = false;
    FILE *f = fopen(path, "r");

    assert_non_null(f);
    while (fgets(line, sizeof(line), f))
        found = found || !strncmp(line, wanted, strlen(wanted));
    fclose(f);
    return found;
}

static size_t defined;

/* A policy carries the name of its file, in whatever folder. */
static int look_for_a_policy(const char *path, const struct stat *what,
                             int kind, struct FTW *at)
{
    const char *file = path + at->base, *dot = strrchr(file, '.');
    char name[256];

    (void)what;
    if (kind != FTW_F || !dot || strcmp(dot, ".c") != 0 ||
        !defines_policy(path))
        return 0;
    snprintf(name, sizeof(name), "%.*s", (int)(dot - file), file);
    if (!frag_policy_find(name))
        fail_msg("%s is not in policies/policy_list.h", path);
    defined++;
    return 0;
}

static void every_file_that_defines_a_policy_is_registered(void **state)
{
    size_t registered = 0;

    (void)state;
    defined = 0;
    assert_int_equal(
        nftw(FRAG_SOURCE_DIR "/policies", look_for_a_policy, 8, FTW_PHYS), 0);
    while (frag_policies[registered])
        registered++;
    assert_int_equal(defined, registered);
}

static const struct frag_policy maps_policy = {
    .name = "maps",
    .quantum = FRAG_QUANTUM,
    .needs = FRAG_NEEDS_VMM,
};

static enum frag_err refuse(struct frag_heap *heap)
{
    (void)heap;
    return FRAG_DEVICE;
}

static const struct frag_policy refusing_policy = {
    .name = "refusing",
    .quantum = FRAG_QUANTUM,
    .init = refuse,
};

static void a_heap_that_cannot_open_says_why_and_is_untouched(void **state)
{
    const struct frag_backend_ops plain = {.name = "plain"};
    struct frag_backend mem = {.ops = &plain};
    struct frag_heap heap = {.user = &mem};
    struct frag_error e;

    (void)state;
    assert_int_equal(frag_heap_open(&heap, &maps_policy, &mem, NULL, &e),
                     FRAG_UNSUPPORTED);
    assert_string_equal(
        e.text, "maps needs virtual memory calls, which the backend plain "
                "lacks");
    assert_int_equal(frag_heap_open(&heap, &refusing_policy, &mem, NULL, &e),
                     FRAG_DEVICE);
    assert_int_equal(frag_heap_open(&heap, &knobs_policy, &mem, "on=1", &e),
                     FRAG_INVALID);
    assert_null(heap.policy);
    assert_ptr_equal(heap.user, &mem);
}

static const struct frag_param *named(const struct frag_policy *policy,
                                      const char *name)
{
    for (const struct frag_param *p = policy->params; p->name; p++)
        if (!strcmp(p->name, name))
            return p;
    return NULL;
}

static void a_bound_is_another_parameter_of_the_kind(void **state)
{
    size_t bounds = 0;

    (void)state;
    for (size_t i = 0; frag_policies[i]; i++)
        for (const struct frag_param *p = frag_policies[i]->params;
             p && p->name; p++) {
            const struct frag_param *q =
                p->at_most ? named(frag_policies[i], p->at_most) : NULL;

            if (!p->at_most)
                continue;
            assert_non_null(q);
            assert_ptr_not_equal(p, q);
            assert_int_equal(p->kind, q->kind);
            assert_true(p->kind <= FRAG_PARAM_RATIO);
            bounds++;
        }
    assert_true(bounds > 0);
}

static void a_state_starts_zeroed_with_its_parameters(void **state)
{
    struct frag_backend mem = {.ops = NULL};
    struct frag_heap heap;
    struct frag_error e;
    const struct knobs *knobs;

    (void)state;
    assert_int_equal(
        frag_heap_open(&heap, &knobs_policy, &mem, "choice=any,on=yes", &e),
        FRAG_OK);
    knobs = heap.state;
    assert_int_equal(knobs->size, 20 * FRAG_MIB);
    assert_int_equal(knobs->number, 7);
    assert_true(knobs->ratio > 0.79 && knobs->ratio < 0.81);
    assert_int_equal(knobs->choice, 2);
    assert_true(knobs->on);
    assert_null(heap.moved);
    assert_null(heap.user);
    frag_heap_close(&heap);
}

/* Counts how often its text is read; the state is the last letter. */
static unsigned times_read;

static enum frag_err count_reading(void *state, const char *text,
                                   struct frag_error *e)
{
    char *letters = state;

    times_read++;
    if (!*text)
        return frag_fail(e, FRAG_INVALID, "no letter");
    letters[1] = text[strlen(text) - 1];
    return FRAG_OK;
}

static void write_letter(const void *state, FILE *out)
{
    fputc(((const char *)state)[1], out);
}

static const struct frag_policy counting_policy = {
    .name = "counting",
    .quantum = FRAG_QUANTUM,
    .state_size = 300,
    .configure = count_reading,
    .describe = write_letter,
};

static void parameters_are_read_once_for_many_heaps(void **state)
{
    struct frag_backend mem = {.ops = NULL};
    struct frag_params *params = NULL, *copy;
    struct frag_error e;

    (void)state;
    times_read = 0;
    assert_int_equal(frag_params_read(&counting_policy, "", &params, &e),
                     FRAG_INVALID);
    assert_string_equal(e.text, "no letter");
    assert_null(params);
    assert_int_equal(frag_params_read(&counting_policy, "ab", &params, &e),
                     FRAG_OK);
    copy = frag_params_copy(params);
    free(params);
    assert_non_null(copy);
    assert_ptr_equal(copy->policy, &counting_policy);
    assert_string_equal(copy->text, "b");
    for (int i = 0; i < 2; i++) {
        char wanted[300] = {0, 'b'};
        struct frag_heap heap;

        assert_int_equal(frag_heap_open_params(&heap, copy, &mem, NULL, &e),
                         FRAG_OK);
        assert_memory_equal(heap.state, wanted, sizeof(wanted));
        memset(heap.state, 'x', sizeof(wanted));
        frag_heap_close(&heap);
    }
    free(copy);
    assert_int_equal(times_read, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parameters_read_back_as_they_were_given),
        cmocka_unit_test(a_wrong_parameter_is_answered_with_what_is_right),
        cmocka_unit_test(a_policy_without_parameters_says_so),
        cmocka_unit_test(a_long_parameter_is_refused_not_cut),
        cmocka_unit_test(a_long_text_is_read_and_written_whole),
        cmocka_unit_test(every_policy_resolves_its_defaults_to_themselves),
        cmocka_unit_test(every_file_that_defines_a_policy_is_registered),
        cmocka_unit_test(a_heap_that_cannot_open_says_why_and_is_untouched),
        cmocka_unit_test(a_bound_is_another_parameter_of_the_kind),
        cmocka_unit_test(a_state_starts_zeroed_with_its_parameters),
        cmocka_unit_test(parameters_are_read_once_for_many_heaps),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
