/* build.c - turns recorded entries into events, one entry at a time.
 *
 * The slot that was returned last is assigned first, so all ids are less than
 * the peak number of live blocks. A free_requested is delayed until the next
 * entry: if that entry is its free_completed, which is nearly always so, the
 * two are one FREE. At the end of a run of segment_free and segment_unmap
 * entries, a candidate EMPTY_CACHE is added. When all entries are known,
 * infer.c decides whether the candidate stays.
 */
#include "traces/build/build.h"

#include <inttypes.h>

#include "traces/build/build_device.h"

static const frag_size size_end = (frag_size)1 << 63;

/* One call of frag_build_entry. */
struct call {
    struct frag_build *b;
    struct device_build *d;
    const struct frag_entry *entry;
    uint64_t where; /* position of the entry in the file */
    struct frag_error *e;
};

/* Runs of segment_free and segment_unmap entries. */

static void open_run(struct device_build *d, frag_time time, uint32_t pool)
{
    if (d->in_run)
        return;
    d->in_run = true;
    d->run_pool = pool;
    d->run_in_request = d->in_request;
    d->run_action = d->action_count;
    d->run_time = time;
}

/* Assigns the next event to the actions that have no event yet: they happened
 * while the allocator served it. */
static void place_actions(struct device_build *d)
{
    for (; d->open_action < d->action_count; d->open_action++)
        d->actions[d->open_action].event = d->events.count;
}

/* Adds an event of the client. A free that completes between the actions of
 * another event is added by build_push alone, so that these actions stay with
 * their own event. */
static enum frag_err emit(struct device_build *d, const struct event *event)
{
    place_actions(d);
    return build_push(d, event);
}

static enum frag_err end_run(struct device_build *d, enum follow follow,
                             frag_size size)
{
    const struct event ev = {.op = FRAG_EMPTY_CACHE,
                             .time = d->run_time,
                             .pool = (frag_pool)d->run_pool};

    if (!d->in_run)
        return FRAG_OK;
    if (!d->run_in_request &&
        !GROW(d->flushes, d->flush_room, d->flush_count + 1))
        return FRAG_NOMEM;
    d->in_run = false;
    if (d->run_in_request)
        return FRAG_OK;
    d->flushes[d->flush_count++] =
        (struct flush){d->events.count, d->run_action, size, follow};
    if (follow == FOLLOW_REQUEST && !size)
        d->open_request = d->flush_count;
    return emit(d, &ev);
}

/* Ends a request whose segment_alloc or segment_map entries came before it: now
 * its size is known. */
static void end_request(struct device_build *d, frag_size size)
{
    d->in_request = false;
    if (d->open_request)
        d->flushes[d->open_request - 1].size = size;
    d->open_request = 0;
}

/* Adds the delayed free_requested as an event of its own, because the next
 * entry is not its free_completed. */
static enum frag_err release_held(struct device_build *d)
{
    struct live_row *row;

    if (!d->holds)
        return FRAG_OK;
    d->holds = false;
    row = live_find(&d->live, d->held.addr);
    row->state = LIVE_FREE_REQUESTED;
    d->held.op = FRAG_FREE_REQUESTED;
    d->held.addr = 0;
    return emit(d, &d->held);
}

enum frag_err build_flush(struct device_build *d)
{
    FRAG_TRY(release_held(d));
    FRAG_TRY(end_run(d, FOLLOW_CLIENT, 0));
    place_actions(d);
    return FRAG_OK;
}

/* Entries. */

static enum frag_err wrong(const struct call *c, const char *expected)
{
    return frag_fail(c->e, FRAG_CORRUPT,
                     "%s:%" PRIu64 ": expected %s, found address 0x%" PRIx64
                     " of %" PRIu64 " bytes on %s",
                     c->b->path, c->where, expected, c->entry->addr,
                     c->entry->size, FRAG_DEVICE_NAME(c->d->device));
}

static enum frag_err add_action(const struct call *c, enum frag_action kind)
{
    struct device_build *d = c->d;
    struct frag_recorded_action a = {.size = c->entry->size, .action = kind};

