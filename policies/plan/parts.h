/* parts.h - what the files of `plan` share. Private to policies/plan/.
 *
 * plan.c          the policy: serves what was planned, the rest by best fit
 * plan_make.c     from a future to a plan: sections, greedy, improvement
 * plan_greedy.c   the lowest gap for one block after the other
 * plan_search.c   does it fit below a ceiling? depth-first, with proofs
 * plan_pile.c     what it searches over: items piled up from the bottom
 *
 * plan_step.c, of plan_online, has the requests of one step planned here.
 *
 * A plan is made of items: a block with its time in sections and its size in
 * quanta. A section is a stretch of events at whose end something is freed
 * after something was asked for: two blocks are live together if and only if
 * they share a section, so nothing is lost and much is shorter.
 */
#ifndef FRAG_POLICIES_PLAN_PARTS_H
#define FRAG_POLICIES_PLAN_PARTS_H

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
    uint64_t height;   /* quanta; 0 for no requests */
    uint64_t *offsets; /* of each request, in quanta; the caller frees */
};

/* The lowest plan found for all requests in `effort` steps: a step is an item
 * laid by a greedy pass, 64 that it compared, or a section that the search
 * looked at. The first pass is made whatever the effort. NOMEM; UNSUPPORTED for
 * 2^32 requests. */
enum frag_err plan_make(const struct frag_future *f, uint64_t effort,
                        struct made_plan *out) FRAG_MUST_CHECK;

/* --- plan_greedy.c --- */

struct greedy;

/* NULL if the host has no memory. Borrows p. */
struct greedy *plan_greedy_open(const struct problem *p);
void plan_greedy_close(struct greedy *g); /* NULL is fine */

/* Lays the items in the given order, each at the lowest offset where it meets
 * none laid before; says how many steps that took. False if the host has no
 * memory. */
bool plan_greedy(struct greedy *g, const uint32_t *order, uint64_t *offsets,
                 uint64_t *steps) FRAG_MUST_CHECK;

/* --- plan_search.c --- */

struct plan_search;

enum {
    SEARCH_ITEMS = 2048, /* more are left to the greedy passes */
    SEARCH_ORDERS = 12,  /* seeds differ in kind; from here on only by noise */
    FIRST_SHARE = 80000, /* steps for a first look */
};

/* NULL if the host has no memory. Borrows p. */
struct plan_search *plan_search_open(const struct problem *p);
void plan_search_close(struct plan_search *s); /* NULL is fine */

enum verdict { FITS, DOES_NOT_FIT, UNKNOWN };

/* Looks for offsets with all items below `ceiling`, for at most *steps sections
 * looked at, which it counts down; `seed` picks the order in which choices are
 * tried. FITS: offsets are filled in. Deterministic. */
enum verdict plan_search(struct plan_search *s, uint64_t ceiling, uint64_t seed,
                         uint64_t *steps, uint64_t *offsets);

#endif
