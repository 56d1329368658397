/* test_arena.c - tests the simulated device: the addresses that it returns, the
 * calls that it refuses, and that it is never more permissive than a real
 * device. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <yajl/yajl_tree.h>

#include "sim/arena/arena.h"
#include "traces/bytes/source.h"

#define MIB      FRAG_MIB
#define COUNT(a) (sizeof(a) / sizeof(*(a)))

static struct frag_backend *open_arena(enum frag_address_rule rule,
                                       frag_size capacity)
{
    struct frag_backend *mem = frag_arena_open(
        &(struct frag_arena_options){.capacity = capacity, .rule = rule});

    assert_non_null(mem);
    return mem;
}

static frag_addr take(struct frag_backend *mem, frag_size size)
{
    frag_addr addr = 0;

    assert_int_equal(mem->ops->segment_alloc(mem, size, &addr), FRAG_OK);
    return addr;
}

static void give(struct frag_backend *mem, frag_addr addr, frag_size size)
{
    assert_int_equal(mem->ops->segment_free(mem, addr, size), FRAG_OK);
}

static frag_addr reserve(struct frag_backend *mem, frag_size size)
{
    frag_addr addr = 0;

    assert_int_equal(mem->ops->va_reserve(mem, size, &addr), FRAG_OK);
    return addr;
}

static frag_phys create(struct frag_backend *mem, frag_size size)
{
    frag_phys phys = 0;

    assert_int_equal(mem->ops->phys_create(mem, size, &phys), FRAG_OK);
    assert_int_not_equal(phys, 0);
    return phys;
}

/* ------------------------------------------------- the driver's addresses */

/* In MiB: the base relative to the first base, and the requested size. */
struct base {
    int64_t at;
    uint64_t size;
};

static void check_bases(const struct base *rows, size_t count)
{
    struct frag_backend *mem = open_arena(FRAG_RULE_DRIVER, FRAG_UNLIMITED);
    frag_addr first = 0;

    for (size_t i = 0; i < count; i++) {
        frag_addr addr = take(mem, rows[i].size * MIB);

        first = i == 0 ? addr : first;
        assert_int_equal((int64_t)(addr - first), rows[i].at * (int64_t)MIB);
    }
    frag_arena_close(mem);
}

/* Two of the real allocator's runs (PyTorch 2.11 on an H200), but for the last
 * two segments of the first: there the process had mapped host memory. */
static void bert_serves_segments_lie_as_the_real_driver_put_them(void **state)
{
    static const struct base rows[] = {
        {0, 90},    {584, 20},  {90, 2},    {-32, 20},  {-64, 20},  {-96, 20},
        {-128, 20}, {-160, 20}, {-192, 20}, {-224, 20}, {-256, 20}, {-288, 20},
        {-320, 20}, {-352, 20}, {-384, 20}, {-416, 20}, {-448, 20}, {-480, 20},
        {-512, 20}, {-544, 20}, {-576, 20}, {-640, 46}, {-594, 2},  {-704, 60},
        {-768, 60}, {-708, 2},  {-706, 2},  {-644, 2}};

    (void)state;
    check_bases(rows, COUNT(rows));
}

static void lstm_varlens_segments_lie_as_the_real_driver_put_them(void **state)
{
    static const struct base rows[] = {
        {0, 20},       {-520, 16},   {-504, 2},     {-552, 16},   {-536, 16},
        {-584, 16},    {-568, 16},   {-680, 90},    {-744, 40},   {-776, 26},
        {-808, 26},    {-872, 50},   {-822, 2},     {-1288, 386}, {-2120, 822},
        {-2600, 472},  {-3080, 472}, {-3560, 472},  {-4040, 472}, {-3568, 2},
        {-5256, 1186}, {-5960, 682}, {-6664, 682},  {-7368, 682}, {-6686, 2},
        {-8872, 1484}, {-9736, 852}, {-10600, 852}, {-11464, 852}};

    (void)state;
    check_bases(rows, COUNT(rows));
}

/* Whether the segments of a recorded run, [[address, bytes], ...], lie towards
 * each other as the arena puts them. */
