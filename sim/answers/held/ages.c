/* ages.c - the ages of blocks at a moment. */
#include <math.h>

#include "sim/answers/held/holders.h"

/* The number of boundaries of steps up to the event. */
static uint64_t boundaries(const struct frag_steps *s, uint64_t event)
{
    uint64_t low = 0, high = s->count;

    while (low < high) {
        const uint64_t middle = low + (high - low) / 2;

        if (s->items[middle].from <= event)
            low = middle + 1;
        else
            high = middle;
    }
    return low && low == s->count && event >= s->items[low - 1].to ? low + 1
                                                                   : low;
}

uint64_t holders_age_steps(const struct holders *h, uint64_t event)
{
    const uint64_t born = boundaries(&h->steps, event);

    return born ? boundaries(&h->steps, h->event) - born : UINT64_MAX;
}

double holders_age_seconds(const struct holders *h, uint64_t event)
{
    const struct frag_device_trace *d = h->device;

    if (!d->time || event < d->initial || d->time[h->event] < d->time[event])
        return NAN;
    return (double)(d->time[h->event] - d->time[event]) / 1e9;
}
