/* critical.c - sections where a greedy pass must leave no gap: an order that
 * places their items before all others stacks them without one. The first is
 * the section with the largest load; the others are learned from plans that are
 * too high.
 */
#include <stdlib.h>
#include <string.h>

#include "policies/plan/plan_parts.h"

enum { MOST = 64 }; /* the least critical sections are forgotten */

struct critical {
    const struct problem *p;
    const uint64_t *loads;
    int64_t *tops; /* buffer of learn() */
    uint32_t count;
    uint32_t sections[MOST]; /* the most critical one last */
};

struct critical *plan_critical_open(const struct problem *p,
                                    const uint64_t *loads)
{
    struct critical *c = calloc(1, sizeof(*c));

    if (!c)
        return NULL;
    c->p = p;
    c->loads = loads;
    c->tops = calloc(p->sections + (size_t)1, sizeof(*c->tops));
    if (c->tops)
        return c;
    plan_critical_close(c);
    return NULL;
}

void plan_critical_close(struct critical *c)
{
    if (c)
        free(c->tops);
    free(c);
}

void plan_critical_reset(struct critical *c)
{
    c->count = 1;
    c->sections[0] = 0;
    for (uint32_t k = 1; k < c->p->sections; k++)
        if (c->loads[k] > c->loads[c->sections[0]])
            c->sections[0] = k;
}

uint32_t plan_critical_level(const struct critical *c, const struct item *item)
{
    uint32_t level = c->count;

    while (level && (c->sections[level - 1] < item->from ||
                     c->sections[level - 1] >= item->to))
        level--;
    return level;
}

/* Moves the section to the end of the list. */
static void promote(struct critical *c, uint32_t section)
{
    uint32_t at = 0;

    while (at < c->count && c->sections[at] != section)
        at++;
    if (at == c->count && c->count < MOST)
        c->count++;
    else if (at == c->count)
        at = 0;
    memmove(&c->sections[at], &c->sections[at + 1],
            (c->count - 1 - at) * sizeof(*c->sections));
    c->sections[c->count - 1] = section;
}

/* The section with the largest load among those that an item of the plan with
 * its end at `height` lives in. */
static uint32_t highest_section(struct critical *c, const uint64_t *offsets,
                                uint64_t height)
{
    uint32_t best = UINT32_MAX;
    int64_t tops = 0;

    memset(c->tops, 0, (c->p->sections + (size_t)1) * sizeof(*c->tops));
    for (uint32_t i = 0; i < c->p->count; i++) {
        const struct item *item = &c->p->items[i];

        if (offsets[i] + item->size < height)
            continue;
        c->tops[item->from]++;
        c->tops[item->to]--;
    }
    for (uint32_t k = 0; k < c->p->sections; k++) {
        tops += c->tops[k];
        if (tops && (best == UINT32_MAX || c->loads[k] > c->loads[best]))
            best = k;
    }
    return best;
}

bool plan_critical_learn(struct critical *c, const uint64_t *offsets,
                         uint64_t height)
{
    const uint32_t section = highest_section(c, offsets, height);

    if (section == c->sections[c->count - 1])
        return false;
    promote(c, section);
    return true;
}
