/* test_torch.c - tests the torch policy against numbers of the real allocator.
 *
 * Each script was run on PyTorch 2.11.0 on an H200; segments, offsets, counters
 * and the order of releases are its answers. A script consists of words:
 *
 *   a=3MiB   allocate as a           -a    free a
 *   ~a       free a, work pending    trim  empty_cache
 *   a@1=5    allocate on stream 1    repeats are written out
 *   a/1=5    allocate in pool 1      a@1/1=5   on stream 1 in pool 1
 *   whole1   pool 1 does not split   graph1    it belongs to captures
 *   end1     pool 1 has ended        ended1    and returns its cache at once
 *   set:X    the settings X are passed in mid-run; limit:10MiB, limit:inf
 *
 * Scripts with pools and with settings of later releases have the rules that
 * random scripts showed in PyTorch 2.12 to 2.15 (tests/gpu/releases).
 *
 * After the script, `blocks` lists where each block lies: "a0+512" is 512 bytes
 * into the segment (or first mapped range) that was allocated first; "a!" is an
 * OOM. `actions` is the log: +20M is a new segment of 20 MiB, -20M its return,
 * m and u a map and an unmap, each with the segment's number; ? is an OOM of
 * the rounded size.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "policies/policies.h"
#include "policies/torch/platform.h"
#include "policies/torch/torch.h"
#include "policies/torch/torch_conf.h"
#include "sim/arena/arena.h"

enum { LETTERS = 128, MAX_BASES = 64, LOG = 1024 };

struct rig {
    struct frag_backend *arena;
    struct frag_heap heap;
    struct frag_torch_observer observer;
    struct frag_block blocks[LETTERS];
    bool live[LETTERS], failed[LETTERS];
    frag_addr bases[MAX_BASES];
    frag_size sizes[MAX_BASES];
    size_t base_count;
    char log[LOG];
};

static size_t base_of(const struct rig *r, frag_addr addr)
{
    for (size_t i = r->base_count; i-- > 0;)
        if (addr >= r->bases[i] && addr - r->bases[i] < r->sizes[i])
            return i;
    return 0; /* further ranges of the first reservation */
}

static void append(struct rig *r, const char *text)
{
    assert_true(strlen(r->log) + strlen(text) + 2 < LOG);
    if (r->log[0])
        strcat(r->log, " ");
    strcat(r->log, text);
}

static void megabytes(char text[32], frag_size size)
{
    if (!size || size % FRAG_MIB)
        snprintf(text, 32, "%llu", (unsigned long long)size);
    else
        snprintf(text, 32, "%lluM", (unsigned long long)(size / FRAG_MIB));
}

static void log_action(void *user, enum frag_torch_action action,
                       frag_addr addr, frag_size size, frag_stream stream)
{
    struct rig *r = user;
    char amount[32], text[96];

    (void)stream;
    megabytes(amount, size);
    if (action == FRAG_TORCH_SEGMENT_ALLOC) {
        r->bases[r->base_count] = addr;
        r->sizes[r->base_count++] = size;
    }
    if (action == FRAG_TORCH_SEGMENT_MAP && base_of(r, addr) == 0 &&
        (!r->base_count || addr - r->bases[0] > 150 * 1024 * FRAG_MIB)) {
        r->bases[r->base_count] = addr;
        r->sizes[r->base_count++] = 160 * 1024 * FRAG_MIB;
    }
    snprintf(text, sizeof(text), "%c%s@%zu", "+-mu?"[action], amount,
             action == FRAG_TORCH_OOM ? 0 : base_of(r, addr));
    if (action == FRAG_TORCH_SEGMENT_MAP ||
        action == FRAG_TORCH_SEGMENT_UNMAP) {
        char offset[32];

        megabytes(offset, addr - r->bases[base_of(r, addr)]);
        strcat(text, "+");
        strcat(text, offset);
    }
    append(r, text);
}

static void rig_open(struct rig *r, const char *conf, frag_size limit)
{
    const struct frag_arena_options opts = {
        .capacity = FRAG_UNLIMITED,
        .total = FRAG_H200_TOTAL,
        .rule = FRAG_RULE_DRIVER,
    };
    char params[256];
    struct frag_error e;

    memset(r, 0, sizeof(*r));
    snprintf(params, sizeof(params), "torch_version:2.11%s%s", *conf ? "," : "",
             conf);
    if (limit)
        snprintf(params + strlen(params), sizeof(params) - strlen(params),
                 ",per_process_memory_fraction:%.17g",
                 (double)limit / (double)FRAG_H200_TOTAL);
    r->arena = frag_arena_open(&opts);
    assert_non_null(r->arena);
    assert_int_equal(
        frag_heap_open(&r->heap, &frag_policy_torch, r->arena, params, &e),
        FRAG_OK);
    r->observer.action = log_action;
    r->observer.user = r;
    frag_torch_observe(&r->heap, &r->observer);
}

static void rig_close(struct rig *r)
{
    frag_heap_close(&r->heap);
    assert_int_equal(frag_arena_used(r->arena), 0);
    assert_int_equal(frag_arena_reserved_va(r->arena), 0);
    frag_arena_close(r->arena);
}

static void ask(struct rig *r, const char *word)
{
    const int letter = word[0];
    const char *amount = strchr(word, '=') + 1;
    struct frag_request req = {.frees_at = FRAG_NEVER};

    if (word[1] == '@')
        req.stream = (frag_stream)atoi(word + 2);
    if (strchr(word, '/'))
        req.pool = (frag_pool)atoi(strchr(word, '/') + 1);
    assert_int_equal(frag_size_parse(amount, &req.size), FRAG_OK);
    switch (frag_policy_torch.alloc(&r->heap, &req, &r->blocks[letter])) {
    case FRAG_OK:
        r->live[letter] = true;
        break;
    case FRAG_OOM:
        r->failed[letter] = true;
        break;
    default:
        fail_msg("%s: neither served nor out of memory", word);
    }
}

