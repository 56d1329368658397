/* build_marks.c - stores the boundaries of steps and phases with their times,
 * and at the end places them among the events. Of the events at the same time,
 * a begin is placed before the first and an end after the last. */
#include <inttypes.h>
#include <stdlib.h>

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
