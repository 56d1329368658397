/* dry_answer.c - finds the answer: replays what each process requested. */
#include "sim/cli/verbs/dry/dry_answer.h"

#include <stdlib.h>
#include <string.h>

#include "policies/policy.h"
#include "sim/answers/moment.h"
#include "sim/cli/output/inputs.h"
#include "traces/facts.h"
#include "traces/grow.h"
#include "traces/steps/complete.h"
#include "traces/torch_sizes.h"

/* ---- one device ---- */

/* The need is asked of the largest GPU of the table, since PyTorch reserves
 * addresses for expandable segments by the total of the device. */
static struct frag_capacity_spec spec_of(const struct dry_answer *a,
                                         const struct frag_device_trace *d,
                                         size_t way)
{
    return (struct frag_capacity_spec){
        .trace = d,
        .policy = frag_policy_find("torch"),
        .params = a->ways[way].params,
        .kind = FRAG_BOUND_CAPACITY,
        .total = frag_gpus->total,
    };
}

static enum frag_err find_needs(const struct dry_answer *a,
                                const struct frag_device_trace *d,
                                struct dry_device *out, struct frag_error *e)
{
    for (size_t w = 0; w < DRY_WAYS; w++) {
        const struct frag_capacity_spec spec = spec_of(a, d, w);
        struct frag_capacity_span *unlimited = &out->ways[w].unlimited;

        FRAG_TRY(frag_capacity_at(&spec, FRAG_UNLIMITED, unlimited, e));
        FRAG_TRY(frag_capacity_need(&spec, unlimited, &out->ways[w].need, e));
    }
    return FRAG_OK;
}

/* A mark comes once in a step, so there is one step more than spans between two
 * marks: before the first mark, or after the last one if it has events. */
static void add_open_step(const struct frag_steps *s, struct dry_place *p)
{
    const struct frag_step *last = &s->items[s->count - 1];
    const bool is_last = s->end - last->to >= (last->to - last->from) / 2;

    p->is_open = p->step == (is_last ? s->count + 1 : 0);
    p->steps++;
    p->step += !is_last;
}

/* Where the event is in the steps, the events of which are in order. */
static void find_step(const struct frag_steps *s, struct dry_place *p)
{
    p->steps = s->count;
    while (p->step < s->count && s->items[p->step].from <= p->event)
        p->step++;
    if (p->step == s->count && s->count &&
        p->event >= s->items[s->count - 1].to)
        p->step++;
    if (s->count && s->source == FRAG_STEPS_MARKS)
        add_open_step(s, p);
}

static void find_site(const struct frag_trace *t,
                      const struct frag_device_trace *d, struct dry_place *p)
{
    uint64_t at = p->event;

    if (!d->stack)
        return;
    while (at && (d->op[at] != FRAG_ALLOC || !site_of(t, d->stack[at])))
        at--;
    p->is_after = at != p->event;
    if (site_of(t, d->stack[at]))
        site_text(t, d->stack[at], p->site);
}

static enum frag_err find_place(const struct frag_trace *t,
                                const struct frag_device_trace *d,
                                uint64_t event, struct dry_place *out,
                                struct frag_error *e)
{
    struct frag_steps steps;
    struct moment m;

    *out = (struct dry_place){.event = event, .bytes = d->bytes[event]};
    FRAG_TRY(frag_steps_find(t, d, d->count, NULL, &steps, e));
    find_step(&steps, out);
    frag_steps_close(&steps);
    find_site(t, d, out);
    FRAG_TRY(moment_open(d, event, &m, e));
    out->live = m.requested;
    moment_close(&m);
    return FRAG_OK;
}

/* The first request that the GPU of the answer cannot meet. */
static enum frag_err find_death(const struct dry_answer *a,
                                const struct frag_trace *t,
                                const struct frag_device_trace *d,
                                struct dry_device *out, struct frag_error *e)
{
    struct frag_capacity_spec spec = spec_of(a, d, 0);
    const frag_size left =
        dry_room(a, out, a->gpu) -
        (dry_need(a, out, 0) - out->ways[0].need.from); /* of others there */
    struct frag_capacity_span span;

    out->death.event = FRAG_NEVER;
    if (dry_fits(a, out, a->gpu, 0) || left > a->gpu->total)
        return FRAG_OK;
    spec.total = a->gpu->total;
    FRAG_TRY(frag_capacity_at(&spec, left, &span, e));
    if (frag_capacity_survives(&span))
        return FRAG_OK;
    return find_place(t, d, span.run.first_oom_event, &out->death, e);
}

static enum frag_err add_device(struct dry_answer *a,
                                const struct dry_process *p,
                                const struct frag_trace *t,
                                const struct frag_device_trace *d,
                                struct frag_error *e)
{
    const frag_size used = dry_note_of_device(p, "used", d->device);
    struct dry_device *out;
    uint64_t event;