/* Whether the word tells a fact about a pool. */
static bool tells(struct rig *r, const char *word)
{
    static const struct {
        const char *word;
        struct frag_heard told;
    } facts[] = {{"whole", {.facts = FRAG_POOL_WHOLE}},
                 {"graph", {.facts = FRAG_POOL_CAPTURE}},
                 {"ended", {.facts = FRAG_POOL_ENDED, .now = true}},
                 {"end", {.facts = FRAG_POOL_ENDED}}};

    for (size_t i = 0; i < sizeof(facts) / sizeof(*facts); i++) {
        const size_t length = strlen(facts[i].word);
        struct frag_heard told = facts[i].told;

        if (strncmp(word, facts[i].word, length) != 0)
            continue;
        told.number = (uint64_t)atoi(word + length);
        told.pool = (frag_pool)told.number;
        assert_int_equal(frag_policy_torch.hear(&r->heap, &told), FRAG_OK);
        return true;
    }
    return false;
}

/* Whether the word changes the settings or the limit. */
static bool changes(struct rig *r, const char *word)
{
    struct frag_setting setting = {NULL, FRAG_UNLIMITED};

    if (!strncmp(word, "set:", 4))
        setting.text = word + 4;
    else if (strncmp(word, "limit:", 6) != 0)
        return false;
    else if (strcmp(word, "limit:inf") != 0)
        assert_int_equal(frag_size_parse(word + 6, &setting.limit), FRAG_OK);
    (void)frag_policy_torch.set(&r->heap, &setting);
    return true;
}

static void step(struct rig *r, const char *word)
{
    const struct frag_block *b = &r->blocks[(int)word[1]];

    if (tells(r, word) || changes(r, word))
        return;
    if (!strcmp(word, "trim")) {
        frag_policy_torch.trim(&r->heap);
    } else if (word[0] == '-') {
        frag_policy_torch.free(&r->heap, b);
        r->live[(int)word[1]] = false;
    } else if (word[0] == '~') {
        frag_policy_torch.free_requested(&r->heap, b);
    } else {
        ask(r, word);
    }
}

static void play(struct rig *r, const char *script)
{
    char *words = strdup(script), *at = words;

    assert_non_null(words);
    for (char *word; (word = strsep(&at, " "));)
        if (*word)
            step(r, word);
    free(words);
}

static void places(const struct rig *r, char *text)
{
    *text = '\0';
    for (int c = 0; c < LETTERS; c++) {
        size_t base = base_of(r, r->blocks[c].addr);

        if (!r->live[c] && !r->failed[c])
            continue;
        if (*text)
            strcat(text, " ");
        if (r->failed[c])
            sprintf(text + strlen(text), "%c!", c);
        else
            sprintf(text + strlen(text), "%c%zu+%llu", c, base,
                    (unsigned long long)(r->blocks[c].addr - r->bases[base]));
    }
}

