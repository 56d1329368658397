/* caches.c - the edits that add and leave out empty_cache calls. */
#include "traces/edit/edit_parts.h"

static enum frag_err add_call(struct edit_job *job)
{
    job->making->changed++;
    return track_add(&job->track, FRAG_EMPTY_CACHE, 0);
}

/* Whether a call belongs after `n` events or steps, which are not the first. */
static bool is_due(const struct edit *edit, enum edit_key key, uint64_t n)
{
    return n && edit_has(edit, key) && n % edit->values[key].first == 0;
}

/* A call at the end of a step comes before the marks there, so that it is in
 * the step that ends. */
static enum frag_err add_all(struct edit_job *job,
                             const struct frag_steps *steps)
{
    const struct frag_device_trace *d = job->source.device;
    struct edit_track *t = &job->track;
    uint64_t step = 0;

    for (uint64_t i = 0; i <= d->count; i++) {
        bool due =
            i > d->initial && is_due(job->edit, KEY_EVERY, i - d->initial);

        while (step < steps->count && steps->items[step].to <= i)
            due = is_due(job->edit, KEY_EVERY_STEPS, ++step) || due;
        if (due)
            FRAG_TRY(add_call(job));
        FRAG_TRY(track_marks(t, &job->source, i));
        if (i < d->count)
            FRAG_TRY(track_put(t, &job->source, i));
    }
    job->making->total += d->count;
    return FRAG_OK;
}

enum frag_err run_empty_cache(struct edit_job *job)
{
    struct frag_steps steps = {0};
    enum frag_err err;

    if (edit_has(job->edit, KEY_EVERY_STEPS) && job->source.device->count)
        FRAG_TRY(edit_steps(job, &steps));
    err = add_all(job, &steps);
    frag_steps_close(&steps);
    return err;
}

enum frag_err run_no_empty_cache(struct edit_job *job)
{
    const struct frag_device_trace *d = job->source.device;

    for (uint64_t i = 0; i < d->count; i++) {
        FRAG_TRY(track_marks(&job->track, &job->source, i));
        job->making->changed += d->op[i] == FRAG_EMPTY_CACHE;
        if (d->op[i] != FRAG_EMPTY_CACHE)
            FRAG_TRY(track_put(&job->track, &job->source, i));
    }
    job->making->total += d->count;
    return track_marks(&job->track, &job->source, d->count);
}
