/* policies.h - the tables of the policies of this tree, for code that names one
 * of them. Code that is given a policy, or its name, needs policy.h only, so a
 * new policy does not rebuild it.
 */
#ifndef FRAG_POLICIES_POLICIES_H
#define FRAG_POLICIES_POLICIES_H

#include "policies/policy.h"

FRAG_BEGIN_DECLS

#define POLICY(name) extern const struct frag_policy frag_policy_##name;
#include "policies/policy_list.h"
#undef POLICY

FRAG_END_DECLS

#endif
