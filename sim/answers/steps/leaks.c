/* leaks.c - groups the blocks that cross boundaries of steps, and judges the
 * growth of each group. */
#include "sim/answers/steps/leaks.h"

#include <gsl/gsl_sort.h>
#include <gsl/gsl_statistics_double.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "policies/policy.h"
#include "sim/answers/sites.h"
#include "traces/grow.h"
#include "traces/steps/blocks.h"
#include "traces/steps/complete.h"

const char *const leaks_verdict_names[] = {"none", "leak", "unknown"};

/* A block that is live at one boundary of steps or more. */
struct crossing {
    uint64_t key[3];      /* of its group */
    uint64_t first, last; /* boundaries at which it is live */
    uint64_t alloc;       /* event */
    frag_size bytes;
    bool found; /* its group leaks */
};

struct hunt {
    const struct frag_trace *t;
    const struct frag_device_trace *d;
    struct leaks *out;
    uint64_t *at;    /* boundaries: out->steps.count + 1 events */
    uint64_t bounds; /* their number */
    uint64_t from;   /* the first boundary that is examined */
    struct crossing *items;
    uint64_t count, room;
    frag_size *all, *kept; /* of a group, at each boundary */
    struct frag_error *e;
};

/* ---- the blocks ---- */

/* A block that the program has freed is not its any more, although a stream may
 * still use it. */
static void end_pending(const struct frag_device_trace *d, struct blocks *b)
{
    for (uint64_t i = 0; i < b->events; i++)
        if (d->op[i] == FRAG_FREE_REQUESTED && b->lives[b->of[i]].free > i)
            b->lives[b->of[i]].free = i;
}

