/* test_held.c - tests the groups of live blocks, their differences, and the
 * differences of result files, on traces that are written by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <math.h>

#include "sim/answers/held/difference.h"
#include "sim/answers/held/run_changes.h"
#include "sim/answers/moment.h"
#include "sim/answers/sites.h"
#include "tests/support/dead_job.h"

static struct frag_error error;

/* ---- a program with stacks ---- */

struct program {
    struct frag_build *build;
    frag_time time;
};

static struct frag_frame frame(struct program *p, const char *function,
                               const char *file, uint32_t line)
{
    return (struct frag_frame){
        .function = frag_build_string(p->build, function, strlen(function)),
        .file = frag_build_string(p->build, file, strlen(file)),
        .line = line};
}

/* A stack of a library's frame, a frame of the user, and the caller. */
static uint32_t stack_of(struct program *p, const char *call,
                         const char *function, const char *file, uint32_t line)
{
    const struct frag_frame frames[] = {
        frame(p, call, "torch/nn/functional.py", 9),
        frame(p, function, file, line), frame(p, "main", "train.py", 99)};

    return frag_build_stack(p->build, frames, 3);
}

static uint32_t stack(struct program *p, const char *function, const char *file,
                      uint32_t line)
{
    return stack_of(p, "relu", function, file, line);
}

static void put(struct program *p, enum frag_entry_kind kind, uint64_t block,
                frag_size size, uint64_t stream, uint32_t of)
{
    const struct frag_entry entry = {.kind = kind,
                                     .addr = block << 32,
                                     .size = size,
                                     .stream = stream,
                                     .stack = of,
                                     .time = p->time += 1000000};

    assert_int_equal(frag_build_entry(p->build, 0, &entry, 0, &error), FRAG_OK);
}

static struct frag_trace *finish(struct program *p)
{
    struct frag_trace *t;

    assert_int_equal(frag_build_finish(p->build, NULL, &t, &error), FRAG_OK);
    frag_build_close(p->build);
    return t;
}

/* The site is the user's innermost frame; without one, the innermost frame that
 * does not itself record the stack or allocate. */
static void sites_are_what_a_reader_looks_for(void **state)
{
    struct program p = {.build = frag_build_open("sites", "test")};
    const struct frag_frame cpp[] = {
        frame(&p, "torch::unwind::unwind()", "??", 0),
        frame(&p, "c10::cuda::CUDACachingAllocator::malloc()", "??", 0),
        frame(&p, "at::empty()", "??", 0)};
    const struct frag_frame recorder[] = {
        frame(&p, "torch::unwind::unwind()", "??", 0)};
    const uint32_t user = stack(&p, "step", "train.py", 7);
    const uint32_t plain = frag_build_stack(p.build, cpp, 3);
    const uint32_t bare = frag_build_stack(p.build, recorder, 1);
    char text[SITE_TEXT];
    struct frag_trace *t;

    (void)state;
    put(&p, FRAG_ENTRY_ALLOC, 1, 512, 0, user);
    put(&p, FRAG_ENTRY_ALLOC, 2, 512, 0, plain);
    put(&p, FRAG_ENTRY_ALLOC, 3, 512, 0, bare);
    t = finish(&p);
    assert_string_equal(site_text(t, user, text), "step (train.py:7)");
    assert_string_equal(site_text(t, plain, text), "at::empty()");
    assert_string_equal(site_text(t, bare, text), "torch::unwind::unwind()");
    assert_string_equal(site_text(t, 0, text), "unknown");
    frag_trace_close(t);
}

/* Six blocks, of which the third is freed and the fourth waits for a stream;
 * the last request fails. In bytes by site: load 1000 + 3000 (of two files
 * with the same name), keep 4000, grow 4000, and 500 without a frame. */
static struct frag_trace *program(bool stacks)
{
    struct program p = {frag_build_open("program", "test"), 1};
    const uint32_t load = stacks ? stack(&p, "load", "/a/data.py", 5) : 0;
    const uint32_t other = stacks ? stack(&p, "load", "/b/data.py", 5) : 0;
    const uint32_t keep = stacks ? stack(&p, "keep", "train.py", 7) : 0;
    const uint32_t grow = stacks ? stack(&p, "grow", "train.py", 8) : 0;

