/* service_order.c - decides when a stream must wait before it may use memory
 * that another stream freed. It stores the freed address ranges and, for each
 * pair of streams, which frees of one the other has already waited for. It
 * calls `wait` and never CUDA itself. */
#include "real/torch/service_order.h"

#include <stdlib.h>

struct freed_range {
    struct range range; /* first */
    frag_stream stream;
    uint64_t free; /* its number among the frees of its stream, from 1 */
};

static frag_addr end_of(const struct range *r)
{
    return r->at + r->size;
}

static void wait_for(struct order *o, frag_stream stream, frag_stream other)
{
    o->wait(o->user, stream, other);
    o->after[stream][other] = o->frees[other];
}

static void wait_for_all(struct order *o, frag_stream stream)
{
    for (frag_stream other = 0; other < o->streams; other++)
        if (other != stream && o->after[stream][other] < o->frees[other])
            wait_for(o, stream, other);
}

void order_stream(struct order *o, frag_stream stream)
{
    o->streams = stream + 1u;
    for (frag_stream other = 0; other < stream; other++)
        wait_for(o, stream, other);
}

static void add(struct order *o, frag_addr at, frag_size size,
                frag_stream stream, uint64_t number)
{
    struct freed_range *f = malloc(sizeof(*f));

    if (!f) {
        o->coarse = true;
        return;
    }
    *f = (struct freed_range){
        .range = {.at = at, .size = size}, .stream = stream, .free = number};
    ranges_add(&o->freed, &f->range);
}

/* Removes [at, end) from the range, which overlaps it. */
static void cut(struct order *o, struct freed_range *f, frag_addr at,
                frag_addr end)
{
    const struct freed_range old = *f;
    const frag_addr old_end = end_of(&old.range);

    ranges_remove(&o->freed, &f->range);
    free(f);
    if (old.range.at < at)
        add(o, old.range.at, at - old.range.at, old.stream, old.free);
    if (end < old_end)
        add(o, end, old_end - end, old.stream, old.free);
}

/* Removes [at, at + size) from the set of freed ranges and waits for their
 * streams. Returns how many of the bytes were in the set. */
static frag_size claim(struct order *o, frag_addr at, frag_size size,
                       frag_stream stream)
{
    frag_size known = 0;
    struct range *r;

    while ((r = ranges_overlap(&o->freed, at, size))) {
        struct freed_range *f = (struct freed_range *)r;
        const frag_addr low = r->at > at ? r->at : at;
        const frag_addr high = end_of(r) < at + size ? end_of(r) : at + size;

        known += high - low;
        if (f->stream != stream && o->after[stream][f->stream] < f->free)
            wait_for(o, stream, f->stream);
        cut(o, f, at, at + size);
    }
    return known;
}

void order_freed(struct order *o, frag_addr addr, frag_size size,
                 frag_stream stream)
{
    o->frees[stream]++;
    if (o->streams < 2 || o->coarse)
        return;
    add(o, addr, size, stream, o->frees[stream]);
}

void order_taken(struct order *o, frag_addr addr, frag_size size,
                 frag_stream stream)
{
    if (o->streams < 2)
        return;
    if (claim(o, addr, size, stream) < size || o->coarse)
        wait_for_all(o, stream);
}

void order_synchronized(struct order *o)
{
    for (uint32_t a = 0; a < o->streams; a++)
        for (uint32_t b = 0; b < o->streams; b++)
            o->after[a][b] = o->frees[b];
}

void order_close(struct order *o)
{
    struct range *r;

    while ((r = ranges_pop(&o->freed)))
        free(r);
}
