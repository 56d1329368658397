/* checks.h - names the check function of each policy's state, for tests that
 * verify the state after each step. A policy without a row has none.
 */
#ifndef FRAG_TESTS_CHECKS_H
#define FRAG_TESTS_CHECKS_H

#include "policies/checks.h"
#include "policies/cuda_async/state.h"
#include "policies/mechanism/fit.h"
#include "policies/remap/gather.h"
#include "policies/rmm/stream_pool.h"
#include "policies/torch/state.h"
#include "policies/vma/block.h"

#include <string.h>

static const struct {
    const char *policy;
    const char *(*check)(const struct frag_heap *heap);
} policy_checks[] = {
    {"torch", torch_check},
    {"first_fit", fit_check},
    {"next_fit", fit_check},
    {"best_fit", fit_check},
    {"worst_fit", fit_check},
    {"half_fit", fit_check},
    {"tlsf", fit_check},
    {"bfc", bfc_check},
    {"rmm_pool", stream_pool_check},
    {"rmm_binning", stream_pool_check},
    {"cupy", cupy_check},
    {"cuda_async", cuda_async_check},
    {"vma", vma_check},
    {"expandable", expandable_check},
    {"paged", gather_check},
    {"stitch", stitch_check},
    {"remap", gather_check},
    {"compact", compact_check},
};

/* A description of the damage inside the heap; NULL if there is none, or if the
 * policy has no check. */
static inline const char *state_check(const struct frag_heap *heap)
{
    for (size_t i = 0; i < sizeof(policy_checks) / sizeof(*policy_checks); i++)
        if (!strcmp(policy_checks[i].policy, heap->policy->name))
            return policy_checks[i].check(heap);
    return NULL;
}

#endif