    if (kind == FRAG_OOM_REPORTED)
        a.device_free = c->entry->addr;
    else
        a.addr = c->entry->addr;
    FRAG_TRY(build_stream(c->b, d, c->entry->stream, &a.stream, c->e));
    if (!GROW(d->actions, d->action_room, d->action_count + 1))
        return FRAG_NOMEM;
    d->actions[d->action_count++] = a;
    return FRAG_OK;
}

static enum frag_err describe(const struct call *c, struct event *ev)
{
    struct device_build *d = c->d;
    uint32_t index;

    ev->time = c->entry->time;
    ev->stack = c->entry->stack;
    FRAG_TRY(build_stream(c->b, d, c->entry->stream, &index, c->e));
    ev->stream = (frag_stream)index;
    if (!c->entry->has_pool)
        return FRAG_OK;
    FRAG_TRY(build_pool(c->b, d, c->entry->pool, &index, c->e));
    ev->pool = (frag_pool)index;
    d->has_pool_ids = true;
    return FRAG_OK;
}

/* If the file records no completions at all, an address may be allocated again
 * although its free has not completed; infer.c corrects the slots. Otherwise
 * this is an error. */
static enum frag_err on_alloc(const struct call *c)
{
    struct device_build *d = c->d;
    struct live_row *row = live_find(&d->live, c->entry->addr);
    struct event ev = {
        .op = FRAG_ALLOC, .bytes = c->entry->size, .addr = c->entry->addr};

    if (row && (row->state != LIVE_FREE_REQUESTED || d->completions))
        return wrong(c, "a free before the next alloc of an address");
    FRAG_TRY(end_run(d, FOLLOW_ALLOC, c->entry->size));
    end_request(d, c->entry->size);
    FRAG_TRY(describe(c, &ev));
    FRAG_TRY(build_acquire_slot(d, &ev.id));
    if (row) {
        *row = (struct live_row){row->key, ev.id, LIVE_HELD};
        d->reused++;
    } else if (!live_put(&d->live, c->entry->addr, ev.id)) {
        build_return_slot(d, ev.id);
        return FRAG_NOMEM;
    }
    return emit(d, &ev);
}

/* Finds the row of the freed block. A block without a row was live before the
 * first entry: it is added to the early blocks and to the table. */
static enum frag_err freed_row(const struct call *c, struct live_row **row,
                               enum frag_block_state state)
{
    struct device_build *d = c->d;
    struct early_block early = {.addr = c->entry->addr,
                                .requested = c->entry->size,
                                .freed = d->events.count,
                                .where = c->where,
                                .state = state};

    *row = live_find(&d->live, c->entry->addr);
    if (*row)
        return FRAG_OK;
    FRAG_TRY(build_stream(c->b, d, c->entry->stream, &early.stream, c->e));
    if (!GROW(d->early, d->early_room, d->early_count + 1) ||
        !GROW(d->vacant, d->vacant_room, (uint64_t)d->slots + 1) ||
        !live_put(&d->live, c->entry->addr, d->slots))
        return FRAG_NOMEM;
    early.slot = d->slots++;
    d->early[d->early_count++] = early;
    *row = live_find(&d->live, c->entry->addr);
    if (state == FRAG_ACTIVE_PENDING_FREE)
        (*row)->state = LIVE_FREE_REQUESTED;
    return FRAG_OK;
}

static enum frag_err on_free_requested(const struct call *c)
{
    struct device_build *d = c->d;
    struct live_row *row;

    FRAG_TRY(end_run(d, FOLLOW_CLIENT, 0));
    FRAG_TRY(freed_row(c, &row, FRAG_ACTIVE_ALLOCATED));
    if (row->state != LIVE_HELD)
        return wrong(c, "a free_completed after a free_requested");
    d->requests++;
    d->held = (struct event){.id = row->slot,
                             .time = c->entry->time,
                             .stack = c->entry->stack,
                             .addr = c->entry->addr};
    d->holds = true;
    return FRAG_OK;
}

