/* test_build.c - tests the trace builder: entries written by hand, and the
 * events that must result. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "traces/build/build.h"
#include "traces/torch_sizes.h"

/* A script: one word an entry, blanks between.
 *   aX:N  alloc of N bytes at X     rX  free_requested     cX  free_completed
 *   sX:N  segment_alloc   fX:N  segment_free   mX:N  segment_map
 *   uX:N  segment_unmap   oN  oom of N bytes
 *   P     a policy served the device   !    empty_cache was called
 * X is a letter, its address 16 MiB times its place from 'A'. N is in KiB. A
 * word may end in the number of a MemPool, "/2", or of a graph, "%2"; "/0" is
 * the default pool. */
enum { STEP = 16 << 20 };

static struct frag_error error;

static frag_addr address(char letter)
{
    return (frag_addr)(letter - 'A' + 1) * STEP;
}

static enum frag_err feed_word(struct frag_build *b, const char *word,
                               uint64_t where)
{
    static const char kinds[] = "arcsfmuo";
    unsigned long long size = 1;
    struct frag_entry entry = {.time = 1000 + where};
    const char *colon = strchr(word, ':');

    if (word[0] == 'P')
        return frag_build_policy(b, 0, "remap", 5, &error);
    if (word[0] == '!')
        return frag_build_emptied(b, 0, entry.time, &error);
    entry.kind = (enum frag_entry_kind)(strchr(kinds, word[0]) - kinds);
    if (colon || word[0] == 'o')
        sscanf(colon ? colon + 1 : word + 1, "%llu", &size);
    if (strchr(word, '/'))
        entry.pool.number = (uint64_t)atoi(strchr(word, '/') + 1);
    if (strchr(word, '%'))
        entry.pool.owner = (uint64_t)atoi(strchr(word, '%') + 1);
    entry.has_pool = strpbrk(word, "/%") != NULL;
    entry.size = size * 1024;
    entry.addr = word[0] == 'o' ? 0 : address(word[1]);
    return frag_build_entry(b, 0, &entry, where, &error);
}

static enum frag_err feed(struct frag_build *b, const char *script)
{
    char text[512], *save, *word;
    uint64_t where = 0;

    snprintf(text, sizeof(text), "%s", script);
    for (word = strtok_r(text, " ", &save); word;
         word = strtok_r(NULL, " ", &save)) {
        enum frag_err err = feed_word(b, word, where++);

        if (err != FRAG_OK)
            return err;
    }
    return FRAG_OK;
}

static struct frag_trace *finish(struct frag_build *b, frag_size limit)
{
    const struct frag_read_options opts = {.limit = limit};
    struct frag_trace *t = NULL;

    if (frag_build_finish(b, &opts, &t, &error) != FRAG_OK)
        fail_msg("%s", error.text);
    frag_build_close(b);
    return t;
}

static struct frag_trace *built(const char *script, frag_size limit)
{
    struct frag_build *b = frag_build_open("x", "test");

    if (feed(b, script) != FRAG_OK)
        fail_msg("%s", error.text);
    return finish(b, limit);
}

/* Events as text: "a0 a1 f0 q1 E", q for free_requested, E for empty_cache, E1
 * for the cache of pool 1, E1e if that pool has ended, E1l if its memory is
 * returned later;
 * an action before its event as s f m u o, with the event's index implied. */
static void describe(const struct frag_device_trace *d, char *text, size_t room)
{
    static const char ops[] = "afqrE", actions[] = "sfmuo";
    const struct frag_recorded *r = &d->recorded;
    size_t at = 0;
    uint64_t k = 0;

    text[0] = '\0';
    for (uint64_t i = 0; i <= d->count; i++) {
        for (; k < r->action_count && r->actions[k].event == i; k++)
            at +=
                (size_t)snprintf(text + at, room - at, "%s(%c)", at ? " " : "",
                                 actions[r->actions[k].action]);
        if (i == d->count)
            break;
        at += (size_t)snprintf(text + at, room - at, "%s%c", at ? " " : "",
                               ops[d->op[i]]);
        if (d->op[i] != FRAG_EMPTY_CACHE)
            at += (size_t)snprintf(text + at, room - at, "%u", d->id[i]);
        else if (d->pool[i])
            at += (size_t)snprintf(text + at, room - at, "%d%.1s", d->pool[i],
                                   &"\0el"[d->id[i]]);
    }
    assert_int_equal(k, r->action_count);
}

