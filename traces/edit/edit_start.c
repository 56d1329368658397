/* edit_start.c - the segments and blocks that were held before the first event.
 *
 * An edit leaves them as they are if the blocks that were live then are the
 * same, in number, size, stream and pool, whatever it does to later events: the
 * recorded allocator was in that state before it saw any of them. A part that
 * begins later begins in a state that was not recorded. */
#include "traces/edit/edit_parts.h"
#include "traces/storage.h"

bool start_stays(const struct edit_track *t, const struct edit_source *s)
{
    const struct frag_device_trace *d = s->device;
    const struct columns *out = &t->d->events;
    bool same = d->recorded.start.segment_count && !t->begins_later &&
                t->d->initial == d->initial;

    for (uint64_t i = 0; same && i < d->initial; i++)
        same = out->bytes[i] == d->bytes[i] &&
               out->pool[i] == s->pools[d->pool[i]] &&
               t->d->streams[out->stream[i]] == d->streams[d->stream[i]];
    return same;
}

/* The row of a stream or a pool of the input among those of the output, which
 * has it. */
static uint32_t stream_row(const struct frag_device_trace *d, uint64_t handle)
{
    uint32_t row = 0;

    while (d->streams[row] != handle)
        row++;
    return row;
}

static uint32_t pool_row(const struct frag_device_trace *d,
                         struct frag_pool_id id)
{
    uint32_t row = 0;

    while (d->pools[row].owner != id.owner || d->pools[row].number != id.number)
        row++;
    return row;
}

enum frag_err start_copy(const struct frag_device_trace *from,
                         struct frag_device_trace *to, struct frag_trace *t)
{
    const struct frag_layout *l = &from->recorded.start;
    struct frag_recorded_segment *segments =
        storage_array(t, l->segment_count, sizeof(*segments));
    struct frag_recorded_block *blocks =
        storage_array(t, l->block_count, sizeof(*blocks));
    uint32_t *slots = storage_array(t, from->slots, sizeof(*slots));

    if (!segments || !blocks || !slots)
        return FRAG_NOMEM;
    for (uint64_t i = 0; i < from->initial; i++)
        slots[from->id[i]] = to->id[i];
    for (uint64_t i = 0; i < l->segment_count; i++) {
        segments[i] = l->segments[i];
        segments[i].stream =
            stream_row(to, from->streams[l->segments[i].stream]);
        segments[i].pool = pool_row(to, from->pools[l->segments[i].pool]);
    }
    for (uint64_t i = 0; i < l->block_count; i++) {
        blocks[i] = l->blocks[i];
        if (blocks[i].slot != UINT32_MAX)
            blocks[i].slot = slots[l->blocks[i].slot];
    }
    to->recorded.start = (struct frag_layout){l->segment_count, l->block_count,
                                              segments, blocks};
    return FRAG_OK;
}
