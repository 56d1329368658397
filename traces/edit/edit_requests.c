/* edit_requests.c - the edits that change requests one by one: which of them
 * remain, their sizes and their pools. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "traces/edit/edit_parts.h"

static bool is_request(const struct edit_job *job, uint64_t i)
{
    return job->source.device->op[i] == FRAG_ALLOC;
}

/* ---- which requests remain ---- */

/* Without its ALLOC, a block has no slot, so its other events are skipped. */
static enum frag_err filter(struct edit_job *job, bool wanted)
{
    struct making *m = job->making;

    for (uint64_t i = 0; i < job->source.device->count; i++) {
        const bool selected = is_request(job, i) && select_has(job, i);

        FRAG_TRY(track_marks(&job->track, &job->source, i));
        m->total += is_request(job, i);
        m->changed += selected;
        if (!is_request(job, i) || selected == wanted)
            FRAG_TRY(track_put(&job->track, &job->source, i));
    }
    return track_marks(&job->track, &job->source, job->source.device->count);
}

enum frag_err run_keep(struct edit_job *job)
{
    return filter(job, true);
}

enum frag_err run_drop(struct edit_job *job)
{
    return filter(job, false);
}

/* ---- sizes ---- */

/* The new size; 0 if it would be larger than a size can be. */
static frag_size scaled(const struct edit *edit, frag_size bytes)
{
    const long double exact =
        (long double)bytes * (long double)edit->values[KEY_FACTOR].low;

    if (exact >= 0x1p63L)
        return 0;
    return exact < 1 ? 1 : (frag_size)roundl(exact);
}

/* Changes the request that was put last. */
static enum frag_err resize(struct edit_job *job, uint64_t i)
{
    struct making *m = job->making;
    struct edit_track *t = &job->track;
    frag_size *last = &t->d->events.bytes[track_count(t) - 1];
    const frag_size old = *last, bytes = scaled(job->edit, old);

    if (!bytes)
        return edit_fail(m,
                         "the request of %" PRIu64 " bytes of event %" PRIu64
                         " would exceed 2^63 - 1 bytes",
                         old, i);
    m->changed += bytes != old;
    *last = bytes;
    return FRAG_OK;
}

enum frag_err run_scale(struct edit_job *job)
{
    for (uint64_t i = 0; i < job->source.device->count; i++) {
        FRAG_TRY(track_marks(&job->track, &job->source, i));
        FRAG_TRY(track_put(&job->track, &job->source, i));
        job->making->total += is_request(job, i);
        if (is_request(job, i) && select_has(job, i))
            FRAG_TRY(resize(job, i));
    }
    return track_marks(&job->track, &job->source, job->source.device->count);
}

/* ---- pools ---- */

static void move_to(struct edit_job *job, frag_pool pool)
{
    const struct edit_track *t = &job->track;
    frag_pool *last = &t->d->events.pool[track_count(t) - 1];

    job->making->changed += *last != pool;
    *last = pool;
}

/* The end of a pool is none without its requests: sets the pools that keep
 * some. */
static void find_kept(const struct edit_job *job, bool *kept)
{
    const struct frag_device_trace *d = job->source.device;

    for (uint64_t i = 0; i < d->count; i++)
        if (is_request(job, i) && !select_has(job, i))
            kept[d->pool[i]] = true;
}

static enum frag_err put_pooled(struct edit_job *job, frag_pool pool,
                                const bool *kept)
{
    const struct frag_device_trace *d = job->source.device;
    struct edit_track *t = &job->track;

    for (uint64_t i = 0; i < d->count; i++) {
        FRAG_TRY(track_marks(t, &job->source, i));
        if (d->op[i] == FRAG_EMPTY_CACHE && d->pool[i] && !kept[d->pool[i]])
            continue;
        FRAG_TRY(track_put(t, &job->source, i));
        job->making->total += is_request(job, i);
        if (is_request(job, i) && select_has(job, i))
            move_to(job, pool);
    }
    return track_marks(t, &job->source, d->count);
}

enum frag_err run_pool(struct edit_job *job)
{
    const struct edit_value *to = &job->edit->values[KEY_TO];
    const struct frag_pool_id id = {to->owners[0], to->list[0]};
    bool *kept = calloc(job->source.device->pool_count, sizeof(*kept));
    uint32_t pool;
    enum frag_err err = kept ? build_pool(job->making->build, job->track.d, id,
                                          &pool, job->making->error)
                             : FRAG_NOMEM;

    if (err == FRAG_OK) {
        find_kept(job, kept);
        err = put_pooled(job, (frag_pool)pool, kept);
    }
    free(kept);
    return err;
}
