/* steps.c - scores the candidates of step_marks.c and period.c and makes the
 * steps from the best one. */
#include "traces/steps/steps.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "traces/steps/step_parts.h"

/* The least score of a period. Marks win against a period if the steps between
 * them have this likeness: marks say what the program means, but some are set
 * several times a step. */
static const double least_score = 0.5, least_likeness = 0.5;

/* Candidates of a source whose scores differ by less are equally good. Those at
 * which least is live are taken: steps are cut best where little is live, which
 * is where the program goes to its next input. */
static const double close_score[] = {
    [FRAG_STEPS_MARKS] = 0.1, [FRAG_STEPS_PERIOD] = 0.03};

/* The most that the steps of a period keep, relative to what they allocate at
 * once. The layers of a forward pass recur too, but keep what they allocate;
 * steps return most of it, even the steps of a leak. */
static const double most_kept = 0.25;

enum {
    FEW_STEPS = 16, /* fewer ranges, at each of which more is live, may be the
                       layers of a single forward pass */
};

/* ---- the shape of the events ---- */

/* A number for each event that does not depend on sizes: the age in events of
 * the block that a FREE frees, and the operation for all other events. */
static uint32_t *shape_of(const struct frag_device_trace *d,
                          const struct blocks *b)
{
    uint32_t *shape = malloc(((size_t)b->events + 1) * sizeof(*shape));

    for (uint64_t i = 0; shape && i < b->events; i++)
        shape[i] =
            d->op[i] == FRAG_FREE
                ? FRAG_OP_COUNT + (uint32_t)(i - b->lives[b->of[i]].alloc)
                : d->op[i];
    return shape;
}

/* ---- likeness ---- */

enum { BAGS = 1 << 16 };

/* How often each shape occurs among some events. Shapes that fall together
 * make steps more alike than they are by a negligible amount. */
static void fill_bag(const uint32_t *shape, uint64_t from, uint64_t to,
                     uint32_t *bag)
{
    for (uint64_t i = from; i < to; i++)
        bag[shape[i] * 2654435761u >> 16]++;
}

/* Empties the bag of the shapes of some events. */
static void empty_bag(const uint32_t *shape, uint64_t from, uint64_t to,
                      uint32_t *bag)
{
    if (to - from > BAGS / 16) {
        memset(bag, 0, BAGS * sizeof(*bag));
        return;
    }
    for (uint64_t i = from; i < to; i++)
        bag[shape[i] * 2654435761u >> 16] = 0;
}

/* The number of events that both ranges have in common. */
static uint64_t common(const uint32_t *shape, uint64_t a, uint64_t a_end,
                       uint64_t b, uint64_t b_end, uint32_t *bag)
{
    uint64_t same = 0;

    fill_bag(shape, a, a_end, bag);
    for (uint64_t i = b; i < b_end; i++) {
        uint32_t *n = &bag[shape[i] * 2654435761u >> 16];

        if (*n) {
            (*n)--;
            same++;
        }
    }
    empty_bag(shape, a, a_end, bag);
    return same;
}

/* Two ranges of consecutive events, and how much they have in common. */
struct pair {
    uint64_t from, at;      /* the first range ends where the second begins */
    uint64_t before, after; /* lengths */
};

/* The step that ends at boundary i and what follows it. What follows the last
 * boundary is not complete: both ranges are cut to the shorter one, and a short
 * rest says nothing. */
static struct pair pair_at(const struct bounds *b, uint64_t i, uint64_t end)
{
    const bool last = i + 1 == b->count;
    struct pair p = {b->at[i - 1], b->at[i], b->at[i] - b->at[i - 1],
                     (last ? end : b->at[i + 1]) - b->at[i]};

    if (last && p.after < p.before)
        p.before = p.after >= p.before / 4 ? p.after : 0;
    if (last && p.after > p.before)
        p.after = p.before;
    return p;
}

/* The share of the searched events that lie in steps. The events after the last
 * boundary belong to a step that is not complete, and it is no longer than the
 * longest complete one. */
static double covered(const struct search *s, const struct bounds *b)
{
    const uint64_t end = s->blocks->events, last = b->at[b->count - 1];
    const uint64_t from = s->device->initial < end ? s->device->initial : end;
    uint64_t longest = 0;

    for (uint64_t i = 1; i < b->count; i++)
        if (b->at[i] - b->at[i - 1] > longest)
            longest = b->at[i] - b->at[i - 1];
    if (end - last < longest)
        longest = end - last;
    return (double)(last - b->at[0] + longest) / (double)(end - from + 1);
}

static frag_size peak_within(const struct blocks *b, uint64_t from, uint64_t to)
{
    frag_size peak = 0;

    for (uint64_t i = from; i <= to; i++)
        peak = b->live[i] > peak ? b->live[i] : peak;
    return peak;
}

static bool rises_always(const frag_size *live, const struct bounds *b)
{
    for (uint64_t i = 1; i < b->count; i++)
        if (live[b->at[i]] <= live[b->at[i - 1]])
            return false;
    return true;
}

/* Whether the ranges between the boundaries can be steps, by what they keep. */
static bool returns_memory(const struct blocks *blocks, const struct bounds *b)
{
    const frag_size *live = blocks->live;
    double swing = 0;

    if (b->count <= FEW_STEPS && rises_always(live, b))
        return false;
    for (uint64_t i = 1; i < b->count; i++)
        swing += (double)(peak_within(blocks, b->at[i - 1], b->at[i]) -
                          live[b->at[i - 1]]);
    return (double)live[b->at[b->count - 1]] - (double)live[b->at[0]] <=
           most_kept * swing;
}

