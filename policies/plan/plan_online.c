/* plan_online.c - the plan_online policy: plans the requests that recur in each
 * training step, and serves all others online.
 *
 * It divides requests as STAlloc does, but without a profiling run: it knows
 * only the requests made so far. Each stream of each pool is a lane, which is
 * planned separately. The parameter `rest` names the policy that serves the
 * requests of all lanes that are not planned.
 *
 *   - At first `rest` serves all requests. A period is accepted when a
 *     repetition lasts for at least the period and `sure` requests, and each of
 *     its requests has the size of the one a period before.
 *   - The blocks of the period that were freed within one period get planned
 *     addresses, as policy `plan` makes them; each is live for as long as it
 *     was in the history. If they are less than nine tenths of the bytes,
 *     memory use grows within the period, so it is not a step of the program.
 *     Then nothing is planned, and the history is examined again one period
 *     later.
 *   - At the point of the step where the fewest of these bytes are live, `rest`
 *     returns what it can to the device, and the policy allocates one segment
 *     as high as the plan. One step later `rest` again returns what it can, so
 *     that memory which was still in use at that time is also returned.
 *   - From then on a request with the size that the plan expects next gets its
 *     planned address. If a block that lives longer than before still lies
 *     there, `rest` serves the request; it also serves all requests that do not
 *     recur. After a request that is not the expected one, the same request is
 *     still expected. If the program continues at another place of the step,
 *     the last CONTEXT (16) sizes identify that place, provided that no other
 *     place has them.
 *   - A plan that serves less than half of a period's requests in PATIENCE
 *     successive periods is dropped, and the next repetition must last twice as
 *     long. A plan is also dropped when a longer period is accepted. The
 *     segment is returned when its last block is freed. If the device has no
 *     room for a segment, `rest` serves all requests until the next trim.
 *
 * Blocks never move. A plan is made within one request and uses at most
 * `effort` steps; the cost of all other requests does not depend on the length
 * of the history, which is at most HISTORY_MOST requests for each lane. `rest`
 * cannot use the segment of a plan, even while the program does something else.
 *
 * Source: Huang et al., "STAlloc: Enhancing Memory Efficiency in Large-Scale
 * Model Training with Spatio-Temporal Planning", EuroSys 2026 (arXiv 2507.16274
 * v2): a plan for recurring requests, online allocation for the others. STAlloc
 * profiles in a separate run, groups requests by lifetime before it plans,
 * serves requests with a known end from gaps of the plan, and serves the others
 * by best fit; this policy does none of that by default.
 */
#include <stdlib.h>

#include "policies/mechanism/lanes.h"
#include "policies/mechanism/nodes.h"
#include "policies/mechanism/segments.h"
#include "policies/plan/step.h"
#include "policies/policies.h"

enum { PATIENCE = 4 }; /* successive periods of little use that drop a plan */

/* One stream of one pool. */
struct online_lane {
    struct lane lane;
    struct history history;
    uint64_t sure;    /* requests that a repetition must last */
    uint64_t plan_at; /* earliest request count at which a period is planned */
    struct plan_step *step; /* NULL: `rest` serves all requests */
    bool dropped;   /* the step serves no more requests, but has live blocks */
    bool refused;   /* the device had no room for its segment */
    bool is_new;    /* the segment is younger than one step */
    frag_addr base; /* of the segment */
    frag_size held; /* bytes of the segment; 0: none */
    size_t live;    /* live blocks in the segment */
    uint32_t counted, served; /* requests of this period: all, planned */
    uint32_t idle; /* successive periods in which the plan was of little use */
};

/* The record of a live block. */
struct owner {
    struct online_lane *lane;
    uint64_t number; /* of its request in the history */
    uint32_t slot;   /* NO_SLOT: `rest` served it */
    void *node;      /* the node of `rest`; NULL if the block is planned */
};

struct online {
    uint64_t effort, sure; /* parameters */
    uint32_t kind;         /* parameter: index of the choice of `rest` */
    struct frag_heap rest; /* serves the requests that are not planned */
    struct lanes lanes;    /* the most recently used first */
    struct nodes owners;
};

static enum frag_err init(struct frag_heap *heap)
{
    static const struct frag_policy *const kinds[] = {
        &frag_policy_remap, &frag_policy_expandable, &frag_policy_best_fit};
    struct online *s = heap->state;

