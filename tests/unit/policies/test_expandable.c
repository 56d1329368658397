/* test_expandable.c - tests the sizes of pages of policy expandable, what it
 * does when the device refuses, its bound (what a request that fails says of
 * the memory that is held), and that more memory never makes a program fail.
 * The judge keeps its own list of maps. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "policies/policy.h"
#include "sim/arena/arena.h"
#include "sim/experiments/contract/traffic.h"

#define PAGE (2 * FRAG_MIB)

enum { MAPS = 1 << 15, BLOCKS = 200 };

struct judged_map {
    frag_addr addr;
    frag_size size;
};

/* A backend that lists the maps, and counts the calls that cost most. */
struct judge {
    struct frag_backend base;
    struct frag_backend_ops ops;
    struct frag_backend *inner;
    struct judged_map maps[MAPS];
    size_t count;
    uint64_t created, waits;
    const struct frag_block *pending; /* its free completes at a wait */
    bool keeps_maps;                  /* refuses to unmap */
    frag_size bytes;                  /* created and not released */
    struct frag_heap heap;
};

static struct judge judge;

static enum frag_err judge_map(struct frag_backend *mem, frag_addr addr,
                               frag_size size, frag_phys phys)
{
    (void)mem;
    FRAG_TRY(judge.inner->ops->map(judge.inner, addr, size, phys));
    assert_true(judge.count < MAPS);
    judge.maps[judge.count++] = (struct judged_map){addr, size};
    return FRAG_OK;
}

static enum frag_err judge_unmap(struct frag_backend *mem, frag_addr addr,
                                 frag_size size)
{
    (void)mem;
    if (judge.keeps_maps)
        return FRAG_DEVICE;
    FRAG_TRY(judge.inner->ops->unmap(judge.inner, addr, size));
    for (size_t i = 0; i < judge.count;) {
        if (judge.maps[i].addr >= addr && judge.maps[i].addr < addr + size)
            judge.maps[i] = judge.maps[--judge.count];
        else
            i++;
    }
    return FRAG_OK;
}

static enum frag_err judge_create(struct frag_backend *mem, frag_size size,
                                  frag_phys *phys)
{
    (void)mem;
    FRAG_TRY(judge.inner->ops->phys_create(judge.inner, size, phys));
    judge.created++;
    judge.bytes += size;
    return FRAG_OK;
}

static enum frag_err judge_release(struct frag_backend *mem, frag_phys phys,
                                   frag_size size)
{
    (void)mem;
    FRAG_TRY(judge.inner->ops->phys_release(judge.inner, phys, size));
    judge.bytes -= size;
    return FRAG_OK;
}

static enum frag_err judge_reserve(struct frag_backend *mem, frag_size size,
                                   frag_addr *addr)
{
    (void)mem;
    return judge.inner->ops->va_reserve(judge.inner, size, addr);
}

static enum frag_err judge_va_free(struct frag_backend *mem, frag_addr addr,
                                   frag_size size)
{
    (void)mem;
    return judge.inner->ops->va_free(judge.inner, addr, size);
}

static enum frag_err judge_synchronize(struct frag_backend *mem)
{
    (void)mem;
    judge.waits++;
    if (judge.pending)
        judge.heap.policy->free(&judge.heap, judge.pending);
    judge.pending = NULL;
    return FRAG_OK;
}

/* The device has `capacity` bytes and says that it has `told`. */
static void judge_open_as(frag_size capacity, frag_size told,
                          const char *params)
{
    const struct frag_arena_options opts = {.capacity = capacity};
    struct frag_error e;

    judge = (struct judge){.inner = frag_arena_open(&opts)};
    assert_non_null(judge.inner);
    judge.base = *judge.inner;
    judge.base.capacity = judge.base.total = told;
    judge.ops = *judge.inner->ops;
    judge.ops.map = judge_map;
    judge.ops.unmap = judge_unmap;
    judge.ops.phys_create = judge_create;
    judge.ops.phys_release = judge_release;
    judge.ops.va_reserve = judge_reserve;
    judge.ops.va_free = judge_va_free;
    judge.ops.synchronize = judge_synchronize;
    judge.base.ops = &judge.ops;
    assert_int_equal(frag_heap_open(&judge.heap, frag_policy_find("expandable"),
                                    &judge.base, params, &e),
                     FRAG_OK);
}

static void judge_open(frag_size capacity, const char *params)
{
    judge_open_as(capacity, capacity, params);
}

