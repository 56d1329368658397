/* pool_facts.c - what a recording shows of its private pools, for the policy:
 * which belong to captures of CUDA graphs, and which do not split their blocks.
 *
 * A recording does not state the options of a pool. A pool splits if one of its
 * blocks does not begin at a multiple of 2 MiB, because every segment and every
 * page does. It does not split if two requests in a row each took new memory
 * although the rest of the first one's would have served the second, or if a
 * live block of the final snapshot has more room than a split leaves. Source:
 * PyTorch 2.11 to 2.15, run with pools of each kind.
 */
#include <stdlib.h>

#include "sim/replay/replay_parts.h"
#include "traces/torch_sizes.h"

/* The latest request of a pool that took new memory. */
struct newest {
    uint64_t event; /* 0: none yet */
    frag_stream stream;
    frag_size rest; /* bytes that a split would have left, at least */
    bool is_small, splits, whole;
};

/* The bytes that the event took from the device. *action is the first action
 * that is not before the event. */
static frag_size taken(const struct frag_recorded *r, uint64_t event,
                       uint64_t *action)
{
    frag_size sum = 0;

    while (*action < r->action_count && r->actions[*action].event < event)
        ++*action;
    for (uint64_t i = *action;
         i < r->action_count && r->actions[i].event == event; i++)
        if (r->actions[i].action == FRAG_SEGMENT_ALLOC ||
            r->actions[i].action == FRAG_SEGMENT_MAP)
            sum += r->actions[i].size;
    return sum;
}

/* How much larger than a multiple of 512 bytes the settings make a block. */
static frag_size at_most(const char *settings)
{
    return torch_value_of(settings, "roundup_power2_divisions") ? 2 : 1;
}

/* live: the block of the latest such request is not freed. */
static void see_request(struct newest *n, const struct frag_device_trace *t,
                        uint64_t i, frag_size fresh, bool live)
{
    const frag_size size =
        at_most(t->recorded.settings) * torch_round_size(t->bytes[i], NULL);
    const bool is_small = t->bytes[i] <= TORCH_SMALL_SIZE;

    n->splits |= t->recorded.addr[i] % TORCH_SMALL_SEGMENT != 0;
    if (!fresh) {
        n->rest = 0; /* it may lie there */
        return;
    }
    n->whole |= live && n->stream == t->stream[i] && n->is_small == is_small &&
                size <= n->rest && (is_small || n->rest > TORCH_SMALL_SIZE);
    n->event = i;
    n->stream = t->stream[i];
    n->is_small = is_small;
    n->rest = fresh > size ? fresh - size : 0;
}

/* born: for each slot, the ALLOC of its live block; 0: it has none. */
static void see_events(struct newest *pools, uint64_t *born,
                       const struct frag_device_trace *t)
{
    uint64_t action = 0;

    for (uint64_t i = t->initial; i < t->count; i++) {
        if (t->op[i] == FRAG_FREE)
            born[t->id[i]] = 0;
        if (t->op[i] != FRAG_ALLOC)
            continue;
        if (t->pool[i] && t->recorded.addr[i]) {
            struct newest *n = &pools[t->pool[i]];

            see_request(n, t, i, taken(&t->recorded, i, &action),
                        n->event && born[t->id[n->event]] == n->event);
        }
        born[t->id[i]] = i;
    }
}

static void see_block(struct newest *n, const struct frag_recorded_segment *g,
                      const struct frag_recorded_block *b, const char *settings)
{
    const frag_size room =
        g->is_small || g->is_expandable ? TORCH_MIN_BLOCK : TORCH_SMALL_SIZE;

    if (b->state == FRAG_ACTIVE_ALLOCATED &&
        b->requested != FRAG_SIZE_UNKNOWN && b->requested &&
        !torch_value_of(settings, "max_split_size_mb"))
        n->whole |= b->size > room + at_most(settings) *
                                         torch_round_size(b->requested, NULL);
}

static void see_end(struct newest *pools, const struct frag_device_trace *t)
{
    const struct frag_layout *l = &t->recorded.end;

    for (uint64_t i = 0; i < l->segment_count; i++)
        for (uint64_t k = 0; k < l->segments[i].block_count; k++)
            see_block(&pools[l->segments[i].pool], &l->segments[i],
                      &l->blocks[l->segments[i].first_block + k],
                      t->recorded.settings);
}

enum frag_err run_tell(struct run *r, frag_pool pool, unsigned facts, bool now)
{
    const struct frag_pool_id id = r->trace->pools[pool];
    const struct frag_heard heard = {
        .pool = pool,
        .facts = facts,
        .number = id.owner ? id.owner : id.number,
        .now = now,
    };

    if (!(r->policy->needs & FRAG_HEARS_POOLS) ||
        r->policy->hear(&r->heap, &heard) == FRAG_OK)
        return FRAG_OK;
    return frag_no_memory(r->error, "%s", r->policy->name);
}

enum frag_err run_tell_pools(struct run *r)
{
    const struct frag_device_trace *t = r->trace;
    struct newest *pools;
    uint64_t *born;
    enum frag_err err = FRAG_OK;

    if (!(r->policy->needs & FRAG_HEARS_POOLS) || t->pool_count < 2 ||
        !t->pools)
        return FRAG_OK;
    pools = calloc(t->pool_count, sizeof(*pools));
    born = calloc(t->slots + (size_t)1, sizeof(*born));
    if (!pools || !born)
        err = frag_no_memory(r->error, "the pools");
    else if (t->recorded.addr && t->recorded.has_actions)
        see_events(pools, born, t);
    if (err == FRAG_OK)
        see_end(pools, t);
    for (uint32_t k = 1; err == FRAG_OK && k < t->pool_count; k++) {
        const bool whole = pools[k].whole && !pools[k].splits;

        err = run_tell(r, (frag_pool)k,
                       (t->pools[k].owner ? FRAG_POOL_CAPTURE : 0) |
                           (whole ? FRAG_POOL_WHOLE : 0),
                       false);
    }
    free(pools);
    free(born);
    return err;
}