    put(&p, FRAG_ENTRY_ALLOC, 1, 1000, 0, load);
    put(&p, FRAG_ENTRY_ALLOC, 2, 3000, 0, other);
    put(&p, FRAG_ENTRY_ALLOC, 3, 9000, 0, keep);
    put(&p, FRAG_ENTRY_FREE_REQUESTED, 3, 9000, 0, 0);
    put(&p, FRAG_ENTRY_FREE_COMPLETED, 3, 9000, 0, 0);
    put(&p, FRAG_ENTRY_ALLOC, 4, 4000, 7, keep);
    put(&p, FRAG_ENTRY_FREE_REQUESTED, 4, 4000, 7, 0);
    put(&p, FRAG_ENTRY_ALLOC, 5, 500, 0, 0);
    put(&p, FRAG_ENTRY_ALLOC, 6, 1000, 0, grow);
    put(&p, FRAG_ENTRY_ALLOC, 7, 3000, 0, grow);
    put(&p, FRAG_ENTRY_OOM, 0, 70000, 0, grow);
    put(&p, FRAG_ENTRY_FREE_COMPLETED, 4, 4000, 7, 0);
    return finish(&p);
}

/* The event of the failed request: the last ALLOC. */
static uint64_t last_alloc(const struct frag_trace *t)
{
    uint64_t last = 0;

    for (uint64_t i = 0; i < t->devices->count; i++)
        if (t->devices->op[i] == FRAG_ALLOC)
            last = i;
    return last;
}

static struct holders find(const struct frag_trace *t,
                           const struct holders_options *options)
{
    struct holders h;

    assert_int_equal(
        holders_find(t, t->devices, last_alloc(t), options, &h, &error),
        FRAG_OK);
    return h;
}

/* "BYTES/BLOCKS NAME, ..." of all groups. */
static const char *text_of(const struct holders *h)
{
    static char text[2048];
    size_t used = 0;

    *text = 0;
    for (uint64_t i = 0; i < h->count; i++)
        used +=
            (size_t)snprintf(text + used, sizeof(text) - used, "%s%ju/%ju %s",
                             i ? ", " : "", (uintmax_t)h->items[i].bytes,
                             (uintmax_t)h->items[i].blocks, h->items[i].name);
    return text;
}

/* ---- groups ---- */

static void assert_groups(bool stacks, struct holders_options options,
                          const char *expected)
{
    struct frag_trace *t = program(stacks);
    struct holders h = find(t, &options);

    assert_string_equal(text_of(&h), expected);
    holders_close(&h);
    frag_trace_close(t);
}

static void blocks_are_grouped(void **state)
{
    (void)state;
    assert_groups(true, (struct holders_options){.by = HOLDERS_BY_SITE},
                  "4000/2 grow (train.py:8), 4000/1 keep (train.py:7), "
                  "3000/1 load (data.py:5), 1000/1 load (data.py:5), "
                  "500/1 unknown");
    assert_groups(true,
                  (struct holders_options){.by = HOLDERS_BY_FUNCTION,
                                           .short_paths = true},
                  "4000/2 grow (train.py), 4000/1 keep (train.py), "
                  "4000/2 load (data.py), 500/1 unknown");
    assert_groups(false, (struct holders_options){.by = HOLDERS_BY_SIZE},
                  "6000/2 3000 B (2.93 KiB), 4000/1 4000 B (3.906 KiB), "
                  "2000/2 1000 B, 500/1 500 B");
    assert_groups(false, (struct holders_options){.by = HOLDERS_BY_STREAM},
                  "8500/5 stream 0, 4000/1 stream 7");
    assert_groups(false, (struct holders_options){.by = HOLDERS_BY_POOL},
                  "12500/6 default pool");
    assert_groups(false, (struct holders_options){.by = HOLDERS_BY_AGE},
                  "12500/6 0 to 9 events");
}

/* A block with this stack, of an address; freed or not. */
static void hold(struct program *p, uint64_t at, uint32_t stack, bool is_freed)
{
    put(p, FRAG_ENTRY_ALLOC, at, 1000 * at, 0, stack);
    if (!is_freed)
        return;
    put(p, FRAG_ENTRY_FREE_REQUESTED, at, 1000 * at, 0, 0);
    put(p, FRAG_ENTRY_FREE_COMPLETED, at, 1000 * at, 0, 0);
}

/* The innermost frame that a rule knows decides; of the backward pass, what
 * lives until the optimizer requests memory is a gradient. */
