/* plan_make.c - makes a plan from a future: divides the trace into sections,
 * runs the greedy passes, and then the search or more passes. plan.c describes
 * the stages.
 */
#include <stdlib.h>
#include <string.h>

#include "policies/plan/plan_parts.h"

/* ------------------------------------------------------- sections --- */

/* The free of an item. */
struct death {
    uint64_t at; /* event */
    uint32_t item;
};

static int by_time(const void *a, const void *b)
{
    const struct death *x = a, *y = b;

    return (x->at > y->at) - (x->at < y->at);
}

/* Computes the sections that each item lives in, from the order of requests and
 * frees. Items that are never freed live to the end. Returns the number of
 * sections. */
static uint32_t cut(const struct frag_future *f, struct item *items,
                    const struct death *deaths, uint32_t death_count)
{
    uint32_t section = 0, d = 0;
    bool died = false;

    for (uint32_t i = 0; i < f->count; i++) {
        while (d < death_count && deaths[d].at < f->requests[i].allocs_at) {
            items[deaths[d++].item].to = section + 1;
            died = true;
        }
        section += died;
        died = false;
        items[i].size = (f->requests[i].size + FRAG_QUANTUM - 1) / FRAG_QUANTUM;
        items[i].from = section;
        items[i].to = UINT32_MAX;
    }
    for (uint32_t i = 0; i < f->count; i++)
        if (items[i].to > section + 1)
            items[i].to = section + 1;
    return section + 1;
}

static enum frag_err make_problem(const struct frag_future *f,
                                  struct item *items, struct problem *p)
{
    struct death *deaths = malloc((f->count + 1) * sizeof(*deaths));
    uint32_t count = 0;

    if (!deaths)
        return FRAG_NOMEM;
    for (uint32_t i = 0; i < f->count; i++)
        if (f->requests[i].frees_at != FRAG_NEVER)
            deaths[count++] = (struct death){f->requests[i].frees_at, i};
    qsort(deaths, count, sizeof(*deaths), by_time);
    *p = (struct problem){.count = (uint32_t)f->count,
                          .sections = cut(f, items, deaths, count),
                          .items = items};
    free(deaths);
    return FRAG_OK;
}

/* --------------------------------------------------------- making --- */

/* An item and its weight in the order of a pass. */
struct rank {
    double weight;
    uint32_t
        level; /* items of a higher level come first, whatever the weight */
    uint32_t item;
};

struct making {
    struct problem p;
    uint64_t *loads; /* [section]: live quanta */
    uint64_t load;   /* the largest load: the lower bound of the height */
    struct item *items;
    struct rank *ranks;
    uint32_t *order; /* items in the order of a pass */
    uint64_t *trial; /* offsets of the plan being made */
    struct made_plan *best;
    uint64_t steps; /* steps left */
    enum plan_care care;
    struct plan_listener listener;
};

/* Computes the loads; no plan is lower than the largest. NOMEM. */
static enum frag_err find_loads(struct making *m)
{
    uint64_t *loads = calloc(m->p.sections + (size_t)1, sizeof(*loads));

    m->loads = loads;
    if (!loads)
        return FRAG_NOMEM;
    for (uint32_t i = 0; i < m->p.count; i++) {
        loads[m->items[i].from] += m->items[i].size;
        loads[m->items[i].to] -= m->items[i].size;
    }
    for (uint32_t k = 0; k < m->p.sections; k++) {
        loads[k] += k ? loads[k - 1] : 0;
        m->load = loads[k] > m->load ? loads[k] : m->load;
    }
    return FRAG_OK;
}

/* The highest level first, then the largest weight; among equals, the earliest
 * request first. */
static int by_weight(const void *a, const void *b)
{
    const struct rank *x = a, *y = b;

    if (x->level != y->level)
        return x->level > y->level ? -1 : 1;
    if (x->weight != y->weight)
        return x->weight > y->weight ? -1 : 1;
    return (x->item > y->item) - (x->item < y->item);
}

static uint64_t height_of(const struct problem *p, const uint64_t *offsets)
{
    uint64_t height = 0;

    for (uint32_t i = 0; i < p->count; i++)
        if (offsets[i] + p->items[i].size > height)
            height = offsets[i] + p->items[i].size;
    return height;
}

