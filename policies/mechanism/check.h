/* check.h - the means of the checks of invariants.
 *
 * A check walks a whole structure, in O(n), and returns a text that says what
 * is broken, or NULL. It changes nothing and shares no code with what it
 * checks. The tests call the checks after each step; no policy does.
 */
#ifndef FRAG_POLICIES_MECHANISM_CHECK_H
#define FRAG_POLICIES_MECHANISM_CHECK_H

#include "traces/base.h"

/* Leaves a check with the text where the claim does not hold. */
#define CHECK(claim, broken) \
    do {                     \
        if (!(claim))        \
            return (broken); \
    } while (0)

/* Leaves a check with what another check found. */
#define CHECK_ALL(call)            \
    do {                           \
        const char *found_ = call; \
                                   \
        if (found_)                \
            return found_;         \
    } while (0)

/* The records that a walk met, in whatever order: two walks that met the same
 * ones under the same homes have equal sums. A walk that meets more than `most`
 * is broken off: its links may lead in a circle. */
struct met {
    size_t count, most;
    uint64_t sum;
};

/* Adds a record that lies in `home`; false if that is one too many. */
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