static void classes_are_told_from_frames_and_lives(void **state)
{
    struct program p = {frag_build_open("program", "test"), 1};
    const uint32_t move =
        stack(&p, "_apply", "lib/torch/nn/modules/module.py", 1);
    const uint32_t call =
        stack(&p, "_call_impl", "lib/torch/nn/modules/module.py", 2);
    const uint32_t cache = stack(&p, "_allocate_kv_cache_tensors", "v.py", 3);
    const uint32_t step =
        stack(&p, "_init_group", "lib/torch/optim/adam.py", 4);
    const uint32_t mine = stack(&p, "train", "train.py", 5);
    struct class_row rows[CLASS_COUNT];
    struct frag_trace *t;
    struct holders h;

    (void)state;
    hold(&p, 1, move, false);
    hold(&p, 2, call, false);
    hold(&p, 3, 0, true);  /* of the backward pass */
    hold(&p, 4, 0, false); /* a gradient */
    hold(&p, 5, step, false);
    hold(&p, 6, mine, false);
    hold(&p, 7, cache, false);
    hold(&p, 8, 0, true); /* the backward pass of a step that has no end */
    t = finish(&p);
    assert_int_equal(
        holders_find(t, t->devices, t->devices->count - 1,
                     &(struct holders_options){.by = HOLDERS_BY_CLASS}, &h,
                     &error),
        FRAG_OK);
    assert_string_equal(text_of(&h), "7000/1 cache of keys and values, "
                                     "6000/1 not told, 5000/1 optimizer, "
                                     "4000/1 gradients, 2000/1 activations, "
                                     "1000/1 weights");
    holders_close(&h);
    assert_int_equal(classes_sum(t, t->devices, rows, &error), FRAG_OK);
    assert_int_equal(rows[CLASS_ACTIVATIONS].at_peak, 10000); /* with 8 */
    assert_int_equal(rows[CLASS_ACTIVATIONS].most, 10000);
    assert_int_equal(rows[CLASS_GRADIENTS].at_peak, 4000);
    assert_int_equal(rows[CLASS_WEIGHTS].most, 1000);
    assert_int_equal(rows[CLASS_GRAPHS].most, 0);
    frag_trace_close(t);
}

/* A program of one line that calls a library: the library's lines tell more. */
static void callers_are_lines_of_libraries(void **state)
{
    struct program p = {frag_build_open("program", "test"), 1};
    const struct frag_frame library[] = {
        frame(&p, "empty", "lib/python3/site-packages/torch/functional.py", 9),
        frame(&p, "load", "lib/python3/site-packages/vllm/model/loader.py", 3),
        frame(&p, "main", "serve.py", 4)};
    const uint32_t loads = frag_build_stack(p.build, library, 3);
    const struct holders_options sites = {.by = HOLDERS_BY_SITE},
                                 callers = {.by = HOLDERS_BY_CALLER};
    struct frag_trace *t;
    struct holders h;

    (void)state;
    hold(&p, 91, loads, false);
    hold(&p, 9, stack(&p, "main", "serve.py", 5), false);
    t = finish(&p);
    h = find(t, &sites);
    assert_string_equal(text_of(&h),
                        "91000/1 main (serve.py:4), 9000/1 main (serve.py:5)");
    assert_true(holders_is_one(&h));
    holders_close(&h);
    h = find(t, &callers);
    assert_string_equal(text_of(&h), "91000/1 load (vllm/model/loader.py:3), "
                                     "9000/1 main (serve.py:5)");
    holders_close(&h);
    frag_trace_close(t);
}

static void a_filter_reads_all_frames(void **state)
{
    (void)state;
    assert_groups(true,
                  (struct holders_options){.by = HOLDERS_BY_SITE,
                                           .filter = "/b/data.py:5"},
                  "3000/1 load (data.py:5)");
    assert_groups(
        true,
        (struct holders_options){.by = HOLDERS_BY_STREAM, .filter = "main"},
        "8000/4 stream 0, 4000/1 stream 7");
    assert_groups(
        true,
        (struct holders_options){.by = HOLDERS_BY_SITE, .filter = "data.py:55"},
        "");
}

