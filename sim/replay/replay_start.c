/* replay_start.c - opens a run, starts it from a recorded layout, frees its
 * live blocks, and closes it. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "sim/replay/replay_parts.h"
#include "sim/replay/reservations.h"

/* Computes, for each ALLOC, the index of the event that frees its block, in one
 * pass from the last event to the first. */
static enum frag_err find_frees(struct run *r)
{
    const struct frag_device_trace *t = r->trace;
    uint64_t *at = malloc((t->count + 1) * sizeof(*at));
    uint64_t *freed = malloc((t->slots + (size_t)1) * sizeof(*freed));

    r->frees_at = at;
    if (!at || !freed) {
        free(freed);
        return FRAG_NOMEM;
    }
    for (uint32_t id = 0; id < t->slots; id++)
        freed[id] = FRAG_NEVER;
    for (uint64_t i = t->count; i-- > 0;) {
        at[i] = FRAG_NEVER;
        if (t->op[i] == FRAG_FREE)
            freed[t->id[i]] = i;
        else if (t->op[i] == FRAG_ALLOC)
            at[i] = freed[t->id[i]];
    }
    free(freed);
    return FRAG_OK;
}

/* The progress of r->future: no event is done yet. */
static bool prepares(void *run, uint64_t done, uint64_t total)
{
    struct run *r = run;
    const struct frag_replay *spec = r->spec;

    (void)done;
    (void)total;
    if (!run_is_due(r))
        return false;
    return spec->progress && spec->progress(spec->user, 0, run_total(r));
}

/* Lists all ALLOCs of the trace: the future that the policy reads before it
 * starts. */
static enum frag_err list_requests(struct run *r)
{
    const struct frag_device_trace *t = r->trace;
    size_t count = 0;

    for (uint64_t i = 0; i < t->count; i++)
        count += t->op[i] == FRAG_ALLOC;
    r->future_requests = malloc((count + 1) * sizeof(*r->future_requests));
    if (!r->future_requests)
        return FRAG_NOMEM;
    r->future = (struct frag_future){.count = count,
                                     .requests = r->future_requests,
                                     .progress = prepares,
                                     .user = r,
                                     .memo = r->spec->memo};
    count = 0;
    for (uint64_t i = 0; i < t->count; i++)
        if (t->op[i] == FRAG_ALLOC)
            r->future_requests[count++] =
                (struct frag_future_request){.size = t->bytes[i],
                                             .allocs_at = i,
                                             .frees_at = r->frees_at[i],
                                             .stream = t->stream[i],
                                             .pool = t->pool[i]};
    return FRAG_OK;
}

/* A slot stays within its cache line, which realloc does not promise. */
static struct run_slot *open_slots(size_t room)
{
    return aligned_alloc(64, frag_round_up(room * sizeof(struct run_slot), 64));
}

static enum frag_err open_storage(struct run *r)
{
    const struct frag_device_trace *t = r->trace;
    const size_t slots = t->slots + (size_t)1;

    r->pending.first = r->pending.last = NIL;
    r->slots = open_slots(slots);
    r->tags = calloc(slots, sizeof(*r->tags));
    r->stream_announced = calloc(t->stream_count + (size_t)1, sizeof(bool));
    if (!r->slots || !r->tags || !r->stream_announced)
        return FRAG_NOMEM;
    FRAG_TRY(picture_open(&r->picture, t->slots));
    if (r->foresees) {
        FRAG_TRY(find_frees(r));
        FRAG_TRY(list_requests(r));
    }
    if (!r->spec->check)
        return FRAG_OK;
    r->ledger = frag_ledger_open(t->slots);
    if (r->spec->contents)
        r->filled = calloc(slots, sizeof(*r->filled));
    return r->ledger && (r->filled || !r->spec->contents) ? FRAG_OK
                                                          : FRAG_NOMEM;
}

static void close_storage(struct run *r)
{
    frag_ledger_close(r->ledger);
    picture_close(&r->picture);
    free(r->peak.before);
    free(r->filled);
    free(r->future_requests);
    free(r->frees_at);
    free(r->pending.links);
    free(r->stream_announced);
    free(r->tags);
    free(r->slots);
}

static bool grow(void *array, size_t count, size_t size)
{
    void *old, *grown;

    memcpy(&old, array, sizeof(old));
    grown = realloc(old, count * size);
    if (grown)
        memcpy(array, &grown, sizeof(grown));
    return grown;
}

