/* plan_desk.h - runs `plan` on a script and judges its answers. The judge
 * shares no code with `plan`: it compares every pair of blocks in time and in
 * space, and adds up the load of every event anew.
 *
 * Include after cmocka.h.
 */
#ifndef FRAG_TESTS_SUPPORT_PLAN_DESK_H
#define FRAG_TESTS_SUPPORT_PLAN_DESK_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "policies/policy.h"
#include "sim/arena/arena.h"
#include "sim/experiments/contract/faulty.h"
#include "traces/trace.h"

enum { UNIT = 512, MOST = 4500 };

/* A trace as a script of allocs and frees, each block once. */
struct script {
    size_t count, events;
    struct frag_future_request requests[MOST];
};

/* The most bytes that are live at once: no plan is lower. */
static inline frag_size load_of(const struct script *s)
{
    frag_size most = 0;

    for (uint64_t at = 0; at < s->events; at++) {
        frag_size live = 0;

        for (size_t i = 0; i < s->count; i++)
            if (s->requests[i].allocs_at <= at && at < s->requests[i].frees_at)
                live += (s->requests[i].size + UNIT - 1) / UNIT * UNIT;
        most = live > most ? live : most;
    }
    return most;
}

/* The memo and the listener of the desks that are opened next; may be NULL. */
static struct frag_memo *desk_memo;
static frag_progress *desk_progress;

struct desk {
    struct faulty mem;
    struct frag_backend *arena;
    struct frag_heap heap;
    struct frag_future future;
    struct frag_block blocks[MOST];
    bool is_served[MOST];
};

static inline void open_desk(struct desk *d, const struct script *s,
                             const char *params, frag_size capacity)
{
    const struct frag_arena_options opts = {.capacity = FRAG_UNLIMITED,
                                            .rule = FRAG_RULE_HOSTILE};

    memset(d, 0, sizeof(*d));
    d->future = (struct frag_future){.count = s->count,
                                     .requests = s->requests,
                                     .progress = desk_progress,
                                     .memo = desk_memo};
    d->arena = frag_arena_open(&opts);
    assert_non_null(d->arena);
    faulty_init(&d->mem, d->arena);
    d->mem.base.granularity = UNIT;
    d->mem.base.capacity = d->mem.limit = capacity;
    assert_int_equal(frag_heap_open_with(&d->heap, frag_policy_find("plan"),
                                         &d->mem.base, params, &d->future,
                                         NULL),
                     FRAG_OK);
}

static inline void close_desk(struct desk *d)
{
    frag_heap_close(&d->heap);
    assert_int_equal(frag_arena_used(d->arena), 0);
    frag_arena_close(d->arena);
}

/* Makes all requests and frees of the script. */
static inline void run(struct desk *d, const struct script *s)
{
    const struct frag_policy *p = d->heap.policy;
    size_t asked = 0;

    for (uint64_t at = 0; at < s->events; at++) {
        for (size_t i = 0; i < asked; i++)
            if (s->requests[i].frees_at == at && d->is_served[i])
                p->free(&d->heap, &d->blocks[i]);
        if (asked < s->count && s->requests[asked].allocs_at == at) {
            const struct frag_request req = {.size = s->requests[asked].size,
                                             .frees_at =
                                                 s->requests[asked].frees_at,
                                             .owner = (uint32_t)asked};

            d->is_served[asked] =
                p->alloc(&d->heap, &req, &d->blocks[asked]) == FRAG_OK;
            asked++;
        }
    }
    assert_int_equal(asked, s->count);
}

static inline bool live_together(const struct frag_future_request *a,
                                 const struct frag_future_request *b)
{
    return a->allocs_at < b->frees_at && b->allocs_at < a->frees_at;
}

static inline void judge(const struct desk *d, const struct script *s)
{
    for (size_t i = 0; i < s->count; i++) {
        const struct frag_block *a = &d->blocks[i];

        if (!d->is_served[i])
            continue;
        assert_int_equal(a->addr % UNIT, 0);
        assert_true(a->size >= s->requests[i].size);
        for (size_t j = 0; j < i; j++) {
            const struct frag_block *b = &d->blocks[j];

            if (d->is_served[j] &&
                live_together(&s->requests[i], &s->requests[j]) &&
                a->addr < b->addr + b->size && b->addr < a->addr + a->size)
                fail_msg("blocks %zu and %zu meet", i, j);
        }
    }
}

/* From the lowest address to the end of the highest block. */
static inline frag_size extent(const struct desk *d, const struct script *s)
{
    frag_addr low = UINT64_MAX, high = 0;

    for (size_t i = 0; i < s->count; i++) {
        const struct frag_block *b = &d->blocks[i];

        low = b->addr < low ? b->addr : low;
        high = b->addr + b->size > high ? b->addr + b->size : high;
    }
    return high - low;
}

/* The requests of a trace, which has at most MOST. */
static inline void read_script(const char *path, struct script *s)
{
    static uint32_t owner[MOST];
    struct frag_trace *t;
    struct frag_error e;

    assert_int_equal(frag_trace_open(path, NULL, &t, &e), FRAG_OK);
    s->count = 0;
    s->events = t->devices[0].count;
    for (uint64_t i = 0; i < s->events; i++)
        if (t->devices[0].op[i] == FRAG_ALLOC) {
            assert_in_range(s->count, 0, MOST - 1);
            owner[t->devices[0].id[i]] = (uint32_t)s->count;
            s->requests[s->count++] =
                (struct frag_future_request){.size = t->devices[0].bytes[i],
                                             .allocs_at = i,
                                             .frees_at = FRAG_NEVER};
        } else if (t->devices[0].op[i] == FRAG_FREE) {
            s->requests[owner[t->devices[0].id[i]]].frees_at = i;
        }
    frag_trace_close(t);
}

/* An instance of minimalloc; skips the test if the file is absent. */
static inline void read_instance(const char *name, struct script *s)
{
    char path[512];

    snprintf(path, sizeof(path), "%s/foreign/minimalloc/%s.1048576.csv",
             FRAG_SHARED_DIR, name);
    if (access(path, R_OK) != 0)
        skip();
    read_script(path, s);
}

#endif
