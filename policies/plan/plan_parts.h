/* plan_parts.h - the interfaces between the files that make a plan. Private to
 * policies/plan/.
 *
 * plan.c         policy plan: serves the planned requests, others by best fit
 * plan_make.c    makes a plan from a future: sections, greedy passes, search
 * greedy.c       places one block after the other, each at the lowest offset
 * critical.c     sections whose blocks come first in the order of a pass
 * plan_search.c  searches depth-first for a plan below a given height
 * pile.c         the state of that search: items piled up from offset 0
 * listener.c     tells a listener how many steps are used
 *
 * plan_online.c, step.c and history.c are policy plan_online. step.c makes the
 * plan of one period with plan_make.
 *
 * The trace is divided into sections. A section is a run of events; a new
 * section begins at the first request after a free. Two blocks are live at the
 * same time if and only if they share a section. So sections keep all that
 * matters to a plan, and they are far fewer than events. A plan places items:
 * an item is a block with its lifetime in sections and its size in quanta.
 */
#ifndef FRAG_POLICIES_PLAN_PLAN_PARTS_H
#define FRAG_POLICIES_PLAN_PLAN_PARTS_H

#include "policies/policy.h"

struct item {
    uint64_t size;     /* > 0 */
    uint32_t from, to; /* sections [from, to), not empty */
};

struct problem {
    uint32_t count, sections;
    const struct item *items;
};

/* --- plan_make.c --- */

struct made_plan {
    uint64_t height;   /* quanta; 0 if there are no requests */
    uint64_t *offsets; /* [request], in quanta; the caller frees them */
};

enum plan_care {
    PLAN_THOROUGHLY, /* all stages of plan.c */
    PLAN_BRIEFLY,    /* for a plan within a request: without critical sections;
                        passes over crowded sections count as more steps, so
                        there are fewer of them */
};

/* Finds the lowest plan for all requests that `effort` steps allow. One step is
 * one item placed by a greedy pass, or one section that the search visited; if
 * planned briefly, also 64 items placed before that live near an item. The
 * first greedy pass is made even if `effort` is too small for it. f->progress
 * is called with steps. NOMEM; UNSUPPORTED for UINT32_MAX requests or more;
 * CANCELLED. */
enum frag_err plan_make(const struct frag_future *f, uint64_t effort,
                        enum plan_care care,
                        struct made_plan *out) FRAG_MUST_CHECK;

/* --- listener.c --- */

/* Counts the steps of a plan for the listener of its future. */
struct plan_listener {
    const struct frag_future *future; /* its progress may be NULL */
    uint64_t used, most;              /* steps */
    bool stopped;                     /* the listener cancelled the plan */
};

enum { TELL_STEPS = 4096 }; /* steps between two calls: a few milliseconds */

/* Counts further steps and calls the listener. False if the plan is cancelled.
 */
bool plan_tell(struct plan_listener *l, uint64_t steps);

/* --- greedy.c --- */

struct greedy;

/* Returns NULL if the host has no memory. Borrows p and listener. */
struct greedy *plan_greedy_open(const struct problem *p, enum plan_care care,
                                struct plan_listener *listener);
void plan_greedy_close(struct greedy *g); /* g may be NULL */

/* Places the items in the given order, each at the lowest offset where it
 * overlaps none of those placed before. *steps is the number of steps used.
 * NOMEM, CANCELLED. */
enum frag_err plan_greedy(struct greedy *g, const uint32_t *order,
                          uint64_t *offsets, uint64_t *steps) FRAG_MUST_CHECK;

/* --- critical.c --- */

struct critical;

/* loads: the quanta that are live in each section. Returns NULL if the host has
 * no memory. Borrows both. */
struct critical *plan_critical_open(const struct problem *p,
                                    const uint64_t *loads);
void plan_critical_close(struct critical *c); /* c may be NULL */

/* Forgets all critical sections but the one with the largest load. */
void plan_critical_reset(struct critical *c);
/* The rank of the most critical section that the item lives in, the highest
 * first; 0: the item lives in none. */
uint32_t plan_critical_level(const struct critical *c, const struct item *item);
/* Makes the section where this plan is highest the most critical one; among
 * equals the one with the largest load. False if it was that already. */
bool plan_critical_learn(struct critical *c, const uint64_t *offsets,
                         uint64_t height);

/* --- plan_search.c --- */

struct plan_search;

enum {
    SEARCH_ITEMS = 2048, /* most items of a search; with more, greedy only */
    SEARCH_ORDERS = 12,  /* orders of choices; more seeds only add noise */
    FIRST_SHARE = 80000, /* steps for each seed of the first round */
};

/* Returns NULL if the host has no memory. Borrows p and listener. */
struct plan_search *plan_search_open(const struct problem *p,
                                     struct plan_listener *listener);
void plan_search_close(struct plan_search *s); /* s may be NULL */

enum verdict { FITS, DOES_NOT_FIT, UNKNOWN };

/* Searches for offsets that place all items below `ceiling` (quanta). The
 * search visits at most *steps sections and counts *steps down. `seed` selects
 * the order in which choices are tried. FITS: the offsets are filled in.
 * DOES_NOT_FIT: no such offsets exist. UNKNOWN: the steps were used up, the
 * listener cancelled the plan, or the host has no memory. Deterministic. */
enum verdict plan_search(struct plan_search *s, uint64_t ceiling, uint64_t seed,
                         uint64_t *steps, uint64_t *offsets);

#endif