static bool grow_slots(struct run *r, size_t old, size_t room)
{
    struct run_slot *slots = open_slots(room);

    if (!slots)
        return false;
    memcpy(slots, r->slots, old * sizeof(*slots));
    free(r->slots);
    r->slots = slots;
    return true;
}

enum frag_err run_grow(struct run *r, uint32_t slots)
{
    const uint32_t old = r->trace->slots;
    const size_t room = slots + (size_t)1;

    if (!grow_slots(r, old, room) || !grow(&r->tags, room, sizeof(*r->tags)) ||
        !grow(&r->picture.blocks, room, sizeof(*r->picture.blocks)) ||
        !grow(&r->picture.spare, room, sizeof(*r->picture.spare)))
        return FRAG_NOMEM;
    if (r->pending.links &&
        !grow(&r->pending.links, room, sizeof(*r->pending.links)))
        return FRAG_NOMEM;
    if (r->filled && !grow(&r->filled, room, sizeof(*r->filled)))
        return FRAG_NOMEM;
    if (r->ledger)
        FRAG_TRY(frag_ledger_grow(r->ledger, slots));
    memset(&r->tags[old], 0, (room - old) * sizeof(*r->tags));
    return FRAG_OK;
}

static enum frag_err open_heap(struct run *r)
{
    const struct frag_params *params = r->spec->prepared;
    struct frag_params *own = NULL;
    enum frag_err err;

    if (!params) {
        FRAG_TRY(frag_params_read(r->policy, r->spec->params, &own, r->error));
        params = own;
    }
    r->out.params = strdup(params->text);
    err = r->out.params
              ? frag_heap_open_params(&r->heap, params, &r->meter.base,
                                      r->future_requests ? &r->future : NULL,
                                      r->error)
              : frag_no_memory(r->error, "%s", r->policy->name);
    free(own);
    FRAG_TRY(err);
    r->heap.moved = run_moved;
    r->heap.user = r;
    err = run_tell_pools(r);
    if (err != FRAG_OK)
        frag_heap_close(&r->heap);
    return err;
}

/* Sets the quanta in which the run counts. */
static void set_quanta(struct run *r)
{
    const frag_size own = r->heap.quantum, other = r->spec->quantum;

    r->picture.quantum = own;
    r->tally.mask = -(other && other < own ? other : own);
}

static void rearranges(void *run)
{
    run_settle_peak(run);
}

enum frag_err run_open(struct run *r)
{
    enum frag_err err = open_storage(r);

    tally_open(&r->tally);
    r->out.summary.first_oom_event = FRAG_NEVER;
    FRAG_THEN(err, meter_open(&r->meter, r->spec->mem, r->ledger));
    if (err != FRAG_OK) {
        close_storage(r);
        return frag_no_memory(r->error,
                              "a run with up to %" PRIu32 " live blocks",
                              r->trace->slots);
    }
    r->meter.guards_limit = !(r->policy->needs & FRAG_OWNS_LIMIT);
    meter_on_wait(&r->meter, run_synchronized, r);
    r->meter.rearranges = rearranges;
    r->meter.run = r;
    if (r->spec->watch)
        meter_on_change(&r->meter, r->spec->watch->changed,
                        r->spec->watch->user);
    err = open_heap(r);
    if (err != FRAG_OK) {
        free(r->out.params);
        meter_close(&r->meter);
        close_storage(r);
        return err;
    }
    set_quanta(r);
    run_absorb(r, false);
    run_peak(r, 0, 0);
    if (r->spec->watch && r->spec->watch->opened)
        r->spec->watch->opened(r->spec->watch->user, &r->heap);
    return FRAG_OK;
}

enum frag_err run_close(struct run *r, enum frag_err err)
{
    r->meter.ledger = NULL; /* fini may return memory under live blocks */
    meter_on_wait(&r->meter, NULL, NULL);
    r->meter.rearranges = NULL;
    frag_heap_close(&r->heap);
    if (err == FRAG_OK && r->ledger && !frag_ledger_fault(r->ledger) &&
        (r->meter.reserved || r->meter.reserved_va))
        err = frag_fail(
            r->error, FRAG_CONTRACT,
            "%s: after its fini, %" PRIu64 " bytes of memory and %" PRIu64
            " bytes of address space are still held",
            r->policy->name, r->meter.reserved, r->meter.reserved_va);
    meter_close(&r->meter);
    close_storage(r);
    return err;
}

