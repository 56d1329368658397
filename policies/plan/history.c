/* history.c - records the requests of one stream and pool, and detects when
 * they repeat.
 *
 * A repetition has a lag: each request has the size of the one `lag` requests
 * before, and the run counts them. When a run ends, the last CONTEXT sizes are
 * looked up by their hash; the distance to their latest earlier occurrence is
 * the next lag.
 */
#include <stdlib.h>

#include "policies/plan/step.h"

enum { FIRST_ROOM = 256 };

static uint64_t rotate(uint64_t x, unsigned by)
{
    return x << by | x >> (64 - by);
}

static uint64_t hash(uint64_t x)
{
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

/* The entry of `seen` for a context; different contexts may share one. */
static uint64_t *place_of(const struct history *h, uint64_t context)
{
    return &h->seen[hash(context) & (2 * h->room - 1)];
}

enum frag_err history_reserve(struct history *h)
{
    struct history wide = *h;

    if (h->count < h->room || h->room == HISTORY_MOST)
        return FRAG_OK;
    wide.room = h->room ? 2 * h->room : FIRST_ROOM;
    wide.ring = calloc(wide.room, sizeof(*wide.ring));
    wide.seen = calloc(2 * wide.room, sizeof(*wide.seen));
    if (!wide.ring || !wide.seen) {
        free(wide.ring);
        free(wide.seen);
        return FRAG_NOMEM;
    }
    for (uint64_t i = 0; i < h->count; i++) {
        wide.ring[i] = h->ring[i];
        *place_of(&wide, h->ring[i].context) = i + 1;
    }
    history_close(h);
    *h = wide;
    return FRAG_OK;
}

void history_close(struct history *h)
{
    free(h->ring);
    free(h->seen);
}

/* The context whose last size is `size`. */
static uint64_t context_with(const struct history *h, frag_size size)
{
    uint64_t context = rotate(hash(size), 1);

    if (h->count)
        context ^= rotate(history_at(h, h->count - 1)->context, 1);
    if (h->count >= CONTEXT)
        context ^=
            rotate(hash(history_at(h, h->count - CONTEXT)->size), CONTEXT + 1);
    return context;
}

/* The distance, in requests, from the last request to the latest earlier one
 * with the same context; 0: unknown. */
static uint64_t find_lag(const struct history *h, uint64_t context)
{
    const uint64_t now = h->count - 1, seen = *place_of(h, context);

    if (h->count < CONTEXT || !seen || now - (seen - 1) >= h->room ||
        history_at(h, seen - 1)->context != context)
        return 0;
    return now - (seen - 1);
}

uint64_t history_note(struct history *h, frag_size size)
{
    const uint64_t context = context_with(h, size);

    if (h->lag && history_at(h, h->count - h->lag)->size == size)
        h->run++;
    else
        h->lag = h->run = 0;
    *history_at(h, h->count) =
        (struct past_request){.size = size, .context = context};
    h->count++;
    if (!h->lag) {
        h->lag = find_lag(h, context);
        h->run = h->lag ? CONTEXT : 0;
    }
    *place_of(h, context) = h->count;
    return h->count - 1;
}

void history_freed(struct history *h, uint64_t number)
{
    const uint64_t life = h->count - number;

    if (life <= h->room)
        history_at(h, number)->life = (uint32_t)life;
}

uint32_t history_period(const struct history *h, uint64_t sure)
{
    if (!h->lag || h->run < h->lag + CONTEXT || h->run < sure ||
        2 * h->lag > h->room || 2 * h->lag > h->count)
        return 0;
    return (uint32_t)h->lag;
}