/* The number of boundaries before the event, or, with `too`, at it. */
static uint64_t bounds_until(const struct hunt *h, uint64_t event, bool too)
{
    uint64_t low = 0, high = h->bounds;

    while (low < high) {
        const uint64_t mid = low + (high - low) / 2;

        if (h->at[mid] < event || (too && h->at[mid] == event))
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

static void set_key(const struct hunt *h, struct crossing *c)
{
    const struct frag_device_trace *d = h->d;
    const struct frag_frame *site =
        d->stack ? site_of(h->t, d->stack[c->alloc]) : NULL;

    if (site) {
        c->key[0] = (uint64_t)site->file + 1;
        c->key[1] = site->function;
        c->key[2] = site->line;
    } else {
        c->key[1] = c->bytes;
        c->key[2] = d->stream[c->alloc];
    }
}

static enum frag_err add_crossing(struct hunt *h, const struct block_life *b)
{
    struct crossing c = {
        .first = bounds_until(h, b->alloc, true),
        .alloc = b->alloc,
        .bytes = frag_round_up(h->d->bytes[b->alloc], FRAG_QUANTUM),
    };
    const uint64_t end = bounds_until(h, b->free, true);

    if (c.first >= end)
        return FRAG_OK;
    c.last = end - 1;
    set_key(h, &c);
    if (!GROW(h->items, h->room, h->count + 1))
        return frag_no_memory(h->e, "the blocks that outlive a step");
    h->items[h->count++] = c;
    return FRAG_OK;
}

static enum frag_err list_crossings(struct hunt *h)
{
    enum frag_err err = FRAG_OK;
    struct blocks b;

    FRAG_TRY(blocks_open(h->d, h->at[h->bounds - 1], &b, h->e));
    end_pending(h->d, &b);
    for (uint64_t k = 0; err == FRAG_OK && k < b.count; k++)
        err = add_crossing(h, &b.lives[k]);
    blocks_close(&b);
    return err;
}

/* ---- a group ---- */

static int by_key(const void *a, const void *b)
{
    const struct crossing *x = a, *y = b;
    const int order = memcmp(x->key, y->key, sizeof(x->key));

    return order ? order : x->alloc < y->alloc ? -1 : x->alloc > y->alloc;
}

/* Whether it lives on through a whole step after its own. Of a block that was
 * allocated in the last step this is not known: it does not count. */
static bool is_kept(const struct crossing *c)
{
    return c->last > c->first;
}

/* The boundaries at which a quantity is known: what the last step keeps is not.
 */
static uint64_t count_known(const struct hunt *h, bool replaced)
{
    return replaced ? h->bounds : h->bounds - 1;
}

static void sum_group(struct hunt *h, const struct crossing *c, uint64_t n)
{
    memset(h->all, 0, h->bounds * sizeof(*h->all));
    memset(h->kept, 0, h->bounds * sizeof(*h->kept));
    for (uint64_t i = 0; i < n; i++)
        for (uint64_t k = c[i].first; k <= c[i].last; k++) {
            h->all[k] += c[i].bytes;
            h->kept[k] += is_kept(&c[i]) ? c[i].bytes : 0;
        }
}

/* Whether the block is one of those that leak. */
static bool is_leaked(const struct crossing *c, const struct leak *leak)
{
    return leak->replaced || is_kept(c);
}

/* Sets the sizes and the place, by the blocks of the examined steps. */
static void describe(const struct hunt *h, const struct crossing *c, uint64_t n,
                     struct leak *leak)
{
    leak->first = c->alloc;
    leak->least = UINT64_MAX;
    for (uint64_t i = 0; i < n; i++) {
        if (c[i].first < h->from || !is_leaked(&c[i], leak))
            continue;
        leak->stack = h->d->stack ? h->d->stack[c[i].alloc] : 0;
        leak->stream = h->d->stream[c[i].alloc];
        leak->least = c[i].bytes < leak->least ? c[i].bytes : leak->least;
        leak->most = c[i].bytes > leak->most ? c[i].bytes : leak->most;
    }
}

/* Counts the blocks of all complete steps that are live after the last one. The
 * blocks of the setup are none of the leak. */
static void count_left(const struct hunt *h, const struct crossing *c,
                       uint64_t n, struct leak *leak)
{
    for (uint64_t i = 0; i < n; i++)
        if (c[i].first && c[i].last + 1 == h->bounds &&
            is_leaked(&c[i], leak)) {
            leak->blocks++;
            leak->held += c[i].bytes;
        }
}

/* Keeps what the group holds where each step begins. */
static bool copy_values(const struct hunt *h, struct leak *leak)
{
    const frag_size *values = leak->replaced ? h->all : h->kept;

    leak->value_count = count_known(h, leak->replaced);
    leak->values = malloc(leak->value_count * sizeof(*values));
    if (leak->values)
        memcpy(leak->values, values, leak->value_count * sizeof(*values));
    return leak->values != NULL;
}

static enum frag_err add_leak(struct hunt *h, const struct crossing *c,
                              uint64_t n, struct leak *leak)
{
    struct leaks *out = h->out;

    describe(h, c, n, leak);
    count_left(h, c, n, leak);
    if (!GROW(out->items, out->room, out->count + 1) || !copy_values(h, leak))
        return frag_no_memory(h->e, "the leaks");
    out->items[out->count++] = *leak;
    return FRAG_OK;
}

/* Judges the group, and marks its blocks if it leaks. */
static enum frag_err judge_group(struct hunt *h, struct crossing *c, uint64_t n)
{
    struct leak leak = {0};

    sum_group(h, c, n);
    FRAG_TRY(growth_judge(h->kept + h->from, count_known(h, false) - h->from,
                          &leak.growth, h->e));
    if (!leak.growth.grows) {
        leak.replaced = true;
        FRAG_TRY(growth_judge(h->all + h->from, count_known(h, true) - h->from,
                              &leak.growth, h->e));
    }
    if (!leak.growth.grows)
        return FRAG_OK;
    for (uint64_t i = 0; i < n; i++)
        c[i].found = true;
    return add_leak(h, c, n, &leak);
}

static enum frag_err judge_groups(struct hunt *h)
{
    qsort(h->items, h->count, sizeof(*h->items), by_key);
    for (uint64_t i = 0, n; i < h->count; i += n) {
        n = 1;
        while (i + n < h->count && !memcmp(h->items[i].key, h->items[i + n].key,
                                           sizeof(h->items->key)))
            n++;
        FRAG_TRY(judge_group(h, &h->items[i], n));
    }
    return FRAG_OK;
}

/* Joins the blocks without stacks whose groups do not leak: their sizes may
 * vary. The blocks with stacks have been judged. */
static void join_sizes(struct hunt *h)
{
    uint64_t left = 0;

    for (uint64_t i = 0; i < h->count; i++)
        if (!h->items[i].found && !h->items[i].key[0]) {
            h->items[left] = h->items[i];
            h->items[left++].key[1] = 0;
        }
    h->count = left;
}

/* ---- the answer ---- */

static int by_slope(const void *a, const void *b)
{
    const struct leak *x = a, *y = b;

    if (x->growth.slope != y->growth.slope)
        return x->growth.slope > y->growth.slope ? -1 : 1;
    return x->first > y->first ? -1 : x->first < y->first;
}

static void add_up(struct leaks *l)
{
    if (l->count)
        qsort(l->items, l->count, sizeof(*l->items), by_slope);
    for (uint64_t i = 0; i < l->count; i++) {
        l->bytes_per_step += l->items[i].growth.slope;
        l->held += l->items[i].held;
    }
    l->verdict = l->count ? LEAKS_FOUND : LEAKS_NONE;
}

/* Compares what the job needed when it died with what it had had before. */
static enum frag_err explain_death(const struct hunt *h)
{
    struct leaks *l = h->out;
    frag_size live;
    struct blocks b;

    if (l->died == FRAG_NEVER)
        return FRAG_OK;
    FRAG_TRY(blocks_open(h->d, l->died, &b, h->e));
    live = b.live[b.events] + l->request;
    blocks_close(&b);
    l->needed = live > l->held ? live - l->held : 0;
    for (uint64_t i = 0; i < l->steps.count; i++)
        if (l->steps.items[i].peak > l->served)
            l->served = l->steps.items[i].peak;
    l->by_growth = l->count && l->needed <= l->served;
    return FRAG_OK;
}

static enum frag_err time_steps(const struct hunt *h)
{
    struct leaks *out = h->out;
    const uint64_t n = out->steps.count - out->from;
    double *seconds = malloc((size_t)(n + 1) * sizeof(*seconds));

    if (!seconds)
        return frag_no_memory(h->e, "the times of the steps");
    for (uint64_t i = 0; i < n; i++) {
        const struct frag_step *s = &out->steps.items[out->from + i];

        seconds[i] =
            (double)(h->d->time[s->to - 1] - h->d->time[s->from]) * 1e-9;
    }
    gsl_sort(seconds, 1, n);
    out->seconds_per_step = gsl_stats_median_from_sorted_data(seconds, 1, n);
    free(seconds);
    return FRAG_OK;
}

static enum frag_err hunt_open(struct hunt *h)
{
    const struct frag_steps *s = &h->out->steps;

    h->bounds = s->count + 1;
    h->at = calloc(h->bounds, sizeof(*h->at));
    h->all = calloc(h->bounds, sizeof(*h->all));
    h->kept = calloc(h->bounds, sizeof(*h->kept));
    if (!h->at || !h->all || !h->kept)
        return frag_no_memory(h->e, "the steps");
    for (uint64_t i = 0; i < s->count; i++)
        h->at[i] = s->items[i].from;
    h->at[s->count] = s->items[s->count - 1].to;
    return FRAG_OK;
}

static void hunt_close(struct hunt *h)
{
    free(h->at);
    free(h->all);
    free(h->kept);
    free(h->items);
}

static enum frag_err examine(struct hunt *h)
{
    FRAG_TRY(hunt_open(h));
    FRAG_TRY(list_crossings(h));
    FRAG_TRY(judge_groups(h));
    join_sizes(h);
    FRAG_TRY(judge_groups(h));
    if (h->d->time)
        FRAG_TRY(time_steps(h));
    add_up(h->out);
    return explain_death(h);
}

/* Sets the first step to examine: the second half of the steps, or the last
 * ones that can show growth, but not the first two steps. What the last step
 * keeps is not known. False if there are too few. */
static bool choose_steps(struct leaks *out)
{
    const uint64_t n = out->steps.count;
    const uint64_t needed = GROWTH_LEAST_STEPS + 1;

    if (n < LEAKS_LEAST_STEPS)
        return false;
    out->from = n / 2 < n - needed ? n / 2 : n - needed;
    for (uint64_t i = out->from; i < n; i++)
        if (out->steps.items[i].peak > out->peak)
            out->peak = out->steps.items[i].peak;
    return true;
}

enum frag_err leaks_find(const struct frag_trace *t,
                         const struct frag_device_trace *d, const char *mark,
                         struct leaks *out, struct frag_error *e)
{
    struct leaks l = {.verdict = LEAKS_UNKNOWN,
                      .seconds_per_step = NAN,
                      .died = frag_fatal_request(d)};
    struct hunt h = {.t = t, .d = d, .out = &l, .e = e};
    const uint64_t end = l.died == FRAG_NEVER ? d->count : l.died;
    enum frag_err err = FRAG_OK;

    l.request = l.died == FRAG_NEVER ? 0 : d->bytes[l.died];
    FRAG_TRY(frag_steps_find(t, d, end, mark, &l.steps, e));
    if (choose_steps(&l)) {
        h.from = l.from;
        err = examine(&h);
        hunt_close(&h);
    }
    if (err == FRAG_OK)
        *out = l;
    else
        leaks_close(&l);
    return err;
}

void leaks_close(struct leaks *l)
{
    frag_steps_close(&l->steps);
    for (uint64_t i = 0; i < l->count; i++)
        free(l->items[i].values);
    free(l->items);
    *l = (struct leaks){0};
}

uint64_t leaks_steps_left(const struct leaks *l, frag_size used,
                          frag_size capacity)
{
    if (l->verdict != LEAKS_FOUND)
        return UINT64_MAX;
    if (used >= capacity)
        return 0;
    return (uint64_t)((double)(capacity - used) / l->bytes_per_step);
}