enum frag_err run_drain(struct run *r)
{
    r->event = r->base;
    for (uint32_t id = 0; id < r->trace->slots; id++) {
        const struct frag_block *b = &r->slots[id].block;

        if (state_of(r->tags[id]) == SLOT_LIVE) {
            FRAG_TRY(run_prove_free(r, id));
            run_drop(r, id);
            run_release(r, id);
            r->policy->free(&r->heap, b);
        } else if (state_of(r->tags[id]) == SLOT_PENDING &&
                   run_complete(r, id) != FRAG_OK) {
            return run_fault(r);
        }
        r->tags[id] = tag_of(SLOT_FREE, METER_NOWHERE);
    }
    r->tally.refused = 0;
    tally_raise(&r->tally);
    run_absorb(r, false);
    run_peak(r, 0, 0);
    return FRAG_OK;
}

/* -------------------------------------------------- a recorded layout --- */

/* The recorded start, as the arguments of frag_policy.adopt. */
struct start {
    struct frag_held_segment *segments;
    struct frag_held_block *blocks;
    void **nodes;
    struct frag_reservation *reservations; /* the first ones are the held ones,
                                              by address */
    uint64_t reservation_count;
    frag_size *sizes; /* by slot: see initial_sizes */
};

static bool is_held(const struct start *s, uint64_t i)
{
    return i < s->reservation_count && s->reservations[i].held;
}

/* Sets the reservation of an expandable segment. It ends where the next one
 * begins, at the latest: its true beginning may be lower than the recorded one.
 */
static void set_reservation(const struct start *s, frag_size total,
                            struct frag_held_segment *g)
{
    frag_size known, size;
    uint64_t i = 0;

    while (is_held(s, i) && s->reservations[i].end <= g->addr)
        i++;
    if (!is_held(s, i))
        return;
    size = frag_reservation_size(&s->reservations[i], total);
    g->reservation = s->reservations[i].addr;
    known = s->reservations[i].end - g->reservation;
    if (is_held(s, i + 1) &&
        size > s->reservations[i + 1].addr - g->reservation)
        size = known;
    g->reservation_size = size > known ? size : known;
}

static enum frag_err set_reservations(struct run *r, struct start *s)
{
    const struct frag_recorded *recorded = &r->trace->recorded;
    frag_size total;
    bool any = false;

    for (uint64_t i = 0; i < recorded->start.segment_count; i++)
        any |= recorded->start.segments[i].is_expandable;
    if (!any)
        return FRAG_OK;
    total = frag_backend_total(r->heap.mem);
    FRAG_TRY(frag_reservations(r->trace, total, &s->reservations,
                               &s->reservation_count, r->error));
    for (uint64_t i = 0; i < recorded->start.segment_count; i++)
        if (s->segments[i].is_expandable)
            set_reservation(s, total, &s->segments[i]);
    return FRAG_OK;
}

static enum frag_err convert(const struct frag_layout *l, struct start *s)
{
    s->segments = calloc(l->segment_count + 1, sizeof(*s->segments));
    s->blocks = calloc(l->block_count + 1, sizeof(*s->blocks));
    s->nodes = calloc(l->block_count + 1, sizeof(*s->nodes));
    if (!s->segments || !s->blocks || !s->nodes)
        return FRAG_NOMEM;
    for (uint64_t i = 0; i < l->block_count; i++) {
        const struct frag_recorded_block *b = &l->blocks[i];

        s->blocks[i] = (struct frag_held_block){b->addr, b->size, b->requested,
                                                b->state != FRAG_INACTIVE};
    }
    for (uint64_t i = 0; i < l->segment_count; i++) {
        const struct frag_recorded_segment *g = &l->segments[i];

        s->segments[i] =
            (struct frag_held_segment){.addr = g->addr,
                                       .size = g->size,
                                       .stream = (frag_stream)g->stream,
                                       .pool = (frag_pool)g->pool,
                                       .is_small = g->is_small,
                                       .is_expandable = g->is_expandable,
                                       .block_count = g->block_count,
                                       .blocks = &s->blocks[g->first_block]};
    }
    return FRAG_OK;
}

/* The requested bytes of each slot's initial ALLOC; 0 for a slot without one.
 * The caller frees them. NULL if the host has no memory. */
