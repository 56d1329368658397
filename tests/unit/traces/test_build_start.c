/* test_build_start.c - tests the builder's results beyond the events: the state
 * before the first entry, the final snapshot, pools, streams and marks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "traces/build/build.h"

enum { SEGMENT = 2 << 20, BASE = 0x10000000 };

static struct frag_error error;

#define TRY(call)                       \
    do {                                \
        error.text[0] = '\0';           \
        if ((call) != FRAG_OK)          \
            fail_msg("%s", error.text); \
    } while (0)

static struct frag_build *begin(void)
{
    return frag_build_open("x", "test");
}

static void put(struct frag_build *b, enum frag_entry_kind kind, frag_addr addr,
                frag_size size)
{
    const struct frag_entry entry = {.kind = kind, .addr = addr, .size = size};

    TRY(frag_build_entry(b, 0, &entry, 0, &error));
}

static void put_free(struct frag_build *b, frag_addr addr, frag_size size)
{
    put(b, FRAG_ENTRY_FREE_REQUESTED, addr, size);
    put(b, FRAG_ENTRY_FREE_COMPLETED, addr, size);
}

static void put_segment(struct frag_build *b, frag_addr addr, frag_size size,
                        struct frag_pool_id pool, bool expandable)
{
    const struct frag_snapshot_segment s = {.addr = addr,
                                            .size = size,
                                            .stream = 5,
                                            .pool = pool,
                                            .is_small = size <= SEGMENT,
                                            .is_expandable = expandable};

    TRY(frag_build_segment(b, 0, &s, 0, &error));
}

static void put_block(struct frag_build *b, frag_size size, frag_size requested,
                      enum frag_block_state state)
{
    const struct frag_snapshot_block block = {0, size, requested, state};

    TRY(frag_build_block(b, 0, &block, 0, &error));
}

static struct frag_trace *finish(struct frag_build *b)
{
    struct frag_trace *t = NULL;

    TRY(frag_build_finish(b, NULL, &t, &error));
    frag_build_close(b);
    return t;
}

static const struct frag_pool_id default_pool = {0, 0}, private_pool = {0, 3};

/* Blocks of a layout as text: address in units of 512 bytes from BASE, size
 * likewise, and i, p or a for its state. */
static void draw(const struct frag_layout *l, char *text, size_t room)
{
    size_t at = 0;

    text[0] = '\0';
    for (uint64_t i = 0; i < l->segment_count; i++) {
        const struct frag_recorded_segment *s = &l->segments[i];

        at += (size_t)snprintf(text + at, room - at, "%s[", i ? " " : "");
        for (uint64_t k = 0; k < s->block_count; k++) {
            const struct frag_recorded_block *b =
                &l->blocks[s->first_block + k];

            at += (size_t)snprintf(
                text + at, room - at, "%s%llu+%llu%c", k ? " " : "",
                (unsigned long long)((b->addr - BASE) / 512),
                (unsigned long long)(b->size / 512), "ipa"[b->state]);
        }
        at += (size_t)snprintf(text + at, room - at, "]");
    }
}

static void assert_start(const struct frag_trace *t, const char *want)
{
    char text[512];

    draw(&t->devices[0].recorded.start, text, sizeof(text));
    assert_string_equal(text, want);
}

static bool noted(const struct frag_trace *t, const char *words)
{
    for (uint32_t i = 0; i < t->note_count; i++)
        if (strstr(t->notes[i], words))
            return true;
    return false;
}

