/* params.h - from parameters to the state of a policy. Private to policies/.
 */
#ifndef FRAG_POLICIES_PARAMS_H
#define FRAG_POLICIES_PARAMS_H

#include "policies/policy.h"

/* A new state with the parameters set and all other bytes zero. The caller
 * frees it. NULL if the host has no memory. */
void *params_state(const struct frag_params *params);

/* Checks that the parameters of a state agree (frag_param.at_most). INVALID
 * with a message in e. */
enum frag_err params_agree(const struct frag_policy *policy, const void *state,
                           struct frag_error *e) FRAG_MUST_CHECK;

#endif
