/* repeat.c - the edit that repeats all events of a trace. */
#include <inttypes.h>
#include <unistd.h>

#include "traces/edit/edit_parts.h"

/* The most events that the memory of this host holds while they are edited. */
static uint64_t most_events(void)
{
    enum { BYTES_OF_EVENT = 64 };

    return (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE) /
           BYTES_OF_EVENT;
}

/* Appends all events once more. Their times begin where those of the track end.
 */
static enum frag_err append(struct edit_track *t, struct edit_source *s)
{
    const struct frag_device_trace *d = s->device;

    source_rewind(s);
    FRAG_TRY(track_free_all(t));
    if (t->has_time && d->initial < d->count)
        s->shift = t->d->events.time[track_count(t) - 1] - d->time[d->initial];
    return track_all(t, s);
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
    for (uint64_t i = 1; i < times; i++)
        FRAG_TRY(append(&job->track, &job->source));
    job->making->total += count;
    job->making->changed += count * (times - 1);
    if (times > 1)
        job->track.recorded = FRAG_NEVER;
    return FRAG_OK;
}