static bool lies_as_recorded(const yajl_val bases)
{
    struct frag_backend *mem = open_arena(FRAG_RULE_DRIVER, FRAG_UNLIMITED);
    int64_t offset = 0;
    bool same = true;

    for (size_t i = 0; i < YAJL_GET_ARRAY(bases)->len && same; i++) {
        const yajl_val *row =
            YAJL_GET_ARRAY(YAJL_GET_ARRAY(bases)->values[i])->values;
        frag_addr addr = take(mem, (frag_size)YAJL_GET_INTEGER(row[1]));

        if (i == 0)
            offset = (int64_t)addr - YAJL_GET_INTEGER(row[0]);
        same = (int64_t)addr - YAJL_GET_INTEGER(row[0]) == offset;
    }
    frag_arena_close(mem);
    return same;
}

/* A run of ordinary segments without a release, so its bases show all requests
 * to the driver. */
static bool is_growing_run(const yajl_val job)
{
    const char *conf[] = {"conf", NULL}, *freed[] = {"device_free", NULL};
    const yajl_val text = yajl_tree_get(job, conf, yajl_t_string);
    const char *words = YAJL_GET_STRING(text);

    return words && !strstr(words, "expandable") &&
           YAJL_GET_INTEGER(yajl_tree_get(job, freed, yajl_t_number)) == 0;
}

/* The next line without its end; false at the end of the input. */
static bool read_line(struct frag_source *source, char **line, size_t *room)
{
    size_t length = 0;

    for (;;) {
        const unsigned char *bytes = NULL;
        enum frag_err err = FRAG_OK;
        size_t count = frag_source_peek(source, 1, &bytes, &err, NULL);
        const unsigned char *end = count ? memchr(bytes, '\n', count) : NULL;
        size_t part = end ? (size_t)(end - bytes) : count;

        assert_int_equal(err, FRAG_OK);
        if (length + part + 1 > *room) {
            *room = 2 * (length + part + 1);
            *line = realloc(*line, *room);
            assert_non_null(*line);
        }
        memcpy(*line + length, bytes, part);
        length += part;
        (*line)[length] = '\0';
        frag_source_skip(source, end ? part + 1 : part);
        if (end || count == 0)
            return length > 0;
    }
}

/* 109 runs of the real allocator on an H200 allocated segments and released
 * none. The other 30 runs deviate from the rule where the process had mapped or
 * unmapped host memory in between, which no run records. */
static void most_recorded_runs_lie_as_predicted_from_first_to_last(void **state)
{
    const char *const path = FRAG_SHARED_DIR "/oracle/oracle.jsonl.xz";
    const char *bases[] = {"bases", NULL};
    struct frag_source *source;
    size_t room = 0, runs = 0, same = 0;
    char *line = NULL;

    (void)state;
    if (frag_source_open(path, &source, NULL) != FRAG_OK) {
        print_message("%s is absent\n", path);
        skip();
    }
    while (read_line(source, &line, &room)) {
        yajl_val job = yajl_tree_parse(line, NULL, 0);

        assert_non_null(job);
        if (is_growing_run(job)) {
            runs++;
            same += lies_as_recorded(yajl_tree_get(job, bases, yajl_t_array));
        }
        yajl_tree_free(job);
    }
    frag_source_close(source);
    free(line);
    assert_int_equal(runs, 109);
    assert_int_equal(same, 79);
}

static void the_first_segments_fill_what_the_context_left(void **state)
{
    static const struct base rows[] = {
        {0, 2}, {74, 2}, {76, 20}, {96, 2}, {-446, 32}};

    (void)state;
    check_bases(rows, COUNT(rows));
}

static void a_chunk_is_given_back_when_it_is_empty_and_not_before(void **state)
{
    struct frag_backend *mem = open_arena(FRAG_RULE_DRIVER, FRAG_UNLIMITED);
    frag_addr big = take(mem, 64 * MIB), a = take(mem, 30 * MIB);
    frag_addr b = take(mem, 2 * MIB), c = take(mem, 64 * MIB);

    (void)state;
    assert_int_equal(b, a + 30 * MIB);
    give(mem, a, 30 * MIB);
    assert_int_equal(take(mem, 30 * MIB), a); /* b keeps the chunk */
    give(mem, a, 30 * MIB);
    give(mem, b, 2 * MIB);
    assert_int_equal(take(mem, 32 * MIB), c - 32 * MIB); /* a hole of just C */
    give(mem, big, 64 * MIB);
    assert_int_equal(take(mem, 48 * MIB), big); /* top end of the 96 MiB hole */
    frag_arena_close(mem);
}

