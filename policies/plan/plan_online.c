/* plan_online.c - what recurs each step is served from a plan, the rest online.
 *
 * STAlloc's split without its profiling run: nothing is known but what was
 * asked for so far, and nothing is foretold. Each stream of each pool is served
 * for itself: no memory passes from one to another but through the device.
 *
 *   - At first `rest` serves all. A period is believed once each request of it,
 *     and of at least `sure` requests, asked for as many bytes as the one a
 *     period before.
 *   - Those blocks of a period that were freed within one are laid out as by
 *     `plan`, each live for as long as it was. Where less than nine tenths of
 *     the bytes come back, something grows: that is a stretch of a step, not a
 *     step. It is left alone, and looked at again a period later.
 *   - Where the least of them is live, `rest` returns what it can to the device
 *     and one segment as high as the plan is taken; a step later `rest` returns
 *     what was still in use then.
 *   - From there on a request that asks for what comes next in the step gets
 *     its place. If something lies there that lives longer than it used to,
 *     `rest` serves, as it does whatever does not recur. After a request out of
 *     step the next one is still awaited; if the program went on elsewhere, the
 *     last 16 sizes tell where, if at no other place of the step they are so.
 *   - A plan that serves less than half of a period's requests four times in a
 *     row is dropped, and the next repetition must last twice as long. So is
 *     one when a longer period is believed. The segment is returned with its
 *     last block. If the device has no room for one, `rest` serves until memory
 *     is trimmed.
 *
 * Addresses never move. Planning happens within a request, once a plan, in at
 * most `effort` steps; other requests cost the same however much is remembered,
 * which is at most HISTORY_MOST requests of each stream and pool. The segment
 * of a plan is no part of what `rest` can use, also while the program does
 * something else.
 *
 * Source: Huang et al., "STAlloc: Enhancing Memory Efficiency in Large-Scale
 * Model Training with Spatio-Temporal Planning", EuroSys 2026 (arXiv 2507.16274
 * v2): a plan for what recurs, online allocation for the rest. It profiles in a
 * run of its own, groups requests by their lifetimes before it plans, lends
 * gaps of the plan to requests whose end it knows, and serves the rest by best
 * fit; we do not.
 */
#include <stdlib.h>

#include "policies/mechanism/nodes.h"
#include "policies/mechanism/segments.h"
#include "policies/plan/step.h"

enum { PATIENCE = 4 }; /* periods that a plan may be of little use */

/* A stream of a pool. */
struct online_lane {
    struct online_lane *next;
    frag_stream stream;
    frag_pool pool;
    struct frag_heap rest; /* serves what is not planned */
    struct history history;
    uint64_t sure;     /* requests that a repetition must last */
    uint64_t weigh_at; /* not before this many requests is a period planned */
    struct plan_step *step; /* NULL: all is served by `rest` */
    bool dropped;           /* the step serves no more, but is lived in */
    bool refused;           /* the device had no room for its segment */
    bool is_new;            /* the segment is, by less than a step */
    frag_addr base;
    frag_size held;               /* bytes of the segment; 0: none */
    size_t live;                  /* blocks in it */
    uint32_t asked, served, idle; /* requests of this period; periods */
};

/* A live block. */
struct owner {
    struct online_lane *lane;
    uint64_t number; /* of its request */
    uint32_t slot;   /* NO_SLOT: it is `rest`'s */
    void *node;      /* there, else NULL */
};

struct online {
    uint64_t effort, sure;     /* the parameters */
    uint32_t rest;             /* likewise */
    struct online_lane *lanes; /* the most recently used first */
    struct nodes owners;
};

static enum frag_err init(struct frag_heap *heap)
{
    ((struct online *)heap->state)->owners.size = sizeof(struct owner);
    return FRAG_OK;
}

/* ------------------------------------------------------- segments --- */

static void give_back(struct frag_heap *heap, struct online_lane *lane)
{
    if (lane->held && !lane->live &&
        heap->mem->ops->segment_free(heap->mem, lane->base, lane->held) ==
            FRAG_OK)
        lane->held = 0;
}

static void trim_rest(struct online_lane *lane)
{
    lane->rest.policy->trim(&lane->rest);
}

/* Returns all memory in which nothing lives. */
static void trim(struct frag_heap *heap)
{
    const struct online *s = heap->state;

    for (struct online_lane *lane = s->lanes; lane; lane = lane->next) {
        trim_rest(lane);
        give_back(heap, lane);
        lane->refused = false;
    }
}

/* The segments of other plans stay, even if nothing lives there just now. */
static enum frag_err take(struct frag_heap *heap, struct online_lane *lane)
{
    const struct online *s = heap->state;
    enum frag_err err;

