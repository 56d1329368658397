/* serve.c - serves a running program: each call of the program is the event of
 * a trace with one row, which is overwritten before each event. */
#include "sim/replay/serve.h"

#include <inttypes.h>
#include <stdlib.h>

#include "sim/replay/replay_parts.h"
#include "traces/live.h"

enum { FIRST_SLOTS = 1024 };

/* The columns of the trace: one row. */
struct serve_row {
    uint8_t op;
    uint32_t id;
    uint64_t bytes;
    frag_stream stream;
    frag_pool pool;
    frag_time time;
};

struct frag_serve {
    struct run run;
    struct frag_replay spec;
    struct frag_device_trace trace; /* its columns are the row */
    struct serve_row row;
    struct live live;     /* slots of live blocks, by address */
    uint32_t *free_slots; /* a stack, with room for every slot */
    uint32_t free_count;
};

/* ---- slots ---- */

static void return_slot(struct frag_serve *s, uint32_t id)
{
    s->free_slots[s->free_count++] = id;
}

/* Doubles the number of slots. */
static enum frag_err add_slots(struct frag_serve *s)
{
    const uint32_t old = s->trace.slots;
    uint32_t *grown;

    if (old > UINT32_MAX / 4)
        return FRAG_NOMEM;
    grown = realloc(s->free_slots, 2 * (size_t)old * sizeof(*grown));
    if (!grown)
        return FRAG_NOMEM;
    s->free_slots = grown;
    FRAG_TRY(run_grow(&s->run, 2 * old));
    s->trace.slots = 2 * old;
    for (uint32_t id = s->trace.slots; id-- > old;)
        return_slot(s, id);
    return FRAG_OK;
}

/* Called when the policy has waited for the device: all pending frees are
 * completed. */
static void synchronized(void *user)
{
    struct frag_serve *s = user;
    const struct slot_queue *q = &s->run.pending;

    for (uint32_t id = q->first; id != NIL; id = q->links[id].next)
        return_slot(s, id);
    run_synchronized(&s->run);
}

/* ---- open and close ---- */

static void lay_out(struct frag_serve *s, const struct frag_serve_options *o)
{
    s->trace = (struct frag_device_trace){
        .slots = FIRST_SLOTS,
        .count = 1,
        .op = &s->row.op,
        .id = &s->row.id,
        .bytes = &s->row.bytes,
        .stream = &s->row.stream,
        .pool = &s->row.pool,
        .time = &s->row.time,
        .stream_count = RUN_STREAMS,
    };
    s->spec = (struct frag_replay){.trace = &s->trace,
                                   .policy = o->policy,
                                   .params = o->params,
                                   .prepared = o->prepared,
                                   .mem = o->mem,
                                   .repeat = 1,
                                   .max_ooms = o->max_ooms};
    s->run = (struct run){.spec = &s->spec,
                          .trace = &s->trace,
                          .policy = frag_replay_policy(&s->spec)};
}

static enum frag_err open_slots(struct frag_serve *s)
{
    s->free_slots = malloc(FIRST_SLOTS * sizeof(*s->free_slots));
    if (!s->free_slots)
        return FRAG_NOMEM;
    for (uint32_t id = FIRST_SLOTS; id-- > 0;)
        return_slot(s, id);
    return FRAG_OK;
}

enum frag_err frag_serve_accepts(const struct frag_policy *p,
                                 struct frag_error *e)
{
    if (p->needs & FRAG_NEEDS_MOVES)
        return frag_fail(e, FRAG_UNSUPPORTED,
                         "%s moves blocks, but a running program holds their "
                         "addresses; select a policy that moves none, such as "
                         "remap",
                         p->name);
    if (p->needs & FRAG_NEEDS_FUTURE)
        return frag_fail(e, FRAG_UNSUPPORTED,
                         "%s knows when each block is freed, but a running "
                         "program does not tell; select a policy that needs no "
                         "future, such as remap",
                         p->name);
    return FRAG_OK;
}

enum frag_err frag_serve_open(const struct frag_serve_options *options,
                              struct frag_serve **out, struct frag_error *e)
{
    struct frag_serve *s = calloc(1, sizeof(*s));
    enum frag_err err;

    if (!s)
        return frag_no_memory(e, "the service of a program");
    lay_out(s, options);
    s->run.error = e;
    err = frag_serve_accepts(s->run.policy, e);
    FRAG_THEN(err, open_slots(s));
    FRAG_THEN(err, run_open(&s->run));
    s->run.error = NULL;
    if (err != FRAG_OK) {
        free(s->free_slots);
        free(s);
        return err;
    }
    meter_on_wait(&s->run.meter, synchronized, s);
    meter_on_change(&s->run.meter, options->changed, options->user);
    *out = s;
    return FRAG_OK;
}

void frag_serve_close(struct frag_serve *s)
{
    if (!s)
        return;
    meter_on_change(&s->run.meter, NULL, NULL);
    (void)run_close(&s->run, FRAG_OK);
    frag_run_free(&s->run.out);
    live_fini(&s->live);
    free(s->free_slots);
    free(s);
}

/* ---- events ---- */

static enum frag_err step_row(struct frag_serve *s, struct serve_row row,
                              struct frag_error *e)
{
    enum frag_err err;

    s->row = row;
    s->run.error = e;
    err = run_next(&s->run);
    s->run.error = NULL;
    return err;
}

