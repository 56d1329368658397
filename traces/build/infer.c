/* infer.c - infers the completions of frees and the empty_cache calls, which a
 * recording may omit.
 *
 * Completions: a recording without free_completed entries (skip_actions) frees
 * each block at its free_requested. All slots are then assigned again.
 *
 * empty_cache: PyTorch does not record the call, only the segments that the
 * call returned. An allocation attempt also returns segments if it would
 * otherwise exceed the memory limit or the threshold of the garbage collection.
 * A run of returned segments that such an attempt explains belongs to the
 * attempt; every other run is an EMPTY_CACHE.
 *
 * Source: the order of malloc's attempts in PyTorch 2.11 (alloc_block and the
 * code before it), read in its source and compared with recordings whose
 * empty_cache calls are known.
 */
#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "traces/build/build_device.h"
#include "traces/grow.h"
#include "traces/torch_sizes.h"

static_assert((int)FRAG_RECORDED_DIVISIONS == (int)TORCH_DIVISIONS,
              "a recording holds as many divisions as PyTorch has");

/* Completions: slots of a recording without free_completed. */

struct renumber {
    uint32_t *map; /* old slot to new */
    uint32_t *vacant;
    uint64_t vacant_count;
    uint32_t slots;
};

static void renumber_event(struct renumber *r, struct columns *c, uint64_t i)
{
    uint32_t id = c->id[i];

    switch (c->op[i]) {
    case FRAG_ALLOC:
        r->map[id] =
            r->vacant_count ? r->vacant[--r->vacant_count] : r->slots++;
        break;
    case FRAG_FREE_REQUESTED:
        c->op[i] = FRAG_FREE;
        r->vacant[r->vacant_count++] = r->map[id];
        break;
    case FRAG_FREE: /* of a failed request */
        r->vacant[r->vacant_count++] = r->map[id];
        break;
    default:
        return;
    }
    c->id[i] = r->map[id];
}

/* Removes freed blocks from the table and sets the new slots of live blocks. */
static void renumber_live(struct live *live, const struct renumber *r)
{
    uint64_t size = live->rows ? (uint64_t)1 << live->bits : 0;

    for (uint64_t i = 0; i < size;) {
        struct live_row *row = &live->rows[i];

        if (row->slot != UINT32_MAX && row->state == LIVE_FREE_REQUESTED) {
            live_remove(live, row);
            continue; /* another row may have moved here */
        }
        i++;
    }
    for (uint64_t i = 0; i < size; i++)
        if (live->rows[i].slot != UINT32_MAX)
            live->rows[i].slot = r->map[live->rows[i].slot];
}

static void renumber_all(struct renumber *r, struct device_build *d)
{
    for (uint64_t i = 0; i < d->early_count; i++) {
        r->map[d->early[i].slot] = r->slots;
        d->early[i].slot = r->slots++;
    }
    for (uint64_t i = 0; i < d->events.count; i++)
        renumber_event(r, &d->events, i);
    renumber_live(&d->live, r);
    d->slots = r->slots;
    d->vacant_count = 0;
}

static enum frag_err complete_frees(struct device_build *d)
{
    struct renumber r = {calloc((size_t)d->slots + 1, sizeof(*r.map)),
                         calloc((size_t)d->slots + 1, sizeof(*r.vacant)), 0, 0};
    const bool done = r.map && r.vacant;

    if (done)
        renumber_all(&r, d);
    free(r.map);
    free(r.vacant);
    return done ? FRAG_OK : FRAG_NOMEM;
}

/* Returns whether the recording omits free_completed entries. A block of the
 * final snapshot that is pending free shows that it does not: the completion
 * had not happened. */
static bool lacks_completions(const struct device_build *d)
{
    for (uint64_t i = 0; i < d->block_count; i++)
        if (d->blocks[i].state == FRAG_ACTIVE_PENDING_FREE)
            return false;
    return d->requests && !d->completions;
}

/* Whether a block that is live after the last entry is not in the final
 * snapshot. */
static bool ends_early(const struct device_build *d)
{
    uint64_t found = 0;

    for (uint64_t i = 0; i < d->block_count; i++)
        found += d->blocks[i].state != FRAG_INACTIVE &&
                 live_find(&d->live, d->blocks[i].addr);
    return d->segment_count && d->entries && found < d->live.count;
}

/* empty_cache. */