static void of_equal_ranges_in_a_chunk_the_lowest_serves(void **state)
{
    struct frag_backend *mem = open_arena(FRAG_RULE_DRIVER, FRAG_UNLIMITED);
    frag_addr whole = take(mem, 90 * MIB), tail = take(mem, 2 * MIB);
    frag_addr part[6];

    (void)state;
    assert_int_equal(tail, whole + 90 * MIB);
    give(mem, whole, 90 * MIB);
    for (int i = 0; i < 6; i++)
        part[i] = take(mem, 4 * MIB); /* the 4 MiB tail first */
    assert_int_equal(part[0], tail + 2 * MIB);
    assert_int_equal(part[1], whole);
    give(mem, part[2], 4 * MIB);
    give(mem, part[4], 4 * MIB);
    assert_int_equal(take(mem, 4 * MIB), part[2]);
    assert_int_equal(take(mem, 2 * MIB), part[4]);
    assert_int_equal(take(mem, 20 * MIB), part[5] + 4 * MIB);
    frag_arena_close(mem);
}

static void neighbours_in_a_chunk_merge_in_any_order(void **state)
{
    static const int orders[][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2},
                                    {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
    struct frag_backend *mem = open_arena(FRAG_RULE_DRIVER, FRAG_UNLIMITED);
    frag_addr whole = take(mem, 90 * MIB), kept = take(mem, 6 * MIB);

    (void)state;
    give(mem, whole, 90 * MIB);
    for (size_t i = 0; i < COUNT(orders); i++) {
        for (int k = 0; k < 3; k++)
            assert_int_equal(take(mem, 30 * MIB),
                             whole + (frag_addr)k * 30 * MIB);
        for (int k = 0; k < 3; k++)
            give(mem, whole + (frag_addr)orders[i][k] * 30 * MIB, 30 * MIB);
        assert_int_equal(take(mem, 90 * MIB), whole);
        give(mem, whole, 90 * MIB);
    }
    give(mem, kept, 6 * MIB);
    frag_arena_close(mem);
}

static void small_requests_share_blocks_of_2_mib(void **state)
{
    struct frag_backend *mem = open_arena(FRAG_RULE_DRIVER, FRAG_UNLIMITED);
    frag_addr a = take(mem, 512), b = take(mem, 100), c = take(mem, 513);

    (void)state;
    assert_int_equal(b, a + 512);
    assert_int_equal(c, b + 512);
    assert_int_equal(take(mem, 1), c + 1024);
    assert_int_equal(frag_arena_used(mem), 2 * MIB);
    give(mem, b, 100);
    assert_int_equal(take(mem, 512), b);
    give(mem, c + 1024, 1);
    give(mem, a, 512);
    give(mem, c, 513);
    assert_int_equal(frag_arena_used(mem), 2 * MIB);
    give(mem, b, 512);
    assert_int_equal(frag_arena_used(mem), 0);
    frag_arena_close(mem);
}

static void the_first_side_stream_takes_both_ranges_and_6_mib(void **state)
{
    struct frag_backend *mem = open_arena(FRAG_RULE_DRIVER, FRAG_UNLIMITED);
    struct frag_backend *quiet = open_arena(FRAG_RULE_DRIVER, FRAG_UNLIMITED);
    frag_addr y = take(quiet, 20 * MIB) - 8 * MIB;

    (void)state;
    frag_backend_stream_used(mem, 3);
    frag_backend_stream_used(mem, 4);
    assert_int_equal(frag_arena_used(mem), 0);
    assert_int_equal(take(mem, 2 * MIB), y - (480 + 32) * MIB + 6 * MIB);
    assert_int_equal(take(mem, 24 * MIB), y - (480 + 32) * MIB + 8 * MIB);
    assert_int_equal(take(mem, 2 * MIB), y - (480 + 64) * MIB);
    frag_arena_close(quiet);
    frag_arena_close(mem);
}

/* ------------------------------------------------------- reservations --- */

static void reservations_start_and_follow_as_recorded(void **state)
{
    struct frag_backend *mem = open_arena(FRAG_RULE_DRIVER, FRAG_UNLIMITED);
    const frag_size large = 168883650560, small = 168875261952;

    (void)state;
    assert_int_equal(reserve(mem, large), 12918456320);
    assert_int_equal(reserve(mem, small), 181831467008);
    assert_int_equal(reserve(mem, small), 181831467008 + 168879456256);
    assert_int_equal(mem->ops->va_free(mem, 181831467008, small), FRAG_OK);
    assert_int_equal(reserve(mem, 2 * MIB), 181831467008);
    assert_int_equal(frag_arena_reserved_va(mem), large + small + 2 * MIB);
    frag_arena_close(mem);
}

static void a_reservation_does_not_cross_the_hole_at_1_tib(void **state)
{
    struct frag_backend *mem = open_arena(FRAG_RULE_DRIVER, FRAG_UNLIMITED);
    const frag_addr tera = (frag_addr)1 << 40;

    (void)state;
    reserve(mem, tera - 0x302000000 - 64 * MIB);
    assert_int_equal(reserve(mem, 96 * MIB), tera + 64 * MIB);
    assert_int_equal(reserve(mem, 64 * MIB), tera - 64 * MIB);
    frag_arena_close(mem);
}

static void the_tail_of_a_reservation_serves_segments(void **state)
{
    struct frag_backend *mem = open_arena(FRAG_RULE_DRIVER, FRAG_UNLIMITED);
    frag_addr base = reserve(mem, 168883650560);

    (void)state;
    assert_int_equal(take(mem, 20 * MIB), base + 168883650560);
    frag_arena_close(mem);
}

/* ----------------------------------------------------------- anchored --- */

static void anchors_are_used_in_order_until_one_does_not_fit(void **state)
{
    static const frag_addr bases[] = {0x7f1200000000, 0x7f1100000000,
                                      0x7f1300000000, 0x7f1300000000};
    static const frag_size sizes[] = {20 * MIB, 2 * MIB, 64 * MIB, 2 * MIB};
    struct frag_backend *mem = frag_arena_open(
        &(struct frag_arena_options){.capacity = FRAG_UNLIMITED,
                                     .rule = FRAG_RULE_ANCHORED,
                                     .bases = bases,
                                     .sizes = sizes,
                                     .base_count = COUNT(bases)});
    frag_addr other;

    (void)state;
    assert_non_null(mem);
    assert_int_equal(take(mem, 20 * MIB), bases[0]);
    assert_int_equal(take(mem, 2 * MIB), bases[1]);
    other = take(mem, 20 * MIB);
    assert_true(other < bases[1] - FRAG_GIB);
    assert_int_equal(take(mem, 2 * MIB), bases[3]);
    assert_int_equal(take(mem, 2 * MIB), other + 20 * MIB);
    give(mem, bases[0], 20 * MIB);
    assert_int_equal(frag_arena_used(mem), 26 * MIB);
    frag_arena_close(mem);
}

/* The addresses that the driver's rule chooses are also recorded ones: those of
 * an exported run. */
static void anchors_may_be_addresses_of_the_drivers_rule(void **state)
{
    enum { SEGMENTS = 40 };
    frag_addr bases[SEGMENTS];
    frag_size sizes[SEGMENTS];
    struct frag_backend *driver = open_arena(FRAG_RULE_DRIVER, FRAG_UNLIMITED);
    struct frag_backend *mem;

    (void)state;
    for (int i = 0; i < SEGMENTS; i++) {
        sizes[i] = (i % 3 ? 2 : 20) * MIB;
        if (i == SEGMENTS / 2)
            driver->engine->stream_used(driver, 1);
        bases[i] = take(driver, sizes[i]);
    }
    mem =
        frag_arena_open(&(struct frag_arena_options){.capacity = FRAG_UNLIMITED,
                                                     .rule = FRAG_RULE_ANCHORED,
                                                     .bases = bases,
                                                     .sizes = sizes,
                                                     .base_count = SEGMENTS});
    assert_non_null(mem);
    mem->engine->stream_used(mem, 1);
    for (int i = 0; i < SEGMENTS; i++)
        assert_int_equal(take(mem, sizes[i]), bases[i]);
    frag_arena_close(mem);
    frag_arena_close(driver);
}

static void an_anchor_in_use_falls_back_to_the_driver(void **state)
{
    static const frag_addr bases[] = {0x7f1200000000, 0x7f1200100000};
    static const frag_size sizes[] = {2 * MIB, 2 * MIB};
    struct frag_backend *mem = frag_arena_open(
        &(struct frag_arena_options){.capacity = FRAG_UNLIMITED,
                                     .rule = FRAG_RULE_ANCHORED,
                                     .bases = bases,
                                     .sizes = sizes,
                                     .base_count = COUNT(bases)});

    (void)state;
    assert_non_null(mem);
    assert_int_equal(take(mem, 2 * MIB), bases[0]);
    assert_true(take(mem, 2 * MIB) < bases[0] - FRAG_GIB);
    frag_arena_close(mem);
}

/* ----------------------------------------------------------- capacity --- */

static void it_refuses_exactly_what_does_not_fit(void **state)
{
    struct frag_backend *mem = open_arena(FRAG_RULE_DRIVER, 10 * MIB);
    frag_addr addr = 7;
    frag_phys phys = 7;

    (void)state;
    assert_int_equal(mem->ops->segment_alloc(mem, 10 * MIB + 1, &addr),
                     FRAG_OOM);
    take(mem, 3 * MIB); /* uses 4 */
    assert_int_equal(mem->ops->segment_alloc(mem, 8 * MIB, &addr), FRAG_OOM);
    create(mem, 4 * MIB);
    assert_int_equal(mem->ops->phys_create(mem, 4 * MIB, &phys), FRAG_OOM);
    assert_int_equal(phys, 7);
    take(mem, 512);
    take(mem, 512);
    assert_int_equal(mem->ops->segment_alloc(mem, 2 * MIB, &addr), FRAG_OOM);
    assert_int_equal(addr, 7);
    assert_int_equal(frag_arena_used(mem), 10 * MIB);
    frag_arena_close(mem);
}

/* Policies reserve addresses in proportion to the total: a device of any
 * capacity has addresses for many such reservations. */
static void a_device_reports_no_more_than_addresses_can_serve(void **state)
{
    static const struct {
        frag_size capacity, total, reported;
    } rows[] = {
        {FRAG_UNLIMITED, 0, FRAG_H200_TOTAL},
        {80 * FRAG_GIB, 0, 80 * FRAG_GIB},
        {80 * FRAG_GIB, 24 * FRAG_GIB, 24 * FRAG_GIB},
        {FRAG_TOTAL_MOST + 1, 0, FRAG_TOTAL_MOST},
        {FRAG_UNLIMITED - 1, 0, FRAG_TOTAL_MOST},
        {80 * FRAG_GIB, FRAG_UNLIMITED, FRAG_TOTAL_MOST},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct frag_backend *mem = frag_arena_open(&(struct frag_arena_options){
            .capacity = rows[i].capacity, .total = rows[i].total});
        const frag_size size =
            frag_round_up(mem->total / 8 * 9, mem->granularity);
        frag_addr at;

        assert_int_equal(mem->total, rows[i].reported);
        for (int lane = 0; lane < 8; lane++)
            assert_int_equal(mem->ops->va_reserve(mem, size, &at), FRAG_OK);
        frag_arena_close(mem);
    }
}

static void a_capacity_below_what_is_in_use_refuses_all(void **state)
{
    struct frag_backend *mem = open_arena(FRAG_RULE_DRIVER, 100 * MIB);
    const frag_addr held = take(mem, 40 * MIB);
    frag_addr addr = 7;

    (void)state;
    mem->capacity = 20 * MIB;
    assert_int_equal(mem->ops->segment_alloc(mem, 2 * MIB, &addr), FRAG_OOM);
    assert_int_equal(mem->ops->segment_free(mem, held, 40 * MIB), FRAG_OK);
    assert_int_equal(mem->ops->segment_alloc(mem, 20 * MIB, &addr), FRAG_OK);
    assert_int_equal(mem->ops->segment_free(mem, addr, 20 * MIB), FRAG_OK);
    frag_arena_close(mem);
}

static void absurd_sizes_are_refused(void **state)
{
    struct frag_backend *mem = open_arena(FRAG_RULE_DRIVER, FRAG_UNLIMITED);
    frag_addr addr = 7;

    (void)state;
    assert_int_equal(mem->ops->segment_alloc(mem, 0, &addr), FRAG_INVALID);
    for (int bit = 47; bit < 64; bit++)
        assert_int_equal(
            mem->ops->segment_alloc(mem, (frag_size)1 << bit, &addr), FRAG_OOM);
    assert_int_equal(mem->ops->segment_alloc(mem, UINT64_MAX, &addr), FRAG_OOM);
    assert_int_equal(mem->ops->va_reserve(mem, UINT64_MAX, &addr),
                     FRAG_INVALID);
    assert_int_equal(addr, 7);
    assert_int_equal(frag_arena_used(mem), 0);
    frag_arena_close(mem);
}

static void a_segment_is_freed_once_and_with_its_size(void **state)
{
    struct frag_backend *mem = open_arena(FRAG_RULE_DRIVER, FRAG_UNLIMITED);
    frag_addr a = take(mem, 20 * MIB);

    (void)state;
    assert_int_equal(mem->ops->segment_free(mem, a, 18 * MIB), FRAG_INVALID);
    assert_int_equal(mem->ops->segment_free(mem, a + 2 * MIB, 18 * MIB),
                     FRAG_INVALID);
    give(mem, a, 20 * MIB);
    assert_int_equal(mem->ops->segment_free(mem, a, 20 * MIB), FRAG_INVALID);
    frag_arena_close(mem);
}

/* ----------------------------------------------------- virtual memory --- */

static void maps_are_whole_and_inside_one_reservation(void **state)
{
    struct frag_backend *mem = open_arena(FRAG_RULE_DRIVER, FRAG_UNLIMITED);
    const struct frag_backend_ops *ops = mem->ops;
    frag_addr va = reserve(mem, 64 * MIB), next = reserve(mem, 32 * MIB);
    frag_phys four = create(mem, 4 * MIB), two = create(mem, 2 * MIB);

    (void)state;
    assert_int_equal(next, va + 64 * MIB);
    assert_int_equal(ops->map(mem, va + 62 * MIB, 4 * MIB, four), FRAG_INVALID);
    assert_int_equal(ops->map(mem, va, 2 * MIB, four), FRAG_INVALID);
    assert_int_equal(ops->map(mem, va + MIB, 2 * MIB, two), FRAG_INVALID);
    assert_int_equal(ops->map(mem, va, 2 * MIB, 99), FRAG_INVALID);
    assert_int_equal(ops->map(mem, va, 4 * MIB, four), FRAG_OK);
    assert_int_equal(ops->map(mem, va + 2 * MIB, 2 * MIB, two), FRAG_INVALID);
    assert_int_equal(ops->map(mem, va + 4 * MIB, 2 * MIB, two), FRAG_OK);
    assert_int_equal(ops->map(mem, next, 2 * MIB, two), FRAG_OK);
    assert_int_equal(ops->va_free(mem, va, 64 * MIB), FRAG_INVALID);
    assert_int_equal(ops->unmap(mem, va, 2 * MIB), FRAG_INVALID);
    assert_int_equal(ops->unmap(mem, va, 8 * MIB), FRAG_INVALID);
    assert_int_equal(ops->unmap(mem, va, 6 * MIB), FRAG_OK);
    assert_int_equal(ops->unmap(mem, va, 6 * MIB), FRAG_INVALID);
    assert_int_equal(ops->va_free(mem, va, 62 * MIB), FRAG_INVALID);
    assert_int_equal(ops->va_free(mem, va, 64 * MIB), FRAG_OK);
    assert_int_equal(ops->va_free(mem, va, 64 * MIB), FRAG_INVALID);
    frag_arena_close(mem);
}

static void memory_goes_when_released_and_unmapped_in_any_order(void **state)
{
    struct frag_backend *mem = open_arena(FRAG_RULE_DRIVER, 4 * MIB);
    const struct frag_backend_ops *ops = mem->ops;
    frag_addr va = reserve(mem, 8 * MIB);
    frag_phys a = create(mem, 2 * MIB), b = create(mem, 2 * MIB);

    (void)state;
    assert_int_equal(ops->map(mem, va, 2 * MIB, a), FRAG_OK);
    assert_int_equal(ops->map(mem, va + 2 * MIB, 2 * MIB, a), FRAG_OK);
    assert_int_equal(ops->phys_release(mem, a, 4 * MIB), FRAG_INVALID);
    assert_int_equal(ops->phys_release(mem, a, 2 * MIB), FRAG_OK);
    assert_int_equal(ops->phys_release(mem, a, 2 * MIB), FRAG_INVALID);
    assert_int_equal(ops->map(mem, va + 4 * MIB, 2 * MIB, a), FRAG_INVALID);
    assert_int_equal(ops->unmap(mem, va, 2 * MIB), FRAG_OK);
    assert_int_equal(frag_arena_used(mem), 4 * MIB);
    assert_int_equal(ops->unmap(mem, va + 2 * MIB, 2 * MIB), FRAG_OK);
    assert_int_equal(frag_arena_used(mem), 2 * MIB);
    assert_int_equal(ops->phys_release(mem, b, 2 * MIB), FRAG_OK);
    assert_int_equal(frag_arena_used(mem), 0);
    frag_arena_close(mem);
}

/* ------------------------------------------------------ hostile, clock --- */

static void hostile_segments_touch_and_addresses_never_return(void **state)
{
    struct frag_backend *mem = open_arena(FRAG_RULE_HOSTILE, FRAG_UNLIMITED);
    frag_addr a = take(mem, 4 * MIB), b = take(mem, 2 * MIB);
    frag_addr c = take(mem, 6 * MIB), d;

    (void)state;
    assert_int_equal(b, a + 4 * MIB); /* above, below, in turn */
    assert_int_equal(c, a - 6 * MIB);
    give(mem, a, 4 * MIB);
    give(mem, c, 6 * MIB);
    for (int i = 0; i < 100; i++) {
        d = take(mem, 2 * MIB);
        assert_true(d + 2 * MIB <= c || d >= b + 2 * MIB);
        give(mem, d, 2 * MIB);
    }
    d = reserve(mem, 2 * MIB);
    assert_int_equal(mem->ops->va_free(mem, d, 2 * MIB), FRAG_OK);
    assert_int_not_equal(reserve(mem, 2 * MIB), d);
    frag_arena_close(mem);
}

static void time_moves_with_calls_only_and_forward(void **state)
{
    struct frag_backend *mem = open_arena(FRAG_RULE_DRIVER, FRAG_UNLIMITED);
    frag_time before = mem->ops->now(mem);

    (void)state;
    assert_int_equal(mem->ops->now(mem), before);
    take(mem, 2 * MIB);
    assert_true(mem->ops->now(mem) > before);
    frag_arena_close(mem);
}

static void held_memory_is_in_use_and_in_nobodys_way(void **state)
{
    struct frag_backend *mem = open_arena(FRAG_RULE_DRIVER, 64 * MIB);
    const struct frag_backend_ops *ops = mem->ops;
    const frag_addr segment = 0x7f0000000000, range = 0x302000000;

    (void)state;
    assert_int_equal(frag_arena_hold(mem, segment, 20 * MIB, FRAG_HOLD_SEGMENT),
                     FRAG_OK);
    assert_int_equal(
        frag_arena_hold(mem, segment + MIB, MIB, FRAG_HOLD_SEGMENT),
        FRAG_INVALID);
    assert_int_equal(
        frag_arena_hold(mem, range, 66 * MIB, FRAG_HOLD_RESERVATION), FRAG_OK);
    assert_int_equal(
        frag_arena_hold(mem, range + 8 * MIB, 2 * MIB, FRAG_HOLD_RESERVATION),
        FRAG_INVALID);
    assert_int_equal(frag_arena_used(mem), 20 * MIB);
    assert_int_equal(frag_arena_hold(mem, range, 6 * MIB, FRAG_HOLD_MAPS),
                     FRAG_OK);
    assert_int_equal(
        frag_arena_hold(mem, range + 4 * MIB, 4 * MIB, FRAG_HOLD_MAPS),
        FRAG_INVALID);
    assert_int_equal(
        frag_arena_hold(mem, range + 64 * MIB, 4 * MIB, FRAG_HOLD_MAPS),
        FRAG_INVALID);
    assert_int_equal(
        frag_arena_hold(mem, range + 8 * MIB, 58 * MIB, FRAG_HOLD_MAPS),
        FRAG_OOM);
    assert_int_equal(frag_arena_used(mem), 26 * MIB);
    assert_int_equal(reserve(mem, 2 * MIB), range + 96 * MIB);
    assert_int_equal(ops->unmap(mem, range + 2 * MIB, 2 * MIB), FRAG_OK);
    assert_int_equal(frag_arena_used(mem), 24 * MIB);
    give(mem, segment, 20 * MIB);
    assert_int_equal(ops->unmap(mem, range, 2 * MIB), FRAG_OK);
    assert_int_equal(ops->unmap(mem, range + 4 * MIB, 2 * MIB), FRAG_OK);
    assert_int_equal(ops->va_free(mem, range, 66 * MIB), FRAG_OK);
    assert_int_equal(frag_arena_used(mem), 0);
    frag_arena_close(mem);
}

/* Ranges returned by the driver's rule never overlap earlier ones, and all of
 * them are released. */
static void random_traffic_never_overlaps_and_leaves_nothing(void **state)
{
    enum { LIVE = 64, STEPS = 20000 };
    struct frag_backend *mem = open_arena(FRAG_RULE_DRIVER, FRAG_UNLIMITED);
    struct {
        frag_addr addr;
        frag_size size;
    } live[LIVE] = {{0, 0}};
    uint64_t rng = 1;

    (void)state;
    for (int step = 0; step < STEPS; step++) {
        size_t i = (rng = rng * 6364136223846793005u + 1) >> 58;
        frag_size unit = (rng >> 40) % 3 ? 2 * MIB : 512;

        if (live[i].size) {
            give(mem, live[i].addr, live[i].size);
            live[i].size = 0;
            continue;
        }
        live[i].addr = take(mem, unit * (1 + (rng >> 48) % 40));
        live[i].size = unit * (1 + (rng >> 48) % 40);
        for (size_t j = 0; j < LIVE; j++)
            assert_true(j == i || !live[j].size ||
                        live[j].addr + live[j].size <= live[i].addr ||
                        live[i].addr + live[i].size <= live[j].addr);
    }
    for (size_t i = 0; i < LIVE; i++)
        if (live[i].size)
            give(mem, live[i].addr, live[i].size);
    assert_int_equal(frag_arena_used(mem), 0);
    assert_true(take(mem, 20 * MIB) % (32 * MIB) == 8 * MIB);
    frag_arena_close(mem);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bert_serves_segments_lie_as_the_real_driver_put_them),
        cmocka_unit_test(lstm_varlens_segments_lie_as_the_real_driver_put_them),
        cmocka_unit_test(
            most_recorded_runs_lie_as_predicted_from_first_to_last),
        cmocka_unit_test(the_first_segments_fill_what_the_context_left),
        cmocka_unit_test(a_chunk_is_given_back_when_it_is_empty_and_not_before),
        cmocka_unit_test(of_equal_ranges_in_a_chunk_the_lowest_serves),
        cmocka_unit_test(neighbours_in_a_chunk_merge_in_any_order),
        cmocka_unit_test(small_requests_share_blocks_of_2_mib),
        cmocka_unit_test(the_first_side_stream_takes_both_ranges_and_6_mib),
        cmocka_unit_test(reservations_start_and_follow_as_recorded),
        cmocka_unit_test(a_reservation_does_not_cross_the_hole_at_1_tib),
        cmocka_unit_test(the_tail_of_a_reservation_serves_segments),
        cmocka_unit_test(anchors_are_used_in_order_until_one_does_not_fit),
        cmocka_unit_test(anchors_may_be_addresses_of_the_drivers_rule),
        cmocka_unit_test(an_anchor_in_use_falls_back_to_the_driver),
        cmocka_unit_test(it_refuses_exactly_what_does_not_fit),
        cmocka_unit_test(a_device_reports_no_more_than_addresses_can_serve),
        cmocka_unit_test(a_capacity_below_what_is_in_use_refuses_all),
        cmocka_unit_test(absurd_sizes_are_refused),
        cmocka_unit_test(a_segment_is_freed_once_and_with_its_size),
        cmocka_unit_test(maps_are_whole_and_inside_one_reservation),
        cmocka_unit_test(memory_goes_when_released_and_unmapped_in_any_order),
        cmocka_unit_test(hostile_segments_touch_and_addresses_never_return),
        cmocka_unit_test(time_moves_with_calls_only_and_forward),
        cmocka_unit_test(held_memory_is_in_use_and_in_nobodys_way),
        cmocka_unit_test(random_traffic_never_overlaps_and_leaves_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
