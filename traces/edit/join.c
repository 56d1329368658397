/* join.c - the edits that join events: repetitions of a trace, one trace after
 * another, and two traces at the same time. */
#include <inttypes.h>
#include <unistd.h>

#include "traces/edit/edit_parts.h"

static bool has_times(const struct edit_source *s)
{
    return s->device->time && s->device->initial < s->device->count;
}

/* The time of the first recorded event, and of the last. */
static frag_time begin_of(const struct edit_source *s)
{
    return s->device->time[s->device->initial];
}

static frag_time end_of(const struct edit_source *s)
{
    return s->device->time[s->device->count - 1];
}

/* ---- one after the other ---- */

/* Appends all events of `next`. Its times begin where those of the track end.
 */
static enum frag_err append(struct edit_job *job, struct edit_source *next)
{
    struct edit_track *t = &job->track;

    FRAG_TRY(track_free_all(t));
    if (t->has_time && track_count(t) && has_times(next))
        next->shift = t->d->events.time[track_count(t) - 1] - begin_of(next);
    job->making->changed += next->device->count;
    return track_all(t, next);
}

/* The most events that the memory of this host holds while they are edited. */
static uint64_t most_events(void)
{
    enum { BYTES_OF_EVENT = 64 };

    return (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE) /
           BYTES_OF_EVENT;
}

enum frag_err run_repeat(struct edit_job *job)
{
    const uint64_t times = job->edit->values[KEY_TIMES].first;
    const uint64_t count = job->source.device->count;

    if (count && times > most_events() / count)
        return edit_fail(job->making,
                         "expected at most %" PRIu64 " events, for which this "
                         "host has memory, found %" PRIu64 " times %" PRIu64,
                         most_events(), times, count);
    FRAG_TRY(track_all(&job->track, &job->source));
    job->making->total += count;
    for (uint64_t i = 1; i < times; i++) {
        source_rewind(&job->source);
        FRAG_TRY(append(job, &job->source));
    }
    if (times > 1)
        job->track.recorded = FRAG_NEVER;
    return FRAG_OK;
}

enum frag_err run_concat(struct edit_job *job)
{
    FRAG_TRY(track_all(&job->track, &job->source));
    job->making->total += job->source.device->count;
    if (!job->other.device)
        return FRAG_OK;
    job->track.recorded = FRAG_NEVER;
    return append(job, &job->other);
}

/* ---- at the same time ---- */

static enum frag_err check_times(const struct edit_job *job)
{
    const struct edit_source *lacks = !has_times(&job->source)  ? &job->source
                                      : !has_times(&job->other) ? &job->other
                                                                : NULL;

    if (!lacks)
        return FRAG_OK;
    return edit_fail(job->making,
                     "%.100s has no times; by=turns merges without them",
                     lacks->trace->path);
}

static enum frag_err align(struct edit_job *job)
{
    const uint64_t by = job->edit->values[KEY_BY].first;

    if (by == BY_TURNS && edit_has(job->edit, KEY_DELAY))
        return edit_fail(job->making, "delay= has no meaning with by=turns");
    if (by == BY_TURNS)
        return FRAG_OK;
    FRAG_TRY(check_times(job));
    if (by == BY_START)
        job->other.shift = begin_of(&job->source) - begin_of(&job->other);
    else if (end_of(&job->source) < begin_of(&job->other) ||
             end_of(&job->other) < begin_of(&job->source))
        return edit_fail(job->making,
                         "the recorded times of both traces do not overlap; "
                         "by=start lets both begin at the same time");
    job->other.shift +=
        (frag_time)(job->edit->values[KEY_DELAY].low * 1e9 + 0.5);
    return FRAG_OK;
}

/* Whether event i of the input comes before event k of the other trace. Initial
 * events come first, those of the input before the others. */
static bool is_first(const struct edit_job *job, uint64_t i, uint64_t k)
{
    const struct frag_device_trace *a = job->source.device;
    const struct frag_device_trace *b = job->other.device;

    if (i == a->count || k == b->count)
        return k == b->count;
    if (i < a->initial || k < b->initial)
        return i < a->initial;
    if (job->edit->values[KEY_BY].first == BY_TURNS)
        return i - a->initial <= k - b->initial;
    return a->time[i] <= b->time[k] + job->other.shift;
}

static enum frag_err put_next(struct edit_job *job, struct edit_source *s,
                              uint64_t *i)
{
    FRAG_TRY(track_marks(&job->track, s, *i));
    return track_put(&job->track, s, (*i)++);
}

static enum frag_err merge(struct edit_job *job)
{
    const uint64_t a = job->source.device->count, b = job->other.device->count;
    uint64_t i = 0, k = 0;

    while (i < a || k < b)
        FRAG_TRY(is_first(job, i, k) ? put_next(job, &job->source, &i)
                                     : put_next(job, &job->other, &k));
    FRAG_TRY(track_marks(&job->track, &job->source, a));
    return track_marks(&job->track, &job->other, b);
}

enum frag_err run_interleave(struct edit_job *job)
{
    job->making->total += job->source.device->count;
    if (!job->other.device)
        return track_all(&job->track, &job->source);
    FRAG_TRY(align(job));
    FRAG_TRY(merge(job));
    job->making->changed += job->other.device->count;
    job->track.recorded = FRAG_NEVER;
    return FRAG_OK;
}