    for (struct online_lane *l = s->lanes; l; l = l->next)
        trim_rest(l);
    err = heap->mem->ops->segment_alloc(heap->mem, lane->step->height,
                                        &lane->base);
    if (err == FRAG_OK)
        lane->held = lane->step->height;
    lane->is_new = err == FRAG_OK;
    lane->refused = err == FRAG_OOM;
    return lane->refused ? FRAG_OK : err;
}

/* At the start of the circle: takes the segment; a step later returns what was
 * lived in until then outside of it. */
static enum frag_err start_step(struct frag_heap *heap,
                                struct online_lane *lane)
{
    if (!lane->held)
        return lane->refused ? FRAG_OK : take(heap, lane);
    if (lane->is_new)
        trim_rest(lane);
    lane->is_new = false;
    return FRAG_OK;
}

/* ---------------------------------------------------------- steps --- */

/* Ends a step that was dropped, once it is empty and its segment returned. */
static void end_step(struct frag_heap *heap, struct online_lane *lane)
{
    give_back(heap, lane);
    if (lane->held || lane->live)
        return;
    step_close(lane->step);
    lane->step = NULL;
    lane->dropped = lane->refused = false;
}

static void drop(struct frag_heap *heap, struct online_lane *lane)
{
    lane->dropped = true;
    end_step(heap, lane);
}

/* Plans a period that is believed, if it is longer than the one in use. */
static enum frag_err learn(struct frag_heap *heap, struct online_lane *lane)
{
    const struct online *s = heap->state;
    const uint32_t period = history_period(&lane->history, lane->sure);

    if (lane->dropped)
        end_step(heap, lane);
    if (!period || lane->history.count < lane->weigh_at)
        return FRAG_OK;
    if (lane->step && !lane->dropped && period > lane->step->period)
        drop(heap, lane);
    if (lane->step)
        return FRAG_OK;
    FRAG_TRY(step_make(&lane->history, period, s->effort, &lane->step));
    lane->weigh_at = lane->history.count + period;
    lane->asked = lane->served = lane->idle = 0;
    return FRAG_OK;
}

/* Counts a request, and drops a plan that has been of little use for long. */
static void review(struct frag_heap *heap, struct online_lane *lane,
                   bool served)
{
    lane->served += served;
    if (++lane->asked < lane->step->period)
        return;
    lane->idle = lane->served < lane->asked / 2 ? lane->idle + 1 : 0;
    lane->asked = lane->served = 0;
    if (lane->idle < PATIENCE)
        return;
    lane->sure = lane->sure < HISTORY_MOST ? 2 * lane->sure : lane->sure;
    drop(heap, lane);
}

/* ---------------------------------------------------------- blocks --- */

static enum frag_err open_lane(struct frag_heap *heap,
                               const struct frag_request *req,
                               struct online_lane **out)
{
    static const struct frag_policy *const kinds[] = {
        &frag_policy_remap, &frag_policy_expandable, &frag_policy_best_fit};
    const struct online *s = heap->state;
    struct online_lane *lane = calloc(1, sizeof(*lane));
    enum frag_err err;

    if (!lane)
        return FRAG_NOMEM;
    err = frag_heap_open(&lane->rest, kinds[s->rest], heap->mem, NULL, NULL);
    if (err != FRAG_OK) {
        free(lane);
        return err;
    }
    lane->stream = req->stream;
    lane->pool = req->pool;
    lane->sure = s->sure;
    *out = lane;
    return FRAG_OK;
}

/* The lane of a stream and pool, put at the front. */
static enum frag_err find_lane(struct frag_heap *heap,
                               const struct frag_request *req,
                               struct online_lane **out)
{
    struct online *s = heap->state;
    struct online_lane **link = &s->lanes, *lane;

    while (*link &&
           ((*link)->stream != req->stream || (*link)->pool != req->pool))
        link = &(*link)->next;
    lane = *link;
    if (lane)
        *link = lane->next;
    else
        FRAG_TRY(open_lane(heap, req, &lane));
    lane->next = s->lanes;
    s->lanes = lane;
    *out = lane;
    return FRAG_OK;
}

/* The slot that request `number` may have, or NO_SLOT. */
static enum frag_err find_slot(struct frag_heap *heap, struct online_lane *lane,
                               uint64_t number, uint32_t *slot)
{
    const struct asked *asked = history_at(&lane->history, number);

    *slot = NO_SLOT;
    if (!lane->step || lane->dropped)
        return FRAG_OK;
    *slot = step_follow(lane->step, asked->size, asked->context);
    if (*slot == 0)
        FRAG_TRY(start_step(heap, lane));
    if (*slot != NO_SLOT && (!lane->held || !step_occupy(lane->step, *slot)))
        *slot = NO_SLOT;
    return FRAG_OK;
}