static const struct row {
    const char *script;
    uint64_t limit_kib; /* 0: unknown; UINT64_MAX: none */
    const char *events;
} rows[] = {
    /* clang-format off */
    /* Slots: last returned first. */
    {"aA aB rA cA aC rB cB rC cC aD", 0, "a0 a1 f0 a0 f1 f0 a0"},
    /* A completion right after its request is one event, a later one two. */
    {"aA rA aB cA aC", 0, "a0 q0 a1 f0 a0"},
    {"aA rA aB rB cB cA", 0, "a0 q0 a1 f1 f0"},
    {"aA aB rB aC rA cB cA", 0, "a0 a1 q1 a2 q0 f1 f0"},
    {"aA aB rA rB cB cA", 0, "a0 a1 q0 f1 f0"},
    {"aA aB cA rB cB aC", 0, "a0 a1 f0 f1 a1"},
    /* Recordings that leave out one kind of free. */
    {"aA rA aA rA aB rB aC", 0, "a0 f0 a0 f0 a0 f0 a0"},
    {"aA aB rA aC rB aA", 0, "a0 a1 f0 a0 f1 a1"},
    {"aA cA aA cA aB cB aC", 0, "a0 f0 a0 f0 a0 f0 a0"},
    /* An action belongs to the next event, also when a request was delayed. */
    {"sA:2048 aA rA sB:2048 aB cA", 0, "(s) a0 q0 (s) a1 f0"},
    {"sA:2048 aA rA cA fA:2048 sB:2048 aB", UINT64_MAX,
     "(s) a0 f0 (f) E (s) a0"},
    /* A failed request is allocated and freed at once. */
    {"aA o64 aB", 0, "a0 (o) a1 f1 a1"},
    /* Runs before an event that needs no memory are empty_cache calls,
     * whatever the limit. */
    {"sA:2048 aA rA cA fA:2048 aB", 1, "(s) a0 f0 (f) E a0"},
    {"sA:2048 aA rA cA fA:2048", 1, "(s) a0 f0 (f) E"},
    {"sA:2048 aA rA cA uA:2048 fB:2048 rC cC", 1, "a1 (s) a0 f0 (u) (f) E f1"},
    /* Before a segment: a retry if it would not have fitted. */
    {"sA:2048 aA rA cA fA:2048 sB:2048 aB", 4096, "(s) a0 f0 (f) E (s) a0"},
    {"sA:2048 aA rA cA fA:2048 sB:2048 aB", 4095, "(s) a0 f0 (f) (s) a0"},
    {"sA:2048 aA rA cA fA:2048 sB:2048 aB", 0, "(s) a0 f0 (f) E (s) a0"},
    /* Before maps the size is that of the request's segment: 2 MiB here,
     * then 20 MiB for one of 1.5 MiB. */
    {"mA:2048 aA rA cA uA:2048 mA:2048 aA", 4096, "(m) a0 f0 (u) E (m) a0"},
    {"mA:2048 aA rA cA uA:2048 mA:2048 aA", 4095, "(m) a0 f0 (u) (m) a0"},
    {"mA:2048 aA rA cA uA:2048 mA:2048 aA:1536", 22528,
     "(m) a0 f0 (u) E (m) a0"},
    {"mA:2048 aA rA cA uA:2048 mA:2048 aA:1536", 22527,
     "(m) a0 f0 (u) (m) a0"},
    /* After maps the run is within the request, whatever the limit. */
    {"mA:2048 aA rA cA mB:2048 uA:2048 mC:2048 aC", UINT64_MAX,
     "(m) a0 f0 (m) (u) (m) a0"},
    /* Before an oom. */
    {"sA:2048 aA rA cA fA:2048 o2048", 4096, "(s) a0 f0 (f) (o) a0 f0"},
    {"sA:2048 aA rA cA fA:2048 o1024", 4096, "(s) a0 f0 (f) E (o) a0 f0"},
    /* No limit is known, but there is an OOM: the highest reserved value is the
     * bound. */
    {"sA:4096 aA rA cA fA:4096 sB:2048 aB o9999", 0,
     "(s) a0 f0 (f) (s) a0 (o) a1 f1"},
    {"sA:4096 sB:2048 aA rA cA fB:2048 aB fA:4096 sD:2048 aC o9", 0,
     "(s) (s) a0 f0 (f) E a0 (f) E (s) a1 (o) a2 f2"},
    /* A MemPool is deleted: its memory is returned, whatever the limit. */
    {"sA:2048/1 aA/1 rA/1 cA/1 fA:2048/1 aB", 1, "(s) a0 f0 (f) E1e a0"},
    {"sA:2048/1 aA/1 rA/1 cA/1 fA:2048/1 sB:2048 aB", 4095,
     "(s) a0 f0 (f) E1e (s) a0"},
    /* It has a later request, so only its cache was returned. */
    {"sA:2048/1 aA/1 rA/1 cA/1 fA:2048/1 sB:2048/1 aB/1", UINT64_MAX,
     "(s) a0 f0 (f) E1 (s) a0"},
    /* empty_cache returns the memory of a deleted graph too; after a MemPool
     * has ended, also what it frees later. */
    {"sA:2048 aA rA cA sB:2048%1 aB%1 rB%1 cB%1 fA:2048 fB:2048%1 aC", 0,
     "(s) a0 f0 (s) a0 f0 E1l (f) (f) E a0"},
    {"sA:2048 aA rA cA sB:2048/1 aB/1 rB/1 cB/1 fA:2048 fB:2048/1 aC", 0,
     "(s) a0 f0 (s) a0 f0 (f) E (f) E1e a0"},
    {"sA:2048/1 aA/1 sB:2048/1 aB/1 rA/1 cA/1 fA:2048/1 rB/1 cB/1 fB:2048/1",
     0, "(s) a0 (s) a1 f0 (f) E1e f1 (f) E"},
    /* A retry returns the memory of a deleted graph. */
    {"sA:2048 aA rA cA sB:2048%1 aB%1 rB%1 cB%1 fA:2048 fB:2048%1 sC:4096 aC",
     4096, "(s) a0 f0 (s) a0 f0 E1l (f) (f) (s) a0"},
    /* With max_split_size_mb a request returns memory of its own pool. */
    {"sA:4096/1 aA/1 rA/1 cA/1 sB:2048 aB fA:4096/1 sC:2048/1 aC/1", 1,
     "(s) a0 f0 (s) a0 (f) (s) a1"},
    /* A segment that would have served the attempt was returned by a call,
     * but not if its free has just completed, or if it is of another pool. */
    {"sA:2048/0 sB:2048/0 aA/0 aB/0 rA/0 cA/0 aC/0 fA:2048/0 sD:2048/0 aD/0",
     4096, "(s) (s) a0 a1 f0 a0 (f) E (s) a2"},
    {"sA:2048/0 sB:2048/0 aA/0 aB/0 rA/0 aC/0 cA/0 fA:2048/0 sD:2048/0 aD/0",
     4096, "(s) (s) a0 a1 q0 a2 (f) (s) a3 f0"},
    /* The frees for which a failed attempt waited come after its request. */
    {"sA:4096 aA rA aB cA o9", 0, "(s) a0 q0 a1 (o) a2 f0 f2"},
    {"sA:4096/0 aA/0 rA/0 cA/0 aC/0 fA:4096/0 sD:3072/0 aD/0", 4096,
     "(s) a0 f0 a0 (f) E (s) a1"},
    {"sA:4096/0 aA/0 rA/0 cA/0 aC/0 fA:4096/0 sD:2048/0 aD/0", 4096,
     "(s) a0 f0 a0 (f) (s) a1"},
    {"sA:2048/0 sB:2048/0 aA/0 aB/0 rA/0 cA/0 aC/0 fA:2048/0 sD:2048/1 aD/1",
     4096, "(s) (s) a0 a1 f0 a0 (f) (s) a2"},
    /* A policy returns memory by itself; empty_cache calls are known, and a free
     * that completes at another time was pending. */
    {"P mA:2048 aA rA cA uA:2048 mB:2048 aB", 0, "(m) a0 q0 (u) (m) a1 f0"},
    {"P mA:2048 aA rA cA ! uA:2048 mB:2048 aB", 0, "(m) a0 q0 f0 (u) E (m) a0"},
    /* Frees that complete within a run come before it, or after the request
     * whose attempt waited for them. */
    {"sA:2048 aA aB rA aC fD:2048 cA fE:2048 aF", UINT64_MAX,
     "(s) a0 a1 q0 a2 f0 (f) (f) E a0"},
    {"mA:2048 aA aB rA aC mD:2048 cA uE:2048 mF:2048 aF", UINT64_MAX,
     "(m) a0 a1 q0 a2 (m) (u) (m) a3 f0"},
    /* Freed without an alloc: live from the start. */
    {"aA rB cB aC", 0, "a1 a0 f1 a1"},
    {"rB cB aB rB cB", 0, "a0 f0 a0 f0"},
    {"aA rC cC rB cB rA cA", 0, "a2 a1 a0 f1 f2 f0"},
    {"aA rA cA cC", 0, "a1 a0 f0 f1"},
    /* clang-format on */
};

