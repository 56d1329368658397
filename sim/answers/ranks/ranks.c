/* ranks.c - measures the ranks of a job and compares them. */
#include "sim/answers/ranks/ranks.h"

#include <stdlib.h>
#include <string.h>

#include "traces/grow.h"

static const struct rank_death alive = {.event = FRAG_NEVER};

/* -- one rank ------------------------------------------------------------ */

static struct rank_death death_at(const struct frag_device_trace *d,
                                  uint64_t event)
{
    struct rank_death death = {.event = event};

    if (event >= d->count)
        return death;
    death.bytes = d->bytes[event];
    if (!d->time)
        return death;
    death.time = d->time[event];
    if (death.time > d->time[d->initial])
        death.after = death.time - d->time[d->initial];
    return death;
}

static void count_recorded(const struct frag_device_trace *d, struct rank *out)
{
    const struct frag_recorded *r = &d->recorded;

    out->recorded = alive;
    for (uint64_t i = 0; i < r->action_count; i++)
        if (r->actions[i].action == FRAG_OOM_REPORTED && !out->recorded_ooms++)
            out->recorded = death_at(d, r->actions[i].event);
}

static enum frag_err measure_free(const struct replay_settings *s,
                                  const struct input *in, struct rank *out,
                                  struct frag_error *e)
{
    struct frag_run run;

    FRAG_TRY(replayed_run(s, in, 0, 0, &run, e));
    out->events = run.summary.events;
    out->peak_requested = run.summary.peak_requested;
    out->peak_allocated = run.summary.peak_allocated;
    out->peak_reserved = run.summary.peak_reserved;
    out->fragmentation = run.summary.fragmentation_ratio;
    frag_run_free(&run);
    return FRAG_OK;
}

static enum frag_err measure_at(const struct replay_settings *s,
                                const struct input *in, frag_size capacity,
                                struct rank *out, struct frag_error *e)
{
    struct frag_run run;

    out->replayed = alive;
    if (capacity == FRAG_UNLIMITED)
        return FRAG_OK;
    FRAG_TRY(replayed_run(s, in, capacity, 0, &run, e));
    out->ooms = run.summary.num_ooms;
    out->reserved_there = run.summary.peak_reserved;
    if (out->ooms)
        out->replayed = death_at(in->device, run.summary.first_oom_event);
    frag_run_free(&run);
    return FRAG_OK;
}

static enum frag_err measure(const struct replay_settings *s,
                             const struct input *in, frag_size capacity,
                             struct rank *out, struct frag_error *e)
{
    FRAG_TRY(
        subject_copy(in, replayed_policy(in->trace, s->policy), &out->on, e));
    FRAG_TRY(measure_free(s, in, out, e));
    FRAG_TRY(measure_at(s, in, capacity, out, e));
    FRAG_TRY(replayed_steps(s, in, &out->steps, e));
    count_recorded(in->device, out);
    return FRAG_OK;
}

enum frag_err ranks_add(struct ranks *r, const struct replay_settings *s,
                        const struct input *in, struct frag_error *e)
{
    struct rank rank = {.on = {.trace = NULL}};
    enum frag_err err;

    if (!GROW(r->items, r->room, r->count + 1))
        return frag_no_memory(e, "the ranks");
    err = measure(s, in, r->capacity, &rank, e);
    if (err == FRAG_OK)
        r->items[r->count++] = rank;
    else
        subject_free(&rank.on);
    return err;
}

void ranks_free(struct ranks *r)
{
    for (size_t i = 0; i < r->count; i++)
        subject_free(&r->items[i].on);
    free(r->items);
    *r = (struct ranks){.capacity = FRAG_UNLIMITED};
}

/* -- all of them --------------------------------------------------------- */

static frag_size size_at(const struct rank *r, size_t offset)
{
    frag_size size;

    memcpy(&size, (const char *)r + offset, sizeof(size));
    return size;
}

struct rank_imbalance ranks_imbalance(const struct ranks *r, size_t offset)
{
    struct rank_imbalance out = {.ratio = 1};
    double sum = 0;

    for (size_t i = 0; i < r->count; i++) {
        const frag_size size = size_at(&r->items[i], offset);

        sum += (double)size;
        if (size > size_at(&r->items[out.most], offset))
            out.most = i;
        if (size < size_at(&r->items[out.least], offset))
            out.least = i;
    }
    out.difference = size_at(&r->items[out.most], offset) -
                     size_at(&r->items[out.least], offset);
    if (sum > 0)
        out.ratio = (double)size_at(&r->items[out.most], offset) *
                    (double)r->count / sum;
    return out;
}

const struct rank_death *rank_death_at(const struct rank *rank, size_t offset)
{
    return (const struct rank_death *)(const void *)((const char *)rank +
                                                     offset);
}

struct ranks_first ranks_first(const struct ranks *r, size_t offset)
{
    struct ranks_first out = {.rank = RANKS_NONE, .by_time = true};
    uint64_t least = 0;

    for (size_t i = 0; i < r->count; i++) {
        const struct rank_death *death = rank_death_at(&r->items[i], offset);

        out.dying += death->event != FRAG_NEVER;
        out.by_time &= death->event == FRAG_NEVER || death->time;
    }
    for (size_t i = 0; i < r->count; i++) {
        const struct rank_death *death = rank_death_at(&r->items[i], offset);
        const uint64_t when = out.by_time ? death->time : death->event;

        if (death->event == FRAG_NEVER ||
            (out.rank != RANKS_NONE && when >= least))
            continue;
        out.rank = i;
        least = when;
    }
    return out;
}
