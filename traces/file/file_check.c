/* file_check.c - checks that the tables, strings and stacks of a trace file
 * agree with each other and with the events. The events are checked by
 * frag_trace_check.
 */
#include <inttypes.h>

#include "traces/file/file_parts.h"

struct check {
    const struct frag_trace *t;
    const struct frag_device_trace *d;
    struct frag_error *e;
};

static enum frag_err broken(const struct check *c, const char *table,
                            uint64_t row, const char *expected)
{
    if (!c->d)
        return frag_fail(c->e, FRAG_CORRUPT,
                         "%s:/%s: row %" PRIu64 ": expected %s", c->t->path,
                         table, row, expected);
    return frag_fail(c->e, FRAG_CORRUPT,
                     "%s:/devices/%" PRIu32 "/%s: row %" PRIu64 ": expected %s",
                     c->t->path, c->d->device, table, row, expected);
}

static enum frag_err check_slots(const struct check *c)
{
    const struct frag_device_trace *d = c->d;

    if (d->slots <= d->count + d->recorded.end.block_count)
        return FRAG_OK;
    return broken(c, "events/id", 0,
                  "at most as many slots as events and final blocks");
}

static enum frag_err check_stacks_used(const struct check *c)
{
    const struct frag_device_trace *d = c->d;

    for (uint64_t i = 0; d->stack && i < d->count; i++)
        if (d->stack[i] >= c->t->stack_count && d->stack[i])
            return broken(c, "events/stack", i, "a row of /stacks/first");
    return FRAG_OK;
}

static enum frag_err check_tables(const struct check *c)
{
    const struct frag_device_trace *d = c->d;

    for (uint32_t i = 1; i < d->stream_count; i++)
        if (d->streams[i] <= d->streams[i - 1])
            return broken(c, "streams", i,
                          "a handle greater than the one before");
    if (d->pools[0].owner || d->pools[0].number)
        return broken(c, "pools", 0, "the default pool (0, 0)");
    for (uint64_t i = 0; i < d->mark_count; i++)
        if (d->marks[i].event > d->count || d->marks[i].kind > FRAG_MARK_END ||
            d->marks[i].name >= c->t->string_count)
            return broken(c, "marks", i,
                          "a mark with a valid event, kind and name");
    for (uint64_t i = 0; i < d->change_count; i++) {
        const struct frag_setting_change *x = &d->changes[i];

        if (x->event > d->count || (i && x->event < x[-1].event) ||
            x->kind > FRAG_CHANGE_LIMIT || x->origin > FRAG_CHANGE_EDITED ||
            (x->text >= c->t->string_count && !x->kind) ||
            (x->stack >= c->t->stack_count && x->stack))
            return broken(c, "changes", i,
                          "a change with a valid event, kind, text, stack and "
                          "origin");
    }
    return FRAG_OK;
}

static enum frag_err check_actions(const struct check *c)
{
    const struct frag_recorded *r = &c->d->recorded;

    for (uint64_t i = 0; i < r->action_count; i++) {
        const struct frag_recorded_action *a = &r->actions[i];

        if (a->action >= FRAG_ACTION_COUNT || a->stream >= c->d->stream_count)
            return broken(c, "recorded/actions", i,
                          "an action with a valid kind and stream");
        if (a->event > c->d->count || (i && a->event < a[-1].event))
            return broken(c, "recorded/actions", i,
                          "a valid event, in ascending order");
        if (!frag_is_range(a->addr, a->size))
            return broken(c, "recorded/actions", i,
                          "a valid range of addresses");
    }
    return FRAG_OK;
}

static enum frag_err check_blocks(const struct check *c,
                                  const struct frag_layout *l,
                                  const struct frag_recorded_segment *s,
                                  const char *table)
{
    frag_addr at = s->addr;

    for (uint64_t k = s->first_block; k < s->first_block + s->block_count;
         k++) {
        const struct frag_recorded_block *b = &l->blocks[k];

        if (b->addr != at || !frag_is_range(b->addr, b->size) ||
            b->addr + b->size > s->addr + s->size)
            return broken(c, table, k,
                          "blocks that follow each other inside their segment");
        if (b->state > FRAG_ACTIVE_ALLOCATED ||
            (b->slot >= c->d->slots && b->slot != UINT32_MAX))
            return broken(c, table, k, "a block with a valid state and slot");
        at += b->size;
    }
    if (at != s->addr + s->size)
        return broken(c, table, s->first_block,
                      "blocks up to the end of the segment");
    return FRAG_OK;
}

static enum frag_err check_layout(const struct check *c,
                                  const struct frag_layout *l,
                                  const char *table)
{
    uint64_t blocks = 0;

    for (uint64_t i = 0; i < l->segment_count; i++) {
        const struct frag_recorded_segment *s = &l->segments[i];

        if (!frag_is_range(s->addr, s->size) ||
            (i && s->addr < s[-1].addr + s[-1].size))
            return broken(c, table, i,
                          "segments in ascending order that do not overlap");
        if (s->stream >= c->d->stream_count || s->pool >= c->d->pool_count)
            return broken(c, table, i,
                          "a segment with a valid stream and pool");
        if (s->first_block != blocks ||
            s->block_count > l->block_count - blocks)
            return broken(c, table, i, "blocks in the order of segments");
        blocks += s->block_count;
        FRAG_TRY(check_blocks(c, l, s, table));
    }
    if (blocks != l->block_count)
        return broken(c, table, l->segment_count, "a segment for every block");
    return FRAG_OK;
}

static enum frag_err check_stacks(const struct check *c)
{
    const struct frag_trace *t = c->t;

    for (uint32_t i = 0; i < t->stack_count; i++)
        if (t->stack_first[i] > t->stack_first[i + 1])
            return broken(c, "stacks/first", i, "ascending rows");
    for (uint64_t i = 0; t->stack_count && i < t->stack_first[t->stack_count];
         i++)
        if (t->frames[i].file >= t->string_count ||
            t->frames[i].function >= t->string_count)
            return broken(c, "stacks/frames", i, "rows of /strings");
    return FRAG_OK;
}

static enum frag_err check_device(const struct check *c)
{
    FRAG_TRY(check_slots(c));
    FRAG_TRY(check_stacks_used(c));
    FRAG_TRY(check_tables(c));
    FRAG_TRY(check_actions(c));
    FRAG_TRY(check_layout(c, &c->d->recorded.start, "recorded/start_segments"));
    return check_layout(c, &c->d->recorded.end, "recorded/end_segments");
}

enum frag_err trace_file_check(const struct frag_trace *t, struct frag_error *e)
{
    struct check c = {t, NULL, e};

    FRAG_TRY(check_stacks(&c));
    for (uint32_t i = 0; i < t->device_count; i++) {
        c.d = &t->devices[i];
        FRAG_TRY(check_device(&c));
    }
    return FRAG_OK;
}