static void entries_become_events(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        uint64_t kib = rows[i].limit_kib;
        struct frag_trace *t =
            built(rows[i].script, kib == UINT64_MAX ? kib : kib * 1024);
        char text[512];

        describe(&t->devices[0], text, sizeof(text));
        if (strcmp(text, rows[i].events))
            fail_msg("%s (limit %lld KiB):\n  expected %s\n  found    %s",
                     rows[i].script, (long long)kib, rows[i].events, text);
        frag_trace_close(t);
    }
}

/* A request of 1 MiB needs a block of the large pool; an oom of 1 MiB is a
 * block of the small pool, and its request 32 bytes less. */
static void padding_is_in_the_size_of_an_oom(void **state)
{
    static const struct row padded[] = {
        {"mA:2048 aA rA cA uA:2048 mA:2048 aA:1024", 22528,
         "(m) a0 f0 (u) E (m) a0"},
        {"mA:2048 aA rA cA uA:2048 mA:2048 aA:1024", 22527,
         "(m) a0 f0 (u) (m) a0"},
        {"sA:2048 aA rA cA fA:2048 o1024", 4096, "(s) a0 f0 (f) E (o) a0 f0"},
        {"mA:2048 aA rA cA uA:2048 mA:2048 o1024", 4096,
         "(m) a0 f0 (u) E (m) (o) a0 f0"},
    };
    const struct frag_recorded_settings settings = {.padding = 32};

    (void)state;
    for (size_t i = 0; i < sizeof(padded) / sizeof(*padded); i++) {
        struct frag_build *b = frag_build_open("x", "test");
        const bool has_oom = strchr(padded[i].script, 'o') != NULL;
        struct frag_trace *t;
        char text[512];

        assert_int_equal(frag_build_settings(b, &settings, &error), FRAG_OK);
        assert_int_equal(feed(b, padded[i].script), FRAG_OK);
        t = finish(b, padded[i].limit_kib * 1024);
        describe(&t->devices[0], text, sizeof(text));
        assert_string_equal(text, padded[i].events);
        for (uint64_t k = 3; k < t->devices[0].count; k++)
            if (t->devices[0].op[k] == FRAG_ALLOC)
                assert_int_equal(t->devices[0].bytes[k],
                                 FRAG_MIB - (has_oom ? 32 : 0));
        frag_trace_close(t);
    }
}

