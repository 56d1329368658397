#include "sim/validate.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "policies/torch.h"
#include "sim/arena.h"
#include "sim/replay.h"

/* A segment of the replay and the one of the recording it stands for. */
struct pair {
    frag_addr replayed, recorded;
    frag_size size;
};

struct check {
    const struct frag_validate *spec;
    const struct frag_recorded *recorded;
    struct frag_validation *v;
    struct frag_torch_observer observer;
    uint64_t event;       /* the one under way */
    uint64_t next_action; /* row of recorded->actions */
    struct pair *pairs;   /* live ones, by replayed address */
    size_t pair_count, pair_room;
    struct frag_torch_block *blocks; /* of the replay's end */
    uint64_t block_count, block_room;
    bool nomem;
};

/* ---- the first difference ---- */

/* Only the first difference is kept: what the recording says, then what the
 * replay did, which completes it. */
static void FRAG_PRINTF(2, 3) expect(struct check *c, const char *format, ...)
{
    struct frag_divergence *d = &c->v->first;
    va_list args;

    if (d->found)
        return;
    va_start(args, format);
    vsnprintf(d->expected, sizeof(d->expected), format, args);
    va_end(args);
}

static void FRAG_PRINTF(2, 3) found(struct check *c, const char *format, ...)
{
    struct frag_divergence *d = &c->v->first;
    va_list args;

    if (d->found)
        return;
    va_start(args, format);
    vsnprintf(d->replayed, sizeof(d->replayed), format, args);
    va_end(args);
    d->event = c->event;
    d->found = true;
}

/* ---- addresses ---- */

