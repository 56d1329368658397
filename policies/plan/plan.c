/* plan.c - the whole trace is laid out before its first request.
 *
 * Offline: every block's place is decided with all births and deaths known, in
 * one segment that is as high as the plan. Which is how far below an allocator
 * that cannot know them a trace could go, and a bound for those that can.
 *
 * How a plan is made, the first that meets the lower bound ending it:
 *   - three greedy passes, the largest blocks first, those with the most size
 *     times life, and those with the longest life; each block at the lowest
 *     place where it meets none laid before it;
 *   - few blocks: a depth-first search for a plan below a ceiling, the bound
 *     first, then by halves (plan_search.c);
 *   - many: further passes, in which blocks that ended above the bound move
 *     forward in the order.
 * Equal weights keep the order of the requests. All of it is counted in steps,
 * not seconds, so that a plan never depends on the machine.
 *
 * Who asks for what was not foretold, and anyone where no future is known or
 * the device has no room for the segment, is served by best_fit. A device with
 * less room than the plan needs gives all its whole granules: what lies above
 * them is left to best_fit too.
 *
 * Sources: greedy by size and by breadth: Pisarchyk and Lee, "Efficient Memory
 * Management for Deep Neural Net Inference", 2020 (arXiv 2001.03288); what the
 * search may leave out (canonical solutions, dominance, sections): Moffitt,
 * "MiniMalloc: A Lightweight Memory Allocator for Hardware-Accelerated Machine
 * Learning", ASPLOS 2023; orders that learn: Joslin and Clements, "Squeaky
 * Wheel Optimization", JAIR 10, 1999.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "policies/mechanism/segments.h"
#include "policies/plan/parts.h"

struct planner {
    uint64_t effort;
    frag_size segment; /* of best_fit */
    struct made_plan plan;
    size_t next; /* request that comes next */
    frag_addr base;
    frag_size held; /* bytes of the plan's segment; 0: none */
    size_t live;    /* blocks in it */
    bool refused;   /* the device had no room for it */
    struct frag_heap rest;
};

static enum frag_err init(struct frag_heap *heap)
{
    struct planner *s = heap->state;
    char params[64];

    snprintf(params, sizeof(params), "segment=%" PRIu64, s->segment);
    FRAG_TRY(frag_heap_open(&s->rest, &frag_policy_best_fit, heap->mem, params,
                            NULL));
    if (heap->future) {
        enum frag_err err = plan_make(heap->future, s->effort, &s->plan);

        if (err != FRAG_OK)
            frag_heap_close(&s->rest);
        return err;
    }
    return FRAG_OK;
}

static void give_back(struct frag_heap *heap)
{
    struct planner *s = heap->state;

    if (s->held &&
        heap->mem->ops->segment_free(heap->mem, s->base, s->held) == FRAG_OK)
        s->held = 0;
}

static void fini(struct frag_heap *heap)
{
    struct planner *s = heap->state;

    give_back(heap);
    frag_heap_close(&s->rest);
    free(s->plan.offsets);
}

/* Takes the segment, or as many whole granules as the device can have. */
static enum frag_err take(struct frag_heap *heap)
{
    struct planner *s = heap->state;
    struct frag_backend *mem = heap->mem;
    const frag_size whole = s->plan.height * FRAG_QUANTUM;
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

/* Whether this is the request that was foretold to come now. */
static bool is_foretold(const struct frag_heap *heap,
                        const struct frag_request *req)
{
    const struct planner *s = heap->state;
    const struct frag_future *f = heap->future;

    return f && f->count && f->requests[s->next].size == req->size &&
           f->requests[s->next].frees_at == req->frees_at;
}

/* Serves the request from the plan; false if it does not lie in what is held.
 */
static bool serve(struct planner *s, const struct frag_request *req,
                  struct frag_block *out)
{
    const frag_size offset = s->plan.offsets[s->next] * FRAG_QUANTUM;
    const frag_size size = whole_quanta(req->size);

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

    if (is_foretold(heap, req)) {
        if (!s->held && !s->refused)
            FRAG_TRY(take(heap));
        served = serve(s, req, out);
    }
    if (!served)
        err = s->rest.policy->alloc(&s->rest, req, out);
    if (heap->future && (err == FRAG_OK || err == FRAG_OOM))
        s->next = s->next + 1 < heap->future->count ? s->next + 1 : 0;
    return err;
}

/* Blocks of best_fit have a node, those of the plan need none. */
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
        give_back(heap);
    s->refused = false;
    s->rest.policy->trim(&s->rest);
}

static const struct frag_param params[] = {
    {.name = "effort",
     .kind = FRAG_PARAM_NUMBER,
     .offset = offsetof(struct planner, effort),
     .init = "16000000",
     .min = 0,
     .max = 0x1p50,
     .help = "steps to look for a lower plan: blocks laid or sections seen"},
    SEGMENT_PARAM(struct planner, segment),
    {.name = NULL},
};

const struct frag_policy frag_policy_plan = {
    .name = "plan",
    .summary = "the whole trace laid out before its first request",
    .source = "Pisarchyk and Lee, arXiv 2001.03288; Moffitt, MiniMalloc, "
              "ASPLOS 2023; Joslin and Clements, JAIR 10, 1999",
    .needs = FRAG_NEEDS_FUTURE,
    .state_size = sizeof(struct planner),
    .params = params,
    .init = init,
    .fini = fini,
    .alloc = plan_alloc,
    .free = plan_free,
    .trim = trim,
};
