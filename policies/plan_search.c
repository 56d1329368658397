/* Depth-first search for a plan below a ceiling.
 *
 * Blocks are laid from the bottom: of the lowest sections one is settled, by
 * one of the blocks that may lie on its floor or by leaving room there for
 * good, which a section can afford only as far as its load is below the
 * ceiling. A floor rises at once to where anything could still lie. Not tried:
 * room left that a block still to come would fit in, states that failed before
 * (by hash: a collision can lose a plan, never make a wrong one). Stretches of
 * sections that nothing still to come connects are solved apart.
 */
#include <stdlib.h>
#include <string.h>

#include "policies/plan_parts.h"

#define NOBODY UINT32_MAX

/* A section as it stands: what lies in it so far ends at `floor`, the top
 * `floor - gap` of that left empty for good; `rest` is still to come. */
struct column {
    uint64_t floor, gap, rest;
    uint64_t mark;     /* hash of the items still to come */
    uint32_t waiting;  /* their number */
    uint32_t bridges;  /* of those, the ones that go on into the next section */
    uint32_t witness;  /* one that could lie on the floor, as far as is known */
    uint64_t failures; /* times it was too full, older ones counting less */
};

/* Which of the lowest sections is settled first; see lowest_section. */
enum rule { BY_PLACE, BY_REST, BY_FAILURES, RULES };

/* What a step has overwritten. */
struct change {
    uint64_t *at, was;
};

struct search {
    const struct problem *p;
    struct column *columns;
    uint64_t *top;     /* of an item: the highest floor below it */
    uint64_t *offsets; /* of a placed item, else UINT64_MAX */
    uint64_t *weight;  /* higher is tried first */
    uint32_t *first;   /* of a section: where its items start in `members` */
    uint32_t *members;
    uint64_t *dirty; /* sections whose witness may have gone, a bit each */
    size_t words;
    struct change *trail;
    size_t changes, room;
    uint32_t *placed; /* items, in the order they were placed */
    uint32_t placed_count;
    uint64_t *failed;  /* hashes of states without a solution */
    uint32_t *choices; /* a stack */
    size_t choice_count;
    uint64_t ceiling, *steps;
    enum rule rule;
    bool missing; /* the host had no memory */
};

enum { FAILED_BITS = 18 };

