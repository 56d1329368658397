/* build_marks.c - stores the boundaries of steps and phases with their times,
 * and at the end places them among the events. Of the events at the same time,
 * a begin is placed before the first and an end after the last. Changes of the
 * settings are placed by the number of calls after them, or by time. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "traces/build/build_device.h"

enum frag_err frag_build_mark(struct frag_build *b, uint32_t device,
                              enum frag_mark_kind kind, frag_time time,
                              const char *name, size_t length,
                              struct frag_error *e)
{
    struct device_build *d;
    uint32_t string;

    FRAG_TRY(build_device(b, device, &d, e));
    string = frag_build_string(b, name, length);
    if (string == UINT32_MAX ||
        !GROW(d->marks, d->mark_room, d->mark_count + 1))
        return FRAG_NOMEM;
    d->marks[d->mark_count] = (struct frag_mark){
        .event = d->mark_count, .time = time, .kind = kind, .name = string};
    d->mark_count++;
    return FRAG_OK;
}

/* `event` is still the place among the marks of the input. */
static int by_time(const void *a, const void *b)
{
    const struct frag_mark *x = a, *y = b;

    if (x->time != y->time)
        return x->time < y->time ? -1 : 1;
    if (x->kind != y->kind)
        return x->kind > y->kind ? -1 : 1;
    return (x->event > y->event) - (x->event < y->event);
}

enum frag_err build_marks(struct frag_build *b, struct device_build *d)
{
    const struct columns *c = &d->events;
    uint64_t at = d->initial;

    if (!d->mark_count || d->has_marks)
        return FRAG_OK;
    if (!d->has_time) {
        d->mark_count = 0;
        return frag_build_note(b,
                               "%s: marks are left out, "
                               "because no entry has a time",
                               FRAG_DEVICE_NAME(d->device));
    }
    qsort(d->marks, (size_t)d->mark_count, sizeof(*d->marks), by_time);
    for (uint64_t i = 0; i < d->mark_count; i++) {
        struct frag_mark *m = &d->marks[i];

        while (at < c->count &&
               (c->time[at] < m->time ||
                (c->time[at] == m->time && m->kind == FRAG_MARK_END)))
            at++;
        m->event = at;
    }
    return FRAG_OK;
}

enum frag_err frag_build_change(struct frag_build *b, uint32_t device,
                                const struct frag_setting_change *change,
                                const struct frag_recorded_settings *now,
                                uint64_t after, struct frag_error *e)
{
    struct device_build *d;

    FRAG_TRY(build_device(b, device, &d, e));
    if (!GROW(d->changes, d->change_room, d->change_count + 1) ||
        !GROW(d->changed, d->changed_room, d->change_count + 1))
        return FRAG_NOMEM;
    d->changes[d->change_count] = *change;
    d->changed[d->change_count++] = (struct build_change){after, *now};
    return FRAG_OK;
}

/* The calls before an event, and of those the requests. */
struct calls {
    uint64_t all, requests;
};

/* Adds event i if it is a request or a call that frees a block. freed: of each
 * slot, whether its block was freed by such a call or never existed. */
static void count_call(struct calls *calls, const struct columns *c, uint64_t i,
                       bool *freed)
{
    bool *slot = &freed[c->id[i]], was = *slot;

    if (c->op[i] == FRAG_ALLOC)
        *slot = !c->addr[i];
    if (c->op[i] == FRAG_FREE_REQUESTED)
        *slot = true;
    calls->requests += c->op[i] == FRAG_ALLOC;
    calls->all += c->op[i] == FRAG_ALLOC || c->op[i] == FRAG_FREE_REQUESTED ||
                  (c->op[i] == FRAG_FREE && !was);
}

/* Whether event i comes before a change, `calls` calls being left from i on. A
 * call of empty_cache, which is not counted, comes before it by its time. */
static bool comes_before(const struct columns *c, uint64_t i, frag_time time,
                         uint64_t after, uint64_t calls)
{
    if (after == UINT64_MAX)
        return c->time[i] < time;
    return calls > after || (calls == after && c->op[i] == FRAG_EMPTY_CACHE &&
                             c->time[i] < time);
}

enum frag_err build_changes(struct device_build *d)
{
    const struct columns *c = &d->events;
    struct calls all = {0, 0}, before = {0, 0};
    uint64_t at = 0;
    bool *freed;

    if (d->has_marks || !d->change_count)
        return FRAG_OK;
    freed = calloc((size_t)d->slots + 1, sizeof(*freed));
    if (!freed)
        return FRAG_NOMEM;
    for (uint64_t i = 0; i < c->count; i++)
        count_call(&all, c, i, freed);
    memset(freed, 0, (size_t)d->slots + 1);
    for (uint64_t i = 0; i < d->change_count; i++) {
        const frag_time time = d->changes[i].time;
        const uint64_t after = d->changed[i].after;

        while (at < c->count &&
               comes_before(c, at, time, after,
                            d->changes[i].origin == FRAG_CHANGE_FOUND
                                ? all.requests - before.requests
                                : all.all - before.all))
            count_call(&before, c, at++, freed);
        d->changes[i].event = at;
    }
    free(freed);
    return FRAG_OK;
}
