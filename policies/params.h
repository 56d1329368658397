/* params.h - from parameters to the state of a policy. Private to policies/.
 */
#ifndef FRAG_POLICIES_PARAMS_H
#define FRAG_POLICIES_PARAMS_H

#include "policies/policy.h"

/* A state with the parameters set and all else zero, to be freed; NULL if the
 * host has no memory. */
void *params_state(const struct frag_params *params);

/* Whether the parameters of a state, each good by itself, go together: INVALID
 * with the words in e. */
enum frag_err params_agree(const struct frag_policy *policy, const void *state,
                           struct frag_error *e) FRAG_MUST_CHECK;

#endif
