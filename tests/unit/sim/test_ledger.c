/* test_ledger.c - tests that the ledger finds every breach of the policy
 * contract: called directly, and behind a policy that breaks the contract in
 * one way at a time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "sim/arena/arena.h"
#include "sim/meter/ledger.h"
#include "sim/replay/replay.h"

#define MIB      FRAG_MIB
#define COUNT(a) (sizeof(a) / sizeof(*(a)))

/* ---------------------------------------------------- asked directly --- */

static struct frag_ledger *open_ledger(void)
{
    struct frag_ledger *l = frag_ledger_open(8);

    assert_non_null(l);
    return l;
}

static void is_fault(struct frag_ledger *l, enum frag_err err,
                     const char *words)
{
    assert_int_equal(err, FRAG_CONTRACT);
    assert_non_null(frag_ledger_fault(l));
    if (!strstr(frag_ledger_fault(l), words))
        fail_msg("\"%s\" does not say \"%s\"", frag_ledger_fault(l), words);
    frag_ledger_close(l);
}

static enum frag_err put(struct frag_ledger *l, uint32_t owner, frag_addr addr,
                         frag_size size)
{
    return frag_ledger_alloc(l, owner, size,
                             &(struct frag_block){addr, size, NULL});
}

static void an_honest_life_has_no_fault(void **state)
{
    struct frag_ledger *l = open_ledger();
    struct frag_block b = {0x1000, 512, NULL};

    (void)state;
    assert_int_equal(frag_ledger_hold(l, 0x1000, 0x1000, 0, 0), FRAG_OK);
    assert_int_equal(frag_ledger_alloc(l, 0, 1, &b), FRAG_OK);
    assert_int_equal(put(l, 1, 0x1200, 0xe00), FRAG_OK);
    assert_int_equal(frag_ledger_free(l, 0, &b), FRAG_OK);
    assert_int_equal(
        frag_ledger_move(l, 1, &(struct frag_block){0x1000, 0xe00, NULL}),
        FRAG_OK);
    assert_int_equal(
        frag_ledger_free(l, 1, &(struct frag_block){0x1000, 0xe00, NULL}),
        FRAG_OK);
    assert_int_equal(frag_ledger_drop(l, 0x1000, 0x1000), FRAG_OK);
    assert_null(frag_ledger_fault(l));
    frag_ledger_close(l);
}

static void blocks_may_span_maps_of_one_reservation_only(void **state)
{
    struct frag_ledger *l = open_ledger();

    (void)state;
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(
            frag_ledger_hold(l, 0x1000 * (i + 1), 0x1000, 7, i + 1), FRAG_OK);
    assert_int_equal(frag_ledger_hold(l, 0x4000, 0x1000, 8, 0x4000), FRAG_OK);
    assert_int_equal(put(l, 0, 0x1200, 0x2e00), FRAG_OK);
    is_fault(l, put(l, 1, 0x4000 - 0x200 + 0x200, 0x1200), "not inside");
    l = open_ledger();
    assert_int_equal(frag_ledger_hold(l, 0x1000, 0x1000, 7, 0x1000), FRAG_OK);
    assert_int_equal(frag_ledger_hold(l, 0x2000, 0x1000, 8, 0x2000), FRAG_OK);
    is_fault(l, put(l, 1, 0x1000, 0x2000), "not inside");
}

static void segments_that_touch_are_not_one(void **state)
{
    struct frag_ledger *l = open_ledger();

    (void)state;
    assert_int_equal(frag_ledger_hold(l, 0x1000, 0x1000, 0, 0), FRAG_OK);
    assert_int_equal(frag_ledger_hold(l, 0x2000, 0x1000, 0, 0), FRAG_OK);
    is_fault(l, put(l, 0, 0x1e00, 0x400), "not inside");
}

static void is_disturbed(struct frag_ledger *l, uint32_t owner,
                         enum frag_disturbance by)
{
    enum frag_disturbance found;
    uint32_t name;

