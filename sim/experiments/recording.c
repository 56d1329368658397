/* recording.c - finds the bound of a recorded allocator. */
#include "sim/experiments/recording.h"

#include "traces/facts.h"

/* An OOM shows that the limit was at most `most'; a larger stated limit
 * explains none of them. */
static bool explains(frag_size stated, const struct frag_recorded_limit *l)
{
    if (stated == FRAG_UNLIMITED)
        return l->source == FRAG_LIMIT_NONE;
    return stated && stated <= l->most;
}

static struct recording find(const struct frag_trace *t,
                             const struct frag_device_trace *d)
{
    struct recording r = {
        .device = d->device,
        .found = frag_recorded_limit(d, t->settings),
        .bound = FRAG_NO_BOUND,
    };

    if (d->recorded.has_actions)
        r.peak = r.found.least;
    for (uint64_t i = 0; i < d->recorded.action_count; i++)
        r.failed += d->recorded.actions[i].action == FRAG_OOM_REPORTED;
    if (d->device == FRAG_HOST_DEVICE)
        return r; /* the limit is that of a GPU */
    if (explains(t->limit, &r.found)) {
        r.found.source = FRAG_LIMIT_GIVEN;
        r.found.limit = t->limit;
    }
    r.bound.bytes = r.found.limit;
    if (r.bound.bytes != FRAG_UNLIMITED && r.found.source != FRAG_LIMIT_DEVICE)
        r.bound.kind = FRAG_BOUND_LIMIT;
    if (r.found.source == FRAG_LIMIT_INFERRED) {
        r.bound.least = r.found.least;
        r.bound.most = r.found.most;
    }
    return r;
}

struct recording recording_of(const struct frag_trace *t,
                              const struct frag_device_trace *d)
{
    const struct recording *known = t->known;

    while (known && known->device != d->device)
        known++;
    return known ? *known : find(t, d);
}

bool recording_tells(const struct frag_device_trace *d)
{
    const uint64_t events = d->count - d->initial;

    return events > 1 && (!d->initial || events >= RECORDING_LEAST);
}

struct frag_bound recording_bound(const struct frag_trace *t,
                                  const struct frag_device_trace *d)
{
    return recording_of(t, d).bound;
}

struct frag_bound recording_bound_for(const struct frag_trace *t,
                                      const struct frag_device_trace *d,
                                      const struct policy_choice *policy,
                                      frag_size capacity)
{
    if (capacity)
        return frag_capacity_bound(capacity);
    return policy->recorded ? recording_bound(t, d) : FRAG_NO_BOUND;
}

enum frag_err recording_facts(const struct frag_trace *t,
                              const struct frag_device_trace *d,
                              struct bound_facts *out, struct frag_error *e)
{
    struct facts facts;

    if (facts_gather(d, &facts) != FRAG_OK)
        return frag_no_memory(e, "the facts of the trace");
    *out = (struct bound_facts){facts.peak_requested, recording_bound(t, d)};
    return FRAG_OK;
}
