/* canvas.h - runs a script on a policy and a small device, and draws the
 * memory.
 *
 * A script consists of words for allocations and frees: "a4" allocates 4 units
 * as a, "a4@1" on stream 1, "a4@1/2" in pool 2; "-a" frees a; "!" trims. The
 * drawing has one character for each unit: a letter for its owner, a dot for a
 * free unit, and a bar between segments. Requests that the device has no room
 * for are not drawn. The hostile arena places the second segment above the
 * first, the third below both, the fourth above all, and so on. The granularity
 * is 4 units.
 *
 * Include after cmocka.h.
 */
#ifndef FRAG_TESTS_SUPPORT_CANVAS_H
#define FRAG_TESTS_SUPPORT_CANVAS_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "policies/policy.h"
#include "sim/arena/arena.h"
#include "sim/experiments/contract/faulty.h"

struct picture {
    const char *policy; /* "name" or "name:params" */
    unsigned room;      /* units of the device */
    const char *script, *memory;
};

struct canvas {
    struct faulty mem;
    struct frag_backend *arena;
    struct frag_heap heap;
    frag_size unit;
    struct frag_block live[26];
    bool is_live[26];
};

/* Opens "name" or "name:params". `before` (may be NULL) is a parameter that
 * comes first, if the policy has any and the params do not set it themselves.
 */
static inline void canvas_heap(struct canvas *c, const char *spec,
                               const char *before)
{
    char name[32], params[256];
    const size_t length = strcspn(spec, ":");
    const struct frag_policy *policy;
    struct frag_error e;

    snprintf(name, sizeof(name), "%.*s", (int)length, spec);
    policy = frag_policy_find(name);
    assert_non_null(policy);
    if (before)
        snprintf(params, sizeof(params), "%.*s", (int)strcspn(before, "=") + 1,
                 before);
    if (!policy->params || !before || strstr(spec, params))
        before = "";
    snprintf(params, sizeof(params), "%s%s%s", before,
             *before && spec[length] ? "," : "",
             spec[length] ? spec + length + 1 : "");
    assert_int_equal(frag_heap_open(&c->heap, policy, &c->mem.base, params, &e),
                     FRAG_OK);
}

static inline void canvas_open(struct canvas *c, const struct picture *p,
                               frag_size unit, const char *before)
{
    const struct frag_arena_options opts = {.capacity = FRAG_UNLIMITED,
                                            .rule = FRAG_RULE_HOSTILE};

    memset(c, 0, sizeof(*c));
    c->unit = unit;
    c->arena = frag_arena_open(&opts);
    assert_non_null(c->arena);
    faulty_init(&c->mem, c->arena);
    c->mem.base.granularity = 4 * unit;
    c->mem.limit = p->room * unit;
    canvas_heap(c, p->policy, before);
}

static inline void canvas_close(struct canvas *c)
{
    frag_heap_close(&c->heap);
    assert_int_equal(c->mem.used, 0);
    assert_int_equal(frag_arena_used(c->arena), 0);
    assert_null(c->mem.misuse);
    frag_arena_close(c->arena);
}

static inline void canvas_alloc(struct canvas *c, int who, const char *text)
{
    struct frag_request req = {.frees_at = FRAG_NEVER, .owner = (uint32_t)who};
    enum frag_err err;
    char *end;

    req.size = strtoull(text, &end, 10) * c->unit;
    if (*end == '@')
        req.stream = (frag_stream)strtoul(end + 1, &end, 10);
    if (*end == '/')
        req.pool = (frag_pool)strtoul(end + 1, &end, 10);
    err = c->heap.policy->alloc(&c->heap, &req, &c->live[who]);
    assert_true(err == FRAG_OK || err == FRAG_OOM);
    c->is_live[who] = err == FRAG_OK;
}

static inline void canvas_act(struct canvas *c, const char *word)
{
    const int who = (word[0] == '-' ? word[1] : word[0]) - 'a';

    if (word[0] == '!') {
        c->heap.policy->trim(&c->heap);
    } else if (word[0] == '-') {
        assert_true(c->is_live[who]);
        if (word[2] == '@')
            assert_int_equal(
                c->heap.policy->hear(
                    &c->heap,
                    &(struct frag_heard){
                        .block = &c->live[who],
                        .stream = (frag_stream)strtoul(word + 3, NULL, 10)}),
                FRAG_OK);
        c->heap.policy->free(&c->heap, &c->live[who]);
        c->is_live[who] = false;
    } else {
        canvas_alloc(c, who, word + 1);
    }
}

static inline void canvas_play(struct canvas *c, const char *script)
{
    for (const char *word = script; *word; word += strspn(word, " ")) {
        canvas_act(c, word);
        word += strcspn(word, " ");
    }
}

/* The next segment above addr, or NULL. */
static inline const struct faulty_memory *canvas_segment(const struct faulty *f,
                                                         frag_addr addr)
{
    const struct faulty_memory *best = NULL;

    for (size_t i = 0; i < f->count; i++)
        if (f->held[i].addr >= addr && (!best || f->held[i].addr < best->addr))
            best = &f->held[i];
    return best;
}

static inline char canvas_owner(const struct canvas *c, frag_addr addr)
{
    for (int i = 0; i < 26; i++)
        if (c->is_live[i] && addr >= c->live[i].addr &&
            addr < c->live[i].addr + c->live[i].size)
            return (char)('a' + i);
    return '.';
}

static inline void canvas_draw(const struct canvas *c, char *text)
{
    const struct faulty_memory *s = canvas_segment(&c->mem, 0);

    while (s) {
        for (frag_size at = 0; at < s->size; at += c->unit)
            *text++ = canvas_owner(c, s->addr + at);
        s = canvas_segment(&c->mem, s->addr + s->size);
        if (s)
            *text++ = '|';
    }
    *text = '\0';
}

/* Runs the script and compares the drawing. */
static inline void canvas_check(const struct picture *p, frag_size unit,
                                const char *before)
{
    static struct canvas c;
    char memory[2048];

    canvas_open(&c, p, unit, before);
    canvas_play(&c, p->script);
    canvas_draw(&c, memory);
    assert_string_equal(memory, p->memory);
    canvas_close(&c);
}

enum { MAX_PICTURES = 256 };

/* Makes one test of each row; `test` receives its row as its state. */
static inline int run_pictures(const char *group, const struct picture *rows,
                               size_t count, CMUnitTestFunction test)
{
    static char names[MAX_PICTURES][128];
    static struct CMUnitTest tests[MAX_PICTURES];

    assert_true(count <= MAX_PICTURES);
    for (size_t i = 0; i < count; i++) {
        const void *row = &rows[i];

        snprintf(names[i], sizeof(names[i]), "%s, room %u: %s", rows[i].policy,
                 rows[i].room, rows[i].script);
        tests[i] = (struct CMUnitTest){.name = names[i], .test_func = test};
        memcpy(&tests[i].initial_state, &row, sizeof(row));
    }
    return _cmocka_run_group_tests(group, tests, count, NULL, NULL);
}

#endif