static const struct script {
    const char *name, *conf;
    unsigned limit_mib; /* 0: none */
    const char *script, *blocks, *actions;
} scripts[] = {
    /* clang-format off */
    {"segments of 2 MiB, 20 MiB and of their own size", "", 0,
     "a=1 b=1048576 c=1048577 d=3MiB e=10485760 f=10485761 g=10486272",
     "a0+0 b0+512 c1+0 d1+1049088 e1+4194816 f2+0 g3+0",
     "+2M@0 +20M@1 +12M@2 +12M@3"},
    {"a remainder of exactly 1 MiB is not split off", "", 0,
     "a=12MiB -a b=11MiB c=1048577", "b0+0 c1+0", "+12M@0 +20M@1"},
    {"a remainder of more than 1 MiB is", "", 0,
     "a=12MiB -a b=11533824 c=1048577", "b0+0 c0+11533824", "+12M@0"},
    {"max_split: a whole 20 MiB segment is refused once free",
     "max_split_size_mb:20", 0,
     "a=5MiB -a b=5MiB", "b1+0", "+20M@0 +20M@1"},
    {"xpu: no setting but expandable_segments has an effect",
     "platform:xpu,max_split_size_mb:20,large_segment_size_mb:20,"
     "roundup_power2_divisions:2", 0,
     "a=5MiB -a b=5MiB c=1049088", "b0+0 c0+5242880", "+20M@0"},
    {"xpu: garbage is not collected",
     "platform:xpu,garbage_collection_threshold:0.5", 1000,
     "a=100MiB b=420MiB -a -b e=430MiB", "e2+0",
     "+100M@0 +420M@1 +430M@2"},
    {"xpu: one growing range a pool",
     "platform:xpu,expandable_segments:True,large_segment_size_mb:40", 0,
     "a=3MiB b=30MiB", "a0+0 b0+3145728", "m20M@0+0 m20M@0+20M"},
    {"changed: a free segment is refused, and is taken later",
     "follows_changes:True", 0,
     "a=5MiB -a set:max_split_size_mb:20 b=5MiB set: c=16MiB d=5MiB",
     "b1+0 c0+0 d1+5242880", "+20M@0 +20M@1"},
    {"changed: pages are not used once they are off, and later are",
     "follows_changes:True,expandable_segments:True", 0,
     "a=30MiB -a set:expandable_segments:False b=10MiB "
     "set:expandable_segments:True c=10MiB trim",
     "b1+0 c0+0", "m40M@0+0 +10M@1 u20M@0+20M"},
    {"changed: pages outlive other settings, which a text resets",
     "follows_changes:True", 0,
     "set:expandable_segments:True set:roundup_power2_divisions:2 "
     "a=3146240 set:max_split_size_mb:40 b=3146240",
     "a0+0 b0+4194304", "m20M@0+0"},
    {"changed: an error leaves what comes before it", "follows_changes:True",
     0, "set:expandable_segments:True,max_split_size_mb:1 a=3MiB", "a0+0",
     "m20M@0+0"},
    {"changed: a lower limit returns free segments and refuses",
     "follows_changes:True", 0,
     "a=30MiB b=30MiB -a limit:40MiB c=36MiB limit:inf d=20MiB",
     "b1+0 c! d2+0", "+30M@0 +30M@1 -30M@0 ?36M@0 +20M@2"},
    {"changed: garbage is collected from then on", "follows_changes:True",
     1000, "a=100MiB b=420MiB -a -b "
     "set:garbage_collection_threshold:0.5 e=430MiB", "e2+0",
     "+100M@0 +420M@1 -100M@0 -420M@1 +430M@2"},
    {"changed: not for settings of the whole run", "max_split_size_mb:20", 0,
     "a=5MiB -a set: b=5MiB limit:1MiB c=30MiB", "b1+0 c2+0",
     "+20M@0 +20M@1 +30M@2"},
    {"expandable: one growing range a pool", "expandable_segments:True", 0,
     "a=3MiB b=30MiB c=512 -b d=100MiB",
     "a0+0 c1+0 d0+3145728",
     "m20M@0+0 m20M@0+20M m2M@1+0 m80M@0+40M"},
    {"expandable: only whole free pages are unmapped",
     "expandable_segments:True", 0,
     "a=3MiB b=30MiB c=512 -b d=100MiB -d trim", "a0+0 c1+0",
     "m20M@0+0 m20M@0+20M m2M@1+0 m80M@0+40M u100M@0+20M"},
    {"a limit: free segments go first, reaching it exactly is allowed", "", 100,
     "a=30MiB b=30MiB c=30MiB -a d=40MiB e=10MiB", "b1+0 c2+0 d3+0 e!",
     "+30M@0 +30M@1 +30M@2 -30M@0 +40M@3 ?10M@0"},
    {"garbage of one age goes all at once",
     "garbage_collection_threshold:0.5", 1000,
     "a=100MiB b=120MiB c=140MiB d=160MiB -a -b -c -d e=200MiB", "e4+0",
     "+100M@0 +120M@1 +140M@2 +160M@3 -100M@0 -120M@1 -140M@2 -160M@3 "
     "+200M@4"},
    {"expandable: a hole inside is taken before the growing end",
     "expandable_segments:True", 0,
     "a=30MiB b=10MiB c=15MiB -a -c d=16MiB", "b0+31457280 d0+0",
     "m40M@0+0 m20M@0+40M"},
    {"expandable: the end is too small", "expandable_segments:True", 0,
     "a=30MiB b=10MiB c=15MiB -a -c d=24MiB", "b0+31457280 d0+0",
     "m40M@0+0 m20M@0+40M"},
    {"oversize: just below the split size, a new segment",
     "max_split_size_mb:100", 0, "a=120MiB -a b=99MiB", "b1+0",
     "+120M@0 +100M@1"},
    {"oversize: exactly the rounding more is refused", "max_split_size_mb:100",
     0, "a=120MiB -a b=100MiB", "b1+0", "+120M@0 +100M@1"},
    {"oversize: a little less is taken whole", "max_split_size_mb:100", 0,
     "a=120MiB -a b=101MiB c=15MiB", "b0+0 c1+0", "+120M@0 +16M@1"},
    {"garbage younger than the average stays",
     "garbage_collection_threshold:0.65", 1000,
     "a=100MiB b=400MiB -a c=200MiB -c c=200MiB -c c=200MiB -c c=200MiB -c "
     "c=200MiB -c d=210MiB", "b1+0 d3+0",
     "+100M@0 +400M@1 +200M@2 -100M@0 +210M@3"},
    {"garbage waits until more than its share is reserved",
     "garbage_collection_threshold:0.5", 1000,
     "a=300MiB b=200MiB -a c=310MiB", "b1+0 c2+0",
     "+300M@0 +200M@1 +310M@2"},
    {"oversize: free blocks of the split size go from the highest down",
     "max_split_size_mb:100", 400,
     "a=100MiB b=100MiB c=100MiB -a -b -c d=250MiB", "d3+0",
     "+100M@0 +100M@1 +100M@2 -100M@0 -100M@1 -100M@2 +250M@3"},
    {"oversize: no more of them than needed", "max_split_size_mb:100", 400,
     "a=100MiB b=100MiB c=100MiB -a -b -c d=150MiB", "d3+0",
     "+100M@0 +100M@1 +100M@2 -100M@0 -100M@1 +150M@3"},
    {"expandable: the lowest hole is mapped first",
     "expandable_segments:True", 0,
     "a=20MiB b=20MiB c=20MiB d=20MiB e=20MiB -c -a trim f=20MiB",
     "b0+20971520 d0+62914560 e0+83886080 f0+0",
     "m20M@0+0 m20M@0+20M m20M@0+40M m20M@0+60M m20M@0+80M u20M@0+0 "
     "u20M@0+40M m20M@0+0"},
    {"expandable: a mapped hole joins the free blocks on both sides",
     "expandable_segments:True", 0,
     "a=10MiB b=40MiB c=10MiB -b trim d=35MiB",
     "a0+0 c0+52428800 d0+10485760",
     "m20M@0+0 m40M@0+20M u20M@0+20M m20M@0+20M"},
    {"aligned: the front stays free and merges with what is before it",
     "expandable_segments:True,base_addr_aligned_kb:16", 0,
     "a=1049088 b=2MiB -a c=1064960", "b0+1064960 c0+0", "m20M@0+0"},
    {"aligned: less than 2 MiB is not",
     "expandable_segments:True,base_addr_aligned_kb:16", 0,
     "a=1049088 b=2096640", "a0+0 b0+1049088", "m20M@0+0"},
    {"aligned: the padding counts",
     "expandable_segments:True,base_addr_aligned_kb:16,padding:32", 0,
     "a=1049056 b=2096640", "a0+0 b0+1064960", "m20M@0+0"},
    {"aligned: not where the rest of the free block is too small",
     "expandable_segments:True,base_addr_aligned_kb:16", 0,
     "a=1049088 b=19922432 c=1049088 d=19906560", "a0+0 b0+1049088 "
     "c0+20971520 d0+22036480", "m20M@0+0 m20M@0+20M"},
    {"aligned: to less", "expandable_segments:True,base_addr_aligned_kb:4", 0,
     "a=1049088 b=2MiB", "a0+0 b0+1052672", "m20M@0+0"},
    {"aligned: only in expandable segments", "base_addr_aligned_kb:16", 0,
     "a=1049088 b=2MiB", "a0+0 b0+1049088", "+20M@0"},
    {"expandable: releases go by size", "expandable_segments:True", 0,
     "a=60MiB b=20MiB c=40MiB d=20MiB -a -c trim", "b0+62914560 d0+125829120",
     "m60M@0+0 m20M@0+60M m40M@0+80M m20M@0+120M u40M@0+80M u60M@0+0"},
    {"a pool that does not split", "", 0,
     "whole1 a/1=1000 b/1=1000 -a c/1=600KiB d/2=1000 e/2=1000",
     "b1+0 c0+0 d2+0 e2+1024", "+2M@0 +2M@1 +2M@2"},
    {"an ended pool returns its cache at once, the rest with the cache", "", 0,
     "a/1=30MiB b/1=20MiB c=40MiB -a ended1 -b -c trim", "",
     "+30M@0 +20M@1 +40M@2 -30M@0 -40M@2 -20M@1"},
    {"pools that have ended, in the order of PyTorch's hash", "", 0,
     "a/1=30MiB b/2=20MiB c/3=40MiB d/4=1 -a -b -c -d end1 end2 end3 trim",
     "", "+30M@0 +20M@1 +40M@2 +2M@3 -20M@1 -30M@0 -40M@2"},
    {"a pool that has not ended keeps its cache", "", 100,
     "a/1=60MiB -a b=60MiB end1 c=60MiB", "b! c1+0",
     "+60M@0 ?60M@0 -60M@0 +60M@1"},
    {"2.12: a request of a pool returns no cache", "torch_version:2.12", 100,
     "a=60MiB -a b/1=60MiB", "b!", "+60M@0 ?60M@0"},
    {"2.13: it does", "torch_version:2.13", 100, "a=60MiB -a b/1=60MiB",
     "b1+0", "+60M@0 -60M@0 +60M@1"},
    {"2.13: not in a capture", "torch_version:2.13", 100,
     "graph1 a=60MiB -a b/1=60MiB", "b!", "+60M@0 ?60M@0"},
    {"throw_on_cudamalloc_oom: nothing is returned, and it is no OOM",
     "torch_version:2.15,throw_on_cudamalloc_oom:True", 0,
     "a=80GiB -a b=100GiB c=60GiB d=100GiB", "b! c0+0 d!", "+81920M@0"},
    {"throw_on_cudamalloc_oom: a limit is tested before",
     "torch_version:2.15,throw_on_cudamalloc_oom:True", 100,
     "a=60MiB -a b=70MiB", "b1+0", "+60M@0 -60M@0 +70M@1"},
    {"a reserve is a bound for one request",
     "torch_version:2.15,expandable_segments:True,"
     "expandable_segments_reserve:1G", 0,
     "a=1040MiB b=1041MiB", "a0+0 b!", "m1040M@0+0 ?1041M@0"},
    {"a pending block cannot be reused", "", 0,
     "a=1000 b=2000 ~a c=1000", "a0+0 b0+1024 c0+3072", "+2M@0"},
    {"a completed one can", "", 0, "a=1000 b=2000 ~a c=1000 -a d=1000",
     "b0+1024 c0+3072 d0+0", "+2M@0"},
    {"streams do not share blocks", "", 0, "a=1000 -a b@1=1000 c=1000",
     "b1+0 c0+0", "+2M@0 +2M@1"},
    {"empty_cache: the large pool first, by size", "", 0,
     "a=1 b=12MiB c=3MiB -a -b -c trim", "", "+2M@0 +12M@1 +20M@2 -12M@1 -20M@2 -2M@0"},
    {"of equal blocks the lowest address", "", 0,
     "a=512 b=512 c=512 d=512 -a -c e=512", "b0+512 d0+1536 e0+0", "+2M@0"},
    {"rounding picks the segment", "roundup_power2_divisions:4", 0,
     "a=9961472 b=3MiB", "a0+0 b1+0", "+10M@0 +20M@1"},
    {"a larger segment for the middle sizes", "large_segment_size_mb:64", 0,
     "a=3MiB b=12MiB c=61MiB", "a0+0 b0+3145728 c1+0", "+64M@0 +62M@1"},
    /* clang-format on */
};

