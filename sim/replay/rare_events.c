/* rare_events.c - handles the rare events of a replay: backend calls of the
 * policy, OOMs, late frees, moves, and every op other than ALLOC and FREE. */
#include <inttypes.h>
#include <stdlib.h>

#include "sim/replay/replay_parts.h"
#include "traces/grow.h"

/* ------------------------------------------------ the device was used --- */

void run_absorb(struct run *r, bool allocating)
{
    r->seen = r->meter.changes;
    tally_fold(&r->tally, r->event);
    if (meter_settle(&r->meter) && allocating)
        r->out.summary.num_alloc_retries++;
    if (r->ledger && (frag_ledger_settle(r->ledger) != FRAG_OK ||
                      run_prove_disturbed(r) != FRAG_OK))
        r->stop = true; /* the ledger stores the fault */
    if (r->out.summary.num_moves != r->moves_seen) {
        r->moves_seen = r->out.summary.num_moves;
        r->out.summary.num_stalls++;
    }
    r->tally.reserved = r->meter.reserved;
}

/* ---------------------------------------------------------------- OOM --- */

enum frag_err run_keep_extent(void *user, const struct extent *x)
{
    struct run *r = user;

    if (!GROW(r->out.segments, r->segment_room, r->out.segment_count + 1))
        return FRAG_NOMEM;
    r->out.segments[r->out.segment_count++] =
        (struct frag_segment_row){.addr = x->addr,
                                  .size = x->size,
                                  .allocated = x->allocated,
                                  .at = r->event,
                                  .blocks = x->blocks,
                                  .kind = x->is_mapped};
    return FRAG_OK;
}

static enum frag_err keep_oom(struct run *r, const struct frag_request *req)
{
    const struct tally *t = &r->tally;
    const bool room = r->out.segment_count < FRAG_SEGMENT_ROWS;

    if (!GROW(r->out.ooms, r->oom_room, r->out.oom_count + 1))
        return FRAG_NOMEM;
    FRAG_TRY(
        run_picture(r, req->stream, req->pool, room ? run_keep_extent : NULL));
    r->out.ooms[r->out.oom_count++] = (struct frag_oom){
        .event = r->event,
        .time = r->trace->time ? r->trace->time[r->event - r->base] : 0,
        .bytes = req->size,
        .requested = t->requested,
        .allocated = t->allocated,
        .active = t->allocated + t->pending,
        .reserved = t->reserved,
        .total_free = run_free_bytes(r),
        .largest_free = r->picture.largest,
        .stream = req->stream,
        .pool = req->pool,
        .breakdown = run_breakdown(r, t->reserved),
    };
    return FRAG_OK;
}

static enum frag_err refused(struct run *r, const struct frag_request *req)
{
    struct frag_summary *s = &r->out.summary;

    r->tags[req->owner] = tag_of(SLOT_REFUSED, METER_NOWHERE);
    r->slots[req->owner].requested = req->size;
    r->tally.refused -= tally_minus(&r->tally, req->size);
    tally_raise(&r->tally);
    if (s->num_ooms++ == 0)
        s->first_oom_event = r->event;
    r->stop = r->spec->stop_at_oom;
    return r->out.oom_count < r->spec->max_ooms ? keep_oom(r, req) : FRAG_OK;
}

/* Whether alloc may end the run with this error (policy.h). */
static bool may_end(const struct run *r, enum frag_err err)
{
    return err == FRAG_NOMEM || err == FRAG_DEVICE ||
           (err == FRAG_UNSUPPORTED &&
            r->out.summary.start == FRAG_START_ADOPTED);
}

enum frag_err run_refused(struct run *r, const struct frag_request *req,
                          enum frag_err err)
{
    uint64_t before;

    run_peak(r, req->stream, req->pool);
    if (r->ledger && frag_ledger_fault(r->ledger))
        return run_fault(r);
    before = run_clock();
    if (err == FRAG_OOM)
        err = refused(r, req);
    r->aside += run_clock() - before;
    if (err == FRAG_OK)
        return FRAG_OK;
    if (!may_end(r, err))
        return frag_fail(r->error, FRAG_CONTRACT,
                         "%s: event %" PRIu64 ": alloc returns %d: expected "
                         "FRAG_OK, FRAG_OOM, FRAG_NOMEM or FRAG_DEVICE",
                         r->policy->name, r->event, (int)err);
    return frag_fail(r->error, err, "%s: event %" PRIu64 ": %s",
                     r->policy->name, r->event, frag_err_text(err));
}

/* ------------------------------------------------------- late frees --- */

static enum frag_err open_queue(struct run *r)
{
    if (r->pending.links)
        return FRAG_OK;
    r->pending.links =
        malloc((r->trace->slots + (size_t)1) * sizeof(*r->pending.links));
    return r->pending.links ? FRAG_OK : FRAG_NOMEM;
}

static void enqueue(struct slot_queue *q, uint32_t id)
{
    q->links[id] = (struct queue_link){q->last, NIL};
    if (q->last != NIL)
        q->links[q->last].next = id;
    else
        q->first = id;
    q->last = id;
}

static void dequeue(struct slot_queue *q, uint32_t id)
{
    struct queue_link l = q->links[id];

    if (l.prev != NIL)
        q->links[l.prev].next = l.next;
    else
        q->first = l.next;
    if (l.next != NIL)
        q->links[l.next].prev = l.prev;
    else
        q->last = l.prev;
}

/* The client frees the block that its failed request would have had. */
static void forget_refused(struct run *r, uint32_t id)
{
    r->tags[id] = tag_of(SLOT_FREE, METER_NOWHERE);
    r->tally.refused += tally_minus(&r->tally, r->slots[id].requested);
    tally_raise(&r->tally);
}

