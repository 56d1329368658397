/* test_compact.c - tests the policy compact: pictures of each strategy, and
 * fragmentation that it survives. test_vmm.c tests that contents move with
 * their blocks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/support/canvas.h"

enum { ROOM = 64 };

/* A granule of the arena is four units. */
static const frag_size UNIT = 512 * FRAG_KIB;

/* Each page is a segment of the drawing. */
static const struct picture pictures[] = {
    /* clang-format off */
    /* The tightest hole, of equals the lowest, its low part; else the end. */
    {"compact", ROOM, "a3 b2",                     "aaab|b..."},
    {"compact", ROOM, "a2 b1 c2 d3 -c -a e1",      "e.b.|.ddd"},
    {"compact", ROOM, "a3 b1 c2 d2 -a -c e2",      "...b|eedd"},
    {"compact", ROOM, "a4@1 -a b4@2",              "bbbb"},
    /* More than the share would be free: as little is moved as keeps to it. */
    {"compact", ROOM, "a3 b4 c5 -b d8",            "aaac|cccc|dddd|dddd"},
    {"compact:threshold=0.5", ROOM, "a3 b4 c5 -b d8", "aaa.|...c|cccc|dddd|dddd"},
    {"compact", ROOM, "a3 b1 c3 d1 e4 -b -d f4",   "aaa.|ccc.|eeee|ffff"},
    {"compact:threshold=0.1", ROOM, "a3 b1 c2 d2 e4 -b -d f5", "aaa.|ccee|eeff|fff."},
    /* The run of the fewest bytes; of equals the lowest. */
    {"compact", ROOM, "a1 b3 c1 d1 e1 f1 -a -c -e g2", ".bbb|dggf"},
    {"compact", ROOM, "a1 b1 c1 d1 e1 f3 -a -c -e g2", "bggd|.fff"},
    /* Only when the device refuses. */
    {"compact:threshold=1", ROOM, "a2 b2 c2 d2 e4 -b -d f4", "aa..|cc..|eeee|ffff"},
    {"compact:threshold=1", 12, "a2 b2 c2 d2 e4 -b -d f4", "aacc|ffff|eeee"},
    {"compact:threshold=1", 12, "a2 b2 c2 d2 e1 -b -d f7", "aacc|efff|ffff"},
    {"compact:threshold=1", 12, "a2 b2 c2 d2 e4 -b -d f5", "aa..|cc..|eeee"},
    /* Trim returns free pages at the end and moves nothing. */
    {"compact", ROOM, "a3 b6 -b !",                "aaa."},
    {"compact", ROOM, "a4 b4 -a !",                "....|bbbb"},
    /* clang-format on */
};

static void follow(void *user, uint32_t owner, const struct frag_block *block)
{
    struct canvas *c = user;

    assert_true(owner < 26 && c->is_live[owner]);
    c->live[owner] = *block;
}

static void open_moving(struct canvas *c, const struct picture *p)
{
    canvas_open(c, p, UNIT, NULL);
    c->heap.moved = follow;
    c->heap.user = c;
}

static void memory_is_as_drawn(void **state)
{
    static struct canvas c;
    const struct picture *p = *state;
    char memory[1024];

    open_moving(&c, p);
    canvas_play(&c, p->script);
    canvas_draw(&c, memory);
    assert_string_equal(memory, p->memory);
    canvas_close(&c);
}

static void who_takes_no_moves_gets_none(void **state)
{
    static const struct picture p = {"compact", ROOM, "a3 b4 c5 -b d8",
                                     "aaa.|...c|cccc|dddd|dddd"};

    (void)state;
    canvas_check(&p, UNIT, NULL);
}

/* ---- an adversary ---- */

enum { BLOCKS = 4096 };

struct crowd {
    struct frag_block block[BLOCKS];
    bool is_live[BLOCKS];
};

static void follow_crowd(void *user, uint32_t owner,
                         const struct frag_block *block)
{
    ((struct crowd *)user)->block[owner] = *block;
}

static int by_address(const void *a, const void *b)
{
    const struct frag_block *x = *(struct frag_block *const *)a;
    const struct frag_block *y = *(struct frag_block *const *)b;

    return x->addr < y->addr ? -1 : x->addr > y->addr;
}

/* Frees every second live block in the order of addresses. */
static void thin_out(struct frag_heap *heap, struct crowd *crowd,
                     frag_size *used)
{
    static struct frag_block *live[BLOCKS];
    size_t count = 0;

    for (size_t i = 0; i < BLOCKS; i++)
        if (crowd->is_live[i])
            live[count++] = &crowd->block[i];
    qsort(live, count, sizeof(*live), by_address);
    for (size_t i = 0; i < count; i += 2) {
        *used -= live[i]->size;
        heap->policy->free(heap, live[i]);
        crowd->is_live[live[i] - crowd->block] = false;
    }
}

/* Fills up to `live` bytes with blocks of a size. */
static void fill(struct frag_heap *heap, struct crowd *crowd, frag_size size,
                 frag_size live, frag_size *used)
{
    for (uint32_t i = 0; i < BLOCKS && *used + size <= live; i++) {
        const struct frag_request req = {.size = size, .owner = i};

        if (crowd->is_live[i])
            continue;
        assert_int_equal(heap->policy->alloc(heap, &req, &crowd->block[i]),
                         FRAG_OK);
        crowd->is_live[i] = true;
        *used += size;
    }
}

/* Allocates blocks of one size, frees every second one, allocates blocks of
 * twice the size in their place, and so on: no hole ever fits the next size. At
 * most `live` bytes are live. Returns the bytes held at the end, when nothing
 * has been released. */
static frag_size attack(const char *name, const char *params, frag_size live)
{
    static struct crowd crowd;
    static struct faulty mem;
    const struct frag_arena_options opts = {.capacity = FRAG_UNLIMITED};
    struct frag_backend *arena = frag_arena_open(&opts);
    struct frag_heap heap;
    struct frag_error e;
    frag_size used = 0, held;

    memset(&crowd, 0, sizeof(crowd));
    faulty_init(&mem, arena);
    assert_int_equal(
        frag_heap_open(&heap, frag_policy_find(name), &mem.base, params, &e),
        FRAG_OK);
    heap.moved = follow_crowd;
    heap.user = &crowd;
    for (frag_size size = live / BLOCKS; size <= live / 8; size *= 2) {
        fill(&heap, &crowd, size, live, &used);
        thin_out(&heap, &crowd, &used);
    }
    held = mem.used;
    frag_heap_close(&heap);
    frag_arena_close(arena);
    return held;
}

static void an_adversary_drives_who_cannot_move_and_not_compact(void **state)
{
    const frag_size live = 256 * FRAG_MIB;

    (void)state;
    assert_true(attack("best_fit", NULL, live) > 2 * live);
    assert_true(attack("first_fit", NULL, live) > 2 * live);
    assert_true(attack("compact", NULL, live) <= live + live / 50);
    assert_int_equal(attack("compact", "threshold=0", live), live);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_takes_no_moves_gets_none),
        cmocka_unit_test(an_adversary_drives_who_cannot_move_and_not_compact),
    };

    return run_pictures("pictures", pictures,
                        sizeof(pictures) / sizeof(*pictures),
                        memory_is_as_drawn) +
           cmocka_run_group_tests_name("compact", tests, NULL, NULL);
}