/* Returns the slot of a request that failed: the program knows that it has no
 * block, and will not free it. */
static void forget_slot(struct frag_serve *s, uint32_t id)
{
    if (state_of(s->run.tags[id]) == SLOT_REFUSED)
        (void)run_free_odd(&s->run, id); /* fails for pending slots only */
    return_slot(s, id);
}

enum frag_err frag_serve_alloc(struct frag_serve *s, frag_size size,
                               frag_stream stream, frag_time time,
                               struct frag_served *out, struct frag_error *e)
{
    struct serve_row row = {FRAG_ALLOC, 0, size, stream, 0, time};
    const struct run_slot *slot;
    enum frag_err err;

    if (!s->free_count && add_slots(s) != FRAG_OK)
        return frag_no_memory(e, "a table of blocks");
    row.id = s->free_slots[--s->free_count];
    err = step_row(s, row, e);
    if (err == FRAG_OK && state_of(s->run.tags[row.id]) != SLOT_LIVE)
        err = frag_fail(e, FRAG_OOM, "%s: no room for %" PRIu64 " bytes",
                        s->run.policy->name, size);
    slot = &s->run.slots[row.id];
    if (err == FRAG_OK && !live_put(&s->live, slot->block.addr, row.id)) {
        row.op = FRAG_FREE;
        FRAG_TRY(step_row(s, row, e));
        err = frag_no_memory(e, "a table of blocks");
    }
    if (err == FRAG_OK)
        *out = (struct frag_served){slot->block.addr, slot->block.size, row.id};
    else
        forget_slot(s, row.id);
    return err;
}

bool frag_serve_find(const struct frag_serve *s, frag_addr addr,
                     struct frag_served *out)
{
    const struct live_row *found = live_find(&s->live, addr);

    if (found)
        *out = (struct frag_served){addr, s->run.slots[found->slot].block.size,
                                    found->slot};
    return found != NULL;
}

/* Runs the event for the slot of the block at addr. After it, the block is no
 * longer live, so that a second free of it fails; after an error it still is.
 */
static enum frag_err end_block(struct frag_serve *s, enum frag_op op,
                               frag_addr addr, uint32_t *id,
                               struct frag_error *e)
{
    struct live_row *found = live_find(&s->live, addr);

    if (!found)
        return frag_fail(e, FRAG_INVALID, "no live block begins at 0x%" PRIx64,
                         addr);
    *id = found->slot;
    FRAG_TRY(step_row(s, (struct serve_row){.op = (uint8_t)op, .id = *id}, e));
    live_remove(&s->live, found);
    return FRAG_OK;
}

enum frag_err frag_serve_free(struct frag_serve *s, frag_addr addr,
                              struct frag_error *e)
{
    uint32_t id = 0;

    FRAG_TRY(end_block(s, FRAG_FREE, addr, &id, e));
    return_slot(s, id);
    return FRAG_OK;
}

enum frag_err frag_serve_free_later(struct frag_serve *s, frag_addr addr,
                                    uint32_t *ticket, struct frag_error *e)
{
    return end_block(s, FRAG_FREE_REQUESTED, addr, ticket, e);
}

enum frag_err frag_serve_complete(struct frag_serve *s, uint32_t ticket,
                                  struct frag_error *e)
{
    FRAG_TRY(step_row(s, (struct serve_row){.op = FRAG_FREE, .id = ticket}, e));
    return_slot(s, ticket);
    return FRAG_OK;
}

bool frag_serve_has_pending(const struct frag_serve *s)
{
    return s->run.pending.first != NIL;
}

bool frag_serve_has_aliases(const struct frag_serve *s)
{
    return s->run.meter.has_aliases;
}

void frag_serve_bound(struct frag_serve *s, struct frag_bound bound)
{
    meter_set_bound(&s->run.meter, bound);
}

enum frag_err frag_serve_trim(struct frag_serve *s, struct frag_error *e)
{
    return step_row(s, (struct serve_row){.op = FRAG_EMPTY_CACHE}, e);
}

/* ---- the numbers ---- */

enum frag_err frag_serve_each_map(struct frag_serve *s,
                                  enum frag_err (*each)(void *, frag_addr,
                                                        frag_size),
                                  void *user)
{
    const struct ranges *held = &s->run.meter.held;

    for (const struct range *r = ranges_from(held, 0); r;
         r = ranges_from(held, r->at + r->size))
        if (((const struct held_range *)r)->phys)
            FRAG_TRY(each(user, r->at, r->size));
    return FRAG_OK;
}

struct frag_serve_memory frag_serve_memory(const struct frag_serve *s)
{
    const struct tally *t = &s->run.tally;

    return (struct frag_serve_memory){
        .reserved = t->reserved,
        .peak_reserved = s->run.out.summary.peak_reserved,
        .peak_allocated = t->peak_allocated > t->allocated_max
                              ? t->peak_allocated
                              : t->allocated_max,
    };
}

frag_size frag_serve_reserved(const struct frag_serve *s)
{
    return s->run.meter.reserved;
}

enum frag_err frag_serve_sum(struct frag_serve *s, const struct frag_run **out)
{
    s->run.event = s->trace.count = s->run.base;
    *out = &s->run.out;
    return run_end(&s->run, s->run.base, 0, 0);
}

const struct frag_device_trace *frag_serve_device(const struct frag_serve *s)
{
    return &s->trace;
}