static void real_allocators_answer(void **state)
{
    const struct script *s = *state;
    struct rig r;
    char text[LOG];

    rig_open(&r, s->conf, s->limit_mib * FRAG_MIB);
    play(&r, s->script);
    places(&r, text);
    assert_string_equal(text, s->blocks);
    assert_string_equal(r.log, s->actions);
    rig_close(&r);
}

/* A request looks for a block in its own pool, also if the request before it
 * had the same stream and another pool. */
static void pools_share_no_blocks(void **state)
{
    const struct frag_request other = {
        .size = 1000, .frees_at = FRAG_NEVER, .pool = 1};
    struct frag_block b;
    struct rig r;

    (void)state;
    rig_open(&r, "", 0);
    play(&r, "a=1000 -a");
    assert_int_equal(frag_policy_torch.alloc(&r.heap, &other, &b), FRAG_OK);
    assert_string_equal(r.log, "+2M@0 +2M@1");
    play(&r, "c=1000");
    assert_string_equal(r.log, "+2M@0 +2M@1");
    assert_int_equal(r.blocks['c'].addr, r.blocks['a'].addr);
    rig_close(&r);
}

static uint64_t current(const struct rig *r, enum frag_torch_stat stat)
{
    return r->observer.counters.stat[stat][FRAG_TORCH_ALL].current;
}

