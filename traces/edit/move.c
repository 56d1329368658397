/* move.c - the edit free: moves the frees of selected blocks to other events.
 * The FREE of a block keeps its distance from the FREE_REQUESTED. */
#include <stdlib.h>
#include <string.h>

#include "traces/binary_search.h"
#include "traces/edit/edit_parts.h"

/* Where the frees go: lists of events by the event that they are put before;
 * FRAG_NEVER ends a list. */
struct moves {
    uint64_t *first; /* events + 1 rows */
    uint64_t *next;  /* of each event that moves */
    uint8_t *is_moved;
    uint64_t *request; /* of each block: its FREE_REQUESTED, or its FREE */
    uint64_t *used;    /* of each block: the event after its last use */
    struct frag_steps steps;
};

static enum frag_err moves_open(struct moves *v, const struct edit_job *job)
{
    const struct edit_source *s = &job->source;
    const size_t events = (size_t)s->device->count + 1;
    const size_t blocks = (size_t)s->blocks.count + 1;

    *v = (struct moves){
        .first = malloc(events * sizeof(*v->first)),
        .next = malloc(events * sizeof(*v->next)),
        .is_moved = calloc(events, 1),
        .request = calloc(blocks, sizeof(*v->request)),
        .used = calloc(blocks, sizeof(*v->used)),
    };
    if (!v->first || !v->next || !v->is_moved || !v->request || !v->used)
        return frag_no_memory(job->making->error, "the frees that move");
    for (size_t i = 0; i < events; i++)
        v->first[i] = v->next[i] = FRAG_NEVER;
    return edit_has(job->edit, KEY_AT) && s->device->count
               ? edit_steps(job, &v->steps)
               : FRAG_OK;
}

static void moves_close(struct moves *v)
{
    free(v->first);
    free(v->next);
    free(v->is_moved);
    free(v->request);
    free(v->used);
    frag_steps_close(&v->steps);
}

static void find_uses(struct moves *v, const struct edit_source *s)
{
    for (uint64_t i = 0; i < s->device->count; i++) {
        const uint32_t block = s->blocks.of[i];

        if (block == UINT32_MAX)
            continue;
        if (!frag_op_frees(s->device->op[i]))
            v->used[block] = i + 1;
        else if (!v->request[block])
            v->request[block] = i;
    }
}

/* The step that contains the event; NULL if none does. */
static const struct frag_step *step_of(const struct frag_steps *s, uint64_t i)
{
    uint64_t low;

    SEARCH(low, s->count, middle, s->items[middle].to <= i);
    return low < s->count && s->items[low].from <= i ? &s->items[low] : NULL;
}

/* The event before which a free at event i goes, if nothing forbids it. */
static uint64_t wanted(const struct edit_job *job, const struct moves *v,
                       uint64_t i)
{
    const struct edit *edit = job->edit;
    const uint64_t earlier = edit->values[KEY_EARLIER].first;
    const uint64_t later = edit->values[KEY_LATER].first;
    const uint64_t count = job->source.device->count;
    const struct frag_step *step;

    if (edit_has(edit, KEY_EARLIER))
        return i > earlier ? i - earlier : 0;
    if (edit_has(edit, KEY_LATER))
        return later < count - i - 1 ? i + later + 1 : count;
    step = step_of(&v->steps, i);
    if (!step)
        return i;
    return edit->values[KEY_AT].first == AT_STEP_END ? step->to : step->from;
}

/* The event before which the release of a block goes, its FREE_REQUESTED or
 * else its FREE: where it is wanted, at the earliest after the last use of the
 * block and after the initial events. */
static uint64_t release_of(const struct edit_job *job, const struct moves *v,
                           uint32_t block)
{
    const uint64_t initial = job->source.device->initial;
    uint64_t to = wanted(job, v, v->request[block]);

    to = to < v->used[block] ? v->used[block] : to;
    return to < initial ? initial : to;
}

/* The event before which event i goes, which keeps its distance from the
 * release of its block; FRAG_NEVER if the release does not move. */
static uint64_t target_of(const struct edit_job *job, const struct moves *v,
                          uint64_t i)
{
    const uint64_t count = job->source.device->count;
    const uint32_t block = job->source.blocks.of[i];
    const uint64_t request = v->request[block], distance = i - request;
    const uint64_t to = release_of(job, v, block);

    if (to == request || to == request + 1)
        return FRAG_NEVER;
    return distance < count - to ? to + distance : count;
}

/* Goes backwards, so that each list is in the order of the events. */
static void plan(struct edit_job *job, struct moves *v)
{
    const struct frag_device_trace *d = job->source.device;

    for (uint64_t i = d->count; i-- > 0;) {
        uint64_t to;

        job->making->total += d->op[i] == FRAG_FREE;
        if (!frag_op_frees(d->op[i]) || !select_has_block(job, i))
            continue;
        to = target_of(job, v, i);
        if (to == FRAG_NEVER)
            continue;
        v->is_moved[i] = true;
        v->next[i] = v->first[to];
        v->first[to] = i;
        job->making->changed += d->op[i] == FRAG_FREE;
    }
}

static enum frag_err put_moved(struct edit_job *job, const struct moves *v,
                               uint64_t at)
{
    for (uint64_t i = v->first[at]; i != FRAG_NEVER; i = v->next[i]) {
        FRAG_TRY(track_put(&job->track, &job->source, i));
        track_move_time(&job->track);
    }
    return FRAG_OK;
}

/* A free that moves to an event with a mark stays before the mark, in the step
 * that ends there; to the begin of a step, it goes after the mark. */
static enum frag_err put_all(struct edit_job *job, const struct moves *v)
{
    const struct frag_device_trace *d = job->source.device;
    const bool is_after = edit_has(job->edit, KEY_EARLIER) ||
                          job->edit->values[KEY_AT].first == AT_STEP_BEGIN;
    const bool after = is_after && !edit_has(job->edit, KEY_LATER);

    for (uint64_t i = 0; i <= d->count; i++) {
        if (after)
            FRAG_TRY(track_marks(&job->track, &job->source, i));
        FRAG_TRY(put_moved(job, v, i));
        if (!after)
            FRAG_TRY(track_marks(&job->track, &job->source, i));
        if (i < d->count && !v->is_moved[i])
            FRAG_TRY(track_put(&job->track, &job->source, i));
    }
    return FRAG_OK;
}

enum frag_err run_free(struct edit_job *job)
{
    struct moves v = {0};
    enum frag_err err = moves_open(&v, job);

    if (err == FRAG_OK) {
        find_uses(&v, &job->source);
        plan(job, &v);
        err = put_all(job, &v);
    }
    moves_close(&v);
    return err;
}