static void judge_close(void)
{
    assert_null(judge.heap.policy->check(&judge.heap));
    frag_heap_close(&judge.heap);
    assert_int_equal(judge.count, 0);
    frag_arena_close(judge.inner);
}

static enum frag_err ask(frag_size size, frag_stream stream,
                         struct frag_block *block)
{
    const struct frag_request req = {
        .size = size, .frees_at = FRAG_NEVER, .stream = stream};

    return judge.heap.policy->alloc(&judge.heap, &req, block);
}

static struct frag_block block_of(frag_size size, frag_stream stream)
{
    struct frag_block block = {0};

    assert_int_equal(ask(size, stream, &block), FRAG_OK);
    return block;
}

static void end(const struct frag_block *block)
{
    judge.heap.policy->free(&judge.heap, block);
}

/* The bytes of the map that has the address. */
static frag_size map_at(frag_addr addr)
{
    for (size_t i = 0; i < judge.count; i++)
        if (addr >= judge.maps[i].addr &&
            addr - judge.maps[i].addr < judge.maps[i].size)
            return judge.maps[i].size;
    fail_msg("a block has no memory");
    return 0;
}

static frag_size held(void)
{
    frag_size bytes = 0;

    for (size_t i = 0; i < judge.count; i++)
        bytes += judge.maps[i].size;
    return bytes;
}

/* ---- the sizes of pages ---- */

/* On a device of 96 GiB of which `used` are in use, a block of `size` bytes has
 * pages of `page` bytes. */
static const struct sized {
    frag_size used, size, page;
} sized[] = {
    {0, FRAG_GIB, 64 * FRAG_MIB},
    {0, 40 * FRAG_MIB, 40 * FRAG_MIB},
    {0, FRAG_MIB, 20 * FRAG_MIB},             /* mapped ahead */
    {48 * FRAG_GIB, FRAG_GIB, 32 * FRAG_MIB}, /* 1/8 of 256 MiB */
    {72 * FRAG_GIB, FRAG_GIB, 4 * FRAG_MIB},  /* 1/64 */
    {72 * FRAG_GIB, FRAG_MIB, 4 * FRAG_MIB},
    {84 * FRAG_GIB, FRAG_GIB, PAGE}, /* 1/512 would be less than a page */
};

static void pages_shrink_as_the_device_fills(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(sized) / sizeof(*sized); i++) {
        struct frag_block b;

        judge_open(96 * FRAG_GIB, NULL);
        if (sized[i].used)
            block_of(sized[i].used, 1);
        b = block_of(sized[i].size, 2);
        assert_int_equal(map_at(b.addr), sized[i].page);
        judge_close();
    }
}

/* The most that a page may have, and a bound that only the limit states. */
static void pages_shrink_below_a_limit(void **state)
{
    struct frag_block b;

    (void)state;
    judge_open(64 * FRAG_GIB, "largest=8MiB");
    b = block_of(FRAG_GIB, 0);
    assert_int_equal(map_at(b.addr), 8 * FRAG_MIB);
    judge_close();
    judge_open(64 * FRAG_GIB, NULL);
    judge.base.limit = 3 * FRAG_GIB; /* 1/384 of it */
    b = block_of(FRAG_GIB, 0);
    assert_int_equal(map_at(b.addr), 8 * FRAG_MIB);
    judge_close();
}

/* ---- a device that refuses ---- */

/* What a request misses comes from the free pages of another region, which stay
 * created; the rest of these stays mapped. */
static void free_pages_are_mapped_elsewhere(void **state)
{
    struct frag_block a, b;
    uint64_t created;

    (void)state;
    judge_open(256 * FRAG_MIB, NULL);
    a = block_of(128 * FRAG_MIB, 0);
    block_of(128 * FRAG_MIB, 1);
    end(&a);
    created = judge.created;
    b = block_of(32 * FRAG_MIB, 1);
    assert_int_equal(judge.created, created);
    assert_int_equal(judge.waits, 1);
    assert_int_equal(held(), 256 * FRAG_MIB);
    a = block_of(96 * FRAG_MIB, 0); /* without a wait */
    assert_int_equal(judge.waits, 1);
    end(&a);
    end(&b);
    /* Free pages of both regions. */
    block_of(128 * FRAG_MIB, 2);
    assert_int_equal(judge.created, created);
    assert_int_equal(judge.waits, 2);
    judge_close();
}

/* Another region gives its pages before the one that will have the block, so
 * the pages that the block has already stay. */