static uint64_t peak(const struct rig *r, enum frag_torch_stat stat)
{
    return r->observer.counters.stat[stat][FRAG_TORCH_ALL].peak;
}

static void counters_are_those_of_memory_stats(void **state)
{
    struct rig r;

    (void)state;
    rig_open(&r, "", 0);
    play(&r, "a=1 b=1048576 c=1048577 d=3MiB e=10485760 f=10485761 g=10486272");
    assert_int_equal(current(&r, FRAG_TORCH_ALLOCATED_BYTES), 36702208);
    assert_int_equal(current(&r, FRAG_TORCH_REQUESTED_BYTES), 36700675);
    assert_int_equal(current(&r, FRAG_TORCH_RESERVED_BYTES), 48234496);
    assert_int_equal(current(&r, FRAG_TORCH_INACTIVE_SPLIT), 4);
    assert_int_equal(current(&r, FRAG_TORCH_INACTIVE_SPLIT_BYTES), 11532288);
    assert_int_equal(peak(&r, FRAG_TORCH_INACTIVE_SPLIT_BYTES), 20970496);
    assert_int_equal(current(&r, FRAG_TORCH_SEGMENT), 4);
    assert_int_equal(r.observer.counters.num_device_alloc, 4);
    play(&r, "-a -b -c -d -e -f -g");
    assert_int_equal(current(&r, FRAG_TORCH_INACTIVE_SPLIT), 0);
    assert_int_equal(peak(&r, FRAG_TORCH_INACTIVE_SPLIT), 5);
    rig_close(&r);
}

static void pending_blocks_stay_active_and_requested(void **state)
{
    struct rig r;

    (void)state;
    rig_open(&r, "", 0);
    play(&r, "a=1000 b=2000 ~a");
    assert_int_equal(current(&r, FRAG_TORCH_ALLOCATION), 1);
    assert_int_equal(current(&r, FRAG_TORCH_ALLOCATED_BYTES), 2048);
    assert_int_equal(current(&r, FRAG_TORCH_ACTIVE), 2);
    assert_int_equal(current(&r, FRAG_TORCH_ACTIVE_BYTES), 3072);
    assert_int_equal(current(&r, FRAG_TORCH_REQUESTED_BYTES), 3000);
    rig_close(&r);
}

static void expandable_memory_moves_no_segment_counters(void **state)
{
    struct rig r;

    (void)state;
    rig_open(&r, "expandable_segments:True", 0);
    play(&r, "a=3MiB b=30MiB c=512 -b d=100MiB -d trim");
    assert_int_equal(current(&r, FRAG_TORCH_RESERVED_BYTES), 23068672);
    assert_int_equal(current(&r, FRAG_TORCH_SEGMENT), 0);
    assert_int_equal(peak(&r, FRAG_TORCH_INACTIVE_SPLIT), 0);
    assert_int_equal(r.observer.counters.num_device_alloc, 4);
    assert_int_equal(r.observer.counters.num_device_free, 1);
    rig_close(&r);
}

/* 100 MiB are reserved on a device that reports 80 and has more. */
static void a_reservation_ends_where_it_ends(void **state)
{
    const struct frag_arena_options opts = {.capacity = FRAG_UNLIMITED,
                                            .total = 80 * FRAG_MIB};
    const frag_size sizes[] = {120 * FRAG_MIB, 60 * FRAG_MIB};
    struct frag_backend *arena = frag_arena_open(&opts);
    struct frag_heap heap;
    struct frag_block b;

    (void)state;
    assert_non_null(arena);
    assert_int_equal(frag_heap_open(&heap, &frag_policy_torch, arena,
                                    "expandable_segments:True", NULL),
                     FRAG_OK);
    for (size_t i = 0; i < 2; i++) {
        const struct frag_request req = {.size = sizes[i]};

        assert_int_equal(heap.policy->alloc(&heap, &req, &b),
                         i ? FRAG_OK : FRAG_OOM);
    }
    heap.policy->free(&heap, &b);
    frag_heap_close(&heap);
    assert_int_equal(frag_arena_used(arena), 0);
    frag_arena_close(arena);
}

