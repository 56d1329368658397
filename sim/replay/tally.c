/* tally.c - sums the bytes after each event up to peaks, means and the series.
 * A window is the events since the reserved bytes changed last. The functions
 * that run at every event are inline in tally.h. */
#include "sim/replay/tally.h"

static void lower_to(frag_size *least, frag_size x)
{
    if (x < *least)
        *least = x;
}

static void add(struct tally_sum *sum, uint64_t x)
{
    sum->low += x & UINT32_MAX;
    sum->high += (x >> 32) + (sum->low >> 32);
    sum->low &= UINT32_MAX;
}

double tally_double(struct tally_sum sum)
{
    return (double)sum.high * 0x1p32 + (double)sum.low;
}

double tally_fragmentation(const struct tally *t)
{
    if (!t->held)
        return t->fragmentation_sum;
    return t->fragmentation_sum + (double)t->held_events -
           tally_double(t->held_allocated) / (double)t->held;
}

/* Divides only when `reserved' has changed, so that the sum of the quotients
 * does not depend on the windows. */
static void add_held(struct tally *t, uint64_t events)
{
    if (t->reserved != t->held) {
        t->fragmentation_sum = tally_fragmentation(t);
        t->held = t->reserved;
        t->held_events = 0;
        t->held_allocated = (struct tally_sum){0};
    }
    t->held_events += events;
    add(&t->held_allocated, t->allocated_sum);
}

static void start_window(struct tally *t, uint64_t event)
{
    t->from = event;
    t->requested_max = t->allocated_max = t->split_max = 0;
    t->requested_sum = t->allocated_sum = 0;
    t->allocated_min = UINT64_MAX;
}

void tally_open(struct tally *t)
{
    *t = (struct tally){0};
    start_window(t, 0);
}

void tally_adopt(struct tally *t, uint64_t event)
{
    t->peak_requested = t->requested;
    t->peak_allocated = t->allocated;
    t->peak_active = t->allocated + t->pending;
    t->peak_split = t->split;
    t->reserved_at_peak_requested = t->reserved;
    start_window(t, event);
}

void tally_raise(struct tally *t)
{
    const frag_size quanta = t->quanta_mark - t->quanta_left;
    frag_size left;

    frag_raise(&t->peak_quanta, quanta);
    frag_raise(&t->demand, quanta + t->refused);
    left = t->demand - t->refused;
    t->quanta_mark = left < t->peak_quanta ? left : t->peak_quanta;
    t->quanta_left = t->quanta_mark - quanta;
}

static void fold_point(const struct tally *t, struct frag_point *p)
{
    frag_raise(&p->requested_max, t->requested_max);
    frag_raise(&p->allocated_max, t->allocated_max);
    lower_to(&p->allocated_min, t->allocated_min);
    frag_raise(&p->active_max, t->allocated_max + t->pending);
    frag_raise(&p->reserved_max, t->reserved);
    lower_to(&p->reserved_min, t->reserved);
}

void tally_fold(struct tally *t, uint64_t event)
{
    const uint64_t events = event - t->from;

    if (!events)
        return;
    if (t->requested_max > t->peak_requested) {
        t->peak_requested = t->requested_max;
        t->reserved_at_peak_requested = t->reserved;
    }
    frag_raise(&t->peak_allocated, t->allocated_max);
    frag_raise(&t->peak_active, t->allocated_max + t->pending);
    frag_raise(&t->peak_split, t->split_max);
    add_held(t, events);
    add(&t->reserved_area, events * t->reserved);
    add(&t->requested_area, t->requested_sum);
    if (t->point)
        fold_point(t, t->point);
    start_window(t, event);
}

void tally_point(struct tally *t, struct frag_point *point, uint64_t event,
                 frag_time time)
{
    *point = (struct frag_point){.event = event,
                                 .time = time,
                                 .allocated_min = UINT64_MAX,
                                 .reserved_min = UINT64_MAX};
    t->point = point;
}

void tally_point_end(struct tally *t, frag_size largest_free)
{
    struct frag_point *p = t->point;

    p->requested = t->requested;
    p->allocated = t->allocated;
    p->active = t->allocated + t->pending;
    p->reserved = t->reserved;
    p->largest_free = largest_free;
    t->point = NULL;
}
