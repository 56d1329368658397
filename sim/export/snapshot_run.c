/* snapshot_run.c - writes the entries of a run while it is replayed, and its
 * segments at its end. */
#include "sim/export/snapshot_run.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "policies/policies.h"
#include "policies/torch/platform.h"
#include "policies/torch/torch.h"
#include "sim/arena/arena.h"
#include "sim/export/export_entries.h"
#include "sim/export/export_parts.h"
#include "traces/grow.h"
#include "traces/live.h"
#include "traces/torch_sizes.h"

/* The first request that used a segment or a reservation, since nothing of it
 * was held. All its maps have this stream, so that the viewer can join them. */
struct home {
    frag_stream stream;
    frag_pool pool;
    bool is_small;
    frag_size held; /* bytes of it */
};

struct live_block {
    frag_addr addr;
    uint32_t slot;
};

struct showing {
    struct snapshot s;
    const struct export_job *job;
    struct live by_addr; /* start of a segment or reservation: row of homes */
    struct home *homes;
    uint64_t home_count, home_room;
    struct snapshot_entry held_back; /* a map or unmap that may grow */
    bool holds_back;
    frag_size shown, shown_max; /* bytes of all segments in the viewer */
    uint64_t aliased_at;        /* event; FRAG_NEVER: none */
    uint64_t moves;
    struct frag_torch_observer observer; /* of the policy torch */
    bool is_torch;
    frag_size refused; /* rounded size of the OOM that it reported; 0: none */
    bool is_short;     /* the host had no memory */
    bool stop;
};

/* -- homes --------------------------------------------------------------- */

static struct home home_now(const struct showing *w, uint64_t event)
{
    const struct frag_device_trace *d = w->job->device;

    if (event >= d->count || d->op[event] != FRAG_ALLOC)
        return (struct home){0};
    return (struct home){.stream = d->stream[event],
                         .pool = d->pool[event],
                         .is_small = d->bytes[event] <= TORCH_SMALL_SIZE};
}

/* The home that begins at the address; NULL: the host has no memory. */
static struct home *home_at(struct showing *w, frag_addr at)
{
    const struct live_row *row = live_find(&w->by_addr, at);

    if (row)
        return &w->homes[row->slot];
    if (!GROW(w->homes, w->home_room, w->home_count + 1) ||
        !live_put(&w->by_addr, at, (uint32_t)w->home_count)) {
        w->is_short = w->stop = true;
        return NULL;
    }
    w->homes[w->home_count] = (struct home){0};
    return &w->homes[w->home_count++];
}

/* Start of the reservation that has the address. */
static frag_addr reservation_at(const struct tap *t, frag_addr addr)
{
    const struct range *r = ranges_upto(&t->meter->reservations, addr);

    return r ? r->at : addr;
}

/* -- entries ------------------------------------------------------------- */

static void flush(struct showing *w)
{
    if (w->holds_back)
        snapshot_entry(&w->s, &w->held_back);
    w->holds_back = false;
}

/* Adds a range to the entry that is held back, if both are one range. */
static bool join(struct showing *w, const struct snapshot_entry *e)
{
    struct snapshot_entry *last = &w->held_back;

    if (!w->holds_back || last->action != e->action ||
        last->event != e->event || last->stream != e->stream ||
        last->pool != e->pool)
        return false;
    if (e->addr + e->size == last->addr)
        last->addr = e->addr;
    else if (last->addr + last->size != e->addr)
        return false;
    last->size += e->size;
    return true;
}

/* A map of many pages is one entry, as in PyTorch. */
static void put_map(struct showing *w, const struct snapshot_entry *e)
{
    if (join(w, e))
        return;
    flush(w);
    w->held_back = *e;
    w->holds_back = true;
}

/* Returns what is added, modulo 2^64. */
static frag_size count_shown(struct showing *w, enum snapshot_word action,
                             frag_size size)
{
    const bool is_up = action == S_segment_alloc || action == S_segment_map;
    const frag_size change = is_up ? size : 0 - size;

    w->shown += change;
    if (w->shown > w->shown_max)
        w->shown_max = w->shown;
    return change;
}

