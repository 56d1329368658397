/* checks.h - checks of invariants, for the policies whose state is private to
 * one source file.
 *
 * Each function returns NULL or a text that names the broken invariant; see
 * mechanism/check.h. Only tests call them. Other policies declare their checks
 * in the header of their state.
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
