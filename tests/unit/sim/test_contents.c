/* test_contents.c - tests the check of block contents where bytes can get lost:
 * a byte lost in a move, a remap or a copy is reported with the event that lost
 * it, and only blocks that the policy's calls touched are verified. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "sim/arena/arena.h"
#include "sim/experiments/contract/traffic.h"
#include "sim/replay/replay.h"
#include "tests/support/shadow_backend.h"
#include "traces/trace.h"

#define COUNT(a) (sizeof(a) / sizeof(*(a)))

/* ------------------------------------------------- a run with contents --- */

struct proof {
    struct shadow shadow;
    struct faulty faulty; /* under it */
    uint64_t calls;       /* to it, up to the last event */
    struct frag_error e;
    uint64_t spoilt; /* the event that made copy number shadow.spoils */
    uint64_t looks, refused_at;   /* verify's calls; the one that fails */
    uint64_t looks_at[MAX_STEPS]; /* of the block of an event */
};

static enum frag_err fill(void *user, frag_addr addr, frag_size size,
                          uint64_t seed)
{
    struct proof *p = user;

    shadow_write(&p->shadow, &(struct frag_block){addr, size, NULL},
                 (unsigned char)(seed % 127));
    return FRAG_OK;
}

static enum frag_err verify(void *user, frag_addr addr, frag_size size,
                            uint64_t seed, frag_size *wrong)
{
    struct proof *p = user;

    if (++p->looks == p->refused_at)
        return FRAG_DEVICE;
    p->looks_at[seed]++;
    *wrong = shadow_wrong(&p->shadow, &(struct frag_block){addr, size, NULL},
                          (unsigned char)(seed % 127));
    return FRAG_OK;
}

static void done(void *user, uint64_t event, const struct frag_block *block)
{
    struct proof *p = user;

    (void)block;
    p->calls = p->faulty.calls;
    if (p->shadow.copies < p->shadow.spoils)
        p->spoilt = event + 1;
}

/* The trace against the policy; its words are in p->e. */
static enum frag_err prove(struct proof *p, frag_size capacity,
                           const struct frag_policy *policy, const char *params,
                           const struct frag_device_trace *trace)
{
    const struct frag_replay_watch watch = {.user = p, .done = done};
    const struct frag_contents contents = {p, fill, verify};
    struct frag_backend *arena =
        frag_arena_open(&(struct frag_arena_options){.capacity = capacity});
    const uint64_t spoils = p->shadow.spoils, refused_at = p->refused_at;
    const uint64_t fail_at = p->faulty.fail_at;
    const struct frag_replay spec = {.trace = trace,
                                     .policy = policy,
                                     .params = params,
                                     .mem = &p->shadow.base,
                                     .watch = &watch,
                                     .contents = &contents,
                                     .check = true,
                                     .repeat = 1};
    struct frag_run run;
    enum frag_err err;

    assert_non_null(arena);
    memset(p, 0, sizeof(*p));
    faulty_init(&p->faulty, arena);
    p->faulty.fail_at = fail_at;
    p->faulty.error = FRAG_DEVICE;
    shadow_open(&p->shadow, &p->faulty.base);
    p->shadow.spoils = spoils;
    p->refused_at = refused_at;
    err = frag_replay(&spec, &run, &p->e);
    if (err == FRAG_OK)
        frag_run_free(&run);
    assert_int_equal(frag_arena_used(arena), 0);
    shadow_close(&p->shadow);
    frag_arena_close(arena);
    return err;
}

static void says(const struct proof *p, const char *words)
{
    if (!strstr(p->e.text, words))
        fail_msg("\"%s\" does not say \"%s\"", p->e.text, words);
}

/* -------------------------------------------------- the real policies --- */

static const struct subject {
    const char *policy, *params, *when;
} subjects[] = {
    {"compact", NULL, "when it was moved"},
    {"compact", "threshold=1", "when it was moved"},
};

enum { STEPS = 300, CAPACITY_MIB = 64, SPOILT_RUNS = 15 };

/* A script's steps as events. */
struct traffic_trace {
    struct script script;
    uint8_t op[MAX_STEPS];
    uint32_t id[MAX_STEPS];
    uint64_t bytes[MAX_STEPS];
    frag_stream stream[MAX_STEPS];
    frag_pool pool[MAX_STEPS];
};

