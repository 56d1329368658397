/* checks.h - the checks of policies whose state no header shows.
 *
 * Each says what is broken of its invariants, or NULL; see mechanism/check.h.
 * The other policies have theirs beside their state.
 */
#ifndef FRAG_POLICIES_CHECKS_H
#define FRAG_POLICIES_CHECKS_H

#include "policies/policy.h"

const char *bfc_check(const struct frag_heap *heap);
const char *compact_check(const struct frag_heap *heap);
const char *cupy_check(const struct frag_heap *heap);
const char *expandable_check(const struct frag_heap *heap);
const char *stitch_check(const struct frag_heap *heap);

#endif
