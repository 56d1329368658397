/* check.h - macros and records for checks of invariants.
 *
 * A check walks a whole data structure, in O(n), and returns NULL or a text
 * that names the broken invariant. It changes nothing and shares no code with
 * the structure that it checks. Only tests call checks, after each step; no
 * policy does.
 */
#ifndef FRAG_POLICIES_MECHANISM_CHECK_H
#define FRAG_POLICIES_MECHANISM_CHECK_H

#include "traces/base.h"

/* Returns the text `broken` from a check if the claim is false. */
#define CHECK(claim, broken) \
    do {                     \
        if (!(claim))        \
            return (broken); \
    } while (0)

/* Returns the fault that another check found, if it found one. */
#define CHECK_ALL(call)            \
    do {                           \
        const char *found_ = call; \
                                   \
        if (found_)                \
            return found_;         \
    } while (0)

/* The set of records that a walk has met, as a sum that does not depend on
 * their order. A record's home is the structure that holds it, or NULL. Two
 * walks that met the same records with the same homes have equal sums. A walk
 * stops when it has met more than `most` records, because its links may form a
 * circle. */
struct met {
    size_t count, most;
    uint64_t sum;
};

/* Adds a record with its home; false if that exceeds `most`. */
static inline bool met_add(struct met *met, const void *record,
                           const void *home)
{
    uint64_t x = (uint64_t)(uintptr_t)record * 0x9e3779b97f4a7c15u ^
                 (uint64_t)(uintptr_t)home * 0xc2b2ae3d27d4eb4fu;

    x = (x ^ (x >> 29)) * 0xbf58476d1ce4e5b9u;
    met->sum += x ^ (x >> 32);
    return met->count++ < met->most;
}

static inline bool met_are_equal(const struct met *a, const struct met *b)
{
    return a->count == b->count && a->sum == b->sum;
}

#endif
