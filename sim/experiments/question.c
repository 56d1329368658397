/* question.c - finds the bound that an answer is about. */
#include "sim/experiments/question.h"

#include <inttypes.h>
#include <stdio.h>

#include "sim/arena/arena.h"
#include "traces/text.h"

const char *const question_words[QUESTION_SOURCE_COUNT] = {
#define X(name, word, phrase) word,
    QUESTION_SOURCES(X)
#undef X
};

static const char *const phrases[QUESTION_SOURCE_COUNT] = {
#define X(name, word, phrase) phrase,
    QUESTION_SOURCES(X)
#undef X
};

/* What the allocator held, and could have had, at the last failure: if others
 * took memory while the job ran, no limit explains all failures. 0: none
 * failed. */
static frag_size at_last_failure(const struct frag_device_trace *d)
{
    const struct frag_recorded *r = &d->recorded;
    frag_size held = 0, bound = 0;

    for (uint64_t i = 0; i < r->start.segment_count; i++)
        held += r->start.segments[i].size;
    for (uint64_t i = 0; i < r->action_count; i++) {
        const struct frag_recorded_action *a = &r->actions[i];

        if (a->action == FRAG_OOM_REPORTED)
            bound = held + frag_device_room(a->device_free);
        else if (a->action == FRAG_SEGMENT_ALLOC ||
                 a->action == FRAG_SEGMENT_MAP)
            held += a->size;
        else
            held -= a->size;
    }
    return bound;
}

static void take(struct question *q, struct frag_bound bound,
                 enum question_source source)
{
    q->bound = bound;
    q->source = source;
}

/* Takes the bound that the recording shows. */
static void take_recorded(struct question *q, const struct recording *r)
{
    struct frag_bound least = r->bound;
    frag_size failure;

    switch (r->found.source) {
    case FRAG_LIMIT_GIVEN:
        if (r->bound.bytes != FRAG_UNLIMITED)
            take(q, r->bound, QUESTION_RECORDED);
        return;
    case FRAG_LIMIT_DEVICE:
        take(q, r->bound, QUESTION_FAILURE);
        return;
    case FRAG_LIMIT_INFERRED:
        least.bytes = least.least;
        take(q, least, QUESTION_INFERRED);
        return;
    case FRAG_LIMIT_CONTRADICTED:
        failure = at_last_failure(q->device);
        if (failure)
            take(q, frag_capacity_bound(failure), QUESTION_FAILURE);
        return;
    case FRAG_LIMIT_NONE:
    case FRAG_LIMIT_SOURCE_COUNT:
        return;
    }
}

static void find_place(struct question *q)
{
    for (uint32_t i = 0; i < q->trace->device_count; i++) {
        const struct frag_device_trace *d = &q->trace->devices[i];

        q->count += d->device != FRAG_HOST_DEVICE;
        if (d->device == q->device->device)
            q->place = q->count;
    }
}

enum frag_err question_make(const struct question_asked *asked,
                            const struct frag_trace *t,
                            const struct frag_device_trace *d,
                            struct question *out, struct frag_error *e)
{
    const struct recording r = recording_of(t, d);
    struct question q = {.trace = t, .device = d, .total = asked->total};

    find_place(&q);
    if (d->device == FRAG_HOST_DEVICE)
        take(&q, FRAG_NO_BOUND, QUESTION_CAPACITY); /* it has none */
    else
        take(&q, asked->bound, asked->source);
    if (!q.bound.bytes)
        take_recorded(&q, &r);
    if (!q.bound.bytes && q.total)
        take(&q, frag_capacity_bound(q.total), QUESTION_TOTAL);
    if (!q.bound.bytes && (asked->or_least || !recording_tells(d)))
        take(&q, FRAG_NO_BOUND, QUESTION_CAPACITY);
    if (!q.bound.bytes)
        return frag_fail(e, FRAG_INVALID,
                         "%s: %s: the recording does not tell how much memory "
                         "its job had; add --capacity SIZE or --gpu NAME, the "
                         "device on which the job shall run, or "
                         "--process-limit SIZE",
                         t->path, FRAG_DEVICE_NAME(d->device));
    *out = q;
    return FRAG_OK;
}

bool question_is_recorded(const struct question *q)
{
    static const struct question_asked nothing;
    struct question own;
    struct frag_error ignored;

    return question_make(&nothing, q->trace, q->device, &own, &ignored) ==
               FRAG_OK &&
           own.bound.bytes == q->bound.bytes && own.bound.kind == q->bound.kind;
}

const char *question_text(const struct question *q, char text[QUESTION_TEXT])
{
    const struct frag_bound *b = &q->bound;

    *text = '\0';
    if (q->count > 1)
        snprintf(text, QUESTION_TEXT, "GPU %" PRIu32 " of %" PRIu32, q->place,
                 q->count);
    if (b->bytes == FRAG_UNLIMITED)
        text_add(text, QUESTION_TEXT, ", ", "no bound: the least need counts");
    else
        text_add(text, QUESTION_TEXT, ", ", "%s of %s, %s",
                 frag_bound_words[b->kind], FRAG_SHOW_SIZE(b->bytes),
                 phrases[q->source]);
    if (q->source == QUESTION_INFERRED)
        text_add(text, QUESTION_TEXT, "", " (it was at most %s)",
                 FRAG_SHOW_SIZE(b->most));
    return text;
}