/* Keeps the trial if it is lower than the best so far. */
static void keep(struct making *m)
{
    uint64_t *offsets = m->trial;
    const uint64_t height = height_of(&m->p, offsets);

    if (height >= m->best->height)
        return;
    m->trial = m->best->offsets;
    m->best->offsets = offsets;
    m->best->height = height;
}

static void spend(struct making *m, uint64_t steps)
{
    m->steps = steps < m->steps ? m->steps - steps : 0;
}

static bool done(const struct making *m)
{
    return m->best->height == m->load || !m->steps || m->listener.stopped;
}

/* Sorts m->ranks by weight and makes one greedy pass in that order. NOMEM,
 * CANCELLED. */
static enum frag_err pass(struct making *m, struct greedy *g)
{
    uint64_t steps;

    qsort(m->ranks, m->p.count, sizeof(*m->ranks), by_weight);
    for (uint32_t n = 0; n < m->p.count; n++)
        m->order[n] = m->ranks[n].item;
    FRAG_TRY(plan_greedy(g, m->order, m->trial, &steps));
    spend(m, steps);
    return FRAG_OK;
}

static double measure(const struct item *item, int kind)
{
    const double size = (double)item->size;
    const double length = (double)(item->to - item->from);

    return kind == 0 ? size : kind == 1 ? size * length : length;
}

enum { BY_SIZE, MEASURES = 3 };

/* Ranks the items by a measure: `kind` for those that live in a critical
 * section, which come first, size for the others. c may be NULL: no section is
 * critical, and `kind` is for all. */
static void rank(struct making *m, int kind, const struct critical *c)
{
    for (uint32_t i = 0; i < m->p.count; i++) {
        const struct item *item = &m->items[i];
        const uint32_t level = c ? plan_critical_level(c, item) : 0;

        m->ranks[i] = (struct rank){measure(item, c && !level ? BY_SIZE : kind),
                                    level, i};
    }
}

/* Makes a pass for each measure. *best is the measure of the lowest plan. */
static enum frag_err try_orders(struct making *m, struct greedy *g, int *best)
{
    uint64_t lowest = UINT64_MAX;

    for (int kind = 0; kind < MEASURES && (kind == 0 || !done(m)); kind++) {
        rank(m, kind, NULL);
        FRAG_TRY(pass(m, g));
        keep(m);
        if (m->best->height < lowest) {
            lowest = m->best->height;
            *best = kind;
        }
    }
    return FRAG_OK;
}

/* Makes passes with critical sections first, until `rest` steps are left. Each
 * plan that is too high has a further critical section. */
static enum frag_err learn_sections(struct making *m, struct greedy *g,
                                    struct critical *c, int kind, uint64_t rest)
{
    bool learned = true;

    plan_critical_reset(c);
    while (learned && !done(m) && m->steps > rest) {
        rank(m, kind, c);
        FRAG_TRY(pass(m, g));
        learned = plan_critical_learn(c, m->trial, height_of(&m->p, m->trial));
        keep(m);
    }
    return FRAG_OK;
}

/* Spends half of the steps on critical sections, with each measure in turn. */
static enum frag_err try_sections(struct making *m, struct greedy *g)
{
    struct critical *c = plan_critical_open(&m->p, m->loads);
    const uint64_t share = m->steps / 2 / MEASURES;
    uint64_t rest = m->steps;
    enum frag_err err = c ? FRAG_OK : FRAG_NOMEM;

    for (int kind = MEASURES; kind-- > 0 && err == FRAG_OK;) {
        rest -= share;
        err = learn_sections(m, g, c, kind, rest);
    }
    plan_critical_close(c);
    return err;
}

/* Repeats the pass of one measure; before each repetition the items that end
 * above the bound move forward in the order (squeaky wheel optimization). */
static enum frag_err improve(struct making *m, struct greedy *g, int kind)
{
    rank(m, kind, NULL);
    while (!done(m)) {
        FRAG_TRY(pass(m, g));
        for (uint32_t n = 0; n < m->p.count; n++) {
            const uint32_t i = m->ranks[n].item;

            if (m->trial[i] + m->items[i].size > m->load)
                m->ranks[n].weight *= 1.5;
        }
        keep(m);
    }
    return FRAG_OK;
}

/* Runs the search below `ceiling` once for each seed of a round, until it has
 * an answer. Each round has twice the steps per seed of the round before. */
