/* test_backing.c - tests where memory is mapped and unmapped by chunks, as
 * pictures of a range of pages; that a refusal loses nothing; and that the
 * checks report damage. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "policies/mechanism/backing.h"
#include "sim/arena/arena.h"
#include "tests/support/damage.h"

enum { PAGES = 12 };
static const frag_size PAGE = 2 * FRAG_MIB;

static struct frag_heap heap;
static struct stock memory;
static struct backed range;

static void open_range(unsigned capacity)
{
    const struct frag_arena_options opts = {.capacity = capacity * PAGE};

    heap.mem = frag_arena_open(&opts);
    assert_non_null(heap.mem);
    memory = (struct stock){.page = PAGE};
    range = (struct backed){0};
    assert_int_equal(
        heap.mem->ops->va_reserve(heap.mem, PAGES * PAGE, &range.addr),
        FRAG_OK);
}

/* All memory can be unmapped, and goes back. */
static void close_range(void)
{
    backing_clear(&heap, &memory, &range);
    stock_release(&heap, &memory);
    assert_int_equal(memory.count, 0);
    assert_int_equal(frag_arena_used(heap.mem), 0);
    stock_fini(&memory);
    heap.mem->ops->va_free(heap.mem, range.addr, PAGES * PAGE);
    frag_arena_close(heap.mem);
}

/* A letter for each page: the first chunk is 'a', the next one 'b'. */
static void draw(char *picture)
{
    int letter = 'a' - 1;

    memset(picture, '.', PAGES);
    picture[PAGES] = '\0';
    for (uint64_t i = 0; i < PAGES; i++) {
        if (!page_has_memory(&range, i))
            continue;
        letter += range.pages[i].first == i;
        picture[i] = (char)letter;
    }
}

static void check_all(void)
{
    uint64_t mapped = 0;

    assert_null(backed_check(&range, &mapped));
    assert_null(stock_check(&memory, mapped));
    assert_int_equal(frag_arena_used(heap.mem), memory.count * PAGE);
}

/* "m0-4": maps pages 0 to 3; "c2": new chunks have two pages; "s0-8:3": strips
 * pages 0 to 7 until three pages are spare; "r": releases spare pages. */
static enum frag_err play(const char *script)
{
    enum frag_err err = FRAG_OK;

    for (const char *at = script; *at;
         at += strcspn(at, " "), at += *at == ' ') {
        struct page_run run = {.range = &range};
        unsigned long first = 0, end = 0, wanted = 0;

        sscanf(at + 1, "%lu-%lu:%lu", &first, &end, &wanted);
        run.first = first;
        run.end = end;
        if (*at == 'm')
            err = backing_map(&heap, &memory, run);
        else if (*at == 's')
            assert_true(backing_strip(&heap, &memory, run, wanted));
        else if (*at == 'c')
            memory.chunk = first;
        else
            stock_release(&heap, &memory);
        check_all();
    }
    return err;
}

static struct row {
    const char *script, *picture;
    unsigned spare;
    enum frag_err err;
    unsigned capacity;
} rows[] = {
    {"m0-4", "abcd........", 0, FRAG_OK, PAGES},
    {"c4 m0-4", "aaaa........", 0, FRAG_OK, PAGES},
    {"c4 m0-6", "aaaabb......", 0, FRAG_OK, PAGES},
    {"c4 m2-4 m0-6", "aabbcc......", 0, FRAG_OK, PAGES},
    /* the highest pages go back, as many as are wanted, in whole chunks */
    {"m0-6 s0-6:2", "abcd........", 2, FRAG_OK, PAGES},
    {"m0-6 s1-5:9", "a....b......", 4, FRAG_OK, PAGES},
    {"c3 m0-6 s0-6:2", "aaa.........", 3, FRAG_OK, PAGES},
    {"c3 m0-6 s0-6:4", "............", 6, FRAG_OK, PAGES},
    {"c3 m0-6 s1-6:9", "aaa.........", 3, FRAG_OK, PAGES},
    {"c3 m0-6 s0-5:9", "...aaa......", 3, FRAG_OK, PAGES},
    {"c3 m0-6 s1-5:9", "aaabbb......", 0, FRAG_OK, PAGES},
    {"m0-2 m4-6 s0-12:3", "a...........", 3, FRAG_OK, PAGES},
    {"m0-2 s6-9:1", "ab..........", 0, FRAG_OK, PAGES},
    /* spare memory is mapped before new memory is created */
    {"m0-4 s0-4:4 m8-12", "........abcd", 0, FRAG_OK, 4},
    {"c2 m0-4 s0-4:4 m7-11", ".......aabb.", 0, FRAG_OK, 4},
    /* a spare chunk that is too large is released for a smaller one */
    {"c4 m0-4 s0-4:4 m8-9", "........a...", 0, FRAG_OK, 4},
    /* and so are those that are too small, as many as a new chunk needs */
    {"m0-4 s0-4:4 c4 m8-12", "........aaaa", 0, FRAG_OK, 4},
    {"m0-6 s0-6:6 c4 m6-12", "......aaaabb", 0, FRAG_OK, 6},
    {"m0-6 s0-6:6 c4 m8-11", "........aaa.", 3, FRAG_OK, 6},
    {"c2 m0-4 s0-4:4 c3 m8-11", "........aaa.", 0, FRAG_OK, 4},
    {"m0-4 s0-4:4 r", "............", 0, FRAG_OK, PAGES},
    /* what was created before a refusal stays spare */
    {"m0-4 m4-10", "abcd........", 2, FRAG_OOM, 6},
    {"c4 m0-6", "............", 4, FRAG_OOM, 5},
};

static void memory_is_where_the_picture_has_it(void **state)
{
    const struct row *row = *state;
    char picture[PAGES + 1];

    open_range(row->capacity);
    assert_int_equal(play(row->script), row->err);
    draw(picture);
    assert_string_equal(picture, row->picture);
    assert_int_equal(memory.spare_pages, row->spare);
    close_range();
}

static const char *check(void)
{
    uint64_t mapped = 0;
    const char *fault = backed_check(&range, &mapped);

    return fault ? fault : stock_check(&memory, mapped);
}

static const char DIFFER[] =
    "two pages of a chunk differ in their chunk or memory";

static void damage_is_found(void **state)
{
    (void)state;
    open_range(PAGES);
    play("c3 m0-6 s4-6:1");
    DAMAGE(range.pages[0].first, 1, check(), "a page is not in its chunk");
    DAMAGE(range.pages[2].end, 2, check(), DIFFER);
    DAMAGE(range.pages[5].end, PAGES, check(), DIFFER);
    DAMAGE(range.pages[1].phys, 1234, check(), DIFFER);
    DAMAGE(range.pages[0].end, 2, check(), DIFFER);
    DAMAGE(range.pages[1].first, 1, check(), DIFFER);
    DAMAGE(range.pages[2].phys, 0, check(), DIFFER);
    DAMAGE(memory.spare_pages, 1, check(),
           "`spare_pages` is not the pages of the spare chunks");
    DAMAGE(memory.count, 5, check(),
           "`count` is not the pages that are mapped or spare");
    close_range();
}

int main(void)
{
    enum { ROWS = sizeof(rows) / sizeof(*rows) };
    struct CMUnitTest tests[ROWS + 1] = {0};

    for (int i = 0; i < ROWS; i++)
        tests[i] =
            (struct CMUnitTest){.name = rows[i].script,
                                .test_func = memory_is_where_the_picture_has_it,
                                .initial_state = &rows[i]};
    tests[ROWS] = (struct CMUnitTest)cmocka_unit_test(damage_is_found);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