static uint64_t mix(uint64_t x)
{
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

/* Without it the search ends: a step that is not written down cannot be taken
 * back. */
static bool more_room(struct search *s)
{
    struct change *trail = realloc(s->trail, 2 * s->room * sizeof(*s->trail));

    if (!trail) {
        s->missing = true;
        *s->steps = 0;
        return false;
    }
    s->trail = trail;
    s->room *= 2;
    return true;
}

static bool is_placed(const struct search *s, uint32_t i)
{
    return s->offsets[i] != UINT64_MAX;
}

static void set(struct search *s, uint64_t *at, uint64_t value)
{
    if (s->changes == s->room && !more_room(s))
        return;
    s->trail[s->changes++] = (struct change){at, *at};
    *at = value;
}

static void mark_dirty(struct search *s, const struct item *item)
{
    const uint32_t first = item->from / 64, last = (item->to - 1) / 64;
    const uint64_t low = UINT64_MAX << item->from % 64;
    const uint64_t high = UINT64_MAX >> (63 - (item->to - 1) % 64);

    if (first == last) {
        s->dirty[first] |= low & high;
        return;
    }
    s->dirty[first] |= low;
    for (uint32_t w = first + 1; w < last; w++)
        s->dirty[w] = UINT64_MAX;
    s->dirty[last] |= high;
}

/* Whether an item still to come fits where the search has left room for good:
 * then a solution with it there exists if any does, and is found elsewhere. */
static bool wastes_room(const struct search *s, uint32_t k)
{
    for (uint32_t m = s->first[k]; m < s->first[k + 1]; m++) {
        const struct item *item = &s->p->items[s->members[m]];
        uint64_t low = 0, high = UINT64_MAX;

        if (is_placed(s, s->members[m]) ||
            item->size > s->columns[k].floor - s->columns[k].gap)
            continue;
        for (uint32_t j = item->from; j < item->to; j++) {
            const struct column *c = &s->columns[j];

            low = c->gap > low ? c->gap : low;
            high = c->floor < high ? c->floor : high;
            if (low + item->size > high)
                break;
        }
        if (low + item->size <= high)
            return true;
    }
    return false;
}

/* Nothing more will lie in section k below `level`. */
static bool raise(struct search *s, uint32_t k, uint64_t level)
{
    struct column *c = &s->columns[k];

    if (*s->steps)
        --*s->steps;
    if (level + c->rest > s->ceiling) {
        c->failures++;
        return false;
    }
    set(s, &c->floor, level);
    for (uint32_t m = s->first[k]; m < s->first[k + 1]; m++) {
        uint32_t i = s->members[m];

        if (is_placed(s, i) || s->top[i] >= level)
            continue;
        set(s, &s->top[i], level);
        mark_dirty(s, &s->p->items[i]);
    }
    return true;
}

/* The lowest place that an item still to come may have in section k. */
static uint64_t lowest_top(struct search *s, uint32_t k)
{
    struct column *c = &s->columns[k];
    uint64_t lowest = UINT64_MAX;

    if (*s->steps)
        --*s->steps;
    for (uint32_t m = s->first[k]; m < s->first[k + 1]; m++) {
        uint32_t i = s->members[m];

        if (is_placed(s, i) || s->top[i] >= lowest)
            continue;
        lowest = s->top[i];
        c->witness = i;
        if (lowest == c->floor)
            break;
    }
    return lowest;
}

static bool settle_column(struct search *s, uint32_t k)
{
    struct column *c = &s->columns[k];
    uint64_t lowest;

    if (!c->waiting || (c->witness != NOBODY && !is_placed(s, c->witness) &&
                        s->top[c->witness] <= c->floor))
        return true;
    lowest = lowest_top(s, k);
    return lowest <= c->floor || (raise(s, k, lowest) && !wastes_room(s, k));
}

/* Raises floors as far as what is still to come forces them up; false if
 * something then no longer fits. */
static bool settle(struct search *s)
{
    bool any = true;

    while (any) {
        any = false;
        for (size_t w = 0; w < s->words; w++)
            while (s->dirty[w]) {
                uint32_t bit = (uint32_t)__builtin_ctzll(s->dirty[w]);

                s->dirty[w] &= s->dirty[w] - 1;
                any = true;
                if (!settle_column(s, (uint32_t)w * 64 + bit))
                    return false;
            }
    }
    return true;
}

static void count_in(struct search *s, uint32_t i, uint32_t by)
{
    const struct item *item = &s->p->items[i];

    for (uint32_t k = item->from; k < item->to; k++) {
        struct column *c = &s->columns[k];

        c->waiting += by;
        c->bridges += k + 1 < item->to ? by : 0;
        c->mark ^= mix(i + 1);
    }
}

static bool place(struct search *s, uint32_t i, uint64_t level)
{
    const struct item *item = &s->p->items[i];

    s->offsets[i] = level;
    s->placed[s->placed_count++] = i;
    count_in(s, i, UINT32_MAX);
    mark_dirty(s, item);
    for (uint32_t k = item->from; k < item->to; k++) {
        struct column *c = &s->columns[k];

        set(s, &c->rest, c->rest - item->size);
        set(s, &c->gap, level + item->size);
        if (!raise(s, k, level + item->size))
            return false;
    }
    return settle(s);
}

/* Where the search stands, to come back to. */
struct point {
    size_t changes;
    uint32_t placed;
};

static struct point here(const struct search *s)
{
    return (struct point){s->changes, s->placed_count};
}

static void take_back(struct search *s, struct point to)
{
    memset(s->dirty, 0, s->words * sizeof(*s->dirty));
    while (s->changes > to.changes) {
        const struct change *c = &s->trail[--s->changes];

        *c->at = c->was;
    }
    while (s->placed_count > to.placed) {
        uint32_t i = s->placed[--s->placed_count];

        s->offsets[i] = UINT64_MAX;
        count_in(s, i, 1);
    }
}

/* Sections [from, to), of which no item leads out. */
struct stretch {
    uint32_t from, to;
};

static bool solve(struct search *s, struct stretch all);

/* The state of a stretch, never 0. */
static uint64_t hash(const struct search *s, struct stretch r)
{
    uint64_t h = r.from;

    for (uint32_t k = r.from; k < r.to; k++) {
        const struct column *c = &s->columns[k];

        h = mix(h + c->mark) + c->floor * 0x9e3779b97f4a7c15u +
            (c->floor - c->gap);
    }
    return h | 1;
}

/* How many ways there are to go on at section k, at most `most`. */
static uint32_t ways(const struct search *s, uint32_t k, uint32_t most)
{
    const struct column *c = &s->columns[k];
    uint32_t count = c->floor + c->rest < s->ceiling;

    for (uint32_t m = s->first[k]; m < s->first[k + 1] && count < most; m++) {
        uint32_t i = s->members[m];

        count += !is_placed(s, i) && s->top[i] == c->floor;
    }
    return count;
}

/* Whether of two equally open sections j is to be settled before k. */
static bool is_sooner(const struct search *s, uint32_t j, uint32_t k)
{
    const struct column *a = &s->columns[j], *b = &s->columns[k];

    return s->rule == BY_REST
               ? a->rest > b->rest
               : s->rule == BY_FAILURES && a->failures > b->failures;
}

static uint64_t lowest_floor(const struct search *s, struct stretch r)
{
    uint64_t floor = UINT64_MAX;

    for (uint32_t k = r.from; k < r.to; k++)
        if (s->columns[k].floor < floor)
            floor = s->columns[k].floor;
    return floor;
}

/* Of the lowest sections the one with the fewest ways to go on; of equals the
 * rule's, then the first. */
static uint32_t lowest_section(const struct search *s, struct stretch r)
{
    const uint64_t floor = lowest_floor(s, r);
    uint32_t best = r.from, fewest = UINT32_MAX;

    for (uint32_t k = r.from; k < r.to; k++) {
        uint32_t count;

        if (s->columns[k].floor > floor)
            continue;
        count = s->rule == BY_FAILURES ? 1 : ways(s, k, fewest + 1);
        if (count < fewest || (count == fewest && is_sooner(s, k, best))) {
            fewest = count;
            best = k;
        }
    }
    return best;
}

/* Pushes the items that may lie on the floor of section k, best first. */
static size_t push_choices(struct search *s, uint32_t k)
{
    uint32_t *list = s->choices + s->choice_count;
    size_t count = 0;

    for (uint32_t m = s->first[k]; m < s->first[k + 1]; m++) {
        uint32_t i = s->members[m];
        size_t at = count;

        if (is_placed(s, i) || s->top[i] > s->columns[k].floor)
            continue;
        for (; at && s->weight[list[at - 1]] < s->weight[i]; at--)
            list[at] = list[at - 1];
        list[at] = i;
        count++;
    }
    s->choice_count += count;
    return count;
}

/* With nothing on the floor of section k, what comes there lies on something
 * else: the lowest level at which that can be. */
static uint64_t next_level(const struct search *s, uint32_t k)
{
    const uint64_t floor = s->columns[k].floor;
    struct stretch reach = {k, k + 1};
    uint64_t level = UINT64_MAX;

    for (uint32_t m = s->first[k]; m < s->first[k + 1]; m++) {
        uint32_t i = s->members[m];
        const struct item *item = &s->p->items[i];

        if (is_placed(s, i))
            continue;
        if (s->top[i] > floor) {
            level = s->top[i] < level ? s->top[i] : level;
            continue;
        }
        reach.from = item->from < reach.from ? item->from : reach.from;
        reach.to = item->to > reach.to ? item->to : reach.to;
    }
    for (uint32_t i = 0; i < s->p->count; i++) {
        const struct item *item = &s->p->items[i];

        if (is_placed(s, i) || item->from >= reach.to ||
            item->to <= reach.from || (item->from <= k && k < item->to))
            continue;
        if (s->top[i] + item->size < level)
            level = s->top[i] + item->size;
    }
    return level;
}

static bool try_gap(struct search *s, struct stretch r, uint32_t k)
{
    const struct point back = here(s);
    const struct column *c = &s->columns[k];
    uint64_t level;

    if (c->floor + c->rest >= s->ceiling)
        return false;
    level = next_level(s, k);
    if (level == UINT64_MAX)
        return false;
    if (raise(s, k, level) && !wastes_room(s, k) && settle(s) && solve(s, r))
        return true;
    take_back(s, back);
    return false;
}

static bool branch(struct search *s, struct stretch r)
{
    const uint32_t k = lowest_section(s, r);
    const uint64_t level = s->columns[k].floor;
    const size_t base = s->choice_count, count = push_choices(s, k);
    bool found = false;

    for (size_t c = 0; c < count && !found; c++) {
        const struct point back = here(s);

        found = place(s, s->choices[base + c], level) && solve(s, r);
        if (!found)
            take_back(s, back);
        if (!*s->steps)
            break;
    }
    s->choice_count = base;
    return found || (*s->steps && try_gap(s, r, k));
}

static bool solve_one(struct search *s, struct stretch r)
{
    uint64_t h = hash(s, r);
    uint64_t *known = &s->failed[h >> (64 - FAILED_BITS)];

    if (*known == h)
        return false;
    if (!*s->steps)
        return false;
    --*s->steps;
    if (branch(s, r))
        return true;
    if (*s->steps)
        *known = h;
    return false;
}

/* The next stretch from `from` on with something to come, that nothing still
 * to come leads out of. */
static struct stretch next_stretch(const struct search *s, uint32_t from,
                                   uint32_t end)
{
    struct stretch r;

    while (from < end && !s->columns[from].waiting)
        from++;
    r.from = r.to = from;
    while (r.to < end && s->columns[r.to].bridges)
        r.to++;
    if (r.to < end)
        r.to++;
    return r;
}

/* Stretches are independent: one that has no solution is the end of it. */
static bool solve(struct search *s, struct stretch all)
{
    uint32_t from = all.from;

    for (;;) {
        struct stretch r = next_stretch(s, from, all.to);

        if (r.from == r.to)
            return true;
        if (!solve_one(s, r))
            return false;
        from = r.to;
    }
}

/* ---------------------------------------------------- from outside --- */

static bool index_members(struct search *s)
{
    const struct problem *p = s->p;
    uint32_t *at = s->first + 1;
    uint64_t total = 0;

    for (uint32_t i = 0; i < p->count; i++) {
        total += p->items[i].to - p->items[i].from;
        for (uint32_t k = p->items[i].from; k < p->items[i].to; k++)
            at[k + 1]++;
    }
    s->members = malloc((total + 1) * sizeof(*s->members));
    if (!s->members || total > UINT32_MAX)
        return false;
    for (uint32_t k = 0; k < p->sections; k++)
        at[k + 1] += at[k];
    for (uint32_t i = 0; i < p->count; i++)
        for (uint32_t k = p->items[i].from; k < p->items[i].to; k++)
            s->members[at[k]++] = i;
    return true;
}

static uint32_t most_members(const struct search *s)
{
    uint32_t most = 0;

    for (uint32_t k = 0; k < s->p->sections; k++)
        if (s->first[k + 1] - s->first[k] > most)
            most = s->first[k + 1] - s->first[k];
    return most;
}

enum { FIRST_ROOM = 1 << 14 };

static bool make_storage(struct search *s)
{
    const size_t n = s->p->count + (size_t)1, m = s->p->sections + (size_t)2;

    s->words = (m + 63) / 64;
    s->room = FIRST_ROOM;
    s->columns = calloc(m, sizeof(*s->columns));
    s->top = calloc(n, sizeof(*s->top));
    s->offsets = calloc(n, sizeof(*s->offsets));
    s->weight = calloc(n, sizeof(*s->weight));
    s->first = calloc(m, sizeof(*s->first));
    s->dirty = calloc(s->words, sizeof(*s->dirty));
    s->trail = calloc(s->room, sizeof(*s->trail));
    s->placed = calloc(n, sizeof(*s->placed));
    s->failed = calloc((size_t)1 << FAILED_BITS, sizeof(*s->failed));
    if (!s->columns || !s->top || !s->offsets || !s->weight || !s->first ||
        !s->dirty || !s->trail || !s->placed || !s->failed || !index_members(s))
        return false;
    s->choices = calloc(n * (most_members(s) + (size_t)1), sizeof(*s->choices));
    return s->choices;
}

struct search *plan_search_open(const struct problem *p)
{
    struct search *s = calloc(1, sizeof(*s));

    if (!s)
        return NULL;
    s->p = p;
    if (!make_storage(s)) {
        plan_search_close(s);
        return NULL;
    }
    return s;
}

void plan_search_close(struct search *s)
{
    if (!s)
        return;
    free(s->choices);
    free(s->failed);
    free(s->placed);
    free(s->trail);
    free(s->dirty);
    free(s->members);
    free(s->first);
    free(s->weight);
    free(s->offsets);
    free(s->top);
    free(s->columns);
    free(s);
}

/* The order of choices: by one of four measures, under noise that grows with
 * the seed. */
static void weigh(struct search *s, uint64_t seed)
{
    const uint64_t noise = seed / SEARCH_ORDERS * 128;

    for (uint32_t i = 0; i < s->p->count; i++) {
        const struct item *item = &s->p->items[i];
        const uint64_t length = item->to - item->from;
        const uint64_t measures[] = {item->size * length, item->size, length,
                                     UINT32_MAX / item->size};

        s->weight[i] = measures[seed % 4] *
                       (1024 + mix(seed * 0x9e3779b97f4a7c15u + i) %
                                   (1 + (noise < 4096 ? noise : 4096)));
    }
}

static void reset(struct search *s)
{
    const struct problem *p = s->p;

    for (uint32_t k = 0; k < p->sections; k++)
        s->columns[k] = (struct column){
            .witness = NOBODY, .failures = s->columns[k].failures * 3 / 4};
    memset(s->top, 0, p->count * sizeof(*s->top));
    memset(s->failed, 0, sizeof(*s->failed) << FAILED_BITS);
    memset(s->dirty, 0, s->words * sizeof(*s->dirty));
    s->changes = s->choice_count = s->placed_count = 0;
    for (uint32_t i = 0; i < p->count; i++) {
        s->offsets[i] = UINT64_MAX;
        count_in(s, i, 1);
        for (uint32_t k = p->items[i].from; k < p->items[i].to; k++)
            s->columns[k].rest += p->items[i].size;
    }
}

enum verdict plan_search(struct search *s, uint64_t ceiling, uint64_t seed,
                         uint64_t *steps, uint64_t *offsets)
{
    bool fits;

    reset(s);
    weigh(s, seed);
    s->rule = (enum rule)(seed / 4 % RULES);
    s->ceiling = ceiling;
    s->steps = steps;
    for (uint32_t k = 0; k < s->p->sections; k++)
        if (s->columns[k].rest > ceiling)
            return DOES_NOT_FIT;
    fits = solve(s, (struct stretch){0, s->p->sections});
    if (fits && !s->missing)
        memcpy(offsets, s->offsets, s->p->count * sizeof(*offsets));
    if (s->missing)
        return UNKNOWN;
    return fits ? FITS : *steps ? DOES_NOT_FIT : UNKNOWN;
}