/* What an attempt explains depends on the settings: the size of a segment for
 * 1.5 MiB; whether a request can end with memory that was mapped before; and
 * garbage collection, which returns no memory of a private pool. */
static void settings_decide_what_an_attempt_explains(void **state)
{
    static const struct {
        struct frag_recorded_settings settings;
        struct row row;
    } cases[] = {
        {{.large_segment = 32 * FRAG_MIB},
         {"mA:2048 aA rA cA uA:2048 mA:2048 aA:1536", 34815,
          "(m) a0 f0 (u) (m) a0"}},
        {{.large_segment = 32 * FRAG_MIB},
         {"mA:2048 aA rA cA uA:2048 mA:2048 aA:1536", 34816,
          "(m) a0 f0 (u) E (m) a0"}},
        {{.expandable = true, .max_split = 20 * FRAG_MIB},
         {"mA:2048 aA rA cA uA:2048 aB:1024", 4095, "(m) a0 f0 (u) a0"}},
        {{.expandable = true},
         {"mA:2048 aA rA cA uA:2048 aB:1024", 4095, "(m) a0 f0 (u) E a0"}},
        {{.max_split = 20 * FRAG_MIB},
         {"sA:51200/0 aA/0 sB:43008/0 aB/0 rA/0 cA/0 rB/0 cB/0 aC/0 "
          "fB:43008/0 sD:22528/0 aD/0",
          1, "(s) a0 (s) a1 f0 f1 a1 (f) (s) a0"}},
        {{.max_split = 20 * FRAG_MIB},
         {"sA:51200/0 aA/0 sB:43008/0 aB/0 rA/0 cA/0 rB/0 cB/0 aC/0 "
          "fB:43008/0 fA:51200/0 sD:22528/0 aD/0",
          1, "(s) a0 (s) a1 f0 f1 a1 (f) (f) E (s) a0"}},
        {{.max_split = 20 * FRAG_MIB},
         {"sA:40960/0 aA/0 sB:8192/0 aB/0 rA/0 cA/0 rB/0 cB/0 aC/0 "
          "fB:8192/0 fA:40960/0 sD:61440/0 aD/0",
          1, "(s) a0 (s) a1 f0 f1 a1 (f) (f) E (s) a0"}},
        {{.max_split = 20 * FRAG_MIB},
         {"sA:40960/0 aA/0 sB:8192/0 aB/0 rA/0 cA/0 rB/0 cB/0 aC/0 "
          "fA:40960/0 fB:8192/0 sD:61440/0 aD/0",
          1, "(s) a0 (s) a1 f0 f1 a1 (f) (f) (s) a0"}},
        {{.max_split = 20 * FRAG_MIB},
         {"sA:40960/0 aA/0 rA/0 cA/0 aC/0 fA:40960/0 sD:22528/0 aD/0", 1,
          "(s) a0 f0 a0 (f) E (s) a1"}},
        {{.max_split = 20 * FRAG_MIB},
         {"sA:43008/0 aA/0 rA/0 cA/0 aC/0 fA:43008/0 sD:22528/0 aD/0", 1,
          "(s) a0 f0 a0 (f) (s) a1"}},
        {{.max_split = 20 * FRAG_MIB, .gc_threshold = 0.1},
         {"sA:51200/0 aA/0 sB:43008/0 aB/0 rA/0 cA/0 rB/0 cB/0 aC/0 "
          "fB:43008/0 fA:51200/0 sD:22528/0 aD/0",
          1, "(s) a0 (s) a1 f0 f1 a1 (f) (f) (s) a0"}},
        {{.max_split = 20 * FRAG_MIB},
         {"sA:20480/0 aA/0 rA/0 cA/0 aC/0 fA:20480/0 sD:20480/0 aD/0", 1,
          "(s) a0 f0 a0 (f) (s) a1"}},
        {{.gc_threshold = 0.1},
         {"sA:2048 aA rA cA fA:2048 sB:2048 aB", 9999, "(s) a0 f0 (f) (s) a0"}},
        {{.gc_threshold = 0.1},
         {"sA:2048/1 aA/1 rA/1 cA/1 fA:2048/1 sB:2048 aB", 9999,
          "(s) a0 f0 (f) E1e (s) a0"}},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct frag_build *b = frag_build_open("x", "test");
        struct frag_trace *t;
        char text[512];

        assert_int_equal(frag_build_settings(b, &cases[i].settings, &error),
                         FRAG_OK);
        assert_int_equal(feed(b, cases[i].row.script), FRAG_OK);
        t = finish(b, cases[i].row.limit_kib * 1024);
        describe(&t->devices[0], text, sizeof(text));
        assert_string_equal(text, cases[i].row.events);
        frag_trace_close(t);
    }
}

