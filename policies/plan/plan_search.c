/* plan_search.c - depth-first search for a plan below a ceiling.
 *
 * The search places items from offset 0 upwards. It selects one of the sections
 * with the lowest floor, and tries each waiting item that may lie on that
 * floor, then a gap: room left empty for good. A section can have a gap only
 * while its load is below the ceiling. The search abandons a state with a
 * wasteful gap (pile.c), and skips states that failed before. Failed states are
 * known by their hash; a collision can miss a plan, but never makes a wrong
 * one. A stretch is a run of sections that no waiting item connects with the
 * others; stretches are solved separately.
 */
#include "policies/plan/pile.h"

#include <stdlib.h>
#include <string.h>

/* The rule that selects among the sections with the lowest floor; see
 * lowest_section. */
enum rule { BY_PLACE, BY_REST, BY_FAILURES, RULES };

struct plan_search {
    struct pile pile;
    uint64_t *weight;  /* [item]: a higher weight is tried first */
    uint64_t *failed;  /* hashes of states without a solution */
    uint32_t *choices; /* stack of items to try */
    size_t choice_count;
    enum rule rule;
    struct plan_listener *listener;
    uint64_t told; /* steps that were left when the listener was last called */
};

enum { FAILED_BITS = 18 };

/* Sections [from, to); no waiting item also lives outside of them. */
struct plan_stretch {
    uint32_t from, to;
};

static bool solve(struct plan_search *s, struct plan_stretch all);

/* The hash of a stretch's state, never 0. */
static uint64_t hash(const struct pile *p, struct plan_stretch r)
{
    uint64_t h = r.from;

    for (uint32_t k = r.from; k < r.to; k++) {
        const struct pile_column *c = &p->columns[k];

        h = mix(h + c->mark) + c->floor * 0x9e3779b97f4a7c15u +
            (c->floor - c->gap);
    }
    return h | 1;
}

/* ------------------------------------------------- which section --- */

/* The number of choices at section k, counted up to `most`. */
static uint32_t ways(const struct pile *p, uint32_t k, uint32_t most)
{
    const struct pile_column *c = &p->columns[k];
    const uint32_t *const end = p->members + p->first[k + 1];
    uint32_t count = c->floor + c->rest < p->ceiling;

    for (const uint32_t *m = p->members + p->first[k]; m < end; m++) {
        if (count >= most)
            break;
        count += p->top[*m] == c->floor;
    }
    return count;
}

/* Whether the rule prefers section j to section k, which have equally many
 * choices. */
static bool is_sooner(const struct plan_search *s, uint32_t j, uint32_t k)
{
    const struct pile_column *a = &s->pile.columns[j], *b = &s->pile.columns[k];

    return s->rule == BY_REST
               ? a->rest > b->rest
               : s->rule == BY_FAILURES && a->failures > b->failures;
}

static uint64_t lowest_floor(const struct pile *p, struct plan_stretch r)
{
    uint64_t floor = UINT64_MAX;

    for (uint32_t k = r.from; k < r.to; k++)
        if (p->columns[k].floor < floor)
            floor = p->columns[k].floor;
    return floor;
}

/* Selects the section with the fewest choices among those with the lowest
 * floor; among equals the one that the rule prefers, then the first. */
static uint32_t lowest_section(const struct plan_search *s,
                               struct plan_stretch r)
{
    const uint64_t floor = lowest_floor(&s->pile, r);
    uint32_t best = r.from, fewest = UINT32_MAX;

    for (uint32_t k = r.from; k < r.to; k++) {
        uint32_t count;

        if (s->pile.columns[k].floor > floor)
            continue;
        count = s->rule == BY_FAILURES ? 1 : ways(&s->pile, k, fewest + 1);
        if (count < fewest || (count == fewest && is_sooner(s, k, best))) {
            fewest = count;
            best = k;
        }
    }
    return best;
}

/* ---------------------------------------------------- the choices --- */