static enum verdict try_seeds(struct making *m, struct plan_search *s,
                              uint64_t ceiling, uint64_t round)
{
    const uint64_t share = (uint64_t)FIRST_SHARE << (round < 32 ? round : 32);
    enum verdict found = UNKNOWN;

    for (uint64_t k = 0; k < SEARCH_ORDERS && !done(m) && found == UNKNOWN;
         k++) {
        uint64_t left = share < m->steps ? share : m->steps;

        m->steps -= left;
        found =
            plan_search(s, ceiling, round * SEARCH_ORDERS + k, &left, m->trial);
        m->steps += left;
    }
    if (found == FITS)
        keep(m);
    return found;
}

/* Bisects between `low`, the lowest height that is not excluded, and the height
 * of the best plan. */
static void halve(struct making *m, struct plan_search *s, uint64_t low,
                  uint64_t round)
{
    while (!done(m) && low < m->best->height) {
        const uint64_t middle = low + (m->best->height - low) / 2;

        if (try_seeds(m, s, middle, round) != FITS)
            low = middle + 1;
    }
}

/* A plan of the bound's height is found within these steps, or not at all. */
enum { BOUND_STEPS = 8000000 };

/* Searches for a plan of the bound's height with half of the steps, at most
 * BOUND_STEPS, then for any lower plan with the others. NOMEM, CANCELLED. */
static enum frag_err search(struct making *m)
{
    struct plan_search *s = plan_search_open(&m->p, &m->listener);
    const uint64_t half = m->steps / 2;
    const uint64_t rest = m->steps - (half < BOUND_STEPS ? half : BOUND_STEPS);
    uint64_t low = m->load;

    if (!s)
        return FRAG_NOMEM;
    m->steps -= rest;
    for (uint64_t round = 0; !done(m) && low == m->load; round++)
        low += try_seeds(m, s, low, round) == DOES_NOT_FIT ? 1 : 0;
    m->steps += rest;
    for (uint64_t round = 0; !done(m) && low < m->best->height; round++)
        halve(m, s, low, round);
    plan_search_close(s);
    return m->listener.stopped ? FRAG_CANCELLED : FRAG_OK;
}

/* Runs all greedy passes. */
static enum frag_err make_passes(struct making *m, struct greedy *g)
{
    const bool more = m->p.count > SEARCH_ITEMS;
    int best = 0;

    FRAG_TRY(try_orders(m, g, &best));
    if (more && m->care == PLAN_THOROUGHLY)
        FRAG_TRY(try_sections(m, g));
    return more ? improve(m, g, best) : FRAG_OK;
}

static enum frag_err make(struct making *m, const struct frag_future *f)
{
    struct greedy *g;
    enum frag_err err;

    FRAG_TRY(make_problem(f, m->items, &m->p));
    FRAG_TRY(find_loads(m));
    g = plan_greedy_open(&m->p, m->care, &m->listener);
    err = g ? make_passes(m, g) : FRAG_NOMEM;
    plan_greedy_close(g);
    if (err == FRAG_OK && m->p.count <= SEARCH_ITEMS)
        err = search(m);
    return err;
}

enum frag_err plan_make(const struct frag_future *f, uint64_t effort,
                        enum plan_care care, struct made_plan *out)
{
    const size_t n = f->count + 1;
    struct made_plan best = {.height = UINT64_MAX};
    struct making m = {.best = &best,
                       .steps = effort,
                       .care = care,
                       .listener = {.future = f, .most = effort}};
    enum frag_err err = FRAG_NOMEM;

    if (f->count >= UINT32_MAX)
        return FRAG_UNSUPPORTED;
    best.offsets = calloc(n, sizeof(*best.offsets));
    m.trial = calloc(n, sizeof(*m.trial));
    m.items = calloc(n, sizeof(*m.items));
    m.ranks = calloc(n, sizeof(*m.ranks));
    m.order = calloc(n, sizeof(*m.order));
    if (best.offsets && m.trial && m.items && m.ranks && m.order)
        err = make(&m, f);
    free(m.loads);
    free(m.order);
    free(m.ranks);
    free(m.items);
    free(m.trial);
    if (err == FRAG_OK)
        *out = best;
    else
        free(best.offsets);
    return err;
}