static void put_range(struct showing *w, const struct tap *t,
                      const struct placement *p, enum snapshot_word action)
{
    const bool is_map = action == S_segment_map || action == S_segment_unmap;
    const frag_addr at = is_map ? reservation_at(t, p->addr) : p->addr;
    struct home *home = home_at(w, at);
    struct snapshot_entry e = {
        .action = action, .addr = p->addr, .size = p->size, .event = p->event};

    if (!home)
        return;
    if (!home->held)
        *home = home_now(w, p->event);
    e.stream = home->stream;
    e.pool = home->pool;
    home->held += count_shown(w, action, p->size);
    if (is_map) {
        put_map(w, &e);
        return;
    }
    flush(w);
    snapshot_entry(&w->s, &e);
}

/* What the device reports as free: what is left of a capacity, and what the
 * driver keeps. */
static frag_size device_free(const struct showing *w, const struct tap *t)
{
    const frag_size asked = frag_bound_of(w->job->bound, FRAG_BOUND_CAPACITY);
    const frag_size capacity = asked == FRAG_UNLIMITED
                                   ? t->meter->base.total
                                   : asked + FRAG_DRIVER_KEEPS;

    return capacity > t->meter->reserved ? capacity - t->meter->reserved : 0;
}

static void put_block(struct showing *w, const struct tap *t,
                      const struct placement *p, enum snapshot_word action)
{
    const struct frag_device_trace *d = w->job->device;
    const bool is_rounded = action == S_oom && w->is_torch;
    const frag_size size = is_rounded ? w->refused : d->bytes[p->asked];

    w->refused = 0;
    if (is_rounded && !size)
        return; /* throw_on_cudamalloc_oom leaves no entry */
    flush(w);
    snapshot_entry(&w->s,
                   &(const struct snapshot_entry){
                       .action = action,
                       .addr = action == S_oom ? device_free(w, t) : p->addr,
                       .size = size,
                       .stream = d->stream[p->asked],
                       .pool = d->pool[p->asked],
                       .event = p->event,
                   });
}

/* PyTorch writes the rounded size of a request that it cannot meet. */
static void on_action(void *user, enum frag_torch_action action, frag_addr addr,
                      frag_size size, frag_stream stream)
{
    struct showing *w = user;

    (void)addr;
    (void)stream;
    if (action == FRAG_TORCH_OOM)
        w->refused = size;
}

static void on_opened(void *user, struct frag_heap *heap)
{
    struct showing *w = user;

    w->is_torch = heap->policy == &frag_policy_torch;
    w->observer = (struct frag_torch_observer){.action = on_action, .user = w};
    if (w->is_torch)
        frag_torch_observe(heap, &w->observer);
}

static void on_placed(void *user, const struct tap *t,
                      const struct placement *p)
{
    static const struct {
        enum snapshot_word action;
        void (*put)(struct showing *w, const struct tap *t,
                    const struct placement *p, enum snapshot_word action);
    } ways[] = {
        [PLACED_SEGMENT] = {S_segment_alloc, put_range},
        [PLACED_SEGMENT_FREED] = {S_segment_free, put_range},
        [PLACED_MAP] = {S_segment_map, put_range},
        [PLACED_UNMAP] = {S_segment_unmap, put_range},
        [PLACED_BLOCK] = {S_alloc, put_block},
        [PLACED_PENDING] = {S_free_requested, put_block},
        [PLACED_FREED] = {S_free_completed, put_block},
        [PLACED_REFUSED] = {S_oom, put_block},
    };

    ways[p->kind].put(user, t, p, ways[p->kind].action);
}

static void on_done(void *user, const struct tap *t, uint64_t event)
{
    struct showing *w = user;

    if (t->meter->has_aliases && w->aliased_at == FRAG_NEVER) {
        w->aliased_at = event;
        w->stop = true;
    }
}