    if (d->count == d->initial || d->device == FRAG_HOST_DEVICE)
        return FRAG_OK; /* the process did not use it, or it is no GPU */
    if (!GROW(a->devices, a->room, a->count + 1))
        return frag_no_memory(e, "the devices");
    out = &a->devices[a->count];
    *out = (struct dry_device){
        .process = p,
        .device = d->device,
        .gpu = dry_note_of_device(p, "gpu", d->device),
        .outside = dry_note_of_device(p, "outside", d->device),
        .counted_allocated = dry_note_of_device(p, "allocated", d->device),
        .counted_reserved = dry_note_of_device(p, "reserved", d->device),
        .counted_requested = dry_note_of_device(p, "requested", d->device),
        .traced_reserved = facts_peak_reserved(d),
        .died = frag_fatal_request(d) != FRAG_NEVER,
        .death.event = FRAG_NEVER,
    };
    if (!out->outside)
        out->outside = a->gpu->context;
    if (dry_note_name(p, "ended")) { /* others may have freed some before */
        if (used > out->outside + out->traced_reserved)
            out->outside = used - out->traced_reserved;
    } else if (used > out->outside + out->counted_reserved)
        out->counted_reserved = used - out->outside; /* after the last trace */
    FRAG_TRY(find_needs(a, d, out, e));
    for (size_t w = 0; w < DRY_WAYS; w++)
        dry_bounds_of(out, w);
    FRAG_TRY(classes_sum(t, d, out->classes, e));
    FRAG_TRY(moment_read(t, d, "peak", &event, e));
    FRAG_TRY(find_place(t, d, event, &out->peak, e));
    a->count++;
    return FRAG_OK;
}

/* ---- all of them ---- */

static enum frag_err open_trace(const struct dry_process *p,
                                const struct common *common,
                                struct frag_trace **out, struct frag_error *e)
{
    const struct trace_reading reading = {READING_RAW, .holds_alone = true};
    struct progress progress = progress_start(common);
    const enum frag_err err = input_open(p->trace, &reading, &progress, out, e);

    progress_clear(&progress);
    return err;
}

/* The settings of the first process are those of the program. */
static enum frag_err find_ways(struct dry_answer *a, const struct frag_trace *t,
                               struct frag_error *e)
{
    static const char expandable[] = "expandable_segments:True";
    const bool is_expandable = t->settings && strstr(t->settings, expandable);

    if (a->ways[0].name)
        return FRAG_OK;
    a->settings = strdup(t->settings ? t->settings : "");
    if (!a->settings)
        return frag_no_memory(e, "the settings");
    a->ways[0] = torch_is_followed(a->settings)
                     ? (struct dry_way){TORCH_FOLLOWED, a->settings}
                 : *a->settings ? (struct dry_way){a->settings, a->settings}
                                : (struct dry_way){"default", NULL};
    a->ways[1] = is_expandable ? (struct dry_way){"the default", NULL}
                               : (struct dry_way){expandable, expandable};
    return FRAG_OK;
}

static enum frag_err add_process(struct dry_answer *a,
                                 const struct dry_process *p,
                                 const struct common *common,
                                 struct frag_error *e)
{
    struct frag_trace *t;
    enum frag_err err;

    FRAG_TRY(open_trace(p, common, &t, e));
    err = find_ways(a, t, e);
    for (uint32_t i = 0; err == FRAG_OK && i < t->device_count; i++)
        err = add_device(a, p, t, &t->devices[i], e);
    frag_trace_close(t);
    return err;
}

/* The deaths: how much of a GPU is left is known when all needs are. */
static enum frag_err find_deaths(struct dry_answer *a,
                                 const struct dry_process *p,
                                 const struct common *common,
                                 struct frag_error *e)
{
    struct frag_trace *t;
    enum frag_err err = FRAG_OK;

    FRAG_TRY(open_trace(p, common, &t, e));
    for (size_t i = 0; err == FRAG_OK && i < a->count; i++)
        for (uint32_t k = 0; err == FRAG_OK && k < t->device_count; k++)
            if (a->devices[i].process == p &&
                a->devices[i].device == t->devices[k].device)
                err = find_death(a, t, &t->devices[k], &a->devices[i], e);
    frag_trace_close(t);
    return err;
}

enum frag_err dry_answer_find(struct dry_answer *a, const struct common *common,
                              struct frag_error *e)
{
    for (size_t i = 0; i < a->process_count; i++)
        if (a->processes[i].trace) /* it lived until it wrote one */
            FRAG_TRY(add_process(a, &a->processes[i], common, e));
    if (!dry_all_fit(a, a->gpu, 0))
        for (size_t i = 0; i < a->process_count; i++)
            if (a->processes[i].trace)
                FRAG_TRY(find_deaths(a, &a->processes[i], common, e));
    return FRAG_OK;
}

void dry_answer_free(struct dry_answer *a)
{
    free(a->devices);
    free(a->settings);
    for (size_t i = 0; i < a->process_count; i++)
        dry_process_free(&a->processes[i]);
    free(a->processes);
}