/* The limit may change; a request beyond it makes no call of the device. */
static void the_limit_of_the_program_holds(void **state)
{
    const struct frag_request req = {.size = 30 * FRAG_MIB};
    const char *const modes[] = {"", "expandable_segments:True"};

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct frag_block b;
        struct rig r;

        rig_open(&r, modes[i], 0);
        r.arena->limit = 30 * FRAG_MIB - 1;
        assert_int_equal(r.heap.policy->alloc(&r.heap, &req, &b), FRAG_OOM);
        assert_int_equal(frag_arena_reserved_va(r.arena), 0);
        r.arena->limit++;
        assert_int_equal(r.heap.policy->alloc(&r.heap, &req, &b), FRAG_OK);
        r.heap.policy->free(&r.heap, &b);
        rig_close(&r);
    }
}

static const struct frag_backend_ops *whole_ops;
static int refusals;

static enum frag_err refuse_release(struct frag_backend *mem, frag_phys phys,
                                    frag_size size)
{
    return refusals-- > 0 ? FRAG_DEVICE
                          : whole_ops->phys_release(mem, phys, size);
}

static enum frag_err refuse_va_free(struct frag_backend *mem, frag_addr addr,
                                    frag_size size)
{
    return refusals-- > 0 ? FRAG_DEVICE : whole_ops->va_free(mem, addr, size);
}

/* Frees a block of several pages under each kind of refusal, as the only block
 * of its reservation and between two others. */
static void trim_repeats_refused_releases(void **state)
{
    static const struct {
        const char *before, *after;
        bool refuses_va;
        int refusals;
        frag_size kept, left, va; /* MiB used after one trim, and after two;
                                     whether the addresses stay */
    } rows[] = {
        {"a=60MiB -a", "", false, 4, 20, 0, 0},
        {"a=60MiB -a", "", true, 1, 0, 0, 0},
        {"x=20MiB a=60MiB y=20MiB -a", "-x -y", false, 2, 80, 40, 1},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct frag_backend_ops ops;
        struct rig r;

        rig_open(&r, "expandable_segments:True", 0);
        whole_ops = r.arena->ops;
        ops = *whole_ops;
        if (rows[i].refuses_va)
            ops.va_free = refuse_va_free;
        else
            ops.phys_release = refuse_release;
        r.arena->ops = &ops;
        play(&r, rows[i].before);
        refusals = rows[i].refusals;
        play(&r, "trim");
        assert_int_equal(frag_arena_used(r.arena), rows[i].kept * FRAG_MIB);
        assert_true(frag_arena_reserved_va(r.arena) > 0);
        refusals = 0;
        play(&r, "trim");
        assert_int_equal(frag_arena_used(r.arena), rows[i].left * FRAG_MIB);
        assert_int_equal(frag_arena_reserved_va(r.arena) > 0, rows[i].va);
        play(&r, rows[i].after);
        play(&r, "trim");
        assert_int_equal(frag_arena_used(r.arena), 0);
        assert_int_equal(frag_arena_reserved_va(r.arena), 0);
        r.arena->ops = whole_ops;
        rig_close(&r);
    }
}

static void a_block_of_the_split_size_is_oversize(void **state)
{
    struct rig r;

    (void)state;
    rig_open(&r, "max_split_size_mb:100", 0);
    play(&r, "a=100MiB b=104857089 c=90MiB");
    assert_int_equal(r.observer.counters.oversize_allocations.current, 2);
    assert_int_equal(r.observer.counters.oversize_segments.current, 2);
    play(&r, "-a");
    assert_int_equal(r.observer.counters.oversize_allocations.freed, 1);
    rig_close(&r);
}

static void a_retry_is_counted_whether_it_helps_or_not(void **state)
{
    struct rig r;

    (void)state;
    rig_open(&r, "", 100 * FRAG_MIB);
    play(&r, "a=30MiB b=30MiB c=30MiB -a d=40MiB");
    assert_int_equal(r.observer.counters.num_alloc_retries, 1);
    play(&r, "e=10MiB");
    assert_int_equal(r.observer.counters.num_alloc_retries, 2);
    assert_int_equal(r.observer.counters.num_ooms, 1);
    rig_close(&r);
}

struct seen {
    char text[LOG];
};

static void note_block(void *user, const struct frag_torch_block *b)
{
    struct seen *s = user;

    sprintf(s->text + strlen(s->text), "%s%llu:%llu",
            b->allocated ? " a" : " i", (unsigned long long)b->size,
            (unsigned long long)b->requested);
}

static void inactive_blocks_keep_a_stale_request(void **state)
{
    struct rig r;
    struct seen s = {""};

    (void)state;
    rig_open(&r, "", 0);
    play(&r, "a=700 b=800 c=900 -b -a");
    frag_torch_snapshot(&r.heap, note_block, &s);
    assert_string_equal(s.text, " i2048:700 a1024:900 i2094080:0");
    play(&r, "-c");
    s.text[0] = '\0';
    frag_torch_snapshot(&r.heap, note_block, &s);
    assert_string_equal(s.text, " i2097152:900");
    rig_close(&r);
}

/* ---- settings ---- */