/* A change lies before the last `after` calls; `time` places it without. */
static uint64_t place_of(const char *script, uint64_t after, frag_time time)
{
    const struct frag_recorded_settings now = {.gc_threshold = 0};
    struct frag_build *b = frag_build_open("x", "test");
    struct frag_trace *t;
    uint64_t place;

    if (feed(b, script) != FRAG_OK)
        fail_msg("%s", error.text);
    assert_int_equal(
        frag_build_change(b, 0,
                          &(struct frag_setting_change){
                              .kind = FRAG_CHANGE_LIMIT, .time = time},
                          &now, after, &error),
        FRAG_OK);
    t = finish(b, 0);
    assert_int_equal(t->devices[0].change_count, 1);
    place = t->devices[0].changes[0].event;
    frag_trace_close(t);
    return place;
}

static void changes_are_placed_among_the_calls(void **state)
{
    /* Events: a(A) a(B) q(A) a(C) f(A) f(B) a-(failed) f-(failed) a(D). */
    static const char script[] = "aA:1 aB:1 rA:1 aC:1 cA:1 rB:1 cB:1 o9 aD:1";

    (void)state;
    assert_int_equal(place_of(script, 0, 0), 9);
    assert_int_equal(place_of(script, 1, 0), 7);
    assert_int_equal(place_of(script, 2, 0), 6);
    assert_int_equal(place_of(script, 3, 0), 4);
    assert_int_equal(place_of(script, 4, 0), 3);
    assert_int_equal(place_of(script, 7, 0), 0);
    assert_int_equal(place_of(script, 99, 0), 0);
    assert_int_equal(place_of(script, UINT64_MAX, 0), 0);
    assert_int_equal(place_of(script, UINT64_MAX, 1003), 3);
    assert_int_equal(place_of(script, UINT64_MAX, 9999), 9);
    /* A call of empty_cache is not counted: the time decides. */
    assert_int_equal(place_of("sA:2048 aA:1 rA:1 cA:1 fA:2048 aB:1", 1, 1003),
                     2);
    assert_int_equal(place_of("sA:2048 aA:1 rA:1 cA:1 fA:2048 aB:1", 1, 1005),
                     3);
}

