/* snapshot.c - a PyTorch snapshot of the recording itself, or of the run of any
 * policy: what PyTorch's memory_viz opens.
 *
 * The viewer shows address ranges: it takes the end of the run, goes backwards
 * through the entries, and adds up the ranges of the segments. So a policy that
 * maps one piece of memory at two addresses cannot be shown; a move of a block
 * is shown as a free and an allocation.
 */
#include "policies/torch/platform.h"
#include "sim/export/export_entries.h"
#include "sim/export/export_parts.h"
#include "sim/export/snapshot_run.h"
#include "traces/bytes/sink.h"

#include <stdlib.h>

/* -- the recording ------------------------------------------------------- */

/* The block of a slot in the recording. */
struct recorded_slot {
    uint64_t asked;
    bool pending;
};

struct recording {
    struct snapshot s;
    const struct frag_device_trace *device;
    struct recorded_slot *slots;
    uint64_t next; /* row of recorded.actions */
};

/* The pool whose memory a segment_free or segment_unmap returned: that of the
 * request which obtained the memory. The actions have no pool of their own. */
static frag_pool pool_of_memory(const struct frag_device_trace *d,
                                const struct frag_recorded_action *a)
{
    const struct frag_layout *start = &d->recorded.start;

    for (const struct frag_recorded_action *b = a; b-- > d->recorded.actions;)
        if ((b->action == FRAG_SEGMENT_ALLOC ||
             b->action == FRAG_SEGMENT_MAP) &&
            a->addr - b->addr < b->size)
            return frag_pool_of_action(d, b);
    for (uint64_t i = 0; i < start->segment_count; i++)
        if (a->addr - start->segments[i].addr < start->segments[i].size)
            return (frag_pool)start->segments[i].pool;
    return 0;
}

static frag_pool pool_of_action(const struct frag_device_trace *d,
                                const struct frag_recorded_action *a)
{
    if (d->pool_count <= 1)
        return 0;
    return a->action == FRAG_SEGMENT_FREE || a->action == FRAG_SEGMENT_UNMAP
               ? pool_of_memory(d, a)
               : frag_pool_of_action(d, a);
}

static void put_actions(struct recording *r, uint64_t event)
{
    static const enum snapshot_word actions[FRAG_ACTION_COUNT] = {
        [FRAG_SEGMENT_ALLOC] = S_segment_alloc,
        [FRAG_SEGMENT_FREE] = S_segment_free,
        [FRAG_SEGMENT_MAP] = S_segment_map,
        [FRAG_SEGMENT_UNMAP] = S_segment_unmap,
        [FRAG_OOM_REPORTED] = S_oom,
    };
    const struct frag_recorded *d = &r->device->recorded;

    for (; r->next < d->action_count && d->actions[r->next].event <= event;
         r->next++) {
        const struct frag_recorded_action *a = &d->actions[r->next];
        const bool is_oom = a->action == FRAG_OOM_REPORTED;

        snapshot_entry(&r->s, &(const struct snapshot_entry){
                                  .action = actions[a->action],
                                  .addr = is_oom ? a->device_free : a->addr,
                                  .size = a->size,
                                  .stream = (frag_stream)a->stream,
                                  .pool = pool_of_action(r->device, a),
                                  .event = event,
                              });
    }
}

static void put_block_entry(struct recording *r, enum snapshot_word action,
                            uint64_t event)
{
    const struct frag_device_trace *d = r->device;
    const uint64_t asked = r->slots[d->id[event]].asked;

    if (d->recorded.addr[asked])
        snapshot_entry(&r->s, &(const struct snapshot_entry){
                                  .action = action,
                                  .addr = d->recorded.addr[asked],
                                  .size = d->bytes[asked],
                                  .stream = d->stream[asked],
                                  .pool = d->pool[asked],
                                  .event = event,
                              });
}

static void put_event(struct recording *r, uint64_t i)
{
    struct recorded_slot *slot = &r->slots[r->device->id[i]];

    switch ((enum frag_op)r->device->op[i]) {
    case FRAG_ALLOC:
        *slot = (struct recorded_slot){.asked = i};
        if (i >= r->device->initial)
            put_block_entry(r, S_alloc, i);
        break;
    case FRAG_FREE:
        if (!slot->pending)
            put_block_entry(r, S_free_requested, i);
        put_block_entry(r, S_free_completed, i);
        break;
    case FRAG_FREE_REQUESTED:
        put_block_entry(r, S_free_requested, i);
        slot->pending = true;
        break;
    case FRAG_RECORD_STREAM:
    case FRAG_EMPTY_CACHE:
    case FRAG_OP_COUNT:
        break;
    }
}

