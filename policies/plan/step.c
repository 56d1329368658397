/* step.c - makes the plan of one period for plan_online, and finds the slot of
 * each request in it.
 */
#include <stdlib.h>

#include "policies/mechanism/segments.h"
#include "policies/plan/plan_parts.h"
#include "policies/plan/step.h"

/* A context that identifies one slot: no other slot's request had it. */
struct landmark {
    uint64_t context;
    uint32_t slot;
};

/* ------------------------------------------- which requests recur --- */

/* A step while it is planned. Request 0 is the first of the older of the last
 * two periods. Slot 0 is the request with which the circle starts. */
struct draft {
    const struct history *h;
    uint64_t start;  /* number of request 0 in the history */
    uint32_t period; /* requests */
    uint32_t first;  /* the request of slot 0 */
    uint32_t *lives; /* [request]: its lifetime in requests; 0: not planned */
    uint32_t *order; /* slots in the order of the future's requests */
    struct frag_future future;
    struct frag_future_request *asked;
    struct made_plan plan;
};

static const struct past_request *request(const struct draft *d, uint32_t k)
{
    return history_at(d->h, d->start + k);
}

/* The longer of the two lifetimes of a request, if the older block was freed
 * within a period; else 0. The newer block may still be live. */
static uint32_t life_of(const struct draft *d, uint32_t k)
{
    const uint32_t older = request(d, k)->life;
    const uint32_t newer = request(d, k + d->period)->life;
    const uint32_t life = older > newer ? older : newer;

    return older && life <= d->period ? life : 0;
}

/* Sets d->lives. True if at least nine tenths of the bytes are freed within a
 * period. */
static bool recurs(struct draft *d)
{
    frag_size asked = 0, returned = 0;

    for (uint32_t k = 0; k < d->period; k++) {
        const frag_size size = frag_round_up(request(d, k)->size, FRAG_QUANTUM);

        d->lives[k] = life_of(d, k);
        asked += size;
        returned += d->lives[k] ? size : 0;
    }
    return returned >= asked - asked / 10;
}

/* Sets d->first to the request before which the fewest planned bytes are live;
 * among equals the first one. NOMEM. */
static enum frag_err find_start(struct draft *d)
{
    const uint32_t period = d->period;
    frag_size *live = calloc(2 * (size_t)period, sizeof(*live));

    if (!live)
        return FRAG_NOMEM;
    for (uint32_t k = 0; k < period; k++)
        if (d->lives[k]) {
            live[k + 1] += frag_round_up(request(d, k)->size, FRAG_QUANTUM);
            live[k + d->lives[k]] -=
                frag_round_up(request(d, k)->size, FRAG_QUANTUM);
        }
    for (uint32_t k = 1; k < 2 * period; k++)
        live[k] += live[k - 1];
    d->first = 0;
    for (uint32_t k = 0; k < period; k++) {
        live[k] += live[k + period];
        if (live[k] < live[d->first])
            d->first = k;
    }
    free(live);
    return FRAG_OK;
}

/* ------------------------------------------------------- the plan --- */

static uint32_t request_of(const struct draft *d, uint32_t slot)
{
    return (uint32_t)(((uint64_t)slot + d->first) % d->period);
}

/* Whether a slot's block is still live when the circle starts again; such a
 * block keeps its place for the whole circle. */
static bool wraps(const struct draft *d, uint32_t slot)
{
    return slot + (uint64_t)d->lives[request_of(d, slot)] > d->period;
}

/* Appends the planned requests to the future: the wrapping ones, or the others.
 */
static void fill_future(struct draft *d, bool wrapping)
{
    for (uint32_t slot = 0; slot < d->period; slot++) {
        const uint32_t k = request_of(d, slot);

        if (!d->lives[k] || wraps(d, slot) != wrapping)
            continue;
        d->order[d->future.count] = slot;
        d->asked[d->future.count++] = (struct frag_future_request){
            .size = request(d, k)->size,
            .allocs_at = wrapping ? 0 : 2 * (uint64_t)slot + 1,
            .frees_at = 2 * (slot + (uint64_t)d->lives[k])};
    }
}

/* ---------------------------------------------------- the region --- */