    s->owners.size = sizeof(struct owner);
    return frag_heap_open(&s->rest, kinds[s->kind], heap->mem, NULL, NULL);
}

/* ------------------------------------------------------- segments --- */

/* Returns the lane's segment if no block is live in it. */
static void return_segment(struct frag_heap *heap, struct online_lane *lane)
{
    if (lane->held && !lane->live &&
        heap->mem->ops->segment_free(heap->mem, lane->base, lane->held) ==
            FRAG_OK)
        lane->held = 0;
}

/* `rest` returns what it can to the device. */
static void trim_rest(struct online *s)
{
    s->rest.policy->trim(&s->rest);
}

/* Returns all memory without live blocks to the device. */
static void trim(struct frag_heap *heap)
{
    struct online *s = heap->state;

    trim_rest(s);
    for (struct lane *l = s->lanes.first; l; l = l->next) {
        struct online_lane *lane = (struct online_lane *)l;

        return_segment(heap, lane);
        lane->refused = false;
    }
}

/* Allocates the lane's segment, after `rest` has returned what it can. The
 * segments of other plans stay, even if they have no live block at present. */
static enum frag_err acquire_segment(struct frag_heap *heap,
                                     struct online_lane *lane)
{
    enum frag_err err;

    trim_rest(heap->state);
    err = heap->mem->ops->segment_alloc(heap->mem, lane->step->height,
                                        &lane->base);
    if (err == FRAG_OK)
        lane->held = lane->step->height;
    lane->is_new = err == FRAG_OK;
    lane->refused = err == FRAG_OOM;
    return lane->refused ? FRAG_OK : err;
}

/* Called when the step starts again. Allocates the segment; one step later lets
 * `rest` return what was still in use when the segment was allocated. */
static enum frag_err start_step(struct frag_heap *heap,
                                struct online_lane *lane)
{
    if (!lane->held)
        return lane->refused ? FRAG_OK : acquire_segment(heap, lane);
    if (lane->is_new)
        trim_rest(heap->state);
    lane->is_new = false;
    return FRAG_OK;
}

/* ---------------------------------------------------------- steps --- */

/* Ends a dropped step, if its segment has no live block and the device accepts
 * the segment back. */
static void end_step(struct frag_heap *heap, struct online_lane *lane)
{
    return_segment(heap, lane);
    if (lane->held || lane->live)
        return;
    step_close(lane->step);
    lane->step = NULL;
    lane->dropped = lane->refused = false;
}

/* Stops the use of a step, and ends the step if possible. */
static void drop(struct frag_heap *heap, struct online_lane *lane)
{
    lane->dropped = true;
    end_step(heap, lane);
}

/* Plans the period that the history shows, if there is no plan, or if the
 * period is longer than that of the plan in use. */
static enum frag_err learn(struct frag_heap *heap, struct online_lane *lane)
{
    const struct online *s = heap->state;
    const uint32_t period = history_period(&lane->history, lane->sure);

    if (lane->dropped)
        end_step(heap, lane);
    if (!period || lane->history.count < lane->plan_at)
        return FRAG_OK;
    if (lane->step && !lane->dropped && period > lane->step->period)
        drop(heap, lane);
    if (lane->step)
        return FRAG_OK;
    FRAG_TRY(step_make(&lane->history, period, s->effort, &lane->step));
    lane->plan_at = lane->history.count + period;
    lane->counted = lane->served = lane->idle = 0;
    return FRAG_OK;
}

/* Counts a request, and drops the plan after PATIENCE periods of little use. */
static void review(struct frag_heap *heap, struct online_lane *lane,
                   bool served)
{
    lane->served += served;
    if (++lane->counted < lane->step->period)
        return;
    lane->idle = lane->served < lane->counted / 2 ? lane->idle + 1 : 0;
    lane->counted = lane->served = 0;
    if (lane->idle < PATIENCE)
        return;
    lane->sure = lane->sure < HISTORY_MOST ? 2 * lane->sure : lane->sure;
    drop(heap, lane);
}

/* ---------------------------------------------------------- blocks --- */

/* Finds the lane of a stream and pool or opens it, and moves it to the front.
 */