static double mean_live(const struct blocks *blocks, const struct bounds *b)
{
    double sum = 0;

    for (uint64_t i = 0; i < b->count; i++)
        sum += (double)blocks->live[b->at[i]];
    return b->count ? sum / (double)b->count : 0;
}

/* Sets the likeness of consecutive steps, and the score: the likeness times the
 * share of the events that lie in steps, and less for few steps, which may be
 * alike by chance. Where nothing can be compared, half of the events are
 * assumed to be alike. */
static void bounds_score(const struct search *s, struct bounds *b,
                         uint32_t *bag)
{
    uint64_t same = 0, all = 0;

    for (uint64_t i = 1; i < b->count; i++) {
        const struct pair p = pair_at(b, i, s->blocks->events);

        same += common(s->shape, p.from, p.from + p.before, p.at,
                       p.at + p.after, bag);
        all += p.before > p.after ? p.before : p.after;
    }
    b->live = mean_live(s->blocks, b);
    b->likeness = all ? (double)same / (double)all : NAN;
    b->score = b->count ? covered(s, b) : 0;
    b->score *= all ? b->likeness : 0.5;
    b->score *= (double)b->count / (double)(b->count + 1);
    if (b->source == FRAG_STEPS_PERIOD && !returns_memory(s->blocks, b))
        b->score = 0;
}

static enum frag_err score_all(struct search *s)
{
    uint32_t *bag = calloc(BAGS, sizeof(*bag));

    if (!bag)
        return FRAG_NOMEM;
    for (uint64_t i = 0; i < s->found.count; i++)
        bounds_score(s, &s->found.items[i], bag);
    free(bag);
    return FRAG_OK;
}

/* The candidate of a source with the best score or, of those that are equally
 * good, with the least live bytes. */
static const struct bounds *best_of(const struct candidates *c,
                                    enum frag_steps_source source)
{
    const struct bounds *best = NULL, *chosen;

    for (uint64_t i = 0; i < c->count; i++)
        if (c->items[i].source == source &&
            (!best || c->items[i].score > best->score))
            best = &c->items[i];
    chosen = best;
    for (uint64_t i = 0; best && i < c->count; i++)
        if (c->items[i].source == source &&
            c->items[i].score >= best->score - close_score[source] &&
            c->items[i].live < chosen->live)
            chosen = &c->items[i];
    return chosen;
}

static const struct bounds *choose(const struct candidates *c)
{
    const struct bounds *marks = best_of(c, FRAG_STEPS_MARKS);
    const struct bounds *period = best_of(c, FRAG_STEPS_PERIOD);

    if (period && period->score < least_score)
        period = NULL;
    if (!marks || !period)
        return marks ? marks : period;
    return marks->count > 1 && !(marks->likeness < least_likeness) ? marks
                                                                   : period;
}

/* ---- the steps ---- */

static enum frag_err make(const struct search *s, const struct bounds *b,
                          struct frag_steps *out)
{
    const frag_size *live = s->blocks->live;

    *out = (struct frag_steps){.likeness = NAN, .end = s->blocks->events};
    if (!b || !b->count)
        return FRAG_OK;
    out->source = b->source;
    out->mark = b->mark;
    out->likeness = b->likeness;
    out->live_after = live[b->at[b->count - 1]];
    if (b->count < 2)
        return FRAG_OK;
    out->items = calloc((size_t)b->count - 1, sizeof(*out->items));
    if (!out->items)
        return FRAG_NOMEM;
    for (; out->count + 1 < b->count; out->count++) {
        const uint64_t from = b->at[out->count], to = b->at[out->count + 1];

        out->items[out->count] = (struct frag_step){
            from, to, live[from], peak_within(s->blocks, from, to)};
    }
    return FRAG_OK;
}

static enum frag_err find(struct search *s, const char *mark,
                          struct frag_steps *out)
{
    FRAG_TRY(marks_candidates(s, mark));
    if (mark && !s->found.count)
        return frag_fail(s->error, FRAG_INVALID,
                         "%s has no mark named \"%.100s\"",
                         FRAG_DEVICE_NAME(s->device->device), mark);
    if (!mark)
        FRAG_TRY(period_candidates(s));
    FRAG_TRY(score_all(s));
    return make(s, choose(&s->found), out);
}

enum frag_err frag_steps_find(const struct frag_trace *t,
                              const struct frag_device_trace *d, uint64_t end,
                              const char *mark, struct frag_steps *out,
                              struct frag_error *e)
{
    struct blocks blocks;
    struct search s = {.trace = t, .device = d, .blocks = &blocks, .error = e};
    enum frag_err err = FRAG_NOMEM;
    uint32_t *shape;

    FRAG_TRY(blocks_open(d, end, &blocks, e));
    shape = shape_of(d, &blocks);
    s.shape = shape;
    if (shape)
        err = find(&s, mark, out);
    if (err == FRAG_NOMEM)
        err = frag_no_memory(e, "the search for steps");
    candidates_close(&s.found);
    free(shape);
    blocks_close(&blocks);
    return err;
}

void frag_steps_close(struct frag_steps *s)
{
    free(s->items);
    *s = (struct frag_steps){0};
}