/* -- the end ------------------------------------------------------------- */

static int by_address(const void *a, const void *b)
{
    const struct live_block *x = a, *y = b;

    return x->addr < y->addr ? -1 : x->addr > y->addr;
}

static struct live_block *list_blocks(const struct tap *t, uint64_t *count)
{
    struct live_block *list =
        calloc((size_t)t->device->slots + 1, sizeof(*list));

    *count = 0;
    for (uint32_t id = 0; list && id < t->device->slots; id++)
        if (t->slots[id].state != TAP_FREE)
            list[(*count)++] = (struct live_block){t->slots[id].block.addr, id};
    if (list)
        qsort(list, *count, sizeof(*list), by_address);
    return list;
}

/* A range without a gap: a segment, or adjacent maps of one reservation. */
static frag_size whole_size(const struct tap *t, const struct held_range *h)
{
    frag_addr end = h->range.at + h->range.size;

    for (const struct range *r = &h->range; h->phys;) {
        r = ranges_from(&t->meter->held, r->at + 1);
        if (!r || r->at != end ||
            ((const struct held_range *)r)->segment != h->segment)
            break;
        end += r->size;
    }
    return end - h->range.at;
}

static void put_free(struct showing *w, frag_addr from, frag_addr to)
{
    if (from < to)
        snapshot_block(&w->s, &(const struct snapshot_block){
                                  .addr = from,
                                  .size = to - from,
                                  .requested = FRAG_SIZE_UNKNOWN,
                                  .state = S_inactive,
                                  .asked = FRAG_NEVER,
                              });
}

static void put_live(struct showing *w, const struct tap_slot *slot)
{
    snapshot_block(&w->s, &(const struct snapshot_block){
                              .addr = slot->block.addr,
                              .size = slot->block.size,
                              .requested = w->job->device->bytes[slot->asked],
                              .state = slot->state == TAP_PENDING
                                           ? S_active_pending_free
                                           : S_active_allocated,
                              .asked = slot->asked,
                          });
}

static struct snapshot_segment
segment_of(struct showing *w, const struct tap *t, const struct held_range *h)
{
    const frag_addr at = h->phys ? reservation_at(t, h->range.at) : h->range.at;
    const struct home *home = home_at(w, at);

    return (struct snapshot_segment){.addr = h->range.at,
                                     .size = whole_size(t, h),
                                     .stream = home ? home->stream : 0,
                                     .pool = home ? home->pool : 0,
                                     .is_small = home && home->is_small,
                                     .is_expandable = h->phys != NULL};
}

/* Writes the segment, and its blocks from list[*next] on. */
static void put_segment(struct showing *w, const struct tap *t,
                        struct snapshot_segment *g,
                        const struct live_block *list, uint64_t count,
                        uint64_t *next)
{
    const frag_addr end = g->addr + g->size;
    frag_addr at = g->addr;
    uint64_t last = *next;

    for (; last < count && list[last].addr < end; last++) {
        const struct tap_slot *slot = &t->slots[list[last].slot];

        g->allocated += slot->state == TAP_LIVE ? slot->block.size : 0;
        g->active += slot->block.size;
    }
    snapshot_segment_begin(&w->s, g);
    for (; *next < last; ++*next) {
        const struct tap_slot *slot = &t->slots[list[*next].slot];

        put_free(w, at, slot->block.addr);
        put_live(w, slot);
        at = slot->block.addr + slot->block.size;
    }
    put_free(w, at, end);
    snapshot_segment_end(&w->s);
}

static void on_ended(void *user, const struct tap *t)
{
    struct showing *w = user;
    uint64_t count, next = 0;
    struct live_block *list = list_blocks(t, &count);
    const struct range *r;

    w->moves = t->moves;
    w->is_short |= !list;
    flush(w);
    snapshot_segments(&w->s);
    for (r = list ? ranges_from(&t->meter->held, 0) : NULL; r;) {
        struct snapshot_segment g =
            segment_of(w, t, (const struct held_range *)r);

        put_segment(w, t, &g, list, count, &next);
        r = ranges_from(&t->meter->held, g.addr + g.size);
    }
    free(list);
}