/* Sets the stream of a FREE to 1 + its row, see frag_device_trace. */
static enum frag_err set_free_stream(const struct call *c, struct event *ev)
{
    uint32_t index;

    if (!c->entry->frees_on)
        return FRAG_OK;
    FRAG_TRY(build_stream(c->b, c->d, c->entry->stream, &index, c->e));
    if (index == UINT16_MAX)
        return frag_fail(c->e, FRAG_CORRUPT,
                         "%s:%" PRIu64 ": expected at most 65535 streams in a "
                         "recording that states the streams of frees, found "
                         "more",
                         c->b->path, c->where);
    ev->stream = (frag_stream)(index + 1);
    c->d->free_streams = true;
    return FRAG_OK;
}

static enum frag_err on_free_completed(const struct call *c)
{
    struct device_build *d = c->d;
    struct event ev = {
        .op = FRAG_FREE, .time = c->entry->time, .stack = c->entry->stack};
    struct live_row *row;
    bool amid;

    if (d->reused)
        return wrong(c, "no free_completed, because earlier ones are missing");
    FRAG_TRY(freed_row(c, &row,
                       d->requests ? FRAG_ACTIVE_PENDING_FREE
                                   : FRAG_ACTIVE_ALLOCATED));
    FRAG_TRY(set_free_stream(c, &ev));
    /* The host's allocator completes frees before it serves a request. */
    amid = row->state == LIVE_FREE_REQUESTED && d->device != FRAG_HOST_DEVICE;
    if (!amid)
        FRAG_TRY(end_run(d, FOLLOW_CLIENT, 0));
    d->completions++;
    d->holds = false;
    ev.id = row->slot;
    FRAG_TRY(amid ? build_push(d, &ev) : emit(d, &ev));
    build_return_slot(d, row->slot);
    live_remove(&d->live, row);
    return FRAG_OK;
}

static enum frag_err on_segment_alloc(const struct call *c)
{
    FRAG_TRY(end_run(c->d, FOLLOW_SEGMENT, c->entry->size));
    c->d->in_request = true;
    return add_action(c, FRAG_SEGMENT_ALLOC);
}

static enum frag_err on_segment_map(const struct call *c)
{
    FRAG_TRY(end_run(c->d, FOLLOW_REQUEST, 0));
    c->d->in_request = true;
    return add_action(c, FRAG_SEGMENT_MAP);
}

/* Begins a run, or a part of it if the memory is that of another pool than
 * before. */
static enum frag_err on_returned(const struct call *c, enum frag_action action)
{
    struct device_build *d = c->d;
    uint32_t pool = 0;

    if (c->entry->has_pool)
        FRAG_TRY(build_pool(c->b, d, c->entry->pool, &pool, c->e));
    if (d->in_run && !d->run_in_request && pool != d->run_pool)
        FRAG_TRY(end_run(d, FOLLOW_PART, 0));
    open_run(d, c->entry->time, pool);
    return add_action(c, action);
}

static enum frag_err on_segment_free(const struct call *c)
{
    return on_returned(c, FRAG_SEGMENT_FREE);
}

static enum frag_err on_segment_unmap(const struct call *c)
{
    return on_returned(c, FRAG_SEGMENT_UNMAP);
}

/* Adds a failed request as an ALLOC with its FREE right after it. The recorded
 * program never used the block, but under another policy the request may
 * succeed. */
static enum frag_err on_failed(const struct call *c)
{
    struct device_build *d = c->d;
    struct event ev = {.op = FRAG_ALLOC, .bytes = c->entry->size};

    end_request(d, c->entry->size);
    FRAG_TRY(describe(c, &ev));
    FRAG_TRY(build_acquire_slot(d, &ev.id));
    build_return_slot(d, ev.id);
    FRAG_TRY(emit(d, &ev));
    d->ooms++;
    ev = (struct event){
        .op = FRAG_FREE, .id = ev.id, .time = ev.time, .stack = ev.stack};
    return build_push(d, &ev);
}

