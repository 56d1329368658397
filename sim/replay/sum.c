/* sum.c - computes the summary of a run from its tally, its meter and its
 * peak. The formulas are those of sim/results/columns.c. */
#include "sim/replay/replay_parts.h"

const char *const frag_start_names[FRAG_START_COUNT] = {
#define X(name, text) text,
    FRAG_STARTS(X)
#undef X
};

static double share(double part, double whole)
{
    return whole > 0 ? part / whole : 0;
}

/* 1 - part / whole; 0 if whole is 0. */
static double waste(frag_size part, frag_size whole)
{
    return whole ? 1 - (double)part / (double)whole : 0;
}

static void sum_ratios(const struct run *r, struct frag_summary *s)
{
    const struct tally *t = &r->tally;

    s->fragmentation_ratio = waste(s->peak_allocated, s->peak_reserved);
    s->fragmentation_at_peak = waste(r->allocated_at_peak, s->peak_reserved);
    s->fragmentation_mean = share(tally_fragmentation(t), (double)s->events);
    s->internal_at_peak =
        waste(s->at_peak.requested, s->at_peak.requested + s->at_peak.rounding);
    s->overhead = share((double)s->peak_reserved, (double)s->peak_requested);
    s->gap_to_bound =
        s->lower_bound ? (double)s->peak_reserved / (double)s->lower_bound - 1
                       : 0;
    s->overhead_average =
        share(tally_double(t->reserved_area), tally_double(t->requested_area));
    s->overhead_at_peak_requested =
        share((double)t->reserved_at_peak_requested, (double)t->peak_requested);
    s->overhead_at_peak_reserved =
        share((double)s->peak_reserved, (double)r->requested_at_peak);
}

/* Reserved bytes say nothing about a device that gives larger units. */
static bool is_optimal(const struct run *r, const struct frag_summary *s)
{
    return s->peak_reserved == s->lower_bound && !s->num_ooms &&
           s->peak_device &&
           s->peak_device <=
               frag_round_up(s->lower_bound, r->spec->mem->granularity);
}

static void summarize(struct run *r, uint64_t events)
{
    struct frag_summary *s = &r->out.summary;
    const struct tally *t = &r->tally;
    const struct meter *m = &r->meter;

    s->events = events;
    s->peak_requested = t->peak_requested;
    s->peak_allocated = t->peak_allocated;
    s->peak_active = t->peak_active;
    s->end_reserved = t->reserved;
    s->peak_inactive_split = t->peak_split;
    s->quantum = -t->mask;
    s->lower_bound = t->peak_quanta;
    s->demand = t->demand;
    s->peak_device = r->spec->mem->peak;
    s->need = FRAG_UNLIMITED;
    s->optimal = is_optimal(r, s);
    for (int i = 0; i < FRAG_CALL_COUNT; i++)
        s->calls[i] = m->calls[i];
    s->bytes_moved = m->bytes_moved;
    s->peak_segments = m->segments_peak;
    s->modelled_device_seconds = (double)m->spent * 1e-9;
    s->ns_per_event = share(
        r->loop > r->aside ? (double)(r->loop - r->aside) : 0, (double)events);
    sum_ratios(r, s);
}

static void describe_end(struct run *r)
{
    const struct tally *t = &r->tally;

    r->out.end = (struct frag_end){
        .requested = t->requested,
        .allocated = t->allocated,
        .active = t->allocated + t->pending,
        .reserved = t->reserved,
        .inactive_split = t->split,
        .largest_free = r->picture.largest,
        .acquired = r->meter.acquired,
        .blocks = r->picture.count,
        .parts = run_breakdown(r, t->reserved),
    };
}

enum frag_err run_end(struct run *r, uint64_t events, frag_stream stream,
                      frag_pool pool)
{
    run_settle_peak(r);
    tally_fold(&r->tally, r->event);
    summarize(r, events);
    if (run_picture(r, stream, pool, run_keep_extent) != FRAG_OK)
        return frag_no_memory(r->error, "the segments at the end");
    describe_end(r);
    return FRAG_OK;
}
