/* pile.h - what plan_search.c searches over: items piled up from the
 * bottom.
 *
 * In each section items lie one on another up to its floor, room left below for
 * good included; the others are still to come. Everything that a step changes
 * is written down, so that it can be taken back.
 */
#ifndef FRAG_POLICIES_PLAN_PILE_H
#define FRAG_POLICIES_PLAN_PILE_H

#include "policies/plan/parts.h"

/* A section as it stands: what lies in it so far ends at `floor`, the top
 * `floor - gap` of that left empty for good; `rest` is still to come. */
struct pile_column {
    uint64_t floor, gap, rest;
    uint64_t mark;     /* hash of the items still to come */
    uint32_t waiting;  /* their number */
    uint32_t bridges;  /* of those, the ones that go on into the next section */
    uint32_t witness;  /* one that could lie on the floor, as far as is known */
    uint64_t failures; /* times it was too full, older ones counting less */
};

#define PLACED UINT64_MAX

struct pile {
    const struct problem *p;
    struct pile_column *columns;
    uint64_t *top;     /* of an item: the highest floor below it, or PLACED */
    uint64_t *offsets; /* of a placed item */
    uint32_t *first;   /* of a section: where its items start in `members` */
    uint32_t *members;
    uint64_t *dirty; /* sections whose witness may have gone, a bit each */
    size_t words;
    struct change *trail;
    uint64_t changes, room;
    uint32_t *placed; /* items, in the order they were placed */
    uint32_t placed_count;
    uint64_t ceiling, *steps; /* counted down, not below 0 */
    bool missing;             /* the host had no memory */
};

/* False if the host has no memory; to be closed either way. Borrows p. */
bool pile_open(struct pile *s, const struct problem *p) FRAG_MUST_CHECK;
void pile_close(struct pile *s);

/* Takes all items out, for a new start below `ceiling` that may look at *steps
 * sections; each column keeps part of its failures. */
void pile_reset(struct pile *s, uint64_t ceiling, uint64_t *steps);

/* Each of these answers whether what is still to come may still fit; if not,
 * what it did is to be taken back. */

/* Puts item i on `level`, the floor of its highest section, and settles. */
bool pile_place(struct pile *s, uint32_t i, uint64_t level);
/* Leaves room in section k up to `level` for good, and settles. */
bool pile_leave(struct pile *s, uint32_t k, uint64_t level);

/* Where a pile stands, to come back to. */
struct pile_point {
    size_t changes;
    uint32_t placed;
};

static inline struct pile_point pile_here(const struct pile *s)
{
    return (struct pile_point){s->changes, s->placed_count};
}

void pile_take_back(struct pile *s, struct pile_point to);

static inline uint64_t mix(uint64_t x)
{
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

#endif