static enum frag_err find_lane(struct frag_heap *heap,
                               const struct frag_request *req,
                               struct online_lane **out)
{
    struct online *s = heap->state;
    struct online_lane *lane =
        lanes_get(&s->lanes, req->pool, req->stream, sizeof(*lane));

    if (!lane)
        return FRAG_NOMEM;
    if (!lane->sure)
        lane->sure = s->sure;
    lanes_touch(&s->lanes, &lane->lane);
    *out = lane;
    return FRAG_OK;
}

/* Finds the slot whose address the request gets and occupies it; *slot is
 * NO_SLOT if `rest` must serve the request. */
static enum frag_err find_slot(struct frag_heap *heap, struct online_lane *lane,
                               uint64_t number, uint32_t *slot)
{
    const struct past_request *past = history_at(&lane->history, number);

    *slot = NO_SLOT;
    if (!lane->step || lane->dropped)
        return FRAG_OK;
    *slot = step_follow(lane->step, past->size, past->context);
    if (*slot == 0)
        FRAG_TRY(start_step(heap, lane));
    if (*slot != NO_SLOT && (!lane->held || !step_occupy(lane->step, *slot)))
        *slot = NO_SLOT;
    return FRAG_OK;
}

/* Allocates from `rest`. After an OOM all lanes return what they can to the
 * device, and the request is made once more. */
static enum frag_err alloc_from_rest(struct frag_heap *heap,
                                     const struct frag_request *req,
                                     struct frag_block *out)
{
    struct online *s = heap->state;
    const enum frag_err err = s->rest.policy->alloc(&s->rest, req, out);

    if (err != FRAG_OOM)
        return err;
    trim(heap);
    return s->rest.policy->alloc(&s->rest, req, out);
}

static enum frag_err serve(struct frag_heap *heap, struct online_lane *lane,
                           const struct frag_request *req, uint32_t slot,
                           struct frag_block *out)
{
    const struct plan_slot *place;

    if (slot == NO_SLOT)
        return alloc_from_rest(heap, req, out);
    place = &lane->step->slots[slot];
    *out =
        (struct frag_block){.addr = lane->base + place->offset,
                            .size = frag_round_up(place->size, FRAG_QUANTUM)};
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
        s->rest.policy->free(&s->rest, &inner);
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
    struct frag_heap *rest = &((struct online *)heap->state)->rest;

    if (owner->slot == NO_SLOT && rest->policy->free_requested)
        rest->policy->free_requested(rest, &inner);
}

static void fini(struct frag_heap *heap)
{
    struct online *s = heap->state;

    for (struct lane *l = s->lanes.first; l; l = l->next) {
        struct online_lane *lane = (struct online_lane *)l;

        if (lane->held)
            heap->mem->ops->segment_free(heap->mem, lane->base, lane->held);
        step_close(lane->step);
        history_close(&lane->history);
    }
    frag_heap_close(&s->rest);
    lanes_fini(&s->lanes);
    nodes_release(&s->owners);
}

static const struct frag_param params[] = {
    FRAG_RANGE_PARAM(NUMBER, "effort", struct online, effort, "100000", 0,
                     0x1p50,
                     "steps spent on a lower plan, each time a plan is made"),
    FRAG_RANGE_PARAM(
        NUMBER, "sure", struct online, sure, "1000", 1, HISTORY_MOST,
        "requests that a repetition must last before it is planned"),
    FRAG_CHOICE_PARAM("rest", struct online, kind, "remap",
                      "remap|expandable|best_fit",
                      "the policy that serves requests that are not planned"),
    {.name = NULL},
};

const struct frag_policy frag_policy_plan_online = {
    .name = "plan_online",
    .summary = "requests that recur in each step are planned, others are "
               "served online",
    .source = "Huang et al., STAlloc, EuroSys 2026, arXiv 2507.16274",
    .needs = FRAG_NEEDS_VMM,
    .quantum = FRAG_QUANTUM,
    .state_size = sizeof(struct online),
    .params = params,
    .init = init,
    .fini = fini,
    .alloc = online_alloc,
    .free = online_free,
    .free_requested = free_requested,
    .trim = trim,
    .unchecked =
        "none was written; random requests and the ledger judge its answers",
};