static struct frag_device_trace as_trace(struct traffic_trace *t, uint64_t seed)
{
    static const uint8_t ops[] = {[STEP_ALLOC] = FRAG_ALLOC,
                                  [STEP_FREE] = FRAG_FREE,
                                  [STEP_REQUEST_FREE] = FRAG_FREE_REQUESTED,
                                  [STEP_TRIM] = FRAG_EMPTY_CACHE};
    static const uint64_t streams[] = {0, 7, 8};
    static const struct frag_pool_id pool;

    script_make(&t->script, seed, STEPS, 0);
    for (size_t i = 0; i < t->script.count; i++) {
        const struct step *s = &t->script.steps[i];

        t->op[i] = ops[s->kind];
        t->id[i] = s->id;
        t->bytes[i] = s->size;
        t->stream[i] = s->stream;
    }
    return (struct frag_device_trace){.slots = MAX_LIVE,
                                      .count = t->script.count,
                                      .op = t->op,
                                      .id = t->id,
                                      .bytes = t->bytes,
                                      .stream = t->stream,
                                      .pool = t->pool,
                                      .stream_count = COUNT(streams),
                                      .pool_count = 1,
                                      .streams = streams,
                                      .pools = &pool};
}

static void spoil_copies(const struct subject *s,
                         const struct frag_device_trace *trace)
{
    static struct proof p;
    uint64_t copies;

    memset(&p, 0, sizeof(p));
    assert_int_equal(prove(&p, CAPACITY_MIB * FRAG_MIB,
                           frag_policy_find(s->policy), s->params, trace),
                     FRAG_OK);
    copies = p.shadow.copies;
    assert_true(copies > 10);
    for (uint64_t k = 1; k <= copies; k += 1 + copies / SPOILT_RUNS) {
        char event[64];

        p.shadow.spoils = k;
        assert_int_equal(prove(&p, CAPACITY_MIB * FRAG_MIB,
                               frag_policy_find(s->policy), s->params, trace),
                         FRAG_CONTRACT);
        snprintf(event, sizeof(event), "%s: event %llu: the block of event ",
                 s->policy, (unsigned long long)p.spoilt);
        says(&p, event);
        says(&p, s->when);
    }
}

static void a_byte_lost_by_any_copy_is_found_in_its_event(void **state)
{
    static struct traffic_trace t;
    const struct frag_device_trace trace = as_trace(&t, 3);

    (void)state;
    for (size_t i = 0; i < COUNT(subjects); i++)
        spoil_copies(&subjects[i], &trace);
}

/* In a free, in a wait of the policy, after a move, at the end. */
static void a_device_that_cannot_read_is_its_own_error(void **state)
{
    static struct traffic_trace t;
    static struct proof p;
    const struct frag_device_trace trace = as_trace(&t, 3);
    uint64_t looks;

    (void)state;
    memset(&p, 0, sizeof(p));
    assert_int_equal(prove(&p, CAPACITY_MIB * FRAG_MIB,
                           frag_policy_find("compact"), NULL, &trace),
                     FRAG_OK);
    looks = p.looks;
    for (uint64_t k = 1; k <= looks; k += 1 + looks / SPOILT_RUNS) {
        p.refused_at = k;
        assert_int_equal(prove(&p, CAPACITY_MIB * FRAG_MIB,
                               frag_policy_find("compact"), NULL, &trace),
                         FRAG_DEVICE);
        says(&p, "the device cannot read a block");
    }
}

/* Each call of the device fails once. If the run cannot continue, it returns
 * that error, and every live block has its memory then. */
static void a_call_that_fails_is_no_fault_of_the_policy(void **state)
{
    static struct traffic_trace t;
    static struct proof p;
    const struct frag_device_trace trace = as_trace(&t, 3);
    uint64_t calls, failed = 0;

    (void)state;
    memset(&p, 0, sizeof(p));
    assert_int_equal(prove(&p, CAPACITY_MIB * FRAG_MIB,
                           frag_policy_find("remap"), NULL, &trace),
                     FRAG_OK);
    calls = p.calls;
    for (uint64_t k = 1; k <= calls; k++) {
        enum frag_err err;

        p.faulty.fail_at = k;
        err = prove(&p, CAPACITY_MIB * FRAG_MIB, frag_policy_find("remap"),
                    NULL, &trace);
        if (err != FRAG_OK && err != FRAG_DEVICE)
            fail_msg("call %llu of %llu fails: %s", (unsigned long long)k,
                     (unsigned long long)calls, p.e.text);
        failed += err == FRAG_DEVICE;
    }
    assert_true(failed > calls / 2);
}

/* ------------------------------------- a policy that does one thing --- */