static void a_failed_request_holds_nothing(void **state)
{
    const struct holders_options options = {.by = HOLDERS_BY_SITE};
    struct frag_trace *t = program(true);
    struct holders h = find(t, &options);
    uint64_t peak;

    (void)state;
    assert_int_equal(h.failed, 70000);
    assert_int_equal(h.requested, 8500);
    assert_int_equal(h.pending, 4000);
    assert_int_equal(h.live, 6);
    assert_int_equal(h.bytes, 12500);
    assert_int_equal(h.items[1].pending, 4000);
    holders_close(&h);
    /* One event earlier nothing failed. */
    assert_int_equal(
        holders_find(t, t->devices, last_alloc(t) - 1, &options, &h, &error),
        FRAG_OK);
    assert_int_equal(h.failed, 0);
    assert_int_equal(h.requested, 8500);
    holders_close(&h);
    /* The peak is that of the blocks that were live: 1000 + 3000 + 9000. */
    assert_int_equal(moment_read(t, t->devices, "peak", &peak, &error),
                     FRAG_OK);
    assert_int_equal(peak, 2);
    frag_trace_close(t);
}

static void stacks_are_folded(void **state)
{
    const struct holders_options options = {.by = HOLDERS_BY_STACK,
                                            .filter = "grow"};
    struct frag_trace *t = program(true);
    struct holders h = find(t, &options);
    char *text;
    size_t size;
    FILE *out = open_memstream(&text, &size);

    (void)state;
    holders_put_folded(&h, out);
    fclose(out);
    assert_string_equal(text, "main_(train.py:99);grow_(train.py:8);"
                              "relu_(functional.py:9) 4000\n");
    free(text);
    holders_close(&h);
    frag_trace_close(t);
}

static void what_a_trace_lacks_is_refused(void **state)
{
    static const struct {
        struct holders_options options;
        const char *lacks;
    } cases[] = {{{.by = HOLDERS_BY_SITE}, "no stacks, which site needs"},
                 {{.by = HOLDERS_BY_STACK}, "no stacks, which stack needs"},
                 {{.by = HOLDERS_BY_SIZE, .filter = "x"}, "which a filter"}};
    struct frag_trace *t = program(false);
    struct holders h;

    (void)state;
    assert_int_equal(holders_best(t, t->devices), HOLDERS_BY_SIZE);
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        assert_int_equal(
            holders_find(t, t->devices, 0, &cases[i].options, &h, &error),
            FRAG_INVALID);
        assert_non_null(strstr(error.text, cases[i].lacks));
    }
    frag_trace_close(t);
}

/* ---- ages ---- */

/* Each of 30 steps leaves 256 KiB behind; the mark follows it. The moment is
 * the last of these allocations. */
static void ages_are_counted_in_steps(void **state)
{
    const struct job j = {
        .steps = 30, .leaks = true, .marks = true, .dies_in = UINT64_MAX};
    const struct holders_options options = {.by = HOLDERS_BY_AGE};
    struct frag_trace *t = job_trace(&j);
    struct holders h = find(t, &options);

    (void)state;
    assert_int_equal(h.steps.source, FRAG_STEPS_MARKS);
    assert_string_equal(text_of(&h),
                        "5767168/7 before the first step, "
                        "3407872/13 16 to 31 steps, 2097152/8 8 to 15 steps, "
                        "1048576/4 4 to 7 steps, 524288/2 2 to 3 steps, "
                        "262144/1 1 step, 262144/1 this step");
    assert_true(holders_age_steps(&h, 0) == UINT64_MAX);
    assert_int_equal(holders_age_steps(&h, h.event), 0);
    assert_true(holders_age_seconds(&h, 0) > 0);
    holders_close(&h);
    frag_trace_close(t);
}

/* ---- differences ---- */

static void a_difference_explains_the_growth(void **state)
{
    const struct holders_options options = {.by = HOLDERS_BY_FUNCTION,
                                            .short_paths = true};
    struct frag_trace *t = program(true);
    struct holders before, after = find(t, &options);
    struct difference d;
    double sum = 0;

    (void)state;
    /* After two events: load alone, 4000 bytes. */
    assert_int_equal(holders_find(t, t->devices, 2, &options, &before, &error),
                     FRAG_OK);
    assert_int_equal(difference_find(&before, &after, &d, &error), FRAG_OK);
    /* keep: 9000 to 4000; grow: +4000; unknown: +500; load unchanged. */
    assert_int_equal(d.count, 3);
    assert_int_equal(d.unchanged, 1);
    assert_string_equal(d.items[0].name, "keep (train.py)");
    assert_int_equal(difference_bytes(d.items[0].before, d.items[0].after),
                     -5000);
    assert_string_equal(d.items[1].name, "grow (train.py)");
    assert_int_equal(d.items[1].blocks_after, 2);
    for (uint64_t i = 0; i < d.count; i++)
        sum += d.items[i].share;
    assert_true(fabs(sum - 1) < 1e-9);
    assert_true(d.items[1].share == 4000.0 / -500.0);
    difference_close(&d);
    /* No growth: no shares. */
    assert_int_equal(difference_find(&after, &after, &d, &error), FRAG_OK);
    assert_int_equal(d.count, 0);
    assert_int_equal(d.unchanged, 4);
    difference_close(&d);
    holders_close(&before);
    holders_close(&after);
    frag_trace_close(t);
}