/* -- the whole ----------------------------------------------------------- */

/* The settings in the file: those of the policy torch. The caller frees *out,
 * which is NULL for another policy. */
static enum frag_err make_conf(const struct export_job *job, char **out)
{
    const struct policy_choice *p = &job->policies[0];
    char *text;

    *out = NULL;
    if (strcmp(p->policy->name, "torch"))
        return FRAG_OK;
    text = policy_choice_settings(p, job->trace->settings);
    if (text)
        *out = torch_settings_for(job->trace->settings, job->trace->releases,
                                  text);
    free(text);
    return *out ? FRAG_OK : FRAG_NOMEM;
}

static enum frag_err refuse(const struct showing *w, struct frag_error *e)
{
    return frag_fail(
        e, FRAG_UNSUPPORTED,
        "snapshot: at event %" PRIu64 " the policy %s maps memory at a second "
        "address. The viewer adds up address ranges, so it would show more "
        "reserved memory than there is. `--to chrome' shows this policy",
        w->aliased_at, w->job->policies[0].text);
}

/* Notes what the viewer shows differently from the run. */
static enum frag_err note_run(const struct showing *w,
                              const struct frag_run *run,
                              struct export_notes *notes)
{
    const struct frag_summary *m = &run->summary;

    if (w->moves)
        FRAG_TRY(export_note(notes,
                             "moves of live blocks: %" PRIu64
                             "; each is written as a free and an alloc",
                             w->moves));
    if (w->shown_max != m->peak_reserved || w->shown != run->end.reserved)
        FRAG_TRY(export_note(
            notes,
            "the file holds mapped memory only: at most %" PRIu64
            " bytes, and %" PRIu64 " at the end; the policy reserved %" PRIu64
            " and %" PRIu64 " bytes",
            w->shown_max, w->shown, m->peak_reserved, run->end.reserved));
    if (m->num_ooms)
        FRAG_TRY(export_note(notes,
                             "requests that could not be met: %" PRIu64
                             "; each is an oom entry, and its free is left out",
                             m->num_ooms));
    return FRAG_OK;
}

static enum frag_err run(struct showing *w, struct export_notes *notes,
                         struct frag_error *e)
{
    const struct export_job *job = w->job;
    const struct tap_listener listener = {
        .user = w,
        .opened = on_opened,
        .placed = on_placed,
        .done = on_done,
        .ended = on_ended,
        .stop = &w->stop,
    };
    struct frag_run result;
    enum frag_err err =
        export_replay(job, &job->policies[0], &listener, &result, e);

    if (w->aliased_at != FRAG_NEVER &&
        (err == FRAG_OK || err == FRAG_CANCELLED)) {
        if (err == FRAG_OK)
            frag_run_free(&result);
        return refuse(w, e);
    }
    if (w->is_short) {
        if (err == FRAG_OK)
            frag_run_free(&result);
        return frag_no_memory(e, "the snapshot");
    }
    FRAG_TRY(err);
    err = note_run(w, &result, notes);
    frag_run_free(&result);
    if (err == FRAG_OK)
        snapshot_end(&w->s, notes);
    return err;
}

enum frag_err snapshot_run(const struct export_job *job, FILE *out,
                           struct export_notes *notes, struct frag_error *e)
{
    struct showing w = {.job = job, .aliased_at = FRAG_NEVER};
    char *conf;
    enum frag_err err = make_conf(job, &conf);

    FRAG_THEN(err, snapshot_begin(&w.s, job->trace, job->device,
                                  job->policies[0].text, conf, out));
    if (err == FRAG_OK)
        err = run(&w, notes, e);
    else
        err = frag_no_memory(e, "the snapshot");
    snapshot_free(&w.s);
    live_fini(&w.by_addr);
    free(w.homes);
    free(conf);
    return err;
}