    assert_true(frag_ledger_disturbed(l, &name, &found));
    assert_int_equal(name, owner);
    assert_int_equal(found, by);
}

static void is_calm(struct frag_ledger *l)
{
    enum frag_disturbance found;
    uint32_t name;

    assert_false(frag_ledger_disturbed(l, &name, &found));
}

/* Two maps of one memory at 0x1000 and 0x3000, one of another at 0x2000, and a
 * segment at 0x5000. */
static struct frag_ledger *open_with_memory(void)
{
    struct frag_ledger *l = open_ledger();

    assert_int_equal(frag_ledger_hold(l, 0x1000, 0x1000, 7, 1), FRAG_OK);
    assert_int_equal(frag_ledger_hold(l, 0x2000, 0x1000, 7, 2), FRAG_OK);
    assert_int_equal(frag_ledger_hold(l, 0x3000, 0x1000, 7, 1), FRAG_OK);
    assert_int_equal(frag_ledger_hold(l, 0x5000, 0x1000, 0, 0), FRAG_OK);
    is_calm(l);
    return l;
}

static void who_is_disturbed_is_told_once(void **state)
{
    const struct frag_block moved = {0x2000, 512, NULL};
    struct frag_ledger *l = open_with_memory();

    (void)state;
    assert_int_equal(put(l, 0, 0x1e00, 512), FRAG_OK);
    is_calm(l);
    frag_ledger_copied(l, 0x1e00, 512);
    assert_int_equal(frag_ledger_move(l, 0, &moved), FRAG_OK);
    is_disturbed(l, 0, FRAG_MOVED);
    is_calm(l);
    frag_ledger_copied(l, 0x2000, 512);
    is_disturbed(l, 0, FRAG_COPIED_OVER);
    frag_ledger_copied(l, 0x2000, 512);
    assert_int_equal(frag_ledger_free(l, 0, &moved), FRAG_OK);
    is_calm(l);
    frag_ledger_close(l);
}

/* Whose name comes back is another block, and may be disturbed again. */
static void a_block_that_died_is_not_told_of(void **state)
{
    const struct frag_block b = {0x5000, 512, NULL};
    struct frag_ledger *l = open_with_memory();

    (void)state;
    assert_int_equal(put(l, 1, 0x5200, 512), FRAG_OK);
    assert_int_equal(put(l, 0, b.addr, b.size), FRAG_OK);
    frag_ledger_copied(l, 0x5000, 0x400);
    assert_int_equal(frag_ledger_free(l, 0, &b), FRAG_OK);
    assert_int_equal(put(l, 0, b.addr, b.size), FRAG_OK);
    is_disturbed(l, 1, FRAG_COPIED_OVER);
    is_calm(l);
    frag_ledger_copied(l, 0x5000, 0x400);
    assert_int_equal(frag_ledger_free(l, 0, &b), FRAG_OK);
    assert_int_equal(put(l, 0, b.addr, b.size), FRAG_OK);
    frag_ledger_copied(l, 0x5000, 512);
    is_disturbed(l, 1, FRAG_COPIED_OVER);
    is_disturbed(l, 0, FRAG_COPIED_OVER);
    is_calm(l);
    frag_ledger_close(l);
}

/* A copy of [dst, dst + size), and the blocks that it goes over: bit i is block
 * i. */