/* The same run of returned segments is a retry under the limit of its moment,
 * and a call of empty_cache under that of the start. */
static void changes_decide_what_an_attempt_explains(void **state)
{
    const struct frag_recorded_settings now = {.gc_threshold = 0};
    static const frag_size limits[] = {30, 300};

    (void)state;
    for (int i = 0; i < 2; i++) {
        struct frag_build *b = frag_build_open("x", "test");
        struct frag_trace *t;
        char text[200];

        if (feed(b, "sA:20480 aA:12000 rA:12000 cA:12000 fA:20480 sB:24576 "
                    "aB:24576") != FRAG_OK)
            fail_msg("%s", error.text);
        assert_int_equal(frag_build_change(b, 0,
                                           &(struct frag_setting_change){
                                               .kind = FRAG_CHANGE_LIMIT,
                                               .limit = limits[i] << 20},
                                           &now, 1, &error),
                         FRAG_OK);
        t = finish(b, FRAG_UNLIMITED);
        describe(&t->devices[0], text, sizeof(text));
        if (!strstr(text, "E") != !i)
            fail_msg("limit %d: %s", (int)limits[i], text);
        frag_trace_close(t);
    }
}

/* A limit that a change states at the start is known; one that a later change
 * states is not that of the events before. */
static void a_stated_limit_is_known(void **state)
{
    const struct frag_recorded_settings now = {.gc_threshold = 0};

    (void)state;
    for (uint64_t after = 0; after < 4; after++) {
        struct frag_build *b = frag_build_open("x", "test");
        bool noted = false;
        struct frag_trace *t;

        assert_int_equal(feed(b, "sA:20480 aA:12000 rA:12000 cA:12000 fA:20480 "
                                 "sB:24576 aB:24576"),
                         FRAG_OK);
        assert_int_equal(
            frag_build_change(b, 0,
                              &(struct frag_setting_change){
                                  .kind = FRAG_CHANGE_LIMIT, .limit = 1},
                              &now, after, &error),
            FRAG_OK);
        t = finish(b, 0);
        for (uint32_t i = 0; i < t->note_count; i++)
            noted |= strstr(t->notes[i], "memory limit is not known") != NULL;
        assert_int_equal(noted, after < 3);
        frag_trace_close(t);
    }
}