/* Pushes the items that may lie on the floor of section k, best first. */
static size_t push_choices(struct plan_search *s, uint32_t k)
{
    const struct pile *p = &s->pile;
    const uint32_t *const end = p->members + p->first[k + 1];
    uint32_t *list = s->choices + s->choice_count;
    size_t count = 0;

    for (const uint32_t *m = p->members + p->first[k]; m < end; m++) {
        size_t at = count;

        if (p->top[*m] > p->columns[k].floor)
            continue;
        for (; at && s->weight[list[at - 1]] < s->weight[*m]; at--)
            list[at] = list[at - 1];
        list[at] = *m;
        count++;
    }
    s->choice_count += count;
    return count;
}

/* The lowest level above the floor at which an item of section k can lie if
 * none lies on the floor: it then lies on another item. */
static uint64_t next_level(const struct pile *p, uint32_t k)
{
    const uint64_t floor = p->columns[k].floor;
    const uint32_t *const end = p->members + p->first[k + 1];
    struct plan_stretch reach = {k, k + 1};
    uint64_t level = UINT64_MAX;

    for (const uint32_t *m = p->members + p->first[k]; m < end; m++) {
        const struct item *item = &p->p->items[*m];

        if (p->top[*m] > floor) {
            level = p->top[*m] < level ? p->top[*m] : level;
            continue;
        }
        reach.from = item->from < reach.from ? item->from : reach.from;
        reach.to = item->to > reach.to ? item->to : reach.to;
    }
    for (uint32_t i = 0; i < p->p->count; i++) {
        const struct item *item = &p->p->items[i];

        if (p->top[i] < level && p->top[i] + item->size < level &&
            item->from < reach.to && item->to > reach.from &&
            !(item->from <= k && k < item->to))
            level = p->top[i] + item->size;
    }
    return level;
}

/* Tries a gap in section k, up to the next level. */
static bool try_gap(struct plan_search *s, struct plan_stretch r, uint32_t k)
{
    const struct pile_point back = pile_here(&s->pile);
    const struct pile_column *c = &s->pile.columns[k];
    uint64_t level;

    if (c->floor + c->rest >= s->pile.ceiling)
        return false;
    level = next_level(&s->pile, k);
    if (level == UINT64_MAX)
        return false;
    if (pile_leave(&s->pile, k, level) && solve(s, r))
        return true;
    pile_undo(&s->pile, back);
    return false;
}

/* ---------------------------------------------------- the search --- */

/* Tries all choices at one section of a stretch. */
static bool branch(struct plan_search *s, struct plan_stretch r)
{
    const uint32_t k = lowest_section(s, r);
    const uint64_t level = s->pile.columns[k].floor;
    const size_t base = s->choice_count, count = push_choices(s, k);
    bool found = false;

    for (size_t c = 0; c < count && !found; c++) {
        const struct pile_point back = pile_here(&s->pile);

        found =
            pile_place(&s->pile, s->choices[base + c], level) && solve(s, r);
        if (!found)
            pile_undo(&s->pile, back);
        if (!*s->pile.steps)
            break;
    }
    s->choice_count = base;
    return found || (*s->pile.steps && try_gap(s, r, k));
}

/* Tells the listener which steps were used since it was last called. If it
 * cancels the plan, no step is left. */
static void tell(struct plan_search *s)
{
    if (!plan_tell(s->listener, s->told - *s->pile.steps))
        *s->pile.steps = 0;
    s->told = *s->pile.steps;
}

/* Solves one stretch, unless its state failed before or no step is left. */
static bool solve_one(struct plan_search *s, struct plan_stretch r)
{
    uint64_t h = hash(&s->pile, r);
    uint64_t *known = &s->failed[h >> (64 - FAILED_BITS)];

    if (*known == h || !*s->pile.steps)
        return false;
    --*s->pile.steps;
    if (s->told - *s->pile.steps >= TELL_STEPS)
        tell(s);
    if (branch(s, r))
        return true;
    if (*s->pile.steps)
        *known = h;
    return false;
}