#define PAGE  (2 * FRAG_MIB)
#define PLACE (512 * FRAG_KIB) /* of the first block in its page */
#define BLOCK FRAG_MIB

enum { A, B, C, SPARE, PAGES };

/* Each of three requests gets a block in a page of its own. With the third it
 * does its act to the block of the first. */
struct actor {
    frag_addr at; /* of PAGES pages of addresses */
    frag_phys phys[PAGES];
    bool shown[PAGES]; /* addresses that have memory */
    uint64_t asked;
};

typedef enum frag_err act(struct frag_heap *heap, struct actor *s);

static frag_addr page(const struct actor *s, int i)
{
    return s->at + (frag_addr)i * PAGE;
}

static enum frag_err show(struct frag_heap *heap, struct actor *s, int where,
                          int memory)
{
    s->shown[where] = true;
    return heap->mem->ops->map(heap->mem, page(s, where), PAGE,
                               s->phys[memory]);
}

static enum frag_err hide(struct frag_heap *heap, struct actor *s, int where)
{
    s->shown[where] = false;
    return heap->mem->ops->unmap(heap->mem, page(s, where), PAGE);
}

static enum frag_err copy(struct frag_heap *heap, frag_addr to, frag_addr from,
                          frag_size size)
{
    return heap->mem->ops->copy(heap->mem, to, from, size, 0);
}

/* The first block goes to the spare page, `kept` bytes of it. */
static enum frag_err move(struct frag_heap *heap, struct actor *s,
                          frag_size kept)
{
    const struct frag_block b = {page(s, SPARE) + PLACE, BLOCK, NULL};

    FRAG_TRY(show(heap, s, SPARE, SPARE));
    FRAG_TRY(copy(heap, b.addr, page(s, A) + PLACE, kept));
    heap->moved(heap->user, 0, &b);
    return FRAG_OK;
}

static enum frag_err moves(struct frag_heap *heap, struct actor *s)
{
    return move(heap, s, BLOCK);
}

static enum frag_err moves_half(struct frag_heap *heap, struct actor *s)
{
    return move(heap, s, BLOCK / 2);
}

/* Its addresses get the spare memory, which has a part of the old contents. */
static enum frag_err remap(struct frag_heap *heap, struct actor *s,
                           frag_size kept)
{
    FRAG_TRY(show(heap, s, SPARE, SPARE));
    FRAG_TRY(copy(heap, page(s, SPARE) + PLACE, page(s, A) + PLACE, kept));
    FRAG_TRY(heap->mem->ops->synchronize(heap->mem));
    FRAG_TRY(hide(heap, s, SPARE));
    FRAG_TRY(hide(heap, s, A));
    return show(heap, s, A, SPARE);
}

static enum frag_err remaps(struct frag_heap *heap, struct actor *s)
{
    return remap(heap, s, BLOCK);
}

static enum frag_err remaps_half(struct frag_heap *heap, struct actor *s)
{
    return remap(heap, s, BLOCK / 2);
}

/* Bytes of the second block go over its last quarter. */
static enum frag_err copies_over(struct frag_heap *heap, struct actor *s)
{
    return copy(heap, page(s, A) + PLACE + BLOCK / 4 * 3, page(s, B) + PLACE,
                BLOCK / 2);
}

/* The same at another address of its memory. */
static enum frag_err copies_under(struct frag_heap *heap, struct actor *s)
{
    FRAG_TRY(show(heap, s, SPARE, A));
    return copy(heap, page(s, SPARE) + PLACE + BLOCK / 4 * 3,
                page(s, B) + PLACE, BLOCK / 2);
}

/* A copy from the block, and a copy to the free memory before it. */
static enum frag_err copies_beside(struct frag_heap *heap, struct actor *s)
{
    return copy(heap, page(s, A), page(s, A) + PLACE, PLACE);
}

/* A second address for the memory that it has. */
static enum frag_err maps_twice(struct frag_heap *heap, struct actor *s)
{
    return show(heap, s, SPARE, A);
}

static act *what; /* the act of the run under way */

static enum frag_err actor_alloc(struct frag_heap *heap,
                                 const struct frag_request *req,
                                 struct frag_block *out)
{
    struct actor *s = heap->state;
    const struct frag_backend_ops *ops = heap->mem->ops;
    const int at = (int)s->asked++;

