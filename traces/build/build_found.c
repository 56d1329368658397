/* build_found.c - moves the changes of expandable_segments that were found to
 * where the addresses of requests show them.
 *
 * Without the setting, a request is not served from an expandable segment
 * (allocator rules, 22.3), so the setting was still on at the last request in
 * such a segment before ordinary ones are taken, and on again at the first. */
#include <stdlib.h>

#include "traces/binary_search.h"
#include "traces/build/build_device.h"

/* The ranges that were ever mapped, by address; they may overlap. */
struct mapped {
    struct mapped_range {
        frag_addr from, to;
    } * rows;
    size_t count;
};

static int by_start(const void *a, const void *b)
{
    const struct mapped_range *x = a, *y = b;

    return (x->from > y->from) - (x->from < y->from);
}

/* Joins the ranges that touch. */
static void join(struct mapped *m)
{
    size_t kept = 0;

    if (!m->count)
        return;
    qsort(m->rows, m->count, sizeof(*m->rows), by_start);
    for (size_t i = 1; i < m->count; i++)
        if (m->rows[i].from > m->rows[kept].to)
            m->rows[++kept] = m->rows[i];
        else if (m->rows[i].to > m->rows[kept].to)
            m->rows[kept].to = m->rows[i].to;
    m->count = kept + 1;
}

static bool find_mapped(const struct device_build *d, struct mapped *m)
{
    m->rows = calloc((size_t)d->action_count + 1, sizeof(*m->rows));
    for (uint64_t i = 0; m->rows && i < d->action_count; i++)
        if (d->actions[i].action == FRAG_SEGMENT_MAP)
            m->rows[m->count++] = (struct mapped_range){
                d->actions[i].addr, d->actions[i].addr + d->actions[i].size};
    if (m->rows)
        join(m);
    return m->rows != NULL;
}

/* Whether event i is a request that was served from mapped memory. */
static bool is_inside(const struct mapped *m, const struct columns *c,
                      uint64_t i)
{
    uint64_t at;

    if (c->op[i] != FRAG_ALLOC || !c->addr[i])
        return false;
    SEARCH(at, m->count, row, m->rows[row].to <= c->addr[i]);
    return at < m->count && m->rows[at].from <= c->addr[i];
}

/* The place of a change after event `from` and at `to` at the latest. */
static uint64_t place_of(const struct mapped *m, const struct columns *c,
                         bool is_on, uint64_t from, uint64_t to)
{
    if (is_on) {
        for (uint64_t i = from + 1; i < to; i++)
            if (is_inside(m, c, i))
                return i;
        return to;
    }
    for (uint64_t i = to; i-- > from + 1;)
        if (is_inside(m, c, i))
            return i + 1;
    return from + 1 < to ? from + 1 : to;
}

enum frag_err build_found(const struct frag_build *b, struct device_build *d)
{
    struct mapped m = {NULL, 0};
    bool was_on = b->settings.expandable;
    uint64_t from = 0, k = 0;

    if (!d->change_count || d->has_marks ||
        d->changes[0].origin != FRAG_CHANGE_FOUND ||
        d->changed[0].after != UINT64_MAX)
        return FRAG_OK;
    if (!find_mapped(d, &m))
        return FRAG_NOMEM;
    for (uint64_t i = 0; i < d->action_count && k < d->change_count; i++) {
        const struct frag_recorded_action *a = &d->actions[i];
        const bool is_on = a->action == FRAG_SEGMENT_MAP;

        if (!is_on && a->action != FRAG_SEGMENT_ALLOC)
            continue;
        if (is_on != was_on)
            d->changes[k++].event =
                place_of(&m, &d->events, is_on, from, a->event);
        was_on = is_on;
        from = a->event;
    }
    free(m.rows);
    return FRAG_OK;
}