struct judge {
    const struct frag_recorded_settings *settings;
    frag_size large_segment;
    frag_size page;     /* the largest of expandable segments so far */
    bool is_full;       /* the limit is the memory of the device */
    bool may_mix;       /* a pool may have ordinary and expandable segments */
    frag_size limit;    /* memory limit; FRAG_UNLIMITED if there is none */
    frag_size gc_start; /* with more reserved bytes than this, PyTorch collects
                           garbage */
};

/* The reserved bytes before the first entry, computed back from the final
 * snapshot. If there is none, or if it is of a later time: the smallest number
 * with which the reserved bytes are never negative. */
static frag_size held_before(const struct device_build *d)
{
    frag_size net = 0, end = 0, lowest = 0;

    for (uint64_t i = 0; i < d->action_count; i++) {
        net = frag_held_after(&d->actions[i], net);
        if ((int64_t)net < (int64_t)lowest)
            lowest = net;
    }
    for (uint64_t i = 0; i < d->segment_count; i++)
        end += d->segments[i].size;
    if (!d->segment_count || d->ends_early ||
        (int64_t)(end - net) < -(int64_t)lowest)
        return 0 - lowest;
    return end - net;
}

/* The peak of the reserved bytes. */
static frag_size highest_held(const struct device_build *d)
{
    frag_size held = held_before(d), highest = held;

    for (uint64_t i = 0; i < d->action_count; i++) {
        held = frag_held_after(&d->actions[i], held);
        if (held > highest)
            highest = held;
    }
    return highest;
}

/* Returns whether a request can end with memory that was mapped before it,
 * after attempts to obtain more: max_split_size keeps the search from a free
 * block of an expandable segment that the last attempt then takes. */
static bool takes_mapped(const struct frag_recorded_settings *s)
{
    return s->expandable && s->max_split && s->max_split != UINT64_MAX;
}

/* The bytes that the attempt after the run obtains; 0: there is none that
 * obtains memory. */
static frag_size size_of_attempt(const struct judge *j, const struct flush *f)
{
    frag_size need = f->size;

    if (f->follow == FOLLOW_CLIENT || !need)
        return 0;
    if (f->follow == FOLLOW_ALLOC && !takes_mapped(j->settings))
        return 0;
    if (f->follow == FOLLOW_REQUEST || f->follow == FOLLOW_ALLOC)
        need += j->settings->padding;
    return f->follow == FOLLOW_SEGMENT
               ? need
               : torch_segment_size(
                     torch_round_size(need, j->settings->divisions),
                     j->large_segment);
}

/* Returns whether an attempt that obtains `need` bytes explains the run of
 * returned segments, if `held` bytes were reserved before the run. */
static bool is_explained(const struct judge *j, frag_size need, frag_size held)
{
    if (!need)
        return false;
    if (j->is_full && j->settings->expandable && need > TORCH_SMALL_SEGMENT)
        need = (need + j->page - 1) / j->page * j->page;
    return need > j->limit || held > j->limit - need || held > j->gc_start;
}

/* Returns whether the program called empty_cache between the two events around
 * the candidate. *next is the first call that is not before the candidate. */
static bool was_emptied(const struct device_build *d, uint64_t event,
                        uint64_t *next)
{
    const frag_time *time = d->events.time;

    while (event && *next < d->emptied_count &&
           d->emptied[*next] < time[event - 1])
        ++*next;
    return *next < d->emptied_count && (event + 1 == d->events.count ||
                                        d->emptied[*next] <= time[event + 1]);
}

/* The host's allocator returns a block of pinned_returned bytes or more (0:
 * none) when the block is freed: such an action belongs to the free before it.
 * Returns the number of candidates that have no other action, which it drops.
 */
static uint64_t place_returned(struct device_build *d,
                               const struct frag_recorded_settings *now)
{
    struct frag_recorded_action *a = d->actions;
    const struct frag_recorded_action *end = a + d->action_count;
    uint64_t kept = 0, change = 0, dropped;

    for (uint64_t i = 0; i < d->flush_count; i++) {
        struct flush f = d->flushes[i];

        for (; change < d->change_count && d->changes[change].event < f.event;
             change++)
            now = &d->changed[change].now;
        while (a < end && a->event < f.event)
            a++;
        for (; a < end && a->event == f.event && f.event &&
               a->size > now->pinned_returned - 1;
             a++, f.action++)
            a->event = f.event - 1;
        if (a < end && a->event == f.event)
            d->flushes[kept++] = f;
        else
            d->events.op[f.event] = FRAG_OP_COUNT;
    }
    dropped = d->flush_count - kept;
    d->flush_count = kept;
    return dropped;
}

