/* peak.c - keeps how the reserved bytes are used at the peak of reserved. A
 * picture is that breakdown after one event (picture.h).
 *
 * A program that fills its memory sets a new peak with every segment, and only
 * the last peak counts. The picture of a peak is therefore postponed until an
 * event would change it; a higher peak makes it unnecessary. Three changes end
 * the postponement: a held range is added or removed (the meter calls a
 * function before that), a segment gets its first owner, or a block moves. The
 * allocation or free of a block does not end it: the former state of its slot
 * is saved, and restored while the picture is taken.
 */
#include <stdlib.h>

#include "sim/replay/replay_parts.h"

frag_size run_free_bytes(const struct run *r)
{
    const struct tally *t = &r->tally;
    const frag_size active = t->allocated + t->pending;

    return t->reserved > active ? t->reserved - active : 0;
}

static enum frag_err
draw_picture(struct run *r, frag_stream stream, frag_pool pool, frag_size free,
             enum frag_err (*each)(void *, const struct extent *))
{
    picture_clear(&r->picture);
    for (uint32_t id = 0; id < r->trace->slots; id++) {
        enum slot_state state = state_of(r->tags[id]);

        if (state == SLOT_LIVE || state == SLOT_PENDING)
            picture_add(&r->picture, &r->slots[id].block);
    }
    return picture_take(&r->picture, &r->meter, stream, pool, free, each, r);
}

enum frag_err run_picture(struct run *r, frag_stream stream, frag_pool pool,
                          enum frag_err (*each)(void *, const struct extent *))
{
    return draw_picture(r, stream, pool, run_free_bytes(r), each);
}

struct frag_breakdown run_breakdown(const struct run *r, frag_size reserved)
{
    const struct tally *t = &r->tally;
    const struct picture *p = &r->picture;

    return (struct frag_breakdown){
        .requested = t->requested,
        .rounding = t->allocated - t->requested,
        .pending = t->pending,
        .free_here = p->here,
        .free_stream = p->other_stream,
        .free_pool = p->other_pool,
        .unusable = p->unusable + (reserved - t->reserved),
    };
}

/* --------------------------------------------------------- the peak --- */

/* The state of a slot before its block was allocated or freed. */
struct slot_before {
    struct frag_block block;
    uint32_t id, tag;
};

static void swap_slot(struct run *r, struct slot_before *b)
{
    const struct slot_before now = {r->slots[b->id].block, b->id,
                                    r->tags[b->id]};

    r->slots[b->id].block = b->block;
    r->tags[b->id] = b->tag;
    *b = now;
}

static void add_picture(struct run *r)
{
    struct frag_summary *s = &r->out.summary;
    struct peak *peak = &r->peak;

    for (size_t i = peak->count; i > 0; i--)
        swap_slot(r, &peak->before[i - 1]);
    if (draw_picture(r, peak->stream, peak->pool, peak->free, NULL) ==
        FRAG_OK) {
        s->external_at_peak =
            1 - (double)r->picture.largest / (double)peak->free;
        s->at_peak.free_here = r->picture.here;
        s->at_peak.free_stream = r->picture.other_stream;
        s->at_peak.free_pool = r->picture.other_pool;
        s->at_peak.unusable += r->picture.unusable;
    }
    for (size_t i = 0; i < peak->count; i++)
        swap_slot(r, &peak->before[i]);
}

void run_settle_peak(struct run *r)
{
    uint64_t before;

    if (!r->peak.postponed)
        return;
    r->peak.postponed = false;
    if (r->meter.reserved_peak > r->out.summary.peak_reserved)
        return; /* there is a higher peak */
    before = run_clock();
    add_picture(r);
    r->aside += run_clock() - before;
}

void run_note_slot(struct run *r, uint32_t id)
{
    enum { LEAST = 1024 };
    struct peak *peak = &r->peak;

    if (peak->count == peak->room) {
        const size_t more = peak->room ? 2 * peak->room : LEAST;
        struct slot_before *grown =
            peak->room <= r->trace->slots
                ? realloc(peak->before, more * sizeof(*grown))
                : NULL;

        if (!grown) { /* as many changes as slots, or no memory */
            run_settle_peak(r);
            return;
        }
        peak->before = grown;
        peak->room = more;
    }
    peak->before[peak->count++] =
        (struct slot_before){r->slots[id].block, id, r->tags[id]};
}

void run_peak(struct run *r, frag_stream stream, frag_pool pool)
{
    struct frag_summary *s = &r->out.summary;
    const struct tally *t = &r->tally;
    const frag_size peak = r->meter.reserved_peak;

    if (peak <= s->peak_reserved)
        return;
    s->peak_reserved = peak;
    s->peak_reserved_event = r->event;
    if (t->point && t->point->reserved_max < peak)
        r->tally.point->reserved_max = peak;
    r->requested_at_peak = t->requested;
    r->allocated_at_peak = t->allocated;
    s->external_at_peak = 0;
    r->picture.here = r->picture.other_stream = r->picture.other_pool = 0;
    r->picture.unusable = 0;
    s->at_peak = run_breakdown(r, peak);
    r->peak.stream = stream;
    r->peak.pool = pool;
    r->peak.free = run_free_bytes(r);
    r->peak.count = 0;
    r->peak.postponed = r->peak.free > 0;
}