static frag_size *initial_sizes(const struct frag_device_trace *t)
{
    frag_size *sizes = calloc(t->slots + (size_t)1, sizeof(*sizes));

    for (uint64_t i = 0; sizes && i < t->initial; i++)
        sizes[t->id[i]] = t->bytes[i];
    return sizes;
}

static enum frag_err enter_block(struct run *r, const struct start *s,
                                 const struct frag_recorded_segment *g,
                                 const struct frag_recorded_block *b,
                                 void *node)
{
    struct frag_request req = {.size = b->requested,
                               .owner = b->slot,
                               .stream = (frag_stream)g->stream,
                               .pool = (frag_pool)g->pool};

    if (b->slot >= r->trace->slots)
        return FRAG_UNSUPPORTED;
    if (!req.size || req.size == FRAG_SIZE_UNKNOWN || req.size > b->size)
        req.size = s->sizes[b->slot];
    r->slots[b->slot].block = (struct frag_block){b->addr, b->size, node};
    if (r->ledger && frag_ledger_alloc(r->ledger, b->slot, req.size,
                                       &r->slots[b->slot].block) != FRAG_OK)
        return run_fault(r);
    run_enter(r, b->slot, &req);
    return b->state == FRAG_ACTIVE_PENDING_FREE ? run_request_free(r, b->slot)
                                                : FRAG_OK;
}

/* Live blocks that were placed in smaller units make the quantum smaller. */
static void lower_quantum(struct run *r)
{
    const struct frag_layout *l = &r->trace->recorded.start;

    for (uint64_t i = 0; i < l->block_count; i++)
        while (l->blocks[i].state != FRAG_INACTIVE &&
               l->blocks[i].size & ~r->tally.mask)
            r->tally.mask |= r->tally.mask >> 1;
}

static enum frag_err enter_blocks(struct run *r, const struct start *s)
{
    const struct frag_layout *l = &r->trace->recorded.start;
    void *const *node = s->nodes;

    for (uint64_t i = 0; i < l->segment_count; i++) {
        const struct frag_recorded_segment *g = &l->segments[i];

        for (uint64_t k = 0; k < g->block_count; k++) {
            const struct frag_recorded_block *b =
                &l->blocks[g->first_block + k];

            if (b->state != FRAG_INACTIVE)
                FRAG_TRY(enter_block(r, s, g, b, *node++));
        }
    }
    return FRAG_OK;
}

static enum frag_err adopt_layout(struct run *r, struct start *s)
{
    const struct frag_layout *l = &r->trace->recorded.start;
    enum frag_err err;

    s->sizes = initial_sizes(r->trace);
    if (!s->sizes)
        return FRAG_NOMEM;
    FRAG_TRY(convert(l, s));
    FRAG_TRY(set_reservations(r, s));
    for (uint64_t i = 0; i < l->segment_count; i++)
        FRAG_TRY(meter_hold(&r->meter, &s->segments[i]));
    err = r->policy->adopt(&r->heap, s->segments, l->segment_count, s->nodes);
    FRAG_TRY(frag_policy_answer(r->policy, "adopt", err, r->error));
    run_absorb(r, false);
    lower_quantum(r);
    FRAG_TRY(enter_blocks(r, s));
    run_peak(r, 0, 0);
    return FRAG_OK;
}

enum frag_err run_adopt(struct run *r)
{
    struct start s = {0};
    enum frag_err err = adopt_layout(r, &s);

    free(s.reservations);
    free(s.sizes);
    free(s.nodes);
    free(s.blocks);
    free(s.segments);
    r->event = r->trace->initial;
    tally_adopt(&r->tally, r->event);
    return err == FRAG_OK || err == FRAG_CONTRACT
               ? err
               : frag_fail(r->error, err == FRAG_NOMEM ? err : FRAG_UNSUPPORTED,
                           "%s: %s: cannot start from the "
                           "memory that was held before the first event: %s",
                           r->policy->name, FRAG_DEVICE_NAME(r->trace->device),
                           err == FRAG_UNSUPPORTED || err == FRAG_INVALID
                               ? "an expandable segment does not consist of "
                                 "whole pages (2 MiB in a small pool, "
                                 "large_segment_size in a large one), or "
                                 "segments overlap; record with torch.cuda."
                                 "memory._record_memory_history() before the "
                                 "job starts"
                               : frag_err_text(err));
}