/* A run of returned segments has a part for each pool, and each part is a
 * candidate event. They stand in the order in which PyTorch returns memory: the
 * default pool first, then private pools that have ended. */
struct parts {
    struct device_build *d;
    const struct frag_pool_id *pools;
    uint64_t first, end;    /* flushes */
    uint64_t event;         /* that is written next */
    uint64_t *last_request; /* of each pool: 1 + the index of its last ALLOC */
    bool *ended;            /* of each pool */
};

static frag_pool pool_of(const struct parts *p, uint64_t flush)
{
    return p->d->events.pool[p->d->flushes[flush].event];
}

/* Writes one of the candidate events anew. */
static uint64_t put_trim(struct parts *p, frag_pool pool, enum frag_trim trim)
{
    p->d->events.pool[p->event] = pool;
    p->d->events.id[p->event] = trim;
    return p->event++;
}

/* Whether the pool ends with a part of this run: it has no later request. */
static bool ends_here(const struct parts *p, frag_pool pool)
{
    return pool && !p->ended[pool] &&
           p->last_request[pool] <= p->d->flushes[p->first].event;
}

/* Writes that the pools of the parts [from, to) have ended, for those that have
 * not ended before. */
static void put_ends(struct parts *p, uint64_t from, uint64_t to)
{
    for (uint64_t i = from; i < to; i++) {
        const frag_pool pool = pool_of(p, i);

        if (!ends_here(p, pool))
            continue;
        p->ended[pool] = true;
        put_trim(p, pool, FRAG_TRIM_LATER);
    }
}

/* The actions of the parts [from, to) belong to that event. */
static void move_actions(struct parts *p, uint64_t from, uint64_t to,
                         uint64_t event)
{
    struct device_build *d = p->d;
    const uint64_t last = d->flushes[to - 1].event;

    for (uint64_t i = d->flushes[from].action;
         i < d->action_count && d->actions[i].event <= last; i++)
        d->actions[i].event = event;
}

/* Whether a part can be of the call of empty_cache that returned the parts
 * before it: a pool that has ended, or the pool of a graph, (n, 0). A deleted
 * MemPool, (0, n), returns its own memory. */
static bool joins_call(const struct parts *p, uint64_t part)
{
    const frag_pool pool = pool_of(p, part);

    return pool && (p->pools[pool].owner || p->ended[pool]);
}

/* The end of the parts that one call of empty_cache returned, from the default
 * pool on. A MemPool between two parts of a call belongs to the call. */
static uint64_t call_end(const struct parts *p, uint64_t from)
{
    uint64_t to = from + 1;

    for (uint64_t i = to; i < p->end && pool_of(p, i); i++)
        if (joins_call(p, i))
            to = i + 1;
    return to;
}

/* Writes the calls that returned the memory of a run. */
static void put_calls(struct parts *p)
{
    for (uint64_t i = p->first, to; i < p->end; i = to) {
        const frag_pool pool = pool_of(p, i);
        uint64_t at;

        if (!pool || p->ended[pool]) {
            to = call_end(p, i);
            put_ends(p, i, to);
            at = put_trim(p, 0, FRAG_TRIM_CACHE);
        } else {
            to = i + 1;
            p->ended[pool] = ends_here(p, pool);
            at = put_trim(p, pool,
                          p->ended[pool] ? FRAG_TRIM_ENDED : FRAG_TRIM_CACHE);
        }
        move_actions(p, i, to, at);
    }
}

/* Decides on one run; returns how many candidates are no event. The op
 * FRAG_OP_COUNT, which no event has, marks these. */
static uint64_t judge_run(struct parts *p, bool explained)
{
    struct device_build *d = p->d;
    const uint64_t last = d->flushes[p->end - 1].event;
    uint64_t dropped;

    p->event = d->flushes[p->first].event;
    if (!explained) {
        put_calls(p);
    } else {
        put_ends(p, p->first, p->end);
        move_actions(p, p->first, p->end, last + 1);
    }
    dropped = last + 1 - p->event;
    for (; p->event <= last; p->event++)
        d->events.op[p->event] = FRAG_OP_COUNT;
    return dropped;
}