static void sizes_round_as_the_real_allocator_rounds(void **state)
{
    static const struct {
        const char *conf;
        frag_size n, rounded;
    } rows[] = {
        {"", 1, 512},
        {"", 512, 512},
        {"", 513, 1024},
        {"roundup_power2_divisions:4", 1200, 1536},
        {"roundup_power2_divisions:4", 2049, 2560},
        {"roundup_power2_divisions:4", 3000, 3072},
        {"roundup_power2_divisions:4", 5000, 5120},
        {"roundup_power2_divisions:4", 1500000, 1572864},
        {"roundup_power2_divisions:4", 3 * FRAG_MIB, 3 * FRAG_MIB},
        {"roundup_power2_divisions:4", 3 * FRAG_MIB + 1, 3670016},
        {"roundup_power2_divisions:8", 4096, 4096},
        {"roundup_power2_divisions:8", 4097, 4608},
        {"roundup_power2_divisions:8", 1234567, 1310720},
        {"roundup_power2_divisions:[256:1,512:2,1024:4,>:8]",
         300 * FRAG_MIB + 1, 300 * FRAG_MIB + 512},
        {"roundup_power2_divisions:[256:1,512:2,1024:4,>:8]", 600 * FRAG_MIB,
         768 * FRAG_MIB},
        {"roundup_power2_divisions:[256:1,512:2,1024:4,>:8]", 1100 * FRAG_MIB,
         1280 * FRAG_MIB},
        {"roundup_power2_divisions:[256:1,512:2,1024:4,>:8]", 2100 * FRAG_MIB,
         2304 * FRAG_MIB},
        {"roundup_power2_divisions:[64:4]", 65 * FRAG_MIB, 80 * FRAG_MIB},
        {"roundup_power2_divisions:[64:4]", 200 * FRAG_MIB + 1,
         200 * FRAG_MIB + 512},
        {"roundup_power2_divisions:[64:4]", 5 * FRAG_KIB, 5 * FRAG_KIB},
        {"roundup_power2_divisions:[1:1,32768:4]", 65 * FRAG_GIB,
         80 * FRAG_GIB},
    };
    struct torch_conf conf;

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        assert_int_equal(torch_conf_parse(&conf, rows[i].conf, NULL), FRAG_OK);
        assert_int_equal(torch_round_size(rows[i].n, conf.divisions),
                         rows[i].rounded);
    }
}

static void padding_is_added_before_the_rounding(void **state)
{
    static const struct {
        const char *conf;
        frag_size n, rounded;
    } rows[] = {
        {"padding:32", 1, 512},
        {"padding:32", 480, 512},
        {"padding:32", 481, 1024},
        {"padding:32", 512, 1024},
        {"padding:32", 992, 1024},
        {"padding:32", FRAG_MIB - 32, FRAG_MIB},
        {"padding:32", FRAG_MIB, FRAG_MIB + 512},
        {"padding:0", 512, 512},
        {"padding:32,roundup_power2_divisions:4", 5 * FRAG_MIB, 6 * FRAG_MIB},
        {"padding:32,roundup_power2_divisions:4", 5 * FRAG_MIB - 32,
         5 * FRAG_MIB},
    };
    struct torch_conf conf;

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        assert_int_equal(torch_conf_parse(&conf, rows[i].conf, NULL), FRAG_OK);
        assert_int_equal(torch_conf_round(&conf, rows[i].n), rows[i].rounded);
    }
}

static void the_rules_of_a_platform_are_kept(void **state)
{
    static const struct {
        const char *recorded, *chosen, *both;
    } rows[] = {
        {NULL, "", ""},
        {NULL, "max_split_size_mb:64", "max_split_size_mb:64"},
        {"", "", ""},
        {"no_padding:32", "", ""},
        {"padding:0", "backend:native", "backend:native"},
        {"padding:32", "", "padding:32"},
        {"padding:32,max_split_size_mb:64", "backend:native",
         "padding:32,backend:native"},
        {"backend:native,padding:512", "x:1", "padding:512,x:1"},
        {"padding:32,padding:16", "", "padding:16"},
        {"padding:32", "padding:0", "padding:0"},
        {"padding:32", "x:1,padding:8", "x:1,padding:8"},
        {"padding:513", "x:1", "x:1"},
        {"base_addr_aligned_kb:16,expandable_segments:True", "x:1",
         "base_addr_aligned_kb:16,x:1"},
        {"x:1,padding:32,base_addr_aligned_kb:4", "",
         "padding:32,base_addr_aligned_kb:4"},
        {"padding:32,base_addr_aligned_kb:16", "base_addr_aligned_kb:0",
         "padding:32,base_addr_aligned_kb:0"},
        {"platform:xpu,x:1", "y:1", "platform:xpu,y:1"},
        {"platform:xpu", "platform:cuda", "platform:cuda"},
        {"platform:none", "", ""},
        {"base_addr_aligned_kb:17,base_addr_aligned_kbs:3", "x:1", "x:1"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        char *both = torch_platform_keep(rows[i].recorded, rows[i].chosen);

        assert_non_null(both);
        assert_string_equal(both, rows[i].both);
        free(both);
    }
}

static void settings_are_taken_as_pytorch_takes_them(void **state)
{
    static const struct {
        const char *text, *means;
    } rows[] = {
        {"", "expandable_segments:False,large_segment_size_mb:20,"
             "max_non_split_rounding_mb:20"},
        {"base_addr_aligned_kb:16,expandable_segments:True",
         "expandable_segments:True,large_segment_size_mb:20,"
         "max_non_split_rounding_mb:20,base_addr_aligned_kb:16"},
        {" max_split_size_mb : 128MB , ",
         "expandable_segments:False,large_segment_size_mb:20,"
         "max_non_split_rounding_mb:20,max_split_size_mb:128"},
        {"max_split_size_mb:32,max_split_size_mb:64",
         "expandable_segments:False,large_segment_size_mb:20,"
         "max_non_split_rounding_mb:20,max_split_size_mb:64"},
        {"expandable_segments:True,large_segment_size_mb:12",
         "expandable_segments:True,large_segment_size_mb:12,"
         "max_non_split_rounding_mb:12"},
        {"max_split_size_mb:16,large_segment_size_mb:12",
         "expandable_segments:False,large_segment_size_mb:12,"
         "max_non_split_rounding_mb:12,max_split_size_mb:16"},
        {"garbage_collection_threshold:0.5,pinned_num_register_threads:8,"
         "backend:native,per_process_memory_fraction:0.25",
         "expandable_segments:False,large_segment_size_mb:20,"
         "max_non_split_rounding_mb:20,garbage_collection_threshold:0.5,"
         "per_process_memory_fraction:0.25"},
        {"platform:xpu,max_split_size_mb:64,expandable_segments:True,"
         "pinned_max_round_threshold_mb:4",
         "torch_version:2.11,platform:xpu,expandable_segments:True,"
         "large_segment_size_mb:20,max_non_split_rounding_mb:20"},
        {"platform:npu,page_size:1g,segment_size_mb:64,pinned_mem_register:"
         "True,multi_stream_lazy_reclaim:True,release_lock_on_npumalloc:True,"
         "pin_memory_expandable_segments:True,throw_on_npumalloc_oom:True",
         "torch_version:2.11,platform:npu,expandable_segments:False,"
         "large_segment_size_mb:20,max_non_split_rounding_mb:20,"
         "throw_on_cudamalloc_oom:True"},
        {"padding:32,max_split_size_mb:64,padding:16",
         "expandable_segments:False,large_segment_size_mb:20,"
         "max_non_split_rounding_mb:20,max_split_size_mb:64,padding:16"},
        {"padding:32,padding:0",
         "expandable_segments:False,large_segment_size_mb:20,"
         "max_non_split_rounding_mb:20"},
        {"roundup_power2_divisions:[256:1,512:2,1024:4,>:8]",
         "expandable_segments:False,large_segment_size_mb:20,"
         "max_non_split_rounding_mb:20,roundup_power2_divisions:[1:1,2:1,4:1,"
         "8:1,16:1,32:1,64:1,128:1,256:1,512:2,1024:4,2048:8,4096:8,8192:8,"
         "16384:8,32768:8]"},
    };
    struct frag_params *p, *again;

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        assert_int_equal(
            frag_params_read(&frag_policy_torch, rows[i].text, &p, NULL),
            FRAG_OK);
        assert_string_equal(p->text, rows[i].means);
        assert_int_equal(
            frag_params_read(&frag_policy_torch, p->text, &again, NULL),
            FRAG_OK);
        assert_string_equal(again->text, rows[i].means);
        free(again);
        free(p);
    }
}

