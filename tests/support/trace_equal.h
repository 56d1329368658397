/* trace_equal.h - compares two traces, for tests. */
#ifndef FRAG_TESTS_SUPPORT_TRACE_EQUAL_H
#define FRAG_TESTS_SUPPORT_TRACE_EQUAL_H

#include <string.h>

#include "traces/trace.h"

/* Names the first difference, or NULL. */
#define SAME(a, b, count)                                           \
    do {                                                            \
        if (!(a) != !(b))                                           \
            return #a " is there in one only";                      \
        if ((a) && (count) && memcmp(a, b, (count) * sizeof(*(a)))) \
            return #a " differs";                                   \
    } while (0)
#define SAME_NUMBER(a, b)         \
    do {                          \
        if ((a) != (b))           \
            return #a " differs"; \
    } while (0)

static inline const char *events_differ(const struct frag_device_trace *x,
                                        const struct frag_device_trace *y)
{
    SAME_NUMBER(x->device, y->device);
    SAME_NUMBER(x->count, y->count);
    SAME_NUMBER(x->slots, y->slots);
    SAME_NUMBER(x->initial, y->initial);
    SAME_NUMBER(x->free_streams, y->free_streams);
    SAME_NUMBER(x->stream_count, y->stream_count);
    SAME_NUMBER(x->pool_count, y->pool_count);
    SAME(x->op, y->op, x->count);
    SAME(x->id, y->id, x->count);
    SAME(x->bytes, y->bytes, x->count);
    SAME(x->stream, y->stream, x->count);
    SAME(x->pool, y->pool, x->count);
    SAME(x->time, y->time, x->count);
    SAME(x->stack, y->stack, x->count);
    SAME(x->streams, y->streams, x->stream_count);
    SAME(x->pools, y->pools, x->pool_count);
    return NULL;
}

static inline const char *layouts_differ(const struct frag_layout *x,
                                         const struct frag_layout *y)
{
    SAME_NUMBER(x->segment_count, y->segment_count);
    SAME_NUMBER(x->block_count, y->block_count);
    if (x->segment_count)
        SAME(x->segments, y->segments, x->segment_count);
    if (x->block_count)
        SAME(x->blocks, y->blocks, x->block_count);
    return NULL;
}

static inline const char *devices_differ(const struct frag_device_trace *x,
                                         const struct frag_device_trace *y)
{
    const struct frag_recorded *a = &x->recorded, *b = &y->recorded;
    const char *difference = events_differ(x, y);

    if (!difference)
        difference = layouts_differ(&a->start, &b->start);
    if (!difference)
        difference = layouts_differ(&a->end, &b->end);
    if (difference)
        return difference;
    SAME_NUMBER(x->mark_count, y->mark_count);
    if (x->mark_count)
        SAME(x->marks, y->marks, x->mark_count);
    SAME_NUMBER(x->change_count, y->change_count);
    if (x->change_count)
        SAME(x->changes, y->changes, x->change_count);
    SAME_NUMBER(a->action_count, b->action_count);
    SAME_NUMBER(a->has_actions, b->has_actions);
    SAME_NUMBER(a->has_end, b->has_end);
    SAME(a->addr, b->addr, x->count);
    if (a->action_count)
        SAME(a->actions, b->actions, a->action_count);
    return NULL;
}

static inline const char *texts_differ(const char *const *x,
                                       const char *const *y, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (strcmp(x[i], y[i]))
            return "a text differs";
    return NULL;
}

static inline const char *traces_differ(const struct frag_trace *x,
                                        const struct frag_trace *y)
{
    const char *difference = NULL;

    SAME_NUMBER(x->device_count, y->device_count);
    SAME_NUMBER(x->string_count, y->string_count);
    SAME_NUMBER(x->note_count, y->note_count);
    SAME_NUMBER(x->stack_count, y->stack_count);
    SAME_NUMBER(!x->settings, !y->settings);
    if (x->settings && strcmp(x->settings, y->settings))
        return "settings differ";
    if (x->stack_count) {
        SAME(x->stack_first, y->stack_first, x->stack_count + 1);
        SAME(x->frames, y->frames, x->stack_first[x->stack_count]);
    }
    for (uint32_t i = 0; !difference && i < x->device_count; i++)
        difference = devices_differ(&x->devices[i], &y->devices[i]);
    if (!difference)
        difference = texts_differ(x->strings, y->strings, x->string_count);
    if (!difference)
        difference = texts_differ(x->notes, y->notes, x->note_count);
    return difference;
}

#endif