/* Whether the run is the memory of one MemPool, (0, n), that has not ended
 * before: the program deleted it. */
static bool is_deleted_pool(const struct parts *p)
{
    const frag_pool pool = pool_of(p, p->first);

    return p->end - p->first == 1 && p->pools[pool].number &&
           ends_here(p, pool);
}

/* The event of the block of event i, of that op or of an ALLOC, which is the
 * last one before i; i if there is none. */
static uint64_t earlier(const struct columns *c, uint64_t i, enum frag_op op)
{
    for (uint64_t k = i; k-- > 0;)
        if (c->id[k] == c->id[i] && (c->op[k] == op || c->op[k] == FRAG_ALLOC))
            return k;
    return i;
}

/* Whether the segment had a block whose free, requested before, completed right
 * before that event. An attempt waits for such frees and returns their memory.
 */
static bool completed(const struct columns *c, uint64_t event,
                      const struct frag_recorded_action *segment)
{
    while (event-- > 0 && c->op[event] == FRAG_FREE) {
        const uint64_t asked = earlier(c, event, FRAG_ALLOC);

        if (c->op[earlier(c, event, FRAG_FREE_REQUESTED)] !=
            FRAG_FREE_REQUESTED)
            return false;
        if (asked == event || c->addr[asked] - segment->addr < segment->size)
            return true;
    }
    return false;
}

/* An attempt that obtains memory, and the run of returned segments before it.
 */
struct attempt {
    const struct frag_recorded_action *run;
    frag_size need;
    uint64_t event; /* of the request */
};

/* Whether a segment was of the attempt's stream and pool. */
static bool is_own(const struct columns *c, const struct attempt *t,
                   const struct frag_recorded_action *a)
{
    return a->action == FRAG_SEGMENT_FREE && a->stream == c->stream[t->event] &&
           c->pool[a->event] == c->pool[t->event];
}

/* Whether the attempt would not have returned that segment of its own then. It
 * would have taken one that is large enough; with max_split_size, a request of
 * that size or more takes one that is less than 20 MiB larger, and a smaller
 * request none of that size. Unless it collects garbage or finds a block of an
 * expandable segment there, it returns segments of max_split_size or more
 * before all others, and only one if that is enough. */
static bool is_spared(const struct judge *j, const struct columns *c,
                      const struct attempt *t,
                      const struct frag_recorded_action *a)
{
    const frag_size split =
        j->settings->max_split ? j->settings->max_split : UINT64_MAX;

    if (t->need == TORCH_SMALL_SEGMENT)
        return a->size == t->need;
    if (a->size < split)
        return a->size >= t->need;
    /* The request is up to 2 MiB smaller, and perhaps below max_split_size. */
    if (t->need >= split + TORCH_ROUND_LARGE && a->size >= t->need &&
        a->size - t->need <= TORCH_LARGE_SEGMENT - TORCH_ROUND_LARGE)
        return true;
    if (a == t->run || j->gc_start != FRAG_UNLIMITED || j->may_mix)
        return false;
    return a->size > t->need || t->run->size < split || !is_own(c, t, t->run);
}

/* Whether a returned segment shows that the run is not of the attempt after it,
 * which obtains `need` bytes. */
static bool has_spared(const struct parts *p, const struct judge *j,
                       frag_size need)
{
    const struct device_build *d = p->d;
    const struct columns *c = &d->events;
    const struct flush *f = &d->flushes[p->first];
    const struct attempt t = {.run = &d->actions[f->action],
                              .need = need,
                              .event = d->flushes[p->end - 1].event + 1};
    const struct frag_recorded_action *end = d->actions + d->action_count;

    if (!d->has_pool_ids || !f->event || t.event >= c->count ||
        c->op[t.event] != FRAG_ALLOC)
        return false;
    for (const struct frag_recorded_action *a = t.run;
         a < end && a->event < t.event; a++)
        if (is_own(c, &t, a) && is_spared(j, c, &t, a) &&
            !completed(c, f->event, a))
            return true;
    return false;
}

/* Whether an attempt returned the memory of the run, and not the program. If
 * more is held than a limit that was lowered, what an attempt returns first is
 * not enough. */