static void other_regions_give_first(void **state)
{
    struct frag_block a, b;

    (void)state;
    judge_open(128 * FRAG_MIB, "largest=2MiB");
    a = block_of(64 * FRAG_MIB, 0);
    b = block_of(64 * FRAG_MIB, 1);
    end(&a);
    end(&b);
    block_of(96 * FRAG_MIB, 0);
    assert_int_equal(held(), 128 * FRAG_MIB);
    assert_int_equal(judge.created, 64);
    judge_close();
}

/* A block whose first pages have memory receives that above it in the hole. */
static void the_hole_of_a_block_gives_too(void **state)
{
    struct frag_block a, b, c;

    (void)state;
    judge_open(24 * FRAG_MIB, "largest=2MiB");
    a = block_of(8 * FRAG_MIB, 0);
    b = block_of(8 * FRAG_MIB, 0);
    c = block_of(8 * FRAG_MIB, 0);
    end(&b);
    block_of(8 * FRAG_MIB, 1);
    end(&a);
    end(&c);
    block_of(16 * FRAG_MIB, 0);
    assert_int_equal(judge.created, 12);
    judge_close();
}

/* Three streams take turns, and the device has memory for two, in single pages
 * at first. From the first refusal on, what moves between the streams has
 * chunks of 1/16 of what is idle; once all have, none is created again. At turn
 * 3 stream 0 still has its own pages, since stream 1 gave at turn 2. */
static void a_full_device_moves_larger_chunks(void **state)
{
    uint64_t created = 0;

    (void)state;
    judge_open(FRAG_GIB, NULL);
    for (frag_stream turn = 0; turn < 12; turn++) {
        const struct frag_block b = block_of(FRAG_GIB / 2, turn % 3);

        assert_int_equal(map_at(b.addr),
                         turn < 2 || turn == 3 ? PAGE : 32 * FRAG_MIB);
        if (turn == 4)
            created = judge.created;
        end(&b);
    }
    assert_int_equal(judge.created, created);
    judge_close();
}

/* Idle is what the most that was live leaves, not what is free now. And nothing
 * is mapped ahead of a small block. */
static void the_most_that_was_live_is_not_idle(void **state)
{
    struct frag_block b, small;

    (void)state;
    judge_open(FRAG_GIB, NULL);
    b = block_of(768 * FRAG_MIB, 0);
    end(&b);
    b = block_of(FRAG_GIB / 2, 1);
    assert_int_equal(map_at(b.addr), 16 * FRAG_MIB);
    small = block_of(FRAG_MIB, 2);
    assert_int_equal(map_at(small.addr), PAGE);
    end(&small);
    end(&b);
    judge_close();
}

/* Another program has the rest of the device: what it does not have is tried
 * again in chunks of 1/16 of what is idle, until trim. */
static void an_unknown_bound_is_learned(void **state)
{
    struct frag_block a, b;

    (void)state;
    judge_open_as(6 * FRAG_MIB, 64 * FRAG_GIB, NULL);
    a = block_of(FRAG_MIB, 0); /* not 20 MiB ahead */
    assert_int_equal(held(), PAGE);
    b = block_of(4 * FRAG_MIB, 1);
    assert_int_equal(map_at(b.addr), PAGE);
    assert_int_equal(judge.waits, 0);
    end(&a);
    end(&b);
    judge_close();
    judge_open_as(4 * FRAG_GIB, 64 * FRAG_GIB, NULL);
    a = block_of(3 * FRAG_GIB, 0);
    assert_int_equal(map_at(a.addr), 64 * FRAG_MIB);
    assert_int_equal(ask(2 * FRAG_GIB, 1, &b), FRAG_OOM);
    assert_int_equal(judge.bytes, 3 * FRAG_GIB);
    b = block_of(FRAG_GIB / 2, 1); /* 4 GiB were held, 1/16 of 512 MiB */
    assert_int_equal(map_at(b.addr), 32 * FRAG_MIB);
    end(&b);
    judge.heap.policy->trim(&judge.heap);
    b = block_of(FRAG_GIB / 2, 1);
    assert_int_equal(map_at(b.addr), 64 * FRAG_MIB);
    judge_close();
}

/* Nothing is free: the policy refuses without a wait. */
static void a_full_device_is_not_waited_for(void **state)
{
    struct frag_block b;

    (void)state;
    judge_open(64 * FRAG_MIB, NULL);
    block_of(64 * FRAG_MIB, 0);
    assert_int_equal(ask(PAGE, 0, &b), FRAG_OOM);
    assert_int_equal(ask(PAGE, 1, &b), FRAG_OOM);
    assert_int_equal(judge.waits, 0);
    judge_close();
}