/* What `rest` has, or what it has once all lanes gave what they can spare. */
static enum frag_err ask_rest(struct frag_heap *heap, struct online_lane *lane,
                              const struct frag_request *req,
                              struct frag_block *out)
{
    const struct frag_policy *rest = lane->rest.policy;
    const enum frag_err err = rest->alloc(&lane->rest, req, out);

    if (err != FRAG_OOM)
        return err;
    trim(heap);
    return rest->alloc(&lane->rest, req, out);
}

static enum frag_err serve(struct frag_heap *heap, struct online_lane *lane,
                           const struct frag_request *req, uint32_t slot,
                           struct frag_block *out)
{
    const struct plan_slot *place;

    if (slot == NO_SLOT)
        return ask_rest(heap, lane, req, out);
    place = &lane->step->slots[slot];
    *out = (struct frag_block){.addr = lane->base + place->offset,
                               .size = whole_quanta(place->size)};
    lane->live++;
    return FRAG_OK;
}

static enum frag_err online_alloc(struct frag_heap *heap,
                                  const struct frag_request *req,
                                  struct frag_block *out)
{
    struct online *s = heap->state;
    struct frag_block block;
    struct owner *owner;
    struct online_lane *lane;
    uint64_t number;
    uint32_t slot;

    FRAG_TRY(find_lane(heap, req, &lane));
    FRAG_TRY(nodes_reserve(&s->owners, 1));
    FRAG_TRY(history_reserve(&lane->history));
    FRAG_TRY(learn(heap, lane));
    number = history_note(&lane->history, req->size);
    FRAG_TRY(find_slot(heap, lane, number, &slot));
    FRAG_TRY(serve(heap, lane, req, slot, &block));

    owner = nodes_take(&s->owners);
    *owner = (struct owner){lane, number, slot, block.node};
    *out = (struct frag_block){block.addr, block.size, owner};
    if (lane->step && !lane->dropped)
        review(heap, lane, slot != NO_SLOT);
    return FRAG_OK;
}

static void online_free(struct frag_heap *heap, const struct frag_block *block)
{
    struct online *s = heap->state;
    const struct owner owner = *(const struct owner *)block->node;
    const struct frag_block inner = {block->addr, block->size, owner.node};
    struct online_lane *lane = owner.lane;

    nodes_put(&s->owners, block->node);
    history_freed(&lane->history, owner.number);
    if (owner.slot == NO_SLOT) {
        lane->rest.policy->free(&lane->rest, &inner);
        return;
    }
    step_vacate(lane->step, owner.slot);
    lane->live--;
    if (lane->dropped)
        end_step(heap, lane);
}

static void free_requested(struct frag_heap *heap,
                           const struct frag_block *block)
{
    const struct owner *owner = block->node;
    const struct frag_block inner = {block->addr, block->size, owner->node};
    struct frag_heap *rest = &owner->lane->rest;

    (void)heap;
    if (owner->slot == NO_SLOT && rest->policy->free_requested)
        rest->policy->free_requested(rest, &inner);
}

static void fini(struct frag_heap *heap)
{
    struct online *s = heap->state;

    while (s->lanes) {
        struct online_lane *lane = s->lanes;

        s->lanes = lane->next;
        if (lane->held)
            heap->mem->ops->segment_free(heap->mem, lane->base, lane->held);
        step_close(lane->step);
        history_close(&lane->history);
        frag_heap_close(&lane->rest);
        free(lane);
    }
    nodes_release(&s->owners);
}

static const struct frag_param params[] = {
    {.name = "effort",
     .kind = FRAG_PARAM_NUMBER,
     .offset = offsetof(struct online, effort),
     .init = "100000",
     .min = 0,
     .max = 0x1p50,
     .help = "steps to look for a lower plan, each time one is made"},
    {.name = "sure",
     .kind = FRAG_PARAM_NUMBER,
     .offset = offsetof(struct online, sure),
     .init = "1000",
     .min = 1,
     .max = HISTORY_MOST,
     .help = "requests that a repetition must last before it is planned"},
    {.name = "rest",
     .kind = FRAG_PARAM_CHOICE,
     .offset = offsetof(struct online, rest),
     .init = "remap",
     .choices = "remap|expandable|best_fit",
     .help = "the policy that serves what is not planned"},
    {.name = NULL},
};

const struct frag_policy frag_policy_plan_online = {
    .name = "plan_online",
    .summary = "what recurs each step from a plan of it, the rest online",
    .source = "Huang et al., STAlloc, EuroSys 2026, arXiv 2507.16274",
    .needs = FRAG_NEEDS_VMM,
    .state_size = sizeof(struct online),
    .params = params,
    .init = init,
    .fini = fini,
    .alloc = online_alloc,
    .free = online_free,
    .free_requested = free_requested,
    .trim = trim,
};