static void what_no_entry_made_was_there_before(void **state)
{
    struct frag_build *b = begin();
    struct frag_trace *t;
    const struct frag_device_trace *d;

    (void)state;
    /* At the start: 4 units live until the end, 2 are free, 2 are live and
     * freed later. */
    put(b, FRAG_ENTRY_ALLOC, BASE + 4 * 512, 700);
    put_free(b, BASE + 6 * 512, 600);
    put_free(b, BASE + 4 * 512, 700);
    put(b, FRAG_ENTRY_ALLOC, BASE + 5 * 512, 100);
    put_segment(b, BASE, SEGMENT, default_pool, false);
    put_block(b, 4 * 512, 2000, FRAG_ACTIVE_ALLOCATED);
    put_block(b, 512, 0, FRAG_INACTIVE);
    put_block(b, 512, 100, FRAG_ACTIVE_ALLOCATED);
    put_block(b, SEGMENT - 6 * 512, 0, FRAG_INACTIVE);
    t = finish(b);
    d = &t->devices[0];
    assert_start(t, "[0+4a 4+2i 6+2a 8+4088i]");
    assert_int_equal(d->initial, 2);
    assert_int_equal(d->bytes[0], 2000);
    assert_int_equal(d->bytes[1], 600);
    assert_int_equal(d->recorded.addr[0], BASE);
    assert_int_equal(d->recorded.addr[1], BASE + 6 * 512);
    assert_int_equal(d->recorded.end.blocks[0].slot, d->id[0]);
    assert_int_equal(d->recorded.end.blocks[1].slot, UINT32_MAX);
    assert_int_equal(d->recorded.end.blocks[2].slot, d->id[5]);
    assert_int_equal(d->recorded.start.blocks[0].slot, d->id[0]);
    assert_true(d->recorded.start.blocks[1].requested == FRAG_SIZE_UNKNOWN);
    assert_int_equal(d->recorded.start.segments[0].is_small, 1);
    assert_true(
        noted(t, "2 blocks (2.539 KiB) were live and 1 segments (2 MiB)"));
    assert_true(noted(t, "the need that is stated for this trace is a lower "
                         "bound"));
    assert_false(noted(t, "are uncertain"));
    frag_trace_close(t);
}

/* Blocks of 4 and 3 MiB of a large segment, with the gaps that the cases name,
 * are freed in the recording; `allocs` are placed in between before. */
