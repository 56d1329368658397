/* heights.c - joins the ranges that were reserved at some time. */
#include "sim/cli/figures/heights.h"

#include <stdlib.h>

static int by_address(const void *left, const void *right)
{
    const struct reserved_range *a = left, *b = right;

    return a->addr < b->addr ? -1 : a->addr > b->addr;
}

static void join(struct heights *h, const struct reserved_range *next)
{
    struct reserved_range *last = h->count ? &h->ranges[h->count - 1] : NULL;

    if (last && next->addr - last->addr <= last->size) {
        frag_size end = next->addr - last->addr + next->size;

        last->size = end > last->size ? end : last->size;
    } else {
        h->ranges[h->count++] = *next;
    }
}

bool heights_make(const struct spans *reserved, struct heights *out)
{
    struct reserved_range *all = calloc(reserved->count + 1, sizeof(*all));
    struct heights h = {calloc(reserved->count + 1, sizeof(*h.ranges)), 0, 0};

    for (size_t i = 0; all && i < reserved->count; i++)
        all[i] = (struct reserved_range){reserved->items[i].addr,
                                         reserved->items[i].size, 0};
    if (all)
        qsort(all, reserved->count, sizeof(*all), by_address);
    for (size_t i = 0; all && h.ranges && i < reserved->count; i++)
        join(&h, &all[i]);
    for (size_t i = 0; i < h.count; i++) {
        h.ranges[i].below = h.bytes;
        h.bytes += h.ranges[i].size;
    }
    free(all);
    *out = h;
    return all && h.ranges;
}

frag_size height_of(const struct heights *h, frag_addr addr)
{
    size_t low = 0, high = h->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (h->ranges[middle].addr <= addr)
            low = middle + 1;
        else
            high = middle;
    }
    return low ? h->ranges[low - 1].below + addr - h->ranges[low - 1].addr : 0;
}