static void a_copy_disturbs_whom_it_goes_over(void **state)
{
    static const struct {
        frag_addr dst;
        frag_size size;
        unsigned blocks;
    } rows[] = {
        {0x1000, 512, 0},
        {0x1000, 513, 1},
        {0x13ff, 1, 1},
        {0x1400, 512, 0},
        {0x1800, 0x1000, 2},
        {0x3000, 0x300, 1},
        {0x3000, 512, 0},
        {0x2e00, 0x500, 1 | 2},
        {0x2d00, 0x200, 2},
        {0x5000, 0x1000, 4},
        {0x5000, 512, 0},
        {0x5100, 0x200, 4},
        {0x0800, 0x5000, 1 | 2 | 4},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct frag_ledger *l = open_with_memory();
        enum frag_disturbance by;
        unsigned blocks = 0;
        uint32_t owner;

        assert_int_equal(put(l, 0, 0x1200, 512), FRAG_OK);
        assert_int_equal(put(l, 1, 0x2200, 0xe00), FRAG_OK);
        assert_int_equal(put(l, 2, 0x5200, 512), FRAG_OK);
        frag_ledger_copied(l, rows[i].dst, rows[i].size);
        while (frag_ledger_disturbed(l, &owner, &by))
            blocks |= 1u << owner;
        assert_int_equal(blocks, rows[i].blocks);
        frag_ledger_close(l);
    }
}

/* Blocks that begin in a map, end in it, or have it whole. */
static void a_remap_disturbs_whom_it_shows(void **state)
{
    struct frag_ledger *l = open_with_memory();
    unsigned told = 0;
    enum frag_disturbance by;
    uint32_t owner;

    (void)state;
    assert_int_equal(frag_ledger_drop(l, 0x3000, 0x1000), FRAG_OK);
    assert_int_equal(frag_ledger_hold(l, 0x3000, 0x1000, 7, 3), FRAG_OK);
    assert_int_equal(put(l, 0, 0x1000, 512), FRAG_OK);
    assert_int_equal(put(l, 1, 0x1e00, 1024), FRAG_OK);
    assert_int_equal(put(l, 2, 0x2200, 512), FRAG_OK);
    assert_int_equal(put(l, 3, 0x2e00, 1024), FRAG_OK);
    assert_int_equal(put(l, 4, 0x3200, 512), FRAG_OK);
    assert_int_equal(frag_ledger_drop(l, 0x2000, 0x1000), FRAG_OK);
    is_calm(l);
    assert_int_equal(frag_ledger_hold(l, 0x2000, 0x1000, 7, 4), FRAG_OK);
    while (frag_ledger_disturbed(l, &owner, &by)) {
        assert_int_equal(by, FRAG_REMAPPED);
        told |= 1u << owner;
    }
    assert_int_equal(told, 1u << 1 | 1u << 2 | 1u << 3);
    frag_ledger_close(l);
}