static void sizes_of_the_large_pool_follow_from_later_answers(void **state)
{
    enum { LARGE = 20 << 20, MIB = 1 << 20, UNIT = 512 };
    static const struct {
        frag_addr second; /* offset of the second block */
        frag_addr alloc;  /* offset of an alloc between them; 0: none */
        const char *want;
        const char *words;
    } cases[] = {
        /* A gap of at most 1 MiB belongs to the block. */
        {5 * MIB, 0, "[0+10240a 10240+6144a 16384+24576i]", "sizes of 1 of"},
        /* The alloc begins where the first block ends. */
        {8 * MIB, 4 * MIB + 512 * UNIT,
         "[0+8704a 8704+7680i 16384+6144a 22528+18432i]", "sizes of 1 of"},
        /* Nothing tells. */
        {8 * MIB, 0, "[0+8192a 8192+8192i 16384+6144a 22528+18432i]",
         "sizes of 2 of"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct frag_build *b = begin();
        struct frag_trace *t;

        if (cases[i].alloc) {
            put(b, FRAG_ENTRY_ALLOC, BASE + cases[i].alloc, 2 * MIB);
            put_free(b, BASE + cases[i].alloc, 2 * MIB);
        }
        put_free(b, BASE, 4 * MIB);
        put_free(b, BASE + cases[i].second, 3 * MIB);
        put_segment(b, BASE, LARGE, default_pool, false);
        put_block(b, LARGE, 0, FRAG_INACTIVE);
        t = finish(b);
        assert_start(t, cases[i].want);
        assert_true(noted(t, cases[i].words));
        frag_trace_close(t);
    }
}

static void actions_are_undone(void **state)
{
    struct frag_build *b = begin();
    struct frag_trace *t;

    (void)state;
    /* Held before: 0, and 1 (released). Not held: 2 (allocated), 3 (allocated
     * and released), 4 (allocated twice). */
    put(b, FRAG_ENTRY_SEGMENT_ALLOC, BASE + 2 * SEGMENT, SEGMENT);
    put(b, FRAG_ENTRY_SEGMENT_ALLOC, BASE + 4 * SEGMENT, SEGMENT);
    put(b, FRAG_ENTRY_SEGMENT_FREE, BASE + 4 * SEGMENT, SEGMENT);
    put(b, FRAG_ENTRY_SEGMENT_FREE, BASE + SEGMENT, SEGMENT);
    put(b, FRAG_ENTRY_SEGMENT_ALLOC, BASE + 3 * SEGMENT, SEGMENT);
    put(b, FRAG_ENTRY_SEGMENT_FREE, BASE + 3 * SEGMENT, SEGMENT);
    put(b, FRAG_ENTRY_SEGMENT_ALLOC, BASE + 4 * SEGMENT, SEGMENT);
    for (unsigned k = 0; k < 5; k += 2) {
        put_segment(b, BASE + k * SEGMENT, SEGMENT, default_pool, false);
        put_block(b, SEGMENT, 0, FRAG_INACTIVE);
    }
    t = finish(b);
    assert_start(t, "[0+4096i] [4096+4096i]");
    assert_int_equal(t->devices[0].initial, 0);
    frag_trace_close(t);
}

static void parts_of_a_reservation_are_undone(void **state)
{
    struct frag_build *b = begin();
    struct frag_trace *t;

    (void)state;
    /* Pieces 0 to 3 were mapped; 1 and 2 are unmapped, 2 is mapped again, 4 is
     * new. */
    put(b, FRAG_ENTRY_SEGMENT_UNMAP, BASE + SEGMENT, 2 * SEGMENT);
    put(b, FRAG_ENTRY_SEGMENT_MAP, BASE + 2 * SEGMENT, SEGMENT);
    put(b, FRAG_ENTRY_SEGMENT_MAP, BASE + 4 * SEGMENT, SEGMENT);
    put_segment(b, BASE, SEGMENT, default_pool, true);
    put_block(b, SEGMENT, 0, FRAG_INACTIVE);
    put_segment(b, BASE + 2 * SEGMENT, 3 * SEGMENT, default_pool, true);
    put_block(b, 3 * SEGMENT, 0, FRAG_INACTIVE);
    t = finish(b);
    assert_start(t, "[0+16384i]");
    frag_trace_close(t);
}

static void blocks_in_no_known_segment_are_not_in_the_start(void **state)
{
    struct frag_build *b = begin();
    struct frag_trace *t;

    (void)state;
    put(b, FRAG_ENTRY_FREE_COMPLETED, BASE + 512, 5);
    t = finish(b);
    assert_start(t, "");
    assert_int_equal(t->devices[0].initial, 1);
    assert_int_equal(t->devices[0].recorded.addr[0], BASE + 512);
    assert_true(noted(t, "1 of the blocks that were live before the first "
                         "entry lie in no known segment"));
    frag_trace_close(t);
}

static void sizes_not_recorded_are_rounded_up_to_the_next_block(void **state)
{
    const struct frag_recorded_settings settings = {.divisions = {4},
                                                    .gc_threshold = 0.5};
    struct frag_build *b = begin();
    struct frag_trace *t;

    (void)state;
    TRY(frag_build_settings(b, &settings, &error));
    put_free(b, BASE, 5000);            /* in quarters of 4096: 5120 */
    put_free(b, BASE + 20 * 512, 5000); /* but a neighbour comes first */
    put_free(b, BASE + 25 * 512, 100);
    put(b, FRAG_ENTRY_SEGMENT_FREE, BASE, SEGMENT);
    t = finish(b);
    assert_start(t, "[0+10a 10+10i 20+5a 25+1a 26+4070i]");
    assert_true(noted(t, "garbage collection releases by age"));
    frag_trace_close(t);
}

static void sizes_not_recorded_have_the_padding(void **state)
{
    const struct frag_recorded_settings settings = {.padding = 32};
    struct frag_build *b = begin();
    struct frag_trace *t;

    (void)state;
    TRY(frag_build_settings(b, &settings, &error));
    put_free(b, BASE, 480);
    put_free(b, BASE + 512, 512);
    put(b, FRAG_ENTRY_SEGMENT_FREE, BASE, SEGMENT);
    t = finish(b);
    assert_start(t, "[0+1a 1+2a 3+4093i]");
    frag_trace_close(t);
}

static void a_snapshot_alone_is_all_start(void **state)
{
    struct frag_build *b = begin();
    struct frag_trace *t;

    (void)state;
    put_segment(b, BASE + SEGMENT, SEGMENT, default_pool, false);
    put_block(b, SEGMENT, FRAG_SIZE_UNKNOWN, FRAG_ACTIVE_ALLOCATED);
    put_segment(b, BASE, SEGMENT, private_pool, false);
    put_block(b, 512, 7, FRAG_ACTIVE_PENDING_FREE);
    put_block(b, SEGMENT - 512, 0, FRAG_INACTIVE);
    t = finish(b);
    assert_start(t, "[0+1p 1+4095i] [4096+4096a]");
    assert_int_equal(t->devices[0].initial, 2);
    assert_int_equal(t->devices[0].count, 2);
    assert_int_equal(t->devices[0].bytes[1], SEGMENT);
    assert_int_equal(t->devices[0].pool[0], 1);
    assert_int_equal(t->devices[0].pool[1], 0);
    assert_int_equal(t->devices[0].recorded.start.segments[0].pool, 1);
    assert_false(t->devices[0].recorded.has_actions);
    frag_trace_close(t);
}

static void a_complete_recording_has_no_start(void **state)
{
    struct frag_build *b = begin();
    struct frag_trace *t;

    (void)state;
    put(b, FRAG_ENTRY_SEGMENT_ALLOC, BASE, SEGMENT);
    put(b, FRAG_ENTRY_ALLOC, BASE, 7);
    put_segment(b, BASE, SEGMENT, default_pool, false);
    put_block(b, 512, 7, FRAG_ACTIVE_ALLOCATED);
    put_block(b, SEGMENT - 512, 0, FRAG_INACTIVE);
    t = finish(b);
    assert_start(t, "");
    assert_int_equal(t->devices[0].initial, 0);
    assert_int_equal(t->note_count, 0);
    assert_true(t->devices[0].recorded.has_end);
    frag_trace_close(t);
}

static void a_block_with_a_missing_alloc_is_left_out(void **state)
{
    struct frag_build *b = begin();
    struct frag_trace *t;

    (void)state;
    put(b, FRAG_ENTRY_SEGMENT_ALLOC, BASE, SEGMENT);
    put(b, FRAG_ENTRY_ALLOC, BASE, 7);
    put_free(b, BASE, 7);
    put_segment(b, BASE, SEGMENT, default_pool, false);
    put_block(b, 512, 7, FRAG_ACTIVE_ALLOCATED);
    put_block(b, SEGMENT - 512, 0, FRAG_INACTIVE);
    t = finish(b);
    assert_int_equal(t->devices[0].initial, 0);
    assert_int_equal(t->devices[0].recorded.end.blocks[0].slot, UINT32_MAX);
    assert_true(noted(t, "1 blocks of the final snapshot"));
    frag_trace_close(t);
}

/* A block that is live after the last entry, and in the final snapshot another
 * block, of a segment that no entry has. */
static struct frag_build *begin_early_end(void)
{
    struct frag_build *b = begin();

    put(b, FRAG_ENTRY_SEGMENT_ALLOC, BASE, SEGMENT);
    put(b, FRAG_ENTRY_ALLOC, BASE, 7);
    put_segment(b, BASE, SEGMENT, default_pool, false);
    put_block(b, SEGMENT, 0, FRAG_INACTIVE);
    put_segment(b, BASE + SEGMENT, SEGMENT, default_pool, false);
    put_block(b, 512, 9, FRAG_ACTIVE_ALLOCATED);
    put_block(b, SEGMENT - 512, 0, FRAG_INACTIVE);
    return b;
}

static void what_came_after_the_last_entry_is_no_start(void **state)
{
    struct frag_trace *t = finish(begin_early_end());

    (void)state;
    assert_start(t, "");
    assert_int_equal(t->devices[0].initial, 0);
    assert_int_equal(t->devices[0].recorded.end.blocks[1].slot, UINT32_MAX);
    assert_true(noted(t, "the history ends before the snapshot was taken: 1 "
                         "blocks"));
    assert_true(noted(t, "1 blocks of the final snapshot were allocated after "
                         "the last entry"));
    assert_false(noted(t, "lacks the beginning"));
    frag_trace_close(t);
}

/* Each of these shows that memory was held before the first entry. */
static void a_start_that_the_history_shows_is_kept(void **state)
{
    static const struct {
        enum frag_entry_kind kind;
        frag_addr addr;
        const char *start;
    } rows[] = {
        {FRAG_ENTRY_ALLOC, BASE + SEGMENT + 512, "[4096+1a 4097+4095i]"},
        {FRAG_ENTRY_FREE_COMPLETED, BASE + SEGMENT + 512,
         "[4096+1a 4097+1a 4098+4094i]"},
        {FRAG_ENTRY_SEGMENT_FREE, BASE + 2 * SEGMENT,
         "[4096+1a 4097+4095i] [8192+1i]"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct frag_build *b = begin_early_end();
        struct frag_trace *t;

        put(b, rows[i].kind, rows[i].addr, 512);
        t = finish(b);
        assert_start(t, rows[i].start);
        assert_true(noted(t, "lacks the beginning"));
        frag_trace_close(t);
    }
}

/* The history ends early, and a block of the final snapshot lies where a block
 * of the history was. */
static void what_overlaps_with_the_history_is_no_start(void **state)
{
    const enum frag_entry_kind kinds[] = {FRAG_ENTRY_FREE_COMPLETED,
                                          FRAG_ENTRY_ALLOC};

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct frag_build *b = begin();
        struct frag_trace *t;

        put(b, kinds[i], BASE, 1000);
        put_free(b, BASE + 4 * 512, 7);
        put(b, FRAG_ENTRY_ALLOC, BASE + 5 * 512, 7);
        put_segment(b, BASE, SEGMENT, default_pool, false);
        put_block(b, 512, 0, FRAG_INACTIVE);
        put_block(b, 512, 9, FRAG_ACTIVE_ALLOCATED);
        put_block(b, 512, 9, FRAG_ACTIVE_ALLOCATED);
        put_block(b, SEGMENT - 3 * 512, 0, FRAG_INACTIVE);
        t = finish(b);
        assert_start(t, i ? "[0+2i 2+1a 3+1i 4+1a 5+4091i]"
                          : "[0+2a 2+1a 3+1i 4+1a 5+4091i]");
        frag_trace_close(t);
    }
}

/* No completion was recorded because none happened, not because completions
 * were left out. */
static void a_free_that_is_pending_at_the_end_stays_so(void **state)
{
    struct frag_build *b = begin();
    struct frag_trace *t;

    (void)state;
    put(b, FRAG_ENTRY_SEGMENT_ALLOC, BASE, SEGMENT);
    put(b, FRAG_ENTRY_ALLOC, BASE, 7);
    put(b, FRAG_ENTRY_FREE_REQUESTED, BASE, 7);
    put_segment(b, BASE, SEGMENT, default_pool, false);
    put_block(b, 512, 7, FRAG_ACTIVE_PENDING_FREE);
    put_block(b, SEGMENT - 512, 0, FRAG_INACTIVE);
    t = finish(b);
    assert_int_equal(t->devices[0].op[1], FRAG_FREE_REQUESTED);
    assert_int_equal(t->devices[0].recorded.end.blocks[0].slot, 0);
    frag_trace_close(t);
}

static void snapshots_that_do_not_tile_are_refused(void **state)
{
    static const struct {
        frag_addr first;
        frag_size sizes[3];
        frag_addr second; /* another segment, 0: none */
    } rows[] = {
        {BASE, {512, 512}, 0},
        {BASE, {SEGMENT, 512}, 0},
        {BASE, {SEGMENT + 512}, 0},
        {BASE + 512, {SEGMENT}, 0},
        {BASE, {SEGMENT}, BASE + 512},
        {BASE, {512}, BASE + SEGMENT},
        {BASE, {SEGMENT, UINT64_MAX}, 0},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct frag_build *b = begin();
        struct frag_trace *t = NULL;
        struct frag_snapshot_segment s = {.addr = BASE, .size = SEGMENT};
        enum frag_err err = frag_build_segment(b, 0, &s, 0, &error);

        for (size_t k = 0; err == FRAG_OK && rows[i].sizes[k]; k++) {
            const struct frag_snapshot_block block = {
                k ? 0 : rows[i].first, rows[i].sizes[k], 0, FRAG_INACTIVE};

            err = frag_build_block(b, 0, &block, 0, &error);
        }
        s.addr = rows[i].second;
        if (err == FRAG_OK && s.addr)
            err = frag_build_segment(b, 0, &s, 0, &error);
        if (err == FRAG_OK && s.addr) {
            const struct frag_snapshot_block block = {0, SEGMENT, 0,
                                                      FRAG_INACTIVE};

            err = frag_build_block(b, 0, &block, 0, &error);
        }
        if (err == FRAG_OK)
            err = frag_build_finish(b, NULL, &t, &error);
        if (err != FRAG_CORRUPT || !strstr(error.text, "expected"))
            fail_msg("row %zu: %s", i, frag_err_text(err));
        frag_build_close(b);
    }
}

/* Pools and streams. */

static void an_event_has_the_pool_of_its_segment_at_that_time(void **state)
{
    static const frag_pool want[] = {0, 0, 1, 1, 0};
    struct frag_build *b = begin();
    struct frag_trace *t;
    uint64_t k = 0;

    (void)state;
    put(b, FRAG_ENTRY_SEGMENT_ALLOC, BASE, SEGMENT);
    put(b, FRAG_ENTRY_ALLOC, BASE, 1);
    put_free(b, BASE, 1);
    put(b, FRAG_ENTRY_SEGMENT_FREE, BASE, SEGMENT);
    put(b, FRAG_ENTRY_SEGMENT_ALLOC, BASE + SEGMENT, SEGMENT);
    put(b, FRAG_ENTRY_ALLOC, BASE + SEGMENT, 2);
    put(b, FRAG_ENTRY_SEGMENT_ALLOC, BASE, SEGMENT);
    put(b, FRAG_ENTRY_ALLOC, BASE, 3);
    put(b, FRAG_ENTRY_ALLOC, BASE + SEGMENT - 512, 4);
    put(b, FRAG_ENTRY_ALLOC, BASE + SEGMENT + 512, 5);
    put_segment(b, BASE, SEGMENT, private_pool, false);
    put_block(b, 512, 3, FRAG_ACTIVE_ALLOCATED);
    put_block(b, SEGMENT - 1024, 0, FRAG_INACTIVE);
    put_block(b, 512, 4, FRAG_ACTIVE_ALLOCATED);
    put_segment(b, BASE + SEGMENT, SEGMENT, default_pool, false);
    put_block(b, 512, 2, FRAG_ACTIVE_ALLOCATED);
    put_block(b, 512, 5, FRAG_ACTIVE_ALLOCATED);
    put_block(b, SEGMENT - 1024, 0, FRAG_INACTIVE);
    t = finish(b);
    for (uint64_t i = 0; i < t->devices[0].count; i++)
        if (t->devices[0].op[i] == FRAG_ALLOC)
            assert_int_equal(t->devices[0].pool[i], want[k++]);
    assert_int_equal(k, 5);
    assert_int_equal(t->devices[0].pools[1].number, 3);
    frag_trace_close(t);
}

static void a_reservation_has_one_pool_while_it_lasts(void **state)
{
    static const frag_pool want[] = {0, 1, 1};
    struct frag_build *b = begin();
    struct frag_trace *t;
    uint64_t k = 0;

    (void)state;
    put(b, FRAG_ENTRY_SEGMENT_MAP, BASE, SEGMENT);
    put(b, FRAG_ENTRY_ALLOC, BASE, 1);
    put_free(b, BASE, 1);
    put(b, FRAG_ENTRY_SEGMENT_UNMAP, BASE, SEGMENT);
    put(b, FRAG_ENTRY_SEGMENT_MAP, BASE, SEGMENT);
    put(b, FRAG_ENTRY_ALLOC, BASE, 2);
    put(b, FRAG_ENTRY_SEGMENT_MAP, BASE + SEGMENT, SEGMENT);
    put(b, FRAG_ENTRY_ALLOC, BASE + SEGMENT, 3);
    put_free(b, BASE + SEGMENT, 3);
    put(b, FRAG_ENTRY_SEGMENT_UNMAP, BASE + SEGMENT, SEGMENT);
    put_segment(b, BASE, SEGMENT, private_pool, true);
    put_block(b, 512, 2, FRAG_ACTIVE_ALLOCATED);
    put_block(b, SEGMENT - 512, 0, FRAG_INACTIVE);
    t = finish(b);
    for (uint64_t i = 0; i < t->devices[0].count; i++)
        if (t->devices[0].op[i] == FRAG_ALLOC)
            assert_int_equal(t->devices[0].pool[i], want[k++]);
    assert_int_equal(k, 3);
    frag_trace_close(t);
}

static void recorded_pools_are_believed(void **state)
{
    const struct frag_entry entry = {.kind = FRAG_ENTRY_ALLOC,
                                     .addr = BASE,
                                     .size = 1,
                                     .has_pool = true,
                                     .pool = {4, 0}};
    struct frag_build *b = begin();
    struct frag_trace *t;

    (void)state;
    TRY(frag_build_entry(b, 0, &entry, 0, &error));
    put_segment(b, BASE, SEGMENT, private_pool, false);
    put_block(b, 512, 1, FRAG_ACTIVE_ALLOCATED);
    put_block(b, SEGMENT - 512, 0, FRAG_INACTIVE);
    t = finish(b);
    assert_int_equal(t->devices[0].pools[t->devices[0].pool[0]].owner, 4);
    frag_trace_close(t);
}

static void streams_are_in_the_order_of_their_handles(void **state)
{
    static const uint64_t handles[] = {900, 5, UINT64_MAX, 900};
    static const frag_stream want[] = {1, 0, 2, 1};
    struct frag_build *b = begin();
    struct frag_trace *t;
    const struct frag_device_trace *d;

    (void)state;
    for (size_t i = 0; i < 4; i++) {
        struct frag_entry entry = {.kind = FRAG_ENTRY_SEGMENT_ALLOC,
                                   .addr = BASE + i * SEGMENT,
                                   .size = SEGMENT,
                                   .stream = handles[i]};

        TRY(frag_build_entry(b, 0, &entry, 0, &error));
        entry.kind = FRAG_ENTRY_ALLOC;
        TRY(frag_build_entry(b, 0, &entry, 0, &error));
    }
    put_segment(b, BASE, SEGMENT, default_pool, false); /* stream 5 */
    put_block(b, SEGMENT, 1, FRAG_ACTIVE_ALLOCATED);
    t = finish(b);
    d = &t->devices[0];
    assert_int_equal(d->stream_count, 3);
    assert_int_equal(d->streams[1], 900);
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(d->stream[i], want[i]);
        assert_int_equal(d->recorded.actions[i].stream, want[i]);
    }
    assert_int_equal(d->recorded.end.segments[0].stream, 0);
    frag_trace_close(t);
}

