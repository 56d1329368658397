/* pile.h - the state of the depth-first search of plan_search.c: items piled up
 * from offset 0. Private to policies/plan/.
 *
 * Each section has a floor. Below the floor lie the items placed so far, and
 * gaps that are left empty for good; all other items of the section are waiting
 * and will lie at or above the floor. A trail records every change, so that the
 * search can undo it.
 */
#ifndef FRAG_POLICIES_PLAN_PILE_H
#define FRAG_POLICIES_PLAN_PILE_H

#include "policies/plan/plan_parts.h"

/* The state of one section; all sizes are in quanta. */
struct pile_column {
    uint64_t floor;    /* no waiting item lies below it */
    uint64_t gap;      /* [gap, floor) is left empty for good */
    uint64_t rest;     /* total size of the waiting items */
    uint64_t mark;     /* hash of the set of waiting items */
    uint32_t waiting;  /* number of waiting items */
    uint32_t bridges;  /* waiting items that also live in the next section */
    uint32_t witness;  /* a waiting item that may lie on the floor; may be out
                          of date */
    uint64_t failures; /* how often the section was too full; older failures
                          count less */
};

#define PLACED UINT64_MAX

struct pile {
    const struct problem *p;
    struct pile_column *columns;
    uint64_t *top; /* [item]: the highest floor of its sections, or PLACED */
    uint64_t *offsets; /* [item], of placed items */
    uint32_t *first;   /* [section]: index of its first item in `members` */
    uint32_t *members; /* the items of each section */
    uint64_t *dirty;   /* one bit for each section whose witness may be wrong */
    size_t words;      /* of `dirty` */
    struct change *trail;
    uint64_t changes, room; /* entries of the trail: used, allocated */
    uint32_t *placed;       /* items, in the order they were placed */
    uint32_t placed_count;
    uint64_t ceiling; /* all items must end at or below it */
    uint64_t *steps;  /* sections that may still be visited */
    bool no_memory;   /* the host had no memory for the trail */
};

/* False if the host has no memory; call pile_close in both cases. Borrows p. */
bool pile_open(struct pile *s, const struct problem *p) FRAG_MUST_CHECK;
void pile_close(struct pile *s);

/* Removes all items, for a new search below `ceiling` that may visit *steps
 * sections. Each section keeps three quarters of its failures. */
void pile_reset(struct pile *s, uint64_t ceiling, uint64_t *steps);

/* The next two functions return false if the waiting items certainly no longer
 * fit; the caller then undoes the change with pile_undo. */

/* Places item i at `level`, the highest floor of its sections, and raises
 * floors as far as that forces them up. */
bool pile_place(struct pile *s, uint32_t i, uint64_t level);
/* Leaves the room in section k up to `level` empty for good, and raises floors
 * as far as that forces them up. */
bool pile_leave(struct pile *s, uint32_t k, uint64_t level);

/* A state of the pile, to which pile_undo can return. */
struct pile_point {
    size_t changes;
    uint32_t placed;
};

static inline struct pile_point pile_here(const struct pile *s)
{
    return (struct pile_point){s->changes, s->placed_count};
}

/* Undoes all changes made since pile_here returned `to`. */
void pile_undo(struct pile *s, struct pile_point to);

/* Mixes the bits of x, for hashes and noise. */
static inline uint64_t mix(uint64_t x)
{
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

#endif