/* Nothing is free, but a free waits for queued work. */
static void a_wait_completes_frees(void **state)
{
    struct frag_block a, b;

    (void)state;
    judge_open(64 * FRAG_MIB, NULL);
    a = block_of(64 * FRAG_MIB, 0);
    judge.heap.policy->free_requested(&judge.heap, &a);
    judge.pending = &a;
    block_of(32 * FRAG_MIB, 1);
    assert_int_equal(judge.waits, 1);
    block_of(32 * FRAG_MIB, 2);
    assert_int_equal(judge.waits, 2);
    assert_int_equal(ask(PAGE, 0, &b), FRAG_OOM); /* no free waits any more */
    assert_int_equal(judge.waits, 2);
    judge_close();
}

/* The device refuses to unmap what is free: that is no lack of memory. */
static void a_refused_unmap_is_told(void **state)
{
    struct frag_block a, b;

    (void)state;
    judge_open(64 * FRAG_MIB, NULL);
    a = block_of(64 * FRAG_MIB, 0);
    end(&a);
    judge.keeps_maps = true;
    assert_int_equal(ask(PAGE, 1, &b), FRAG_DEVICE);
    judge.keeps_maps = false;
    b = block_of(PAGE, 1);
    end(&b);
    judge_close();
}

/* ---- the bound ---- */

struct crowd {
    struct frag_block live[BLOCKS];
    size_t count;
    uint64_t rng, failed;
};

/* The bytes of the live blocks, and of the pages at their ends. */
static frag_size most_held(const struct crowd *c)
{
    frag_size bytes = 0;

    for (size_t i = 0; i < c->count; i++) {
        const struct frag_block *b = &c->live[i];

        bytes += b->size + map_at(b->addr) + map_at(b->addr + b->size - 1);
    }
    return bytes;
}

/* A size of which the logarithm is evenly distributed: 512 B to `most`. */
static frag_size any_size(uint64_t *rng, frag_size most)
{
    frag_size size = 512;

    while (size < most && random_next(rng) % 8)
        size *= 2;
    return size + random_next(rng) % size;
}

static bool is_used(const struct crowd *c, const struct judged_map *m)
{
    for (size_t i = 0; i < c->count; i++)
        if (c->live[i].addr < m->addr + m->size &&
            m->addr < c->live[i].addr + c->live[i].size)
            return true;
    return false;
}

/* After a request has failed, all memory is mapped, and each page is used. */
static void nothing_is_free(const struct crowd *c)
{
    assert_int_equal(judge.bytes, held());
    for (size_t i = 0; i < judge.count; i++)
        assert_true(is_used(c, &judge.maps[i]));
}

static void one_request(struct crowd *c, frag_size capacity)
{
    const frag_size size = any_size(&c->rng, capacity / 8);
    const frag_stream stream = (frag_stream)(random_next(&c->rng) % 3);

    if (ask(size, stream, &c->live[c->count]) == FRAG_OK) {
        c->count++;
        return;
    }
    c->failed++;
    nothing_is_free(c);
    if (most_held(c) + size + 2 * PAGE + FRAG_QUANTUM <= capacity)
        fail_msg("a request failed that the bound promises");
}

static void one_free(struct crowd *c)
{
    const size_t i = random_next(&c->rng) % c->count;

    end(&c->live[i]);
    c->live[i] = c->live[--c->count];
}

static void bound_holds_for(frag_size capacity, const char *params,
                            uint64_t seed)
{
    static struct crowd c;

    c = (struct crowd){.rng = seed};
    judge_open(capacity, params);
    for (int i = 0; i < 4000; i++) {
        /* In turns the number of live blocks rises and falls. */
        const uint64_t grows = i / 200 % 2 ? 3 : 6;

        if (c.count < BLOCKS && (!c.count || random_next(&c.rng) % 8 < grows))
            one_request(&c, capacity);
        else
            one_free(&c);
        if (i % 997 == 996)
            judge.heap.policy->trim(&judge.heap);
        if (i % 50 == 0)
            assert_null(judge.heap.policy->check(&judge.heap));
    }
    assert_true(c.failed > 20);
    judge_close();
}

static void a_request_fails_only_beyond_the_bound(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 4; seed++) {
        bound_holds_for(256 * FRAG_MIB, NULL, seed);
        bound_holds_for(6 * FRAG_GIB, NULL, seed);
        bound_holds_for(6 * FRAG_GIB, "largest=2MiB", seed);
        bound_holds_for(48 * FRAG_GIB, NULL, seed);
    }
}