static bool is_of_attempt(const struct parts *p, const struct judge *j,
                          frag_size held)
{
    const frag_size need = size_of_attempt(j, &p->d->flushes[p->end - 1]);

    return p->d->device != FRAG_HOST_DEVICE && !is_deleted_pool(p) &&
           is_explained(j, need, held) &&
           ((j->may_mix && held > j->limit) || !has_spared(p, j, need));
}

static struct judge judge_of(const struct frag_recorded_settings *s,
                             const struct device_build *d, frag_size limit)
{
    const bool is_known = limit && limit != FRAG_UNLIMITED;
    struct judge j = {.settings = s,
                      .large_segment = s->large_segment ? s->large_segment
                                                        : TORCH_LARGE_SEGMENT,
                      .page = s->large_segment ? s->large_segment
                                               : TORCH_LARGE_SEGMENT,
                      .is_full = !is_known && d->ooms,
                      .may_mix = d->change_count,
                      .limit = is_known ? limit : FRAG_UNLIMITED,
                      .gc_start = FRAG_UNLIMITED};
    double start = s->gc_threshold * (double)limit;

    if (j.is_full) /* without a limit, the memory of the device ended */
        j.limit = highest_held(d);
    if (is_known && start > 0 && start < 0x1p63)
        j.gc_start = (frag_size)start;
    return j;
}

/* The settings and the limit of a moment. */
struct now {
    const struct frag_recorded_settings *settings;
    frag_size limit;
    uint64_t change;    /* the next one */
    struct judge judge; /* of these, once `settings` of it is set */
};

static struct judge judge_at(struct now *now, const struct device_build *d,
                             uint64_t event)
{
    for (; now->change < d->change_count &&
           d->changes[now->change].event <= event;
         now->change++) {
        now->settings = &d->changed[now->change].now;
        if (d->changes[now->change].kind == FRAG_CHANGE_LIMIT)
            now->limit = d->changes[now->change].limit;
        now->judge.settings = NULL;
    }
    if (!now->judge.settings) {
        const frag_size page = now->judge.page;

        now->judge = judge_of(now->settings, d, now->limit);
        if (now->judge.page < page)
            now->judge.page = page;
    }
    return now->judge;
}

static void judge_runs(struct parts *p, struct now *now, uint64_t *dropped,
                       uint64_t *explained)
{
    struct device_build *d = p->d;
    frag_size held = held_before(d);
    uint64_t action = 0, emptied = 0;

    for (p->first = 0; p->first < d->flush_count; p->first = p->end) {
        const uint64_t first = d->flushes[p->first].action;
        const struct judge j = judge_at(now, d, d->flushes[p->first].event);
        const struct flush *f;
        bool by_attempt;

        for (; action < first; action++)
            held = frag_held_after(&d->actions[action], held);
        p->end = p->first;
        do
            f = &d->flushes[p->end++];
        while (f->follow == FOLLOW_PART && p->end < d->flush_count);
        by_attempt = d->has_policy ? !was_emptied(d, f->event, &emptied)
                                   : is_of_attempt(p, &j, held);
        *explained += by_attempt ? p->end - p->first : 0;
        *dropped += judge_run(p, by_attempt);
    }
}

/* Decides which candidates are events. *explained: those that an attempt
 * explains. */
static enum frag_err judge_flushes(struct device_build *d, struct now *now,
                                   uint64_t *dropped, uint64_t *explained)
{
    struct parts p = {.d = d, .pools = d->pools};
    const struct columns *c = &d->events;

    *dropped = *explained = 0;
    if (!d->flush_count)
        return FRAG_OK;
    p.last_request = calloc(d->pool_count, sizeof(*p.last_request));
    p.ended = calloc(d->pool_count, sizeof(*p.ended));
    for (uint64_t i = 0; p.last_request && d->pool_count > 1 && i < c->count;
         i++)
        if (c->op[i] == FRAG_ALLOC)
            p.last_request[c->pool[i]] = i + 1;
    if (p.last_request && p.ended)
        judge_runs(&p, now, dropped, explained);
    free(p.last_request);
    free(p.ended);
    return p.last_request && p.ended ? FRAG_OK : FRAG_NOMEM;
}

/* Removes the marked events. An action of a removed event moves to the next
 * event. */
