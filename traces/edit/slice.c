/* slice.c - the edit slice: keeps a part of the events, and the blocks that are
 * live at its begin. It also finds the steps for all edits. */
#include <inttypes.h>
#include <math.h>

#include "traces/edit/edit_parts.h"

/* The events from ... to - 1. */
struct slice_part {
    uint64_t from, to;
};

enum frag_err edit_steps(const struct edit_job *job, struct frag_steps *out)
{
    const struct frag_device_trace *d = job->source.device;

    const enum frag_err err = frag_steps_find(job->making->trace, d, d->count,
                                              job->edit->values[KEY_MARK].text,
                                              out, job->making->error);

    if (err == FRAG_NOMEM)
        return frag_no_memory(job->making->error, "the steps of %s",
                              job->making->trace->path);
    FRAG_TRY(err);
    if (out->count)
        return FRAG_OK;
    frag_steps_close(out);
    return edit_fail(
        job->making,
        "no steps were found on %s of %.100s; count events instead",
        FRAG_DEVICE_NAME(d->device), job->making->trace->path);
}

static enum frag_err part_of_events(const struct edit_job *job,
                                    struct slice_part *out)
{
    const struct edit_value *v = &job->edit->values[KEY_EVENTS];
    const uint64_t count = job->source.device->count;

    if (v->first >= count)
        return edit_fail(job->making,
                         "%s of %.100s has %" PRIu64 " events, from 0",
                         FRAG_DEVICE_NAME(job->source.device->device),
                         job->making->trace->path, count);
    *out = (struct slice_part){v->first, v->last < count ? v->last + 1 : count};
    return FRAG_OK;
}

static enum frag_err part_of_steps(const struct edit_job *job,
                                   struct slice_part *out)
{
    const struct edit_value *v = &job->edit->values[KEY_STEPS];
    const uint64_t first = v->first ? v->first : 1;
    struct frag_steps steps;
    enum frag_err err = FRAG_OK;

    FRAG_TRY(edit_steps(job, &steps));
    if (first > steps.count || !v->last ||
        (v->last != UINT64_MAX && v->last > steps.count))
        err = edit_fail(job->making,
                        "%s of %.100s has the complete steps 1 "
                        "to %" PRIu64,
                        FRAG_DEVICE_NAME(job->source.device->device),
                        job->making->trace->path, steps.count);
    else
        *out = (struct slice_part){
            steps.items[first - 1].from,
            steps.items[(v->last < steps.count ? v->last : steps.count) - 1]
                .to};
    frag_steps_close(&steps);
    return err;
}

/* The first event that is not before the time; the initial events have none. */
static uint64_t event_at(const struct frag_device_trace *d, double seconds)
{
    const frag_time start = d->time[d->initial];
    uint64_t i = d->initial;

    while (i < d->count &&
           (d->time[i] < start || (double)(d->time[i] - start) < seconds * 1e9))
        i++;
    return i;
}

static enum frag_err part_of_seconds(const struct edit_job *job,
                                     struct slice_part *out)
{
    const struct edit_value *v = &job->edit->values[KEY_SECONDS];
    const struct frag_device_trace *d = job->source.device;

    if (!d->time || d->initial == d->count)
        return edit_fail(job->making, "%.100s has no times; slice by events",
                         job->making->trace->path);
    *out =
        (struct slice_part){v->low > 0 ? event_at(d, v->low) : 0,
                            isinf(v->high) ? d->count : event_at(d, v->high)};
    if (out->from == out->to)
        return edit_fail(job->making, "no event of %.100s is at that time",
                         job->making->trace->path);
    return FRAG_OK;
}

static enum frag_err find_part(const struct edit_job *job,
                               struct slice_part *out)
{
    if (edit_has(job->edit, KEY_STEPS))
        return part_of_steps(job, out);
    if (edit_has(job->edit, KEY_SECONDS))
        return part_of_seconds(job, out);
    return part_of_events(job, out);
}

/* The blocks that are live at the cut: first their ALLOCs, as initial events,
 * then their uses by other streams and the frees that were only requested. */
static enum frag_err put_live(struct edit_job *job, uint64_t cut)
{
    const struct edit_source *s = &job->source;
    struct edit_track *t = &job->track;

    for (int pass = 0; pass < 2; pass++) {
        for (uint64_t i = 0; i < cut; i++) {
            const bool is_alloc = s->device->op[i] == FRAG_ALLOC;

            if (s->blocks.of[i] != UINT32_MAX && is_alloc == !pass &&
                block_is_live(&s->blocks, s->blocks.of[i], cut))
                FRAG_TRY(track_put(t, &job->source, i));
        }
        if (!pass)
            t->d->initial = track_count(t);
    }
    return FRAG_OK;
}

static void skip_marks(struct edit_source *s, uint64_t cut)
{
    while (s->mark < s->device->mark_count &&
           s->device->marks[s->mark].event < cut)
        s->mark++;
}

/* The marks at the end: a phase that begins there is not in the part. */
static enum frag_err last_marks(struct edit_job *job, uint64_t to)
{
    const struct frag_device_trace *d = job->source.device;
    struct device_build *t = job->track.d;
    uint64_t kept;

    FRAG_TRY(track_marks(&job->track, &job->source, to));
    if (to == d->count)
        return FRAG_OK;
    kept = t->mark_count;
    while (kept && t->marks[kept - 1].event == t->events.count &&
           t->marks[kept - 1].kind == FRAG_MARK_BEGIN)
        kept--;
    t->mark_count = kept;
    return FRAG_OK;
}

enum frag_err run_slice(struct edit_job *job)
{
    const uint64_t count = job->source.device->count;
    struct slice_part part = {0, 0};

    if (count)
        FRAG_TRY(find_part(job, &part));
    job->track.begins_later = part.from > job->source.device->initial;
    FRAG_TRY(put_live(job, part.from));
    skip_marks(&job->source, part.from);
    for (uint64_t i = part.from; i < part.to; i++) {
        FRAG_TRY(track_marks(&job->track, &job->source, i));
        FRAG_TRY(track_put(&job->track, &job->source, i));
    }
    job->making->changed += part.to - part.from;
    job->making->total += count;
    return last_marks(job, part.to);
}