static void every_flaw_of_an_answer_is_named(void **state)
{
    static const struct {
        frag_addr addr;
        frag_size asked, size;
        const char *words;
    } rows[] = {
        {0x1080, 256, 256, "not aligned"},
        {0x1000, 513, 512, "smaller"},
        {0x3000, 512, 512, "not inside"},
        {0x0e00, 512, 512, "not inside"},
        {0x1e00, 512, 513, "not inside"},
        {0x1000, 1, UINT64_MAX - 0xfff, "not inside"},
        {0x1600, 512, 512, "overlaps"},
        {0x1400, 512, 1024, "overlaps"},
        {0x1000, 512, 4096, "overlaps"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct frag_ledger *l = open_ledger();
        struct frag_block b = {rows[i].addr, rows[i].size, NULL};

        assert_int_equal(frag_ledger_hold(l, 0x1000, 0x1000, 0, 0), FRAG_OK);
        assert_int_equal(put(l, 0, 0x1600, 512), FRAG_OK);
        is_fault(l, frag_ledger_alloc(l, 1, rows[i].asked, &b), rows[i].words);
    }
}

static void frees_are_for_live_blocks_as_they_were_given(void **state)
{
    const struct frag_block b = {0x1000, 512, NULL};
    const struct frag_block moved = {0x1200, 512, NULL};
    struct frag_ledger *l = open_ledger();

    (void)state;
    is_fault(l, frag_ledger_free(l, 0, &b), "not live");
    l = open_ledger();
    is_fault(l, frag_ledger_free(l, 8, &b), "not live");
    l = open_ledger();
    assert_int_equal(frag_ledger_hold(l, 0x1000, 0x1000, 0, 0), FRAG_OK);
    assert_int_equal(frag_ledger_alloc(l, 0, 5, &b), FRAG_OK);
    is_fault(l, frag_ledger_free(l, 0, &moved), "was freed as");
    l = open_ledger();
    assert_int_equal(frag_ledger_hold(l, 0x1000, 0x1000, 0, 0), FRAG_OK);
    assert_int_equal(frag_ledger_alloc(l, 0, 5, &b), FRAG_OK);
    assert_int_equal(frag_ledger_free(l, 0, &b), FRAG_OK);
    is_fault(l, frag_ledger_free(l, 0, &b), "not live");
}

static void memory_under_a_live_block_stays(void **state)
{
    struct frag_ledger *l = open_ledger();

    (void)state;
    assert_int_equal(frag_ledger_hold(l, 0x1000, 0x1000, 0, 0), FRAG_OK);
    assert_int_equal(put(l, 0, 0x1e00, 0x200), FRAG_OK);
    is_fault(l, frag_ledger_drop(l, 0x1000, 0x1000), "under the live block");
}

/* Two maps of reservation 7 with a live block over both, a third of the second
 * one's memory. */
static struct frag_ledger *open_mapped(void)
{
    struct frag_ledger *l = open_ledger();

    assert_int_equal(frag_ledger_hold(l, 0x1000, 0x1000, 7, 1), FRAG_OK);
    assert_int_equal(frag_ledger_hold(l, 0x2000, 0x1000, 7, 2), FRAG_OK);
    assert_int_equal(frag_ledger_hold(l, 0x8000, 0x1000, 7, 2), FRAG_OK);
    assert_int_equal(put(l, 0, 0x1e00, 0x400), FRAG_OK);
    return l;
}

static void a_map_may_go_and_come_back_within_a_call(void **state)
{
    struct frag_ledger *l = open_mapped();

    (void)state;
    assert_int_equal(frag_ledger_drop(l, 0x2000, 0x1000), FRAG_OK);
    is_fault(l, frag_ledger_settle(l),
             "0x2000 (4096 bytes) was released "
             "under the live block at 0x1e00");
    l = open_mapped();
    assert_int_equal(frag_ledger_drop(l, 0x2000, 0x1000), FRAG_OK);
    assert_int_equal(frag_ledger_hold(l, 0x2000, 0x1000, 7, 3), FRAG_OK);
    assert_int_equal(frag_ledger_settle(l), FRAG_OK);
    assert_int_equal(put(l, 1, 0x8000, 0x1000), FRAG_OK);
    frag_ledger_close(l);
    l = open_mapped(); /* the block dies before the call is over */
    assert_int_equal(frag_ledger_drop(l, 0x2000, 0x1000), FRAG_OK);
    assert_int_equal(
        frag_ledger_free(l, 0, &(struct frag_block){0x1e00, 0x400, NULL}),
        FRAG_OK);
    assert_int_equal(frag_ledger_settle(l), FRAG_OK);
    frag_ledger_close(l);
}

static void no_two_blocks_share_memory(void **state)
{
    struct frag_ledger *l = open_mapped();

    (void)state;
    assert_int_equal(put(l, 1, 0x8200, 0xe00),
                     FRAG_OK); /* the free bytes of it */
    is_fault(l, put(l, 2, 0x8000, 0x200),
             "at 0x8000 shares memory with the one at 0x1e00");
    l = open_mapped(); /* the other way round, and the second page of a block */
    assert_int_equal(frag_ledger_hold(l, 0x7000, 0x1000, 7, 3), FRAG_OK);
    is_fault(l, put(l, 1, 0x7e00, 0x400), "shares memory");
    l = open_mapped(); /* with itself */
    assert_int_equal(frag_ledger_hold(l, 0x9000, 0x1000, 7, 2), FRAG_OK);
    is_fault(l, put(l, 1, 0x8400, 0x1200),
             "at 0x8400 shares memory with the "
             "one at 0x8400");
    l = open_mapped(); /* a map that comes back with another's bytes */
    assert_int_equal(put(l, 1, 0x8200, 0xe00), FRAG_OK);
    assert_int_equal(frag_ledger_drop(l, 0x1000, 0x1000), FRAG_OK);
    is_fault(l, frag_ledger_hold(l, 0x1000, 0x1000, 7, 2), "shares memory");
    l = open_mapped(); /* a map that is gone shows nothing */
    assert_int_equal(frag_ledger_hold(l, 0x9000, 0x1000, 7, 2), FRAG_OK);
    assert_int_equal(frag_ledger_drop(l, 0x8000, 0x1000), FRAG_OK);
    assert_int_equal(frag_ledger_hold(l, 0x8000, 0x1000, 7, 4), FRAG_OK);
    assert_int_equal(put(l, 1, 0x8000, 0x1000), FRAG_OK);
    is_fault(l, put(l, 2, 0x9000, 0x200), "shares memory");
}

/* ------------------------------------------------- behind a broken policy */

enum fault {
    NONE,
    OVERLAP,
    MISALIGNED,
    SMALL,
    BEYOND_ITS_SEGMENT,
    NOWHERE,
    PULLS_THE_RUG,
    FREES_SEGMENT_TWICE,
    MOVES_ONTO_ANOTHER,
    MOVES_THE_DEAD,
    KEEPS_MEMORY,
    GIVES_MEMORY_TWICE,
    FREES_LAST_TWICE,
};

/* Every block is a segment of 2 MiB; the fault is a parameter. */
struct broken {
    uint32_t fault;
    frag_addr last, twin;
    frag_phys phys;
    uint64_t allocs, frees;
};

/* A block and the next one in the same memory at other addresses. */
static enum frag_err give_twice(struct frag_heap *heap, struct broken *s,
                                struct frag_block *out)
{
    const struct frag_backend_ops *ops = heap->mem->ops;

    if (!s->phys) {
        FRAG_TRY(ops->va_reserve(heap->mem, 4 * MIB, &s->twin));
        FRAG_TRY(ops->phys_create(heap->mem, 2 * MIB, &s->phys));
    }
    out->addr = s->twin;
    s->twin += 2 * MIB;
    return ops->map(heap->mem, out->addr, 2 * MIB, s->phys);
}

static enum frag_err broken_alloc(struct frag_heap *heap,
                                  const struct frag_request *req,
                                  struct frag_block *out)
{
    struct broken *s = heap->state;
    const struct frag_backend_ops *ops = heap->mem->ops;
    frag_addr addr, last = s->last;
    struct frag_block onto = {last, 512, NULL};

    FRAG_TRY(ops->segment_alloc(heap->mem, 2 * MIB, &addr));
    s->last = addr;
    *out = (struct frag_block){addr, frag_round_up(req->size, 512), NULL};
    if (s->allocs++ < 3)
        return FRAG_OK;
    switch ((enum fault)s->fault) {
    case OVERLAP:
        out->addr = last;
        break;
    case MISALIGNED:
        out->addr += 128;
        break;
    case SMALL:
        out->size = req->size - 1;
        break;
    case BEYOND_ITS_SEGMENT:
        out->size = 2 * MIB + 512;
        break;
    case NOWHERE:
        out->addr = 512;
        break;
    case PULLS_THE_RUG:
        return ops->segment_free(heap->mem, last, 2 * MIB);
    case FREES_SEGMENT_TWICE:
        FRAG_TRY(ops->segment_free(heap->mem, addr, 2 * MIB));
        return ops->segment_free(heap->mem, addr, 2 * MIB);
    case MOVES_ONTO_ANOTHER:
        heap->moved(heap->user, 0, &onto);
        break;
    case MOVES_THE_DEAD:
        heap->moved(heap->user, req->owner, &onto);
        break;
    case GIVES_MEMORY_TWICE:
        return give_twice(heap, s, out);
    case NONE:
    case KEEPS_MEMORY:
    case FREES_LAST_TWICE:
        break;
    }
    return FRAG_OK;
}

static void broken_free(struct frag_heap *heap, const struct frag_block *block)
{
    struct broken *s = heap->state;

    if (s->fault == KEEPS_MEMORY)
        return;
    assert_int_equal(
        heap->mem->ops->segment_free(heap->mem, block->addr, 2 * MIB), FRAG_OK);
    if (s->fault == FREES_LAST_TWICE && ++s->frees == 5)
        assert_int_equal(
            heap->mem->ops->segment_free(heap->mem, block->addr, 2 * MIB),
            FRAG_CONTRACT);
}

static const struct frag_param broken_params[] = {
    {.name = "fault",
     .kind = FRAG_PARAM_CHOICE,
     .offset = offsetof(struct broken, fault),
     .init = "none",
     .choices = "none|overlap|misaligned|small|beyond|nowhere|rug|twice|onto|"
                "dead|keeps|again|last",
     .help = "what is wrong"},
    {.name = NULL}};

static const struct frag_policy broken = {
    .name = "broken",
    .summary = "breaks its contract at the fourth request",
    .source = "this test",
    .quantum = FRAG_QUANTUM,
    .state_size = sizeof(struct broken),
    .params = broken_params,
    .alloc = broken_alloc,
    .free = broken_free,
};

/* Five allocs, then their frees. */
static const uint8_t ops[] = {FRAG_ALLOC, FRAG_ALLOC, FRAG_ALLOC, FRAG_ALLOC,
                              FRAG_ALLOC, FRAG_FREE,  FRAG_FREE,  FRAG_FREE,
                              FRAG_FREE,  FRAG_FREE};
static const uint32_t ids[] = {0, 1, 2, 3, 4, 0, 1, 2, 3, 4};
static const uint64_t bytes[] = {512, 512, 512, 512, 512, 0, 0, 0, 0, 0};
static const frag_stream streams[COUNT(ops)];
static const frag_pool pools[COUNT(ops)];
static const uint64_t raw_stream;
static const struct frag_pool_id raw_pool;
static const struct frag_device_trace trace = {.slots = 5,
                                               .count = COUNT(ops),
                                               .op = ops,
                                               .id = ids,
                                               .bytes = bytes,
                                               .stream = streams,
                                               .pool = pools,
                                               .stream_count = 1,
                                               .pool_count = 1,
                                               .streams = &raw_stream,
                                               .pools = &raw_pool};

static enum frag_err run_times(const struct frag_device_trace *t,
                               const char *params, bool check, uint64_t times,
                               struct frag_error *e)
{
    struct frag_arena_options opts = {.capacity = FRAG_UNLIMITED,
                                      .rule = FRAG_RULE_HOSTILE};
    struct frag_backend *mem = frag_arena_open(&opts);
    struct frag_replay spec = {.trace = t,
                               .policy = &broken,
                               .params = params,
                               .mem = mem,
                               .check = check,
                               .repeat = times,
                               .points = 3};
    struct frag_run run;
    enum frag_err err;

    assert_non_null(mem);
    err = frag_replay(&spec, &run, e);
    if (err == FRAG_OK)
        frag_run_free(&run);
    assert_int_equal(frag_arena_used(mem), 0);
    frag_arena_close(mem);
    return err;
}

static enum frag_err run_broken(const char *params, bool check,
                                struct frag_error *e)
{
    return run_times(&trace, params, check, 1, e);
}

/* The trace without its last free, so that it is made between the two runs. */
static void a_fault_between_two_runs_is_told(void **state)
{
    struct frag_device_trace t = trace;
    struct frag_error e = {""};

    (void)state;
    t.count--;
    assert_int_equal(run_times(&t, "fault=last", true, 2, &e), FRAG_CONTRACT);
    if (!strstr(e.text, "event 9: ") || !strstr(e.text, "segment_free"))
        fail_msg("\"%s\"", e.text);
}

static void every_planted_fault_is_caught_with_its_event(void **state)
{
    static const struct {
        const char *params, *words;
    } rows[] = {
        {"fault=overlap", "event 3: block 3 at"},
        {"fault=misaligned", "not aligned"},
        {"fault=small", "smaller"},
        {"fault=beyond", "not inside"},
        {"fault=nowhere", "not inside"},
        {"fault=rug", "under the live block"},
        {"fault=twice", "segment_free"},
        {"fault=onto", "overlaps a live block"},
        {"fault=dead", "moved but not live"},
        {"fault=keeps", "after its fini, 10485760 bytes"},
        {"fault=again", "event 4: the live block at"},
        {"fault=last", "event 9: the policy calls segment_free"},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct frag_error e = {""};

        assert_int_equal(run_broken(rows[i].params, true, &e), FRAG_CONTRACT);
        if (!strstr(e.text, rows[i].words) || !strstr(e.text, "broken: "))
            fail_msg("%s: \"%s\"", rows[i].params, e.text);
    }
}

static bool cancel(void *user, uint64_t done, uint64_t total)
{
    (void)user;
    (void)done;
    (void)total;
    return true;
}

/* The policy also keeps memory after its fini, which is not the reason. */
static void the_first_error_is_told(void **state)
{
    struct frag_backend *mem = frag_arena_open(
        &(struct frag_arena_options){.capacity = FRAG_UNLIMITED});
    const struct frag_replay spec = {.trace = &trace,
                                     .policy = &broken,
                                     .params = "fault=keeps",
                                     .mem = mem,
                                     .check = true,
                                     .repeat = 1,
                                     .progress = cancel};
    struct frag_error e = {""};
    struct frag_run run;

    (void)state;
    assert_non_null(mem);
    assert_int_equal(frag_replay(&spec, &run, &e), FRAG_CANCELLED);
    assert_string_equal(e.text, "broken: cancelled");
    frag_arena_close(mem);
}

static void what_is_not_broken_passes(void **state)
{
    struct frag_error e = {""};

    (void)state;
    assert_int_equal(run_broken("fault=none", true, &e), FRAG_OK);
    assert_string_equal(e.text, "");
}

/* Memory that a policy kept is released to the device in any case. */
static void an_unchecked_run_gives_back_what_the_policy_kept(void **state)
{
    struct frag_error e = {""};

    (void)state;
    assert_int_equal(run_broken("fault=keeps", false, &e), FRAG_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_honest_life_has_no_fault),
        cmocka_unit_test(blocks_may_span_maps_of_one_reservation_only),
        cmocka_unit_test(segments_that_touch_are_not_one),
        cmocka_unit_test(who_is_disturbed_is_told_once),
        cmocka_unit_test(a_block_that_died_is_not_told_of),
        cmocka_unit_test(a_copy_disturbs_whom_it_goes_over),
        cmocka_unit_test(a_remap_disturbs_whom_it_shows),
        cmocka_unit_test(every_flaw_of_an_answer_is_named),
        cmocka_unit_test(frees_are_for_live_blocks_as_they_were_given),
        cmocka_unit_test(memory_under_a_live_block_stays),
        cmocka_unit_test(a_map_may_go_and_come_back_within_a_call),
        cmocka_unit_test(no_two_blocks_share_memory),
        cmocka_unit_test(every_planted_fault_is_caught_with_its_event),
        cmocka_unit_test(a_fault_between_two_runs_is_told),
        cmocka_unit_test(the_first_error_is_told),
        cmocka_unit_test(what_is_not_broken_passes),
        cmocka_unit_test(an_unchecked_run_gives_back_what_the_policy_kept),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