static void drop_marked(struct device_build *d)
{
    struct columns *c = &d->events;
    uint64_t kept = 0, action = 0, early = 0;

    for (uint64_t i = 0; i <= c->count; i++) {
        for (; action < d->action_count && d->actions[action].event == i;
             action++)
            d->actions[action].event = kept;
        for (; early < d->early_count && d->early[early].freed == i; early++)
            d->early[early].freed = kept;
        if (i == c->count || c->op[i] == FRAG_OP_COUNT)
            continue;
#define X(name, type) c->name[kept] = c->name[i];
        COLUMNS(X)
#undef X
        kept++;
    }
    c->count = kept;
}

/* Waits: an attempt that fails waits for the pending frees, then returns cached
 * memory, and does not search again. Such a free stands before the request in
 * the file, and after it in the trace. */

/* What the events before `at` did last to each slot. */
struct frees {
    uint8_t *last;    /* ALLOC or FREE_REQUESTED, or the FREE after one */
    uint8_t *pending; /* whether that FREE had been requested before */
    uint64_t at;
};

static void see_frees(struct frees *f, const struct columns *c, uint64_t to)
{
    for (; f->at < to; f->at++) {
        const uint8_t op = c->op[f->at];
        const uint32_t id = c->id[f->at];

        if (op != FRAG_ALLOC && !frag_op_frees(op))
            continue;
        if (op == FRAG_FREE)
            f->pending[id] = f->last[id] == FRAG_FREE_REQUESTED;
        f->last[id] = op;
    }
}

/* The block of the request gets a slot of its own. */
static void renew_slot(struct device_build *d, uint64_t request)
{
    struct columns *c = &d->events;
    const uint32_t old = c->id[request], slot = d->slots++;
    const struct live_row *row = live_find(&d->live, c->addr[request]);

    for (uint64_t i = request; i < c->count; i++) {
        if (c->id[i] != old || c->op[i] == FRAG_EMPTY_CACHE)
            continue;
        c->id[i] = slot;
        if (c->op[i] == FRAG_FREE)
            return;
    }
    if (row)
        ((struct live_row *)(uintptr_t)row)->slot = slot;
}

/* Moves a request before the `count` events that precede it. */
static void move_before(struct device_build *d, uint64_t request,
                        uint64_t count)
{
    struct columns *c = &d->events;
    const uint64_t first = request - count;
    const frag_time time = c->time[first];

    for (uint64_t i = first; i < request; i++)
        if (c->id[i] == c->id[request])
            renew_slot(d, request);
#define X(name, type)                                                        \
    {                                                                        \
        const type moved = c->name[request];                                 \
        memmove(&c->name[first + 1], &c->name[first], count * sizeof(type)); \
        c->name[first] = moved;                                              \
    }
    COLUMNS(X)
#undef X
    c->time[first] = time;
    for (uint64_t i = 0; i < d->early_count; i++)
        d->early[i].freed +=
            d->early[i].freed >= first && d->early[i].freed < request;
}

/* The pending frees that stand directly before a request, from `low` on. */
static uint64_t count_waits(struct frees *f, const struct columns *c,
                            uint64_t low, uint64_t request)
{
    uint64_t count = 0;

    see_frees(f, c, request);
    while (request - count > low && c->op[request - count - 1] == FRAG_FREE &&
           f->pending[c->id[request - count - 1]])
        count++;
    return count;
}

static void move_all(struct device_build *d, struct frees *f)
{
    struct columns *c = &d->events;
    uint64_t low = 0; /* events before it stay where they are */

    for (uint64_t i = 0, end; i < d->action_count; i = end) {
        const uint64_t event = d->actions[i].event;
        uint64_t count = 0;
        bool waits = false;

        for (end = i; end < d->action_count && d->actions[end].event == event;
             end++)
            waits |= d->actions[end].action != FRAG_SEGMENT_ALLOC &&
                     d->actions[end].action != FRAG_SEGMENT_MAP;
        if (waits && event < c->count && c->op[event] == FRAG_ALLOC)
            count = count_waits(f, c, low, event);
        if (count) {
            move_before(d, event, count);
            f->last[c->id[event - count]] = FRAG_ALLOC;
            f->at = event + 1;
        }
        for (uint64_t k = i; k < end; k++)
            d->actions[k].event -= count;
        low = event + 1;
    }
}

static enum frag_err move_waits(struct device_build *d)
{
    const size_t room = (size_t)(d->slots + d->action_count + 1);
    struct frees f = {calloc(room, 1), calloc(room, 1), 0};
    const bool done = f.last && f.pending;