static enum snapshot_word state_of(uint32_t state)
{
    return state == FRAG_INACTIVE              ? S_inactive
           : state == FRAG_ACTIVE_PENDING_FREE ? S_active_pending_free
                                               : S_active_allocated;
}

static void put_recorded_block(struct recording *r,
                               const struct frag_recorded_block *b)
{
    const bool has_slot = b->state != FRAG_INACTIVE && b->slot != UINT32_MAX;

    snapshot_block(&r->s,
                   &(const struct snapshot_block){
                       .addr = b->addr,
                       .size = b->size,
                       .requested = b->requested,
                       .state = state_of(b->state),
                       .asked = has_slot ? r->slots[b->slot].asked : FRAG_NEVER,
                   });
}

static void put_recorded_segment(struct recording *r,
                                 const struct frag_recorded_segment *g)
{
    const struct frag_recorded_block *b =
        &r->device->recorded.end.blocks[g->first_block];
    struct snapshot_segment out = {.addr = g->addr,
                                   .size = g->size,
                                   .stream = (frag_stream)g->stream,
                                   .pool = (frag_pool)g->pool,
                                   .is_small = g->is_small,
                                   .is_expandable = g->is_expandable};

    for (uint64_t i = 0; i < g->block_count; i++) {
        out.allocated += b[i].state == FRAG_ACTIVE_ALLOCATED ? b[i].size : 0;
        out.active += b[i].state == FRAG_INACTIVE ? 0 : b[i].size;
    }
    snapshot_segment_begin(&r->s, &out);
    for (uint64_t i = 0; i < g->block_count; i++)
        put_recorded_block(r, &b[i]);
    snapshot_segment_end(&r->s);
}

static void put_recording(struct recording *r, const struct export_notes *notes)
{
    const struct frag_device_trace *d = r->device;
    const struct frag_layout *end = &d->recorded.end;

    for (uint64_t i = 0; i < d->count; i++) {
        if (i >= d->initial)
            put_actions(r, i);
        put_event(r, i);
    }
    put_actions(r, UINT64_MAX);
    snapshot_segments(&r->s);
    for (uint64_t i = 0; i < end->segment_count; i++)
        put_recorded_segment(r, &end->segments[i]);
    snapshot_end(&r->s, notes);
}

static enum frag_err write_recording(const struct export_job *job, FILE *out,
                                     const struct export_notes *notes,
                                     struct frag_error *e)
{
    struct recording r = {
        .device = job->device,
        .slots = calloc((size_t)job->device->slots + 1, sizeof(*r.slots)),
    };
    const struct frag_trace *t = job->trace;
    char *settings = torch_settings_for(t->settings, t->releases,
                                        t->settings ? t->settings : "");
    enum frag_err err = FRAG_NOMEM;

    if (r.slots && settings)
        err = snapshot_begin(&r.s, t, job->device, NULL,
                             t->settings || *settings ? settings : NULL, out);
    if (err == FRAG_OK)
        put_recording(&r, notes);
    snapshot_free(&r.s);
    free(r.slots);
    free(settings);
    return err == FRAG_OK ? FRAG_OK : frag_no_memory(e, "the snapshot");
}

static enum frag_err check_recording(const struct export_job *job,
                                     struct frag_error *e)
{
    const struct frag_recorded *r = &job->device->recorded;

    if (r->addr && r->has_actions && r->has_end)
        return FRAG_OK;
    return frag_fail(e, FRAG_INVALID,
                     "%s: the trace lacks the addresses and segments of a "
                     "recorded allocator, so there is no recording to show; "
                     "name the policy to replay: -p torch",
                     job->trace->path);
}

/* -- the file ------------------------------------------------------------ */

enum frag_err export_snapshot(const struct export_job *job, const char *path,
                              struct export_notes *notes, struct frag_error *e)
{
    struct sink sink;
    enum frag_err err;

    if (!job->policy_count)
        FRAG_TRY(check_recording(job, e));
    FRAG_TRY(sink_open(&sink, path, e));
    err = job->policy_count ? snapshot_run(job, sink.out, notes, e)
                            : write_recording(job, sink.out, notes, e);
    if (err == FRAG_OK)
        return sink_commit(&sink, e);
    sink_abort(&sink);
    return err;
}