/* The next stretch with waiting items, from section `from` on; empty if there
 * is none. */
static struct plan_stretch next_stretch(const struct pile *p, uint32_t from,
                                        uint32_t end)
{
    struct plan_stretch r;

    while (from < end && !p->columns[from].waiting)
        from++;
    r.from = r.to = from;
    while (r.to < end && p->columns[r.to].bridges)
        r.to++;
    if (r.to < end)
        r.to++;
    return r;
}

/* Solves all stretches of [all.from, all.to). They are independent, so one
 * without a solution means that there is none at all. */
static bool solve(struct plan_search *s, struct plan_stretch all)
{
    uint32_t from = all.from;

    for (;;) {
        struct plan_stretch r = next_stretch(&s->pile, from, all.to);

        if (r.from == r.to)
            return true;
        if (!solve_one(s, r))
            return false;
        from = r.to;
    }
}

/* ------------------------------------------------- open and close --- */

static uint32_t most_members(const struct pile *p)
{
    uint32_t most = 0;

    for (uint32_t k = 0; k < p->p->sections; k++)
        if (p->first[k + 1] - p->first[k] > most)
            most = p->first[k + 1] - p->first[k];
    return most;
}

static bool make_storage(struct plan_search *s, const struct problem *p)
{
    const size_t n = p->count + (size_t)1;

    if (!pile_open(&s->pile, p))
        return false;
    s->weight = calloc(n, sizeof(*s->weight));
    s->failed = calloc((size_t)1 << FAILED_BITS, sizeof(*s->failed));
    s->choices =
        calloc(n * (most_members(&s->pile) + (size_t)1), sizeof(*s->choices));
    return s->weight && s->failed && s->choices;
}

struct plan_search *plan_search_open(const struct problem *p,
                                     struct plan_listener *listener)
{
    struct plan_search *s = calloc(1, sizeof(*s));

    if (s && make_storage(s, p)) {
        s->listener = listener;
        return s;
    }
    plan_search_close(s);
    return NULL;
}

void plan_search_close(struct plan_search *s)
{
    if (!s)
        return;
    free(s->choices);
    free(s->failed);
    free(s->weight);
    pile_close(&s->pile);
    free(s);
}

/* Sets the weights, which order the choices: one of four measures, with noise
 * that grows with the seed. */
static void weigh(struct plan_search *s, const struct problem *p, uint64_t seed)
{
    const uint64_t noise = seed / SEARCH_ORDERS * 128;

    for (uint32_t i = 0; i < p->count; i++) {
        const struct item *item = &p->items[i];
        const uint64_t length = item->to - item->from;
        const uint64_t measures[] = {item->size * length, item->size, length,
                                     UINT32_MAX / item->size};

        s->weight[i] = measures[seed % 4] *
                       (1024 + mix(seed * 0x9e3779b97f4a7c15u + i) %
                                   (1 + (noise < 4096 ? noise : 4096)));
    }
}

enum verdict plan_search(struct plan_search *s, uint64_t ceiling, uint64_t seed,
                         uint64_t *steps, uint64_t *offsets)
{
    const struct problem *p = s->pile.p;
    bool fits;

    pile_reset(&s->pile, ceiling, steps);
    memset(s->failed, 0, sizeof(*s->failed) << FAILED_BITS);
    s->choice_count = 0;
    s->told = *steps;
    weigh(s, p, seed);
    s->rule = (enum rule)(seed / 4 % RULES);
    for (uint32_t k = 0; k < p->sections; k++)
        if (s->pile.columns[k].rest > ceiling)
            return DOES_NOT_FIT;
    fits = solve(s, (struct plan_stretch){0, p->sections});
    plan_tell(s->listener, s->told - *steps);
    if (s->pile.no_memory)
        return UNKNOWN;
    if (fits)
        memcpy(offsets, s->pile.offsets, p->count * sizeof(*offsets));
    return fits ? FITS : *steps ? DOES_NOT_FIT : UNKNOWN;
}