static enum frag_err on_oom(const struct call *c)
{
    struct device_build *d = c->d;

    FRAG_TRY(end_run(d, FOLLOW_OOM, c->entry->size));
    if (d->open_request)
        d->flushes[d->open_request - 1].follow = FOLLOW_OOM;
    FRAG_TRY(add_action(c, FRAG_OOM_REPORTED));
    return on_failed(c);
}

static enum frag_err on_empty_cache(const struct call *c)
{
    const struct event ev = {.op = FRAG_EMPTY_CACHE, .time = c->entry->time};

    FRAG_TRY(end_run(c->d, FOLLOW_CLIENT, 0));
    return emit(c->d, &ev);
}

static bool completes_held(const struct device_build *d,
                           const struct frag_entry *entry)
{
    return d->holds && entry->kind == FRAG_ENTRY_FREE_COMPLETED &&
           entry->addr == d->held.addr &&
           (!d->has_policy || entry->time == d->held.time);
}

static bool in_range(const struct frag_entry *entry)
{
    if (entry->kind == FRAG_ENTRY_EMPTY_CACHE)
        return true;
    if (!entry->size || entry->size >= size_end)
        return false;
    return entry->kind == FRAG_ENTRY_OOM || entry->kind == FRAG_ENTRY_FAILED ||
           (entry->addr && entry->addr <= UINT64_MAX - entry->size);
}

enum frag_err frag_build_entry(struct frag_build *b, uint32_t device,
                               const struct frag_entry *entry, uint64_t where,
                               struct frag_error *e)
{
    static enum frag_err (*const on[])(const struct call *) = {
        [FRAG_ENTRY_ALLOC] = on_alloc,
        [FRAG_ENTRY_FREE_REQUESTED] = on_free_requested,
        [FRAG_ENTRY_FREE_COMPLETED] = on_free_completed,
        [FRAG_ENTRY_SEGMENT_ALLOC] = on_segment_alloc,
        [FRAG_ENTRY_SEGMENT_FREE] = on_segment_free,
        [FRAG_ENTRY_SEGMENT_MAP] = on_segment_map,
        [FRAG_ENTRY_SEGMENT_UNMAP] = on_segment_unmap,
        [FRAG_ENTRY_OOM] = on_oom,
        [FRAG_ENTRY_FAILED] = on_failed,
        [FRAG_ENTRY_EMPTY_CACHE] = on_empty_cache,
    };
    struct call c = {.b = b, .entry = entry, .where = where, .e = e};

    FRAG_TRY(build_device(b, device, &c.d, e));
    if (!in_range(entry))
        return wrong(&c, "a size from 1 to 2^63 - 1 at an address above 0");
    if (!completes_held(c.d, entry))
        FRAG_TRY(release_held(c.d));
    c.d->entries++;
    c.d->has_time |= entry->time != 0;
    c.d->has_stack |= entry->stack != 0;
    return on[entry->kind](&c);
}

enum frag_err frag_build_before(struct frag_build *b, uint32_t device,
                                frag_size size, uint64_t where,
                                struct frag_error *e)
{
    struct device_build *d;
    struct early_block early = {.addr = size_end, /* no block lies there */
                                .requested = size,
                                .freed = FRAG_NEVER,
                                .where = where,
                                .state = FRAG_ACTIVE_ALLOCATED};

    FRAG_TRY(build_device(b, device, &d, e));
    if (!size || size >= size_end)
        return frag_fail(e, FRAG_CORRUPT,
                         "%s:%" PRIu64 ": expected a size from 1 to 2^63 - 1, "
                         "found %" PRIu64,
                         b->path, where, size);
    FRAG_TRY(build_stream(b, d, 0, &early.stream, e));
    if (!GROW(d->early, d->early_room, d->early_count + 1))
        return FRAG_NOMEM;
    early.slot = d->slots++;
    d->early[d->early_count++] = early;
    return FRAG_OK;
}