static void marks_stand_where_their_time_is(void **state)
{
    struct frag_build *b = begin();
    struct frag_trace *t;
    const struct frag_mark *m;

    (void)state;
    for (frag_time i = 1; i <= 4; i++) {
        const struct frag_entry entry = {.kind = FRAG_ENTRY_ALLOC,
                                         .addr = BASE + i * 512,
                                         .size = 1,
                                         .time = i * 10};

        TRY(frag_build_entry(b, 0, &entry, 0, &error));
    }
    TRY(frag_build_mark(b, 0, FRAG_MARK_BEGIN, 20, "b", 1, &error));
    TRY(frag_build_mark(b, 0, FRAG_MARK_END, 20, "a", 1, &error));
    TRY(frag_build_mark(b, 0, FRAG_MARK_BEGIN, 5, "a", 1, &error));
    TRY(frag_build_mark(b, 0, FRAG_MARK_END, 99, "b", 1, &error));
    TRY(frag_build_mark(b, 0, FRAG_MARK_BEGIN, 30, "c", 1, &error));
    t = finish(b);
    m = t->devices[0].marks;
    assert_int_equal(t->devices[0].mark_count, 5);
    assert_int_equal(m[0].event, 0);
    assert_int_equal(m[1].event, 2); /* the end at 20, after its event */
    assert_int_equal(m[1].kind, FRAG_MARK_END);
    assert_int_equal(m[2].event, 2);
    assert_int_equal(m[3].event, 2); /* the begin at 30, before its event */
    assert_int_equal(m[4].event, 4);
    assert_string_equal(t->strings[m[4].name], "b");
    assert_int_equal(t->string_count, 3);
    frag_trace_close(t);
}

