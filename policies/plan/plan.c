/* plan.c - the plan policy: decides the address of every block of the trace
 * before the first request.
 *
 * This policy is offline. It knows all allocations and frees in advance and
 * places all blocks in one segment, which is as high as the plan. The result
 * shows how much less memory the trace needs if the future is known, compared
 * with an allocator that does not know it, and it bounds other offline
 * allocators.
 *
 * A plan is made in these stages; a plan of the lower bound's height (the most
 * bytes live at one time) ends the work:
 *   - Three greedy passes place the blocks in three orders: largest size first,
 *     largest product of size and lifetime first, longest lifetime first. Each
 *     block gets the lowest offset where it overlaps no block placed before.
 *   - If there are few blocks, a depth-first search looks for a plan below a
 *     given height. The height is the bound first, later it is found by
 *     bisection (plan_search.c).
 *   - If there are many, more greedy passes follow. In half of them the blocks
 *     of critical sections come first, so that these sections have no gap: the
 *     section with the largest load, and those where earlier plans were too
 *     high (critical.c). In the other half, blocks that ended above the bound
 *     move forward in the order.
 * Blocks of equal weight keep the order of their requests. The effort is
 * counted in steps, not in seconds, so a plan never depends on the machine, and
 * it does not depend on the capacity of the device. The default takes at most
 * two seconds on recordings of up to 300,000 events, and reaches the bound of
 * most of them; eight times as much lowers few of the others.
 *
 * Policy best_fit serves all other requests: those that differ from the future,
 * all of them if no future is known, and all of them if the device has no room
 * for the segment. If the device has less room than the plan needs, the segment
 * is all its whole granules, and best_fit also serves the blocks above.
 *
 * Sources: greedy passes by size and by breadth: Pisarchyk and Lee, "Efficient
 * Memory Management for Deep Neural Net Inference", 2020 (arXiv 2001.03288);
 * parts that the search may skip (canonical solutions, dominance, sections):
 * Moffitt, "MiniMalloc: A Lightweight Memory Allocator for Hardware-Accelerated
 * Machine Learning", ASPLOS 2023; orders that learn: Joslin and Clements,
 * "Squeaky Wheel Optimization", JAIR 10, 1999; critical sections are an order
 * of that kind, learned for sections instead of blocks.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "policies/mechanism/segments.h"
#include "policies/plan/plan_parts.h"
#include "policies/policies.h"

struct planner {
    uint64_t effort;
    frag_size segment; /* the parameter `segment` of best_fit, in bytes */
    const struct made_plan *plan; /* NULL without a future */
    struct made_plan *own;        /* the plan if no memo keeps it, else NULL */
    size_t next;                  /* index of the next request in the future */
    frag_addr base;               /* of the plan's segment */
    frag_size held;        /* bytes of the plan's segment; 0: not allocated */
    size_t live;           /* live blocks in that segment */
    bool refused;          /* the device had no room for that segment */
    struct frag_heap rest; /* best_fit, for all other requests */
};

static void release_plan(void *made)
{
    struct made_plan *plan = made;

    if (plan)
        free(plan->offsets);
    free(plan);
}

/* Takes the plan from the future's memo, or makes it. */
static enum frag_err open_plan(struct planner *s, const struct frag_future *f)
{
    struct made_plan *made;
    enum frag_err err;

    if (f->memo && f->memo->made) {
        s->plan = f->memo->made;
        return FRAG_OK;
    }
    made = calloc(1, sizeof(*made));
    err = made ? plan_make(f, s->effort, PLAN_THOROUGHLY, made) : FRAG_NOMEM;
    if (err != FRAG_OK) {
        release_plan(made);
        return err;
    }
    s->plan = made;
    if (f->memo)
        *f->memo = (struct frag_memo){made, release_plan};
    else
        s->own = made;
    return FRAG_OK;
}

static enum frag_err init(struct frag_heap *heap)
{
    struct planner *s = heap->state;
    char params[64];

    snprintf(params, sizeof(params), "segment=%" PRIu64, s->segment);
    FRAG_TRY(frag_heap_open(&s->rest, &frag_policy_best_fit, heap->mem, params,
                            NULL));
    if (heap->future) {
        enum frag_err err = open_plan(s, heap->future);

        if (err != FRAG_OK)
            frag_heap_close(&s->rest);
        return err;
    }
    return FRAG_OK;
}

