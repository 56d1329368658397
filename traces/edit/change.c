/* change.c - the edits that add, move and leave out changes of settings. */
#include <inttypes.h>

#include "traces/edit/edit_parts.h"

/* Whether the edit is for the device. */
static bool is_meant(const struct edit_job *job)
{
    const struct edit_value *v = &job->edit->values[KEY_DEVICE];
    bool meant = !edit_has(job->edit, KEY_DEVICE);

    for (unsigned i = 0; i < v->count; i++)
        meant |= v->list[i] == job->source.device->device;
    return meant;
}

static enum frag_err find_change(struct edit_job *job)
{
    const uint64_t number = job->edit->values[KEY_CHANGE].first;
    const struct frag_device_trace *d = job->source.device;

    if (number > d->change_count)
        return edit_fail(job->making,
                         "%s of %.100s has %" PRIu64 " changes of settings",
                         FRAG_DEVICE_NAME(d->device), job->making->trace->path,
                         d->change_count);
    job->source.left_out = number;
    return FRAG_OK;
}

/* Appends the change that the edit describes. */
static enum frag_err put_change(struct edit_job *job)
{
    const struct frag_device_trace *d = job->source.device;
    const struct edit_value *values = job->edit->values;
    struct frag_setting_change x = {.origin = FRAG_CHANGE_EDITED};
    const char *text = NULL;

    if (edit_has(job->edit, KEY_CHANGE)) {
        x = d->changes[job->source.left_out - 1];
        x.time = 0;
        x.origin = FRAG_CHANGE_EDITED;
        text = change_given(d, &x);
    } else if (edit_has(job->edit, KEY_SET)) {
        text = values[KEY_SET].text;
    } else {
        x.kind = FRAG_CHANGE_LIMIT;
        x.limit = values[KEY_LIMIT].first;
    }
    job->making->changed++;
    return track_change(&job->track, &job->source, &x, text);
}

enum frag_err run_settings(struct edit_job *job)
{
    const struct frag_device_trace *d = job->source.device;
    const uint64_t from = job->edit->values[KEY_FROM].first;

    job->making->total += d->count;
    if (!is_meant(job))
        return track_all(&job->track, &job->source);
    if (from > d->count)
        return edit_fail(job->making, "%s of %.100s has %" PRIu64 " events",
                         FRAG_DEVICE_NAME(d->device), job->making->trace->path,
                         d->count);
    if (edit_has(job->edit, KEY_CHANGE))
        FRAG_TRY(find_change(job));
    for (uint64_t i = 0; i <= d->count; i++) {
        FRAG_TRY(track_marks(&job->track, &job->source, i));
        if (i == from)
            FRAG_TRY(put_change(job));
        if (i < d->count)
            FRAG_TRY(track_put(&job->track, &job->source, i));
    }
    return FRAG_OK;
}

enum frag_err run_no_settings(struct edit_job *job)
{
    const struct frag_device_trace *d = job->source.device;
    struct device_build *rest = job->track.d;
    const bool meant = is_meant(job);

    job->making->total += d->count;
    if (meant && edit_has(job->edit, KEY_CHANGE)) {
        FRAG_TRY(find_change(job));
        job->making->changed++;
    } else if (meant) {
        job->source.change = d->change_count;
        job->making->changed += d->change_count;
    }
    FRAG_TRY(track_all(&job->track, &job->source));
    for (uint64_t i = 0; job->source.left_out && i < rest->change_count; i++)
        rest->changes[i].origin = FRAG_CHANGE_EDITED;
    return FRAG_OK;
}
