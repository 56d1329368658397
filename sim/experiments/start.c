/* start.c - compares a recorded layout with what a run can hold. */
#include "sim/experiments/start.h"

#include "policies/policies.h"
#include "traces/torch_sizes.h"

/* The unit in which the device counts segments. */
#define UNIT (2 * FRAG_MIB)

frag_size start_held(const struct frag_device_trace *trace,
                     enum frag_bound_kind kind)
{
    const struct frag_layout *start = &trace->recorded.start;
    const frag_size unit = kind == FRAG_BOUND_LIMIT ? 1 : UNIT;
    frag_size held = 0;

    for (uint64_t i = 0; i < start->segment_count; i++)
        held += frag_round_up(start->segments[i].size, unit);
    return held;
}

/* Whether each block that the initial events allocate is in the layout. */
static bool has_all_blocks(const struct frag_device_trace *trace)
{
    const struct frag_layout *start = &trace->recorded.start;
    uint64_t live = 0;

    for (uint64_t i = 0; i < start->block_count; i++)
        live += start->blocks[i].state != FRAG_INACTIVE;
    return live == trace->initial;
}

/* The kind of the segments of another policy than torch is not known. */
bool start_has_kind(const struct frag_device_trace *trace,
                    const struct frag_policy *policy, const char *params)
{
    const char *value = torch_value_of(params, "expandable_segments");
    const struct frag_layout *start = &trace->recorded.start;
    bool any = false;

    for (uint64_t i = 0; i < start->segment_count; i++)
        any |= start->segments[i].is_expandable;
    return policy != &frag_policy_torch || any == (value && *value == 'T');
}

bool start_is_adoptable(const struct frag_device_trace *trace,
                        const struct frag_policy *policy, const char *params,
                        struct frag_bound bound)
{
    return policy->adopt && trace->recorded.start.segment_count &&
           start_has_kind(trace, policy, params) &&
           start_held(trace, bound.kind) <= bound.bytes &&
           has_all_blocks(trace);
}