    if (done)
        move_all(d, &f);
    free(f.last);
    free(f.pending);
    return done ? FRAG_OK : FRAG_NOMEM;
}

/* An oom has the size of the block, which includes the padding of the request:
 * subtracts it, so that a replay adds it once. */
static void subtract_padding(struct device_build *d, frag_size padding)
{
    for (uint64_t i = 0; i < d->action_count; i++) {
        const struct frag_recorded_action *a = &d->actions[i];

        if (a->action == FRAG_OOM_REPORTED && a->size > padding)
            d->events.bytes[a->event] = a->size - padding;
    }
}

/* Returns whether the result depends on the limit: a run of returned segments
 * before an attempt may be part of a retry. */
static bool is_uncertain(const struct device_build *d)
{
    for (uint64_t i = 0; i < d->flush_count; i++)
        if (d->flushes[i].follow != FOLLOW_CLIENT &&
            d->flushes[i].follow != FOLLOW_ALLOC)
            return true;
    return false;
}

/* Whether a change of settings at the start states the limit. */
static bool states_limit(const struct device_build *d)
{
    for (uint64_t i = 0; i < d->change_count && !d->changes[i].event; i++)
        if (d->changes[i].kind == FRAG_CHANGE_LIMIT)
            return true;
    return false;
}

static enum frag_err note_inference(struct frag_build *b,
                                    const struct device_build *d,
                                    frag_size limit, uint64_t explained)
{
    char peak[FRAG_EXACT_TEXT];

    if (d->flush_count > explained)
        FRAG_TRY(frag_build_note(
            b,
            "%s: %" PRIu64 " empty_cache calls inferred from "
            "returned segments; calls that returned nothing cannot be seen",
            FRAG_DEVICE_NAME(d->device), d->flush_count - explained));
    if (d->device == FRAG_HOST_DEVICE || limit || states_limit(d) ||
        d->has_policy || !is_uncertain(d))
        return FRAG_OK;
    if (!d->ooms)
        return frag_build_note(
            b,
            "%s: the memory limit is not "
            "known; if there was one, some empty_cache calls "
            "may be retries of allocations",
            FRAG_DEVICE_NAME(d->device));
    return frag_build_note(b,
                           "%s: " FRAG_PEAK_AS_LIMIT
                           ", %s, is used instead to distinguish empty_cache "
                           "calls from retries",
                           FRAG_DEVICE_NAME(d->device),
                           frag_size_exact(highest_held(d), peak));
}

enum frag_err frag_build_policy(struct frag_build *b, uint32_t device,
                                const char *name, size_t length,
                                struct frag_error *e)
{
    struct device_build *d;

    FRAG_TRY(build_device(b, device, &d, e));
    d->has_policy = true;
    return frag_build_note(b,
                           "%s: the recorded segments are those of fragsim's "
                           "policy %.*s, which served the program",
                           FRAG_DEVICE_NAME(device), (int)length, name);
}

enum frag_err frag_build_emptied(struct frag_build *b, uint32_t device,
                                 frag_time time, struct frag_error *e)
{
    struct device_build *d;

    FRAG_TRY(build_device(b, device, &d, e));
    if (!GROW(d->emptied, d->emptied_room, d->emptied_count + 1))
        return FRAG_NOMEM;
    d->emptied[d->emptied_count++] = time;
    return FRAG_OK;
}

enum frag_err build_infer(struct frag_build *b, struct device_build *d,
                          frag_size limit)
{
    struct now now = {.settings = &b->settings, .limit = limit};
    uint64_t explained, dropped, returned = 0;

    if (lacks_completions(d)) {
        FRAG_TRY(complete_frees(d));
        FRAG_TRY(frag_build_note(
            b,
            "%s: no free_completed "
            "entries; each block is freed at its free_requested",
            FRAG_DEVICE_NAME(d->device)));
    }
    d->ends_early = ends_early(d);
    if (d->device == FRAG_HOST_DEVICE)
        returned = place_returned(d, &b->settings);
    FRAG_TRY(judge_flushes(d, &now, &dropped, &explained));
    if (dropped || returned)
        drop_marked(d);
    if (d->device != FRAG_HOST_DEVICE &&
        judge_of(&b->settings, d, limit).gc_start == FRAG_UNLIMITED)
        FRAG_TRY(move_waits(d));
    if (b->settings.padding)
        subtract_padding(d, b->settings.padding);
    return note_inference(b, d, limit, explained);
}