enum frag_err run_request_free(struct run *r, uint32_t id)
{
    struct run_slot *s = &r->slots[id];
    uint32_t segment = r->tags[id] & TAG_SEGMENT;

    if (state_of(r->tags[id]) == SLOT_REFUSED)
        forget_refused(r, id);
    if (state_of(r->tags[id]) != SLOT_LIVE)
        return FRAG_OK;
    FRAG_TRY(open_queue(r));
    tally_fold(&r->tally, r->event);
    run_release(r, id);
    r->tally.pending += s->block.size;
    r->tags[id] = tag_of(SLOT_PENDING, segment);
    enqueue(&r->pending, id);
    if (r->policy->free_requested)
        r->policy->free_requested(&r->heap, &s->block);
    return FRAG_OK;
}

enum frag_err run_complete(struct run *r, uint32_t id)
{
    struct run_slot *s = &r->slots[id];
    enum frag_err err = run_prove_free(r, id);

    tally_fold(&r->tally, r->event);
    dequeue(&r->pending, id);
    run_drop(r, id);
    r->tally.pending -= s->block.size;
    r->tags[id] = tag_of(SLOT_FREE, METER_NOWHERE);
    if (err == FRAG_OK)
        r->policy->free(&r->heap, &s->block);
    return err;
}

/* Tells the watch which blocks the wait for the device frees. */
static void tell_left(const struct run *r)
{
    const struct frag_replay_watch *watch = r->spec->watch;

    for (uint32_t id = r->pending.first; watch && watch->left && id != NIL;
         id = r->pending.links[id].next)
        watch->left(watch->user, id);
}

void run_synchronized(void *user)
{
    struct run *r = user;

    tell_left(r);
    while (r->pending.first != NIL)
        if (run_complete(r, r->pending.first) != FRAG_OK)
            return; /* the ledger stores the fault */
}

enum frag_err run_freed_on(struct run *r, uint32_t id, frag_stream stream)
{
    const struct frag_heard heard = {.block = &r->slots[id].block,
                                     .stream = stream};
    const enum slot_state state = state_of(r->tags[id]);

    if (state != SLOT_LIVE && state != SLOT_PENDING)
        return FRAG_OK;
    if (stream)
        run_announce_stream(r, stream);
    if (r->policy->hear(&r->heap, &heard) == FRAG_OK)
        return FRAG_OK;
    return frag_no_memory(r->error, "the lists of a stream");
}

enum frag_err run_free_odd(struct run *r, uint32_t id)
{
    if (state_of(r->tags[id]) == SLOT_REFUSED)
        forget_refused(r, id);
    if (state_of(r->tags[id]) == SLOT_PENDING) {
        if (run_complete(r, id) != FRAG_OK)
            return run_fault(r);
        run_absorb(r, false);
        run_peak(r, 0, 0);
    }
    return FRAG_OK;
}

/* ---------------------------------------------------------- the others --- */

static enum frag_err empty_cache(struct run *r, frag_pool pool,
                                 enum frag_trim trim)
{
    if (!pool && r->policy->trim)
        r->policy->trim(&r->heap);
    return pool ? run_tell(r, pool,
                           trim == FRAG_TRIM_CACHE ? 0 : FRAG_POOL_ENDED,
                           trim != FRAG_TRIM_LATER)
                : FRAG_OK;
}

enum frag_err run_rare(struct run *r, uint64_t i)
{
    switch ((enum frag_op)r->trace->op[i]) {
    case FRAG_FREE_REQUESTED:
        if (run_request_free(r, r->trace->id[i]) != FRAG_OK)
            return frag_no_memory(r->error, "the queue of pending frees");
        break;
    case FRAG_EMPTY_CACHE:
        FRAG_TRY(empty_cache(r, r->trace->pool[i], r->trace->id[i]));
        break;
    case FRAG_RECORD_STREAM: /* it shows as a late FREE */
    case FRAG_ALLOC:
    case FRAG_FREE:
    case FRAG_OP_COUNT:
        return FRAG_OK;
    }
    if (r->meter.changes != r->seen) {
        run_absorb(r, false);
        run_peak(r, 0, 0);
    }
    return FRAG_OK;
}

void run_announce_stream(struct run *r, frag_stream stream)
{
    if (stream >= r->trace->stream_count || r->stream_announced[stream])
        return;
    r->stream_announced[stream] = true;
    frag_backend_stream_used(r->spec->mem, stream);
}

void run_moved(void *user, uint32_t owner, const struct frag_block *block)
{
    struct run *r = user;
    struct run_slot *s = &r->slots[owner];
    struct meter *m = &r->meter;
    uint32_t tag = r->tags[owner], segment = meter_find(m, block->addr);

    run_settle_peak(r);
    m->changes++;
    r->out.summary.num_moves++;
    tally_fold(&r->tally, r->event);
    if (r->ledger && frag_ledger_move(r->ledger, owner, block) != FRAG_OK)
        return; /* the ledger stores the fault */
    tally_clear(&r->tally, &m->segments[tag & TAG_SEGMENT], s->block.size);
    tally_fill(&r->tally, &m->segments[segment], block->size);
    if (state_of(tag) == SLOT_PENDING)
        r->tally.pending += block->size - s->block.size;
    else
        r->tally.allocated += block->size - s->block.size;
    if (!m->segments[segment].has_owner) {
        m->segments[segment].has_owner = true;
        m->segments[segment].stream = m->segments[tag & TAG_SEGMENT].stream;
        m->segments[segment].pool = m->segments[tag & TAG_SEGMENT].pool;
    }
    s->block = *block;
    r->tags[owner] = tag_of(state_of(tag), segment);
}