/* ---- more memory ---- */

/* A program, fixed before it runs: requests, and frees of live blocks. */
enum { STEPS = 1500 };

struct script_step {
    frag_size size; /* 0: a free */
    frag_stream stream;
    size_t freed; /* the index of the live block */
};

static void write_program(struct script_step *steps, uint64_t seed)
{
    uint64_t rng = seed;
    size_t live = 0;

    for (size_t i = 0; i < STEPS; i++) {
        const uint64_t grows = i / 200 % 2 ? 3 : 6;
        const bool asks =
            live < BLOCKS && (!live || random_next(&rng) % 8 < grows);

        if (asks)
            steps[i] =
                (struct script_step){any_size(&rng, 64 * FRAG_MIB),
                                     (frag_stream)(random_next(&rng) % 3), 0};
        else
            steps[i] = (struct script_step){.freed = random_next(&rng) % live};
        live += asks ? 1 : (size_t)-1;
    }
}

static int by_address(const void *a, const void *b)
{
    const struct frag_block *x = a, *y = b;

    return (x->addr > y->addr) - (x->addr < y->addr);
}

/* The pages that the live blocks touch. */
static uint64_t pages_in_use(const struct crowd *c)
{
    static struct frag_block sorted[BLOCKS];
    uint64_t pages = 0, known = 0; /* all below `known` are counted */

    memcpy(sorted, c->live, c->count * sizeof(*sorted));
    qsort(sorted, c->count, sizeof(*sorted), by_address);
    for (size_t i = 0; i < c->count; i++) {
        const uint64_t end = (sorted[i].addr + sorted[i].size - 1) / PAGE + 1;
        uint64_t first = sorted[i].addr / PAGE;

        first = first > known ? first : known;
        pages += end > first ? end - first : 0;
        known = end > known ? end : known;
    }
    return pages;
}

/* Runs the program; false if a request fails. *most is the most pages that the
 * live blocks touch at one time. */
static bool survives(const struct script_step *steps, frag_size capacity,
                     uint64_t *most)
{
    static struct crowd c;
    bool lives = true;

    c = (struct crowd){0};
    *most = 0;
    judge_open(capacity, "largest=2MiB");
    for (size_t i = 0; lives && i < STEPS; i++) {
        const struct script_step *s = &steps[i];

        if (s->size) {
            uint64_t pages;

            lives = ask(s->size, s->stream, &c.live[c.count]) == FRAG_OK;
            c.count += lives;
            pages = pages_in_use(&c);
            *most = pages > *most ? pages : *most;
        } else {
            end(&c.live[s->freed]);
            c.live[s->freed] = c.live[--c.count];
        }
    }
    judge_close();
    return lives;
}

/* The program fails at every capacity below the most pages that its live blocks
 * touch, and survives from there on; just above it the device refuses often. */
static void more_memory_never_fails(void **state)
{
    static struct script_step steps[STEPS];

    (void)state;
    for (uint64_t seed = 1; seed <= 3; seed++) {
        uint64_t need, most;

        write_program(steps, seed);
        assert_true(survives(steps, FRAG_UNLIMITED, &need));
        assert_false(judge.base.asked);
        for (uint64_t pages = need / 2; pages < need; pages += need / 40 + 1)
            assert_false(survives(steps, pages * PAGE, &most));
        assert_false(survives(steps, need * PAGE - 1, &most));
        for (uint64_t pages = need; pages < need + 8; pages++)
            assert_true(survives(steps, pages * PAGE, &most));
        for (uint64_t pages = need; pages < 2 * need; pages += need / 40 + 1)
            assert_true(survives(steps, pages * PAGE, &most));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pages_shrink_as_the_device_fills),
        cmocka_unit_test(pages_shrink_below_a_limit),
        cmocka_unit_test(free_pages_are_mapped_elsewhere),
        cmocka_unit_test(other_regions_give_first),
        cmocka_unit_test(the_hole_of_a_block_gives_too),
        cmocka_unit_test(a_full_device_moves_larger_chunks),
        cmocka_unit_test(the_most_that_was_live_is_not_idle),
        cmocka_unit_test(an_unknown_bound_is_learned),
        cmocka_unit_test(a_full_device_is_not_waited_for),
        cmocka_unit_test(a_wait_completes_frees),
        cmocka_unit_test(a_refused_unmap_is_told),
        cmocka_unit_test(a_request_fails_only_beyond_the_bound),
        cmocka_unit_test(more_memory_never_fails),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