    (void)req;
    if (at == A) {
        FRAG_TRY(ops->va_reserve(heap->mem, PAGES * PAGE, &s->at));
        for (int i = 0; i < PAGES; i++)
            FRAG_TRY(ops->phys_create(heap->mem, PAGE, &s->phys[i]));
    }
    FRAG_TRY(show(heap, s, at, at));
    if (at == C)
        FRAG_TRY(what(heap, s));
    *out = (struct frag_block){page(s, at) + PLACE, BLOCK, NULL};
    return FRAG_OK;
}

static void actor_free(struct frag_heap *heap, const struct frag_block *block)
{
    (void)heap;
    (void)block;
}

static void actor_fini(struct frag_heap *heap)
{
    struct actor *s = heap->state;
    const struct frag_backend_ops *ops = heap->mem->ops;

    assert_int_equal(ops->synchronize(heap->mem), FRAG_OK);
    for (int i = 0; i < PAGES; i++) {
        if (s->shown[i])
            assert_int_equal(hide(heap, s, i), FRAG_OK);
        ops->phys_release(heap->mem, s->phys[i], PAGE);
    }
    ops->va_free(heap->mem, s->at, PAGES * PAGE);
}

static const struct frag_policy actor = {.name = "actor",
                                         .summary = "does one thing",
                                         .source = "this test",
                                         .quantum = FRAG_QUANTUM,
                                         .needs =
                                             FRAG_NEEDS_VMM | FRAG_NEEDS_MOVES,
                                         .state_size = sizeof(struct actor),
                                         .fini = actor_fini,
                                         .alloc = actor_alloc,
                                         .free = actor_free};

static const struct {
    act *what;
    uint64_t looks;    /* at the block, before it is freed */
    const char *fault; /* NULL: none */
} acts[] = {
    /* clang-format off */
    {moves,         1, NULL},
    {moves_half,    1, "from offset 524288, when it was moved"},
    {remaps,        1, NULL},
    {remaps_half,   1, "from offset 524288, when it was remapped"},
    {copies_over,   1, "from offset 786432, when it was copied over"},
    {copies_under,  1, "from offset 786432, when it was copied over"},
    {copies_beside, 0, NULL},
    {maps_twice,    0, NULL},
    /* clang-format on */
};

/* Three requests, then all are freed. */
static struct frag_device_trace three_blocks(void)
{
    static const uint8_t op[] = {FRAG_ALLOC, FRAG_ALLOC, FRAG_ALLOC,
                                 FRAG_FREE,  FRAG_FREE,  FRAG_FREE};
    static const uint32_t id[] = {A, B, C, A, B, C};
    static const uint64_t bytes[] = {BLOCK, BLOCK, BLOCK, 0, 0, 0};
    static const frag_stream stream[COUNT(op)];
    static const frag_pool pool[COUNT(op)];
    static const uint64_t streams[] = {0};
    static const struct frag_pool_id pools[1];

    return (struct frag_device_trace){.slots = 3,
                                      .count = COUNT(op),
                                      .op = op,
                                      .id = id,
                                      .bytes = bytes,
                                      .stream = stream,
                                      .pool = pool,
                                      .stream_count = 1,
                                      .pool_count = 1,
                                      .streams = streams,
                                      .pools = pools};
}

static void the_blocks_that_a_call_touches_are_looked_at(void **state)
{
    static struct proof p;
    const struct frag_device_trace trace = three_blocks();

    (void)state;
    for (size_t i = 0; i < COUNT(acts); i++) {
        enum frag_err err;

        what = acts[i].what;
        memset(&p, 0, sizeof(p));
        err = prove(&p, FRAG_UNLIMITED, &actor, NULL, &trace);
        assert_int_equal(err, acts[i].fault ? FRAG_CONTRACT : FRAG_OK);
        if (acts[i].fault) {
            says(&p, "actor: event 2: the block of event 0, 1048576 bytes at ");
            says(&p, acts[i].fault);
            assert_int_equal(p.looks_at[A], acts[i].looks);
            assert_int_equal(p.looks_at[B], 0);
        } else {
            assert_int_equal(p.looks_at[A], acts[i].looks + 1);
            assert_int_equal(p.looks_at[B], 1);
        }
        assert_int_equal(p.looks_at[C], acts[i].fault ? 0 : 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_byte_lost_by_any_copy_is_found_in_its_event),
        cmocka_unit_test(a_device_that_cannot_read_is_its_own_error),
        cmocka_unit_test(a_call_that_fails_is_no_fault_of_the_policy),
        cmocka_unit_test(the_blocks_that_a_call_touches_are_looked_at),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