/* Blocks of one site each. */
static struct frag_trace *sites(const char *const functions[],
                                const uint32_t lines[], const frag_size sizes[],
                                int count)
{
    struct program p = {frag_build_open("sites", "test"), 1};

    for (int i = 0; i < count; i++)
        put(&p, FRAG_ENTRY_ALLOC, (uint64_t)i + 1, sizes[i], 0,
            stack(&p, functions[i], "train.py", lines[i]));
    return finish(&p);
}

/* Two lines: one calls linear, the other copy. */
static struct frag_trace *two_calls(uint32_t line, frag_size linear,
                                    frag_size copy)
{
    struct program p = {frag_build_open("calls", "test"), 1};

    put(&p, FRAG_ENTRY_ALLOC, 1, linear, 0,
        stack_of(&p, "linear", "step", "train.py", line));
    if (copy)
        put(&p, FRAG_ENTRY_ALLOC, 2, copy, 0,
            stack_of(&p, "copy", "step", "train.py", line + 1));
    return finish(&p);
}

static const struct holders_options by_site = {.by = HOLDERS_BY_SITE,
                                               .short_paths = true};

/* What changed, "BEFORE -> AFTER NAME (NAME BEFORE); ..." */
static const char *changes_of(struct frag_trace *first,
                              struct frag_trace *second, uint64_t unchanged,
                              uint64_t moved)
{
    static char text[1024];
    struct holders before = find(first, &by_site),
                   after = find(second, &by_site);
    struct difference d;
    size_t at = 0;

    *text = '\0';
    assert_int_equal(difference_find(&before, &after, &d, &error), FRAG_OK);
    for (uint64_t i = 0; i < d.count; i++)
        at += (size_t)snprintf(
            text + at, sizeof(text) - at, "%d -> %d %s (%s); ",
            (int)d.items[i].before, (int)d.items[i].after, d.items[i].name,
            d.items[i].name_before ? d.items[i].name_before : "same");
    assert_int_equal(d.unchanged, unchanged);
    assert_int_equal(d.moved, moved);
    difference_close(&d);
    holders_close(&before);
    holders_close(&after);
    frag_trace_close(first);
    frag_trace_close(second);
    return text;
}

#define SITES(names, at, bytes, count)                      \
    sites((const char *const[])names, (const uint32_t[])at, \
          (const frag_size[])bytes, count)
#define OF(...)     \
    {               \
        __VA_ARGS__ \
    }

static void a_site_that_moved_is_one_group(void **state)
{
    (void)state;
    /* A site is inserted above the others: the lines coincide, the sites do
     * not. */
    assert_string_equal(
        changes_of(SITES(OF("step", "step"), OF(5, 6), OF(3000, 7000), 2),
                   SITES(OF("step", "step", "step"), OF(5, 6, 7),
                         OF(400, 3000, 7000), 3),
                   2, 2),
        "0 -> 400 step (train.py:5) (same); ");
    /* One of the sites that moved grew. */
    assert_string_equal(
        changes_of(SITES(OF("step", "step"), OF(5, 6), OF(3000, 7000), 2),
                   SITES(OF("step", "step"), OF(8, 9), OF(3000, 7600), 2), 1,
                   1),
        "7000 -> 7600 step (train.py:9) (step (train.py:6)); ");
    /* Another function has the same bytes: it got a new name. */
    assert_string_equal(
        changes_of(SITES(OF("load", "init"), OF(5, 1), OF(3000, 10), 2),
                   SITES(OF("fetch", "init"), OF(9, 1), OF(3000, 10), 2), 2, 1),
        "");
    /* By the bytes alone, the copy would be the line that moved. */
    assert_string_equal(
        changes_of(two_calls(14, 160, 0), two_calls(17, 40, 170), 0, 0),
        "0 -> 170 step (train.py:18) (same); "
        "160 -> 40 step (train.py:17) (step (train.py:14)); ");
    /* Nothing moved, and all sites grew: each is compared with itself. */
    assert_string_equal(
        changes_of(
            SITES(OF("step", "step"), OF(5, 6), OF(30, 70), 2),
            SITES(OF("step", "step", "step"), OF(5, 6, 7), OF(70, 200, 90), 3),
            0, 0),
        "70 -> 200 step (train.py:6) (same); "
        "0 -> 90 step (train.py:7) (same); "
        "30 -> 70 step (train.py:5) (same); ");
}