static void devices_are_apart_and_in_order(void **state)
{
    struct frag_build *b = begin();
    struct frag_trace *t;
    struct frag_entry entry = {
        .kind = FRAG_ENTRY_ALLOC, .addr = BASE, .size = 9};

    (void)state;
    TRY(frag_build_device(b, 7, &error));
    TRY(frag_build_entry(b, 3, &entry, 0, &error));
    TRY(frag_build_entry(b, 0, &entry, 0, &error));
    entry.addr += 512;
    TRY(frag_build_entry(b, 3, &entry, 0, &error));
    t = finish(b);
    assert_int_equal(t->device_count, 3);
    assert_int_equal(frag_trace_device(t, 3)->count, 2);
    assert_int_equal(frag_trace_device(t, 0)->count, 1);
    assert_int_equal(frag_trace_device(t, 7)->count, 0);
    assert_int_equal(t->devices[2].device, 7);
    frag_trace_close(t);
}

/* A recording that knows only the sum of what was live before it, and an
 * empty_cache call that its log has. */
static void bytes_from_before_are_one_block(void **state)
{
    struct frag_build *b = begin();
    const struct frag_device_trace *d;
    struct frag_trace *t = NULL;

    (void)state;
    put(b, FRAG_ENTRY_ALLOC, BASE, 8);
    put(b, FRAG_ENTRY_EMPTY_CACHE, 0, 0);
    TRY(frag_build_before(b, 0, 100, 0, &error));
    assert_int_equal(frag_build_before(b, 0, 0, 7, &error), FRAG_CORRUPT);
    assert_string_equal(error.text, "x:7: expected a size from 1 to 2^63 - 1, "
                                    "found 0");
    assert_int_equal(frag_build_before(b, 0, (frag_size)1 << 63, 7, &error),
                     FRAG_CORRUPT);
    TRY(frag_build_finish(b, NULL, &t, &error));
    frag_build_close(b);
    d = &t->devices[0];
    assert_int_equal(d->count, 3);
    assert_int_equal(d->initial, 1);
    assert_int_equal(d->op[0], FRAG_ALLOC);
    assert_int_equal(d->bytes[0], 100);
    assert_int_not_equal(d->recorded.addr[0], 0);
    assert_int_equal(d->op[1], FRAG_ALLOC);
    assert_int_equal(d->op[2], FRAG_EMPTY_CACHE);
    assert_int_equal(d->slots, 2);
    frag_trace_close(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_from_before_are_one_block),
        cmocka_unit_test(what_no_entry_made_was_there_before),
        cmocka_unit_test(sizes_of_the_large_pool_follow_from_later_answers),
        cmocka_unit_test(actions_are_undone),
        cmocka_unit_test(parts_of_a_reservation_are_undone),
        cmocka_unit_test(blocks_in_no_known_segment_are_not_in_the_start),
        cmocka_unit_test(sizes_not_recorded_are_rounded_up_to_the_next_block),
        cmocka_unit_test(sizes_not_recorded_have_the_padding),
        cmocka_unit_test(a_snapshot_alone_is_all_start),
        cmocka_unit_test(a_complete_recording_has_no_start),
        cmocka_unit_test(a_block_with_a_missing_alloc_is_left_out),
        cmocka_unit_test(what_came_after_the_last_entry_is_no_start),
        cmocka_unit_test(a_start_that_the_history_shows_is_kept),
        cmocka_unit_test(what_overlaps_with_the_history_is_no_start),
        cmocka_unit_test(a_free_that_is_pending_at_the_end_stays_so),
        cmocka_unit_test(snapshots_that_do_not_tile_are_refused),
        cmocka_unit_test(an_event_has_the_pool_of_its_segment_at_that_time),
        cmocka_unit_test(a_reservation_has_one_pool_while_it_lasts),
        cmocka_unit_test(recorded_pools_are_believed),
        cmocka_unit_test(streams_are_in_the_order_of_their_handles),
        cmocka_unit_test(marks_stand_where_their_time_is),
        cmocka_unit_test(devices_are_apart_and_in_order),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