static void broken_sequences_are_refused(void **state)
{
    static const char *const scripts[] = {
        "aA aA",          "aA rA rA",
        "aA rA cA cA",    "aA rA cA rA cA",
        "aA rA cA aA aA", "aA rA aA cA",
        "aA:0",           "aA:9007199254740992",
        "sA:0",           "o0",
        "aA aB rA cB rB", "cB cB",
        "rB cB rB cB",
    };

    (void)state;
    for (size_t i = 0; i < sizeof(scripts) / sizeof(*scripts); i++) {
        struct frag_build *b = frag_build_open("x.pickle", "test");
        struct frag_trace *t = NULL;
        enum frag_err err;

        error.text[0] = '\0';
        err = feed(b, scripts[i]);
        if (err == FRAG_OK)
            err = frag_build_finish(b, NULL, &t, &error);
        if (err != FRAG_CORRUPT || strncmp(error.text, "x.pickle:", 9) || t)
            fail_msg("%s: %s \"%s\"", scripts[i], frag_err_text(err),
                     error.text);
        frag_build_close(b);
    }
}

/* The results of PyTorch 2.11 on an H200. */
static void sizes_are_rounded_as_pytorch_does(void **state)
{
    static const struct {
        frag_size requested;
        uint64_t divisions;
        frag_size rounded, segment;
    } cases[] = {
        {1, 0, 512, 2 * FRAG_MIB},
        {513, 0, 1024, 2 * FRAG_MIB},
        {1048576, 0, 1048576, 2 * FRAG_MIB},
        {1048577, 0, 1049088, 20 * FRAG_MIB},
        {10485760, 0, 10485760, 10 * FRAG_MIB},
        {10485761, 0, 10486272, 12 * FRAG_MIB},
        {1200, 4, 1536, 2 * FRAG_MIB},
        {2049, 4, 2560, 2 * FRAG_MIB},
        {3000, 4, 3072, 2 * FRAG_MIB},
        {5000, 4, 5120, 2 * FRAG_MIB},
        {1500000, 4, 1572864, 20 * FRAG_MIB},
        {3145729, 4, 3670016, 20 * FRAG_MIB},
        {4096, 8, 4096, 2 * FRAG_MIB},
        {4097, 8, 4608, 2 * FRAG_MIB},
        {1234567, 8, 1310720, 20 * FRAG_MIB},
        {700, 2, 1024, 2 * FRAG_MIB},
        {1500, 8, 1536, 2 * FRAG_MIB},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        uint64_t divisions[TORCH_DIVISIONS];

        for (size_t k = 0; k < TORCH_DIVISIONS; k++)
            divisions[k] = cases[i].divisions;
        assert_int_equal(torch_round_size(cases[i].requested, divisions),
                         cases[i].rounded);
        if (!cases[i].divisions)
            assert_int_equal(torch_round_size(cases[i].requested, NULL),
                             cases[i].rounded);
        assert_int_equal(
            torch_segment_size(cases[i].rounded, TORCH_LARGE_SEGMENT),
            cases[i].segment);
    }
}

static void text_is_interned_up_to_its_first_0(void **state)
{
    struct frag_build *b = frag_build_open("x", "test");

    (void)state;
    assert_int_equal(frag_build_string(b, "a", 1), 0);
    assert_int_equal(frag_build_string(b, "", 0), 1);
    assert_int_equal(frag_build_string(b, "a\0b", 3), 0);
    assert_int_equal(frag_build_string(b, "ab", 2), 2);
    frag_build_close(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(entries_become_events),
        cmocka_unit_test(padding_is_in_the_size_of_an_oom),
        cmocka_unit_test(settings_decide_what_an_attempt_explains),
        cmocka_unit_test(changes_are_placed_among_the_calls),
        cmocka_unit_test(changes_decide_what_an_attempt_explains),
        cmocka_unit_test(a_stated_limit_is_known),
        cmocka_unit_test(broken_sequences_are_refused),
        cmocka_unit_test(sizes_are_rounded_as_pytorch_does),
        cmocka_unit_test(text_is_interned_up_to_its_first_0),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