static void growth_is_relative(void **state)
{
    (void)state;
    assert_true(difference_growth(100, 102) == 0.02);
    assert_true(difference_growth(100, 50) == -0.5);
    assert_true(difference_growth(0, 0) == 0);
    assert_true(isinf(difference_growth(0, 1)));
}

/* ---- result files ---- */

static char name_a[] = "a", name_b[] = "b", torch[] = "torch", bfc[] = "bfc";

static struct frag_loaded_run run(char *trace, char *policy, frag_size capacity,
                                  frag_size reserved, uint64_t ooms)
{
    return (struct frag_loaded_run){
        .id = {.trace.name = trace,
               .policy = policy,
               .bound = frag_capacity_bound(capacity)},
        .run.summary = {.peak_reserved = reserved, .num_ooms = ooms}};
}

static void runs_are_matched(void **state)
{
    struct frag_loaded_run before[] = {
        run(name_b, torch, 10, 100, 0), run(name_a, torch, 10, 100, 0),
        run(name_a, torch, 10, 200, 0), run(name_a, bfc, 10, 100, 0)};
    struct frag_loaded_run after[] = {
        run(name_a, torch, 10, 103, 0), run(name_a, torch, 10, 200, 1),
        run(name_a, torch, 20, 100, 0), run(name_b, torch, 10, 102, 0)};
    const struct frag_loaded x = {.count = 4, .runs = before};
    const struct frag_loaded y = {.count = 4, .runs = after};
    struct run_changes r;

    (void)state;
    assert_int_equal(run_changes_find(&x, &y, &r, &error), FRAG_OK);
    assert_int_equal(r.count, 5);
    assert_int_equal(r.matched, 3);
    assert_ptr_equal(r.items[0].before, &before[3]); /* bfc: only before */
    assert_null(r.items[0].after);
    assert_false(run_is_worse(&r.items[0], 0));
    assert_ptr_equal(r.items[1].before, &before[1]); /* in the files' order */
    assert_ptr_equal(r.items[1].after, &after[0]);
    assert_true(run_is_worse(&r.items[1], 0.02));
    assert_false(run_is_worse(&r.items[1], 0.03));
    assert_ptr_equal(r.items[2].before, &before[2]);
    assert_true(run_is_worse(&r.items[2], 0.02)); /* an OOM more */
    assert_false(run_is_worse(&r.items[2], NAN));
    assert_null(r.items[3].before);
    assert_ptr_equal(r.items[4].after, &after[3]);
    assert_false(run_is_worse(&r.items[4], 0.02)); /* not by more than 2 % */
    run_changes_close(&r);
    assert_int_equal(
        run_changes_find(&x,
                         &(struct frag_loaded){.count = 1, .runs = &after[2]},
                         &r, &error),
        FRAG_INVALID);
    assert_non_null(strstr(error.text, "no run is in both"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sites_are_what_a_reader_looks_for),
        cmocka_unit_test(blocks_are_grouped),
        cmocka_unit_test(classes_are_told_from_frames_and_lives),
        cmocka_unit_test(callers_are_lines_of_libraries),
        cmocka_unit_test(a_filter_reads_all_frames),
        cmocka_unit_test(a_failed_request_holds_nothing),
        cmocka_unit_test(stacks_are_folded),
        cmocka_unit_test(what_a_trace_lacks_is_refused),
        cmocka_unit_test(ages_are_counted_in_steps),
        cmocka_unit_test(a_difference_explains_the_growth),
        cmocka_unit_test(a_site_that_moved_is_one_group),
        cmocka_unit_test(growth_is_relative),
        cmocka_unit_test(runs_are_matched),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
