/* policy_list.c - the registry of policies. It refers to all of them, so only a
 * program that finds policies by name needs to link this file.
 */
#include <string.h>

#include "policies/policies.h"

const struct frag_policy *const frag_policies[] = {
#define POLICY(name) &frag_policy_##name,
#include "policies/policy_list.h"
#undef POLICY
    NULL,
};

const struct frag_policy *frag_policy_find(const char *name)
{
    for (size_t i = 0; frag_policies[i]; i++)
        if (!strcmp(frag_policies[i]->name, name))
            return frag_policies[i];
    return NULL;
}