static void return_segment(struct frag_heap *heap)
{
    struct planner *s = heap->state;

    if (s->held &&
        heap->mem->ops->segment_free(heap->mem, s->base, s->held) == FRAG_OK)
        s->held = 0;
}

static void fini(struct frag_heap *heap)
{
    struct planner *s = heap->state;

    return_segment(heap);
    frag_heap_close(&s->rest);
    release_plan(s->own);
}

/* Allocates the plan's segment; if the device has no room for it, all whole
 * granules of the device. OK also if the device refuses both. */
static enum frag_err acquire_segment(struct frag_heap *heap)
{
    struct planner *s = heap->state;
    struct frag_backend *mem = heap->mem;
    const frag_size whole = s->plan->height * FRAG_QUANTUM;
    const frag_size capacity = frag_backend_capacity(mem);
    const frag_size most = capacity / mem->granularity * mem->granularity;
    frag_size size = whole;
    enum frag_err err = FRAG_OOM;

    if (whole <= capacity)
        err = mem->ops->segment_alloc(mem, size, &s->base);
    if (err == FRAG_OOM && most && most < whole) {
        size = most;
        err = mem->ops->segment_alloc(mem, size, &s->base);
    }
    if (err == FRAG_OK)
        s->held = size;
    s->refused = err == FRAG_OOM;
    return s->refused ? FRAG_OK : err;
}

/* Whether this request is the next one of the future. */
static bool is_expected(const struct frag_heap *heap,
                        const struct frag_request *req)
{
    const struct planner *s = heap->state;
    const struct frag_future *f = heap->future;

    return f && f->count && f->requests[s->next].size == req->size &&
           f->requests[s->next].frees_at == req->frees_at;
}

/* Serves the request from the plan; false if its block lies above the segment.
 */
static bool serve(struct planner *s, const struct frag_request *req,
                  struct frag_block *out)
{
    const frag_size offset = s->plan->offsets[s->next] * FRAG_QUANTUM;
    const frag_size size = frag_round_up(req->size, FRAG_QUANTUM);

    if (offset + size > s->held)
        return false;
    *out = (struct frag_block){.addr = s->base + offset, .size = size};
    s->live++;
    return true;
}

static enum frag_err plan_alloc(struct frag_heap *heap,
                                const struct frag_request *req,
                                struct frag_block *out)
{
    struct planner *s = heap->state;
    bool served = false;
    enum frag_err err = FRAG_OK;

    if (is_expected(heap, req)) {
        if (!s->held && !s->refused)
            FRAG_TRY(acquire_segment(heap));
        served = serve(s, req, out);
    }
    if (!served)
        err = s->rest.policy->alloc(&s->rest, req, out);
    if (heap->future && (err == FRAG_OK || err == FRAG_OOM))
        s->next = s->next + 1 < heap->future->count ? s->next + 1 : 0;
    return err;
}

/* Blocks of best_fit have a node; blocks of the plan have none. */
static void plan_free(struct frag_heap *heap, const struct frag_block *block)
{
    struct planner *s = heap->state;

    if (block->node)
        s->rest.policy->free(&s->rest, block);
    else
        s->live--;
}

static void trim(struct frag_heap *heap)
{
    struct planner *s = heap->state;

    if (!s->live)
        return_segment(heap);
    s->refused = false;
    s->rest.policy->trim(&s->rest);
}

static const struct frag_param params[] = {
    FRAG_RANGE_PARAM(
        NUMBER, "effort", struct planner, effort, "2000000", 0, 0x1p50,
        "steps spent on a lower plan; a step is a block placed or a section of "
        "the trace searched; a million of them takes about half a second"),
    SEGMENT_PARAM(struct planner, segment),
    {.name = NULL},
};

const struct frag_policy frag_policy_plan = {
    .name = "plan",
    .summary = "the address of every block is planned before the first "
               "request",
    .source = "Pisarchyk and Lee, arXiv 2001.03288; Moffitt, MiniMalloc, "
              "ASPLOS 2023; Joslin and Clements, JAIR 10, 1999",
    .needs = FRAG_NEEDS_FUTURE,
    .quantum = FRAG_QUANTUM,
    .state_size = sizeof(struct planner),
    .params = params,
    .init = init,
    .fini = fini,
    .alloc = plan_alloc,
    .free = plan_free,
    .trim = trim,
    .unchecked =
        "none was written; random requests and the ledger judge its answers",
};