static int by_value(const void *a, const void *b)
{
    const frag_size *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

/* The number of the interval that starts at `at`, which is an edge. */
static uint32_t interval_at(const frag_size *edges, uint32_t count,
                            frag_size at)
{
    const frag_size *found =
        bsearch(&at, edges, count, sizeof(*edges), by_value);

    return (uint32_t)(found - edges);
}

/* Divides the region into intervals at the places where blocks begin or end,
 * and sets the intervals of each slot. NOMEM. */
static enum frag_err make_intervals(struct plan_step *s)
{
    frag_size *edges = calloc(2 * (size_t)s->period + 1, sizeof(*edges));
    uint32_t n = 0, count = 0;

    if (!edges)
        return FRAG_NOMEM;
    for (uint32_t i = 0; i < s->period; i++)
        if (s->slots[i].to) {
            edges[n++] = s->slots[i].offset;
            edges[n++] = s->slots[i].offset +
                         frag_round_up(s->slots[i].size, FRAG_QUANTUM);
        }
    qsort(edges, n, sizeof(*edges), by_value);
    for (uint32_t i = 0; i < n; i++)
        if (!count || edges[i] > edges[count - 1])
            edges[count++] = edges[i];
    for (uint32_t i = 0; i < s->period; i++) {
        struct plan_slot *slot = &s->slots[i];
        const frag_size end =
            slot->offset + frag_round_up(slot->size, FRAG_QUANTUM);

        if (slot->to) {
            slot->from = interval_at(edges, count, slot->offset);
            slot->to = interval_at(edges, count, end);
        }
    }
    free(edges);
    s->occupied = calloc(count / 64 + (size_t)1, sizeof(*s->occupied));
    return s->occupied ? FRAG_OK : FRAG_NOMEM;
}

/* The bits of a slot's intervals in word w of `occupied`. */
static uint64_t bits(uint32_t w, const struct plan_slot *slot)
{
    const uint32_t base = 64 * w;
    const uint32_t low = slot->from > base ? slot->from - base : 0;
    const uint32_t high = slot->to - base < 64 ? slot->to - base : 64;

    return UINT64_MAX << low & UINT64_MAX >> (64 - high);
}

bool step_occupy(struct plan_step *s, uint32_t number)
{
    const struct plan_slot *slot = &s->slots[number];

    if (!slot->to)
        return false;
    for (uint32_t w = slot->from / 64; w <= (slot->to - 1) / 64; w++)
        if (s->occupied[w] & bits(w, slot))
            return false;
    for (uint32_t w = slot->from / 64; w <= (slot->to - 1) / 64; w++)
        s->occupied[w] |= bits(w, slot);
    return true;
}

void step_vacate(struct plan_step *s, uint32_t number)
{
    const struct plan_slot *slot = &s->slots[number];

    for (uint32_t w = slot->from / 64; w <= (slot->to - 1) / 64; w++)
        s->occupied[w] &= ~bits(w, slot);
}

/* ------------------------------------------- the slot of a request --- */

static int by_context(const void *a, const void *b)
{
    const struct landmark *x = a, *y = b;

    return (x->context > y->context) - (x->context < y->context);
}

/* Sorts the contexts and drops those of several slots. */
static void set_landmarks(const struct draft *d, struct plan_step *s)
{
    struct landmark *marks = s->landmarks;

    for (uint32_t i = 0; i < s->period; i++)
        marks[i] = (struct landmark){
            request(d, request_of(d, i) + d->period)->context, i};
    qsort(marks, s->period, sizeof(*marks), by_context);
    for (uint32_t from = 0, to; from < s->period; from = to) {
        for (to = from + 1; to < s->period; to++)
            if (marks[to].context != marks[from].context)
                break;
        if (to == from + 1)
            marks[s->landmark_count++] = marks[from];
    }
}

uint32_t step_follow(struct plan_step *s, frag_size size, uint64_t context)
{
    const struct landmark here = {.context = context}, *mark;
    uint32_t slot = s->next;

    if (s->slots[slot].size != size) {
        mark = bsearch(&here, s->landmarks, s->landmark_count,
                       sizeof(*s->landmarks), by_context);
        if (!mark || s->slots[mark->slot].size != size)
            return NO_SLOT;
        slot = mark->slot;
    }
    s->next = slot + 1 < s->period ? slot + 1 : 0;
    return slot;
}

/* -------------------------------------------------- make and close --- */

void step_close(struct plan_step *s)
{
    if (!s)
        return;
    free(s->landmarks);
    free(s->occupied);
    free(s->slots);
    free(s);
}

static enum frag_err fill_step(const struct draft *d, struct plan_step *s)
{
    s->period = d->period;
    s->next = (d->period - d->first) % d->period;
    s->height = d->plan.height * FRAG_QUANTUM;
    s->slots = calloc(d->period, sizeof(*s->slots));
    s->landmarks = calloc(d->period, sizeof(*s->landmarks));
    if (!s->slots || !s->landmarks)
        return FRAG_NOMEM;
    for (uint32_t i = 0; i < d->period; i++)
        s->slots[i].size = request(d, request_of(d, i))->size;
    for (size_t i = 0; i < d->future.count; i++) {
        s->slots[d->order[i]].offset = d->plan.offsets[i] * FRAG_QUANTUM;
        s->slots[d->order[i]].to =
            1; /* planned; until the intervals are known */
    }
    set_landmarks(d, s);
    return make_intervals(s);
}

static enum frag_err make(struct draft *d, uint64_t effort,
                          struct plan_step **out)
{
    struct plan_step *s;
    enum frag_err err;

    FRAG_TRY(find_start(d));
    fill_future(d, true);
    fill_future(d, false);
    d->future.requests = d->asked;
    FRAG_TRY(plan_make(&d->future, effort, PLAN_BRIEFLY, &d->plan));
    s = calloc(1, sizeof(*s));
    err = s ? fill_step(d, s) : FRAG_NOMEM;
    free(d->plan.offsets);
    if (err == FRAG_OK)
        *out = s;
    else
        step_close(s);
    return err;
}

enum frag_err step_make(const struct history *h, uint32_t period,
                        uint64_t effort, struct plan_step **out)
{
    struct draft d = {
        .h = h, .start = h->count - 2 * (uint64_t)period, .period = period};
    enum frag_err err = FRAG_NOMEM;

    d.lives = calloc(period, sizeof(*d.lives));
    d.order = calloc(period, sizeof(*d.order));
    d.asked = calloc(period, sizeof(*d.asked));
    if (d.lives && d.order && d.asked) {
        *out = NULL;
        err = recurs(&d) ? make(&d, effort, out) : FRAG_OK;
    }
    free(d.asked);
    free(d.order);
    free(d.lives);
    return err;
}