static void settings_that_pytorch_refuses_are_refused_by_name(void **state)
{
    static const struct {
        const char *text, *words;
    } rows[] = {
        {"max_split_size_mb:19", "at least 20"},
        {"max_split_size_mb:x", "max_split_size_mb"},
        {"max_split_size_mb", "max_split_size_mb"},
        {"max_split_size_mb:", "max_split_size_mb"},
        {"expandable_segments:true", "True or False"},
        {"garbage_collection_threshold:1", "above 0 and below 1"},
        {"per_process_memory_fraction:1.5", "from 0 to 1"},
        {"roundup_power2_divisions:3", "power of two"},
        {"roundup_power2_divisions:[256:3]", "power of two"},
        {"roundup_power2_divisions:[100:2]", "power of two"},
        {"roundup_power2_divisions:[256:2", "closing"},
        {"large_segment_size_mb:10", "at least 11"},
        {",max_split_size_mb:64", "not an allocator setting"},
        {"backend:jemalloc", "native"},
        {"padding:513", "from 0 to 512"},
        {"padding:-1", "from 0 to 512"},
        {"padding:x", "from 0 to 512"},
        {"base_addr_aligned_kb:17", "from 0 to 16"},
    };
    struct torch_conf conf;
    struct frag_error e;

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        e.text[0] = '\0';
        assert_int_equal(torch_conf_parse(&conf, rows[i].text, &e),
                         FRAG_INVALID);
        assert_non_null(strstr(e.text, rows[i].words));
    }
    assert_int_equal(torch_conf_parse(&conf, "backend:cudaMallocAsync", &e),
                     FRAG_UNSUPPORTED);
}

int main(void)
{
    enum { SCRIPTS = sizeof(scripts) / sizeof(*scripts) };
    struct CMUnitTest played[SCRIPTS];
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pools_share_no_blocks),
        cmocka_unit_test(counters_are_those_of_memory_stats),
        cmocka_unit_test(pending_blocks_stay_active_and_requested),
        cmocka_unit_test(expandable_memory_moves_no_segment_counters),
        cmocka_unit_test(a_reservation_ends_where_it_ends),
        cmocka_unit_test(the_limit_of_the_program_holds),
        cmocka_unit_test(trim_repeats_refused_releases),
        cmocka_unit_test(a_block_of_the_split_size_is_oversize),
        cmocka_unit_test(a_retry_is_counted_whether_it_helps_or_not),
        cmocka_unit_test(inactive_blocks_keep_a_stale_request),
        cmocka_unit_test(sizes_round_as_the_real_allocator_rounds),
        cmocka_unit_test(padding_is_added_before_the_rounding),
        cmocka_unit_test(the_rules_of_a_platform_are_kept),
        cmocka_unit_test(settings_are_taken_as_pytorch_takes_them),
        cmocka_unit_test(settings_that_pytorch_refuses_are_refused_by_name),
    };

    for (size_t i = 0; i < SCRIPTS; i++)
        played[i] = (struct CMUnitTest){
            .name = scripts[i].name,
            .test_func = real_allocators_answer,
            .initial_state = (void *)(uintptr_t)&scripts[i],
        };
    return cmocka_run_group_tests(played, NULL, NULL) +
           cmocka_run_group_tests(tests, NULL, NULL);
}