static size_t pair_at(const struct check *c, frag_addr addr)
{
    size_t low = 0, high = c->pair_count;

    while (low < high) {
        size_t mid = (low + high) / 2;

        if (c->pairs[mid].replayed <= addr)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

/* Expandable segments lie at fixed addresses and stand for themselves. */
static frag_addr translate(const struct check *c, frag_addr addr)
{
    size_t at = pair_at(c, addr);

    if (at && addr - c->pairs[at - 1].replayed < c->pairs[at - 1].size)
        return addr - c->pairs[at - 1].replayed + c->pairs[at - 1].recorded;
    return addr;
}

static void add_pair(struct check *c, frag_addr replayed, frag_addr recorded,
                     frag_size size)
{
    size_t at = pair_at(c, replayed);

    if (c->pair_count == c->pair_room) {
        size_t room = c->pair_room ? 2 * c->pair_room : 64;
        struct pair *pairs = realloc(c->pairs, room * sizeof(*pairs));

        if (!pairs) {
            c->nomem = true;
            return;
        }
        c->pairs = pairs;
        c->pair_room = room;
    }
    memmove(&c->pairs[at + 1], &c->pairs[at],
            (c->pair_count - at) * sizeof(*c->pairs));
    c->pairs[at] = (struct pair){replayed, recorded, size};
    c->pair_count++;
}

static void remove_pair(struct check *c, frag_addr replayed)
{
    size_t at = pair_at(c, replayed);

    if (!at || c->pairs[at - 1].replayed != replayed)
        return;
    memmove(&c->pairs[at - 1], &c->pairs[at],
            (c->pair_count - at) * sizeof(*c->pairs));
    c->pair_count--;
}

/* ---- actions ---- */

static const enum frag_action recorded_kind[] = {
    [FRAG_TORCH_SEGMENT_ALLOC] = FRAG_SEGMENT_ALLOC,
    [FRAG_TORCH_SEGMENT_FREE] = FRAG_SEGMENT_FREE,
    [FRAG_TORCH_SEGMENT_MAP] = FRAG_SEGMENT_MAP,
    [FRAG_TORCH_SEGMENT_UNMAP] = FRAG_SEGMENT_UNMAP,
    [FRAG_TORCH_OOM] = FRAG_OOM_REPORTED,
};

static void describe(char text[160], const struct frag_recorded_action *a)
{
    snprintf(text, 160,
             "%s of %" PRIu64 " bytes at 0x%" PRIx64
             " on stream %u during event %" PRIu64,
             frag_action_names[a->action], a->size, a->addr, a->stream,
             a->event);
}

static void compare_action(struct check *c,
                           const struct frag_recorded_action *replayed)
{
    const struct frag_recorded_action *want = NULL;
    uint64_t *matched = replayed->action == FRAG_OOM_REPORTED
                            ? &c->v->ooms_matched
                            : &c->v->segment_events_matched;
    char text[160];

    if (c->next_action < c->recorded->action_count)
        want = &c->recorded->actions[c->next_action++];
    if (want && want->action == replayed->action &&
        want->size == replayed->size && want->stream == replayed->stream &&
        want->event == replayed->event &&
        (want->action == FRAG_OOM_REPORTED || want->addr == replayed->addr)) {
        ++*matched;
        return;
    }
    if (want)
        describe(text, want);
    else
        snprintf(text, sizeof(text), "no further segment event");
    expect(c, "%s", text);
    describe(text, replayed);
    found(c, "%s", text);
}

static void on_action(void *user, enum frag_torch_action action, frag_addr addr,
                      frag_size size, frag_stream stream)
{
    struct check *c = user;
    const uint64_t k = c->next_action;
    struct frag_recorded_action replayed = {
        .event = c->event,
        .size = size,
        .action = recorded_kind[action],
        .stream = stream,
    };

    if (action == FRAG_TORCH_SEGMENT_ALLOC && k < c->recorded->action_count)
        add_pair(c, addr, c->recorded->actions[k].addr, size);
    replayed.addr = translate(c, addr);
    compare_action(c, &replayed);
    if (action == FRAG_TORCH_SEGMENT_FREE)
        remove_pair(c, addr);
}

/* A recorded action of an event that is over, and the replay had none. */
static void miss_actions(struct check *c, uint64_t event)
{
    char text[160];

    while (c->next_action < c->recorded->action_count &&
           c->recorded->actions[c->next_action].event <= event) {
        describe(text, &c->recorded->actions[c->next_action++]);
        expect(c, "%s", text);
        found(c, "no such action");
    }
}

/* ---- events ---- */

static void compare_address(struct check *c, uint64_t event,
                            const struct frag_block *block)
{
    const frag_addr want = c->recorded->addr[event];
    const frag_addr got = block ? translate(c, block->addr) : 0;

    if (want)
        c->v->allocs++;
    if (want == got) {
        c->v->addresses_matched += want != 0;
        return;
    }
    expect(c, want ? "block at 0x%" PRIx64 : "out of memory", want);
    found(c, got ? "block at 0x%" PRIx64 : "out of memory", got);
}

static void on_done(void *user, uint64_t event, const struct frag_block *block)
{
    struct check *c = user;

    miss_actions(c, event);
    if (c->spec->device->op[event] == FRAG_ALLOC)
        compare_address(c, event, block);
    c->event = event + 1;
}

/* The adopted segments, under their own addresses; what the observer counted
 * while they were taken over is where the recording begins. */
static void on_opened(void *user, struct frag_heap *heap)
{
    struct check *c = user;

    frag_torch_observe(heap, &c->observer);
}

/* ---- the final snapshot ---- */

static void keep_block(void *user, const struct frag_torch_block *b)
{
    struct check *c = user;

    if (c->block_count == c->block_room) {
        uint64_t room = c->block_room ? 2 * c->block_room : 1024;
        struct frag_torch_block *blocks =
            realloc(c->blocks, room * sizeof(*blocks));

        if (!blocks) {
            c->nomem = true;
            return;
        }
        c->blocks = blocks;
        c->block_room = room;
    }
    c->blocks[c->block_count] = *b;
    c->blocks[c->block_count].addr = translate(c, b->addr);
    c->blocks[c->block_count++].segment = translate(c, b->segment);
}

static int by_address(const void *a, const void *b)
{
    const struct frag_torch_block *x = a, *y = b;

    return x->addr < y->addr ? -1 : x->addr > y->addr;
}

static void on_ended(void *user, const struct frag_heap *heap)
{
    struct check *c = user;

    frag_torch_snapshot(heap, keep_block, c);
    if (c->block_count)
        qsort(c->blocks, c->block_count, sizeof(*c->blocks), by_address);
}

static bool same_size(frag_size recorded, frag_size replayed)
{
    return recorded == replayed || recorded == FRAG_SIZE_UNKNOWN ||
           replayed == FRAG_SIZE_UNKNOWN;
}

static uint32_t state_of(const struct frag_torch_block *b)
{
    if (b->pending)
        return FRAG_ACTIVE_PENDING_FREE;
    return b->allocated ? FRAG_ACTIVE_ALLOCATED : FRAG_INACTIVE;
}

static bool same_block(const struct frag_recorded_segment *s,
                       const struct frag_recorded_block *want,
                       const struct frag_torch_block *got)
{
    return want->addr == got->addr && want->size == got->size &&
           want->state == state_of(got) &&
           same_size(want->requested, got->requested) &&
           s->addr == got->segment && s->stream == got->stream &&
           s->pool == got->pool && s->is_small == got->is_small &&
           s->is_expandable == got->is_expandable;
}

static void compare_block(struct check *c,
                          const struct frag_recorded_segment *s,
                          const struct frag_recorded_block *want,
                          const struct frag_torch_block *got)
{
    static const char format[] =
        "final block 0x%" PRIx64 ", %" PRIu64 " bytes, requested %" PRIu64
        ", state %u, in segment 0x%" PRIx64 " (stream %u, pool %u)";

    if (got && same_block(s, want, got)) {
        c->v->blocks_matched++;
        return;
    }
    expect(c, format, want->addr, want->size, want->requested, want->state,
           s->addr, s->stream, s->pool);
    if (!got) {
        found(c, "no such block");
        return;
    }
    found(c, format, got->addr, got->size, got->requested, state_of(got),
          got->segment, got->stream, got->pool);
}

static void compare_end(struct check *c)
{
    const struct frag_layout *end = &c->recorded->end;
    uint64_t k = 0;

    c->v->blocks = end->block_count;
    for (uint64_t i = 0; i < end->segment_count; i++) {
        const struct frag_recorded_segment *s = &end->segments[i];

        for (uint64_t j = 0; j < s->block_count; j++, k++)
            compare_block(c, s, &end->blocks[s->first_block + j],
                          k < c->block_count ? &c->blocks[k] : NULL);
        c->v->end_reserved_recorded += s->size;
    }
    if (k < c->block_count) {
        expect(c, "%" PRIu64 " blocks at the end", k);
        found(c, "%" PRIu64 " blocks", c->block_count);
    }
}

/* ---- counters ---- */

static const char *const stat_names[] = {
#define X(name, text) text,
    FRAG_TORCH_STATS(X)
#undef X
};

static void compare_stat(struct check *c, const char *name, uint64_t replayed)
{
    struct frag_compared *row = &c->v->stats[c->v->stat_count];
    const struct frag_validate *spec = c->spec;

    if (!frag_stats_file_get(spec->stats, spec->device->device, name,
                             &row->recorded))
        return;
    snprintf(row->name, sizeof(row->name), "%s", name);
    row->replayed = replayed;
    /* An empty_cache that frees nothing leaves no trace but this counter. */
    row->determined =
        strcmp(name, "num_sync_all_streams") || row->recorded < row->replayed;
    c->v->stat_count++;
    if (row->recorded == replayed || !row->determined) {
        c->v->stats_matched++;
        return;
    }
    expect(c, "%s of %" PRIu64, name, row->recorded);
    found(c, "%" PRIu64, replayed);
}

static void compare_count(struct check *c, const char *stem,
                          const struct frag_torch_count *count)
{
    const struct {
        const char *name;
        uint64_t value;
    } parts[] = {
        {"current", count->current},
        {"peak", count->peak},
        {"allocated", count->allocated},
        {"freed", count->freed},
    };
    char name[64];

    for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++) {
        snprintf(name, sizeof(name), "%s.%s", stem, parts[i].name);
        compare_stat(c, name, parts[i].value);
    }
}

enum {
    MAX_STATS = (FRAG_TORCH_STAT_COUNT * FRAG_TORCH_POOLS_COUNT + 2) * 4 + 5
};

static enum frag_err compare_stats(struct check *c)
{
    static const char *const pools[] = {"all", "large_pool", "small_pool"};
    const struct frag_torch_counters *n = &c->observer.counters;
    char stem[48];

    if (!c->spec->stats)
        return FRAG_OK;
    c->v->stats = calloc(MAX_STATS, sizeof(*c->v->stats));
    if (!c->v->stats)
        return FRAG_NOMEM;
    for (int i = 0; i < FRAG_TORCH_STAT_COUNT; i++)
        for (int k = 0; k < FRAG_TORCH_POOLS_COUNT; k++) {
            snprintf(stem, sizeof(stem), "%s.%s", stat_names[i], pools[k]);
            compare_count(c, stem, &n->stat[i][k]);
        }
    compare_count(c, "oversize_allocations", &n->oversize_allocations);
    compare_count(c, "oversize_segments", &n->oversize_segments);
    compare_stat(c, "num_alloc_retries", n->num_alloc_retries);
    compare_stat(c, "num_ooms", n->num_ooms);
    compare_stat(c, "num_sync_all_streams", n->num_sync_all_streams);
    compare_stat(c, "num_device_alloc", n->num_device_alloc);
    compare_stat(c, "num_device_free", n->num_device_free);
    return FRAG_OK;
}

/* ---- the run ---- */

static void count_recorded(struct check *c)
{
    struct frag_validation *v = c->v;
    frag_size reserved = 0;

    for (uint64_t i = 0; i < c->recorded->start.segment_count; i++)
        reserved += c->recorded->start.segments[i].size;
    v->peak_reserved_recorded = reserved;
    for (uint64_t i = 0; i < c->recorded->action_count; i++) {
        const struct frag_recorded_action *a = &c->recorded->actions[i];

        if (a->action == FRAG_OOM_REPORTED) {
            v->ooms_recorded++;
            continue;
        }
        v->segment_events++;
        if (a->action == FRAG_SEGMENT_ALLOC || a->action == FRAG_SEGMENT_MAP)
            reserved += a->size;
        else
            reserved -= a->size;
        if (reserved > v->peak_reserved_recorded)
            v->peak_reserved_recorded = reserved;
    }
}

/* The recorded base of each ordinary segment, in order. */
static enum frag_err anchors(const struct check *c,
                             struct frag_arena_options *arena)
{
    const struct frag_recorded *r = c->recorded;
    frag_addr *bases = calloc(r->action_count + 1, sizeof(*bases));
    frag_size *sizes = calloc(r->action_count + 1, sizeof(*sizes));

    arena->bases = bases;
    arena->sizes = sizes;
    if (!bases || !sizes)
        return FRAG_NOMEM;
    for (uint64_t i = 0; i < r->action_count; i++) {
        if (r->actions[i].action != FRAG_SEGMENT_ALLOC)
            continue;
        bases[arena->base_count] = r->actions[i].addr;
        sizes[arena->base_count++] = r->actions[i].size;
    }
    return FRAG_OK;
}

static void set_params(const struct check *c, frag_size total, char *text,
                       size_t room)
{
    const struct frag_validate *spec = c->spec;
    const char *settings =
        spec->settings ? spec->settings : spec->trace->settings;

    snprintf(text, room, "%s", settings ? settings : "");
    if (spec->limit != FRAG_UNLIMITED) {
        size_t length = strlen(text);

        snprintf(text + length, room - length,
                 "%sper_process_memory_fraction:%.17g", length ? "," : "",
                 (double)spec->limit / (double)total);
    }
}

static enum frag_err run(struct check *c, const struct frag_arena_options *opts,
                         struct frag_error *e)
{
    const struct frag_replay_watch watch = {
        .user = c,
        .opened = on_opened,
        .done = on_done,
        .ended = on_ended,
        .adopt_start = true,
    };
    char params[1024];
    struct frag_replay spec = {
        .trace = c->spec->device,
        .watch = &watch,
        .policy = &frag_policy_torch,
        .params = params,
        .mem = frag_arena_open(opts),
        .check = true,
        .repeat = 1,
    };
    struct frag_run result;
    enum frag_err err;

    if (!spec.mem)
        return FRAG_NOMEM;
    set_params(c, opts->total, params, sizeof(params));
    err = frag_replay(&spec, &result, e);
    if (err == FRAG_OK)
        frag_run_free(&result);
    frag_arena_close(spec.mem);
    return err;
}

static enum frag_err conclude(struct check *c)
{
    struct frag_validation *v = c->v;
    const struct frag_torch_count *reserved =
        &c->observer.counters.stat[FRAG_TORCH_RESERVED_BYTES][FRAG_TORCH_ALL];

    if (c->nomem)
        return FRAG_NOMEM;
    miss_actions(c, UINT64_MAX);
    if (c->recorded->has_end)
        compare_end(c);
    FRAG_TRY(compare_stats(c));
    v->peak_reserved_replayed = reserved->peak;
    v->end_reserved_replayed = reserved->current;
    v->events = c->spec->device->count;
    v->exact = !v->first.found;
    return FRAG_OK;
}

enum frag_err frag_validate(const struct frag_validate *spec,
                            struct frag_validation *out, struct frag_error *e)
{
    struct frag_validation v = {0};
    struct check c = {
        .spec = spec, .recorded = &spec->device->recorded, .v = &v};
    struct frag_arena_options arena = {
        .capacity = FRAG_UNLIMITED,
        .total = spec->total ? spec->total : FRAG_H200_TOTAL,
        .rule = spec->predicted ? FRAG_RULE_DRIVER : FRAG_RULE_ANCHORED,
    };
    enum frag_err err;

    if (!c.recorded->addr || !c.recorded->has_actions)
        return frag_fail(e, FRAG_UNSUPPORTED,
                         "%s: holds no answers of a recorded allocator; "
                         "validate takes PyTorch snapshots",
                         spec->trace->path);
    c.observer.action = on_action;
    c.observer.user = &c;
    count_recorded(&c);
    err = anchors(&c, &arena);
    if (err == FRAG_OK)
        err = run(&c, &arena, e);
    if (err == FRAG_OK)
        err = conclude(&c);
    free((void *)(uintptr_t)arena.bases);
    free((void *)(uintptr_t)arena.sizes);
    free(c.pairs);
    free(c.blocks);
    if (err != FRAG_OK)
        frag_validation_free(&v);
    else
        *out = v;
    return err;
}

void frag_validation_free(struct frag_validation *v)
{
    free(v->stats);
    v->stats = NULL;
}
