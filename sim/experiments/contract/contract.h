/* contract.h - the properties that policies/policy.h asks of every policy, each
 * as a test that runs the policy on random requests.
 *
 * `fragsim policies --test` runs them for a policy in a shared library, and the
 * tests of this tree for every registered policy.
 */
#ifndef FRAG_SIM_EXPERIMENTS_CONTRACT_CONTRACT_H
#define FRAG_SIM_EXPERIMENTS_CONTRACT_CONTRACT_H

#include "policies/policy.h"

/* A policy with parameters that frag_params_read accepts; NULL: the defaults.
 */
struct contract_subject {
    const struct frag_policy *policy;
    const char *params;
};

struct contract_bench;

struct contract_property {
    const char *name; /* a sentence about the policy, without its end */
    enum frag_err (*test)(struct contract_bench *bench,
                          const struct contract_subject *s,
                          struct frag_error *why);
    /* Whether the policy has the member that is tested; NULL: every policy has
     * it. */
    bool (*has)(const struct frag_policy *policy);
};

extern const struct contract_property contract_properties[]; /* ended by a NULL
                                                                name */

/* Whether the property says anything of the policy. */
bool contract_applies(const struct contract_property *property,
                      const struct frag_policy *policy);

/* Tests one property that applies. CONTRACT if the policy lacks it, with the
 * reason in why; NOMEM. */
enum frag_err contract_test(const struct contract_property *property,
                            const struct contract_subject *s,
                            struct frag_error *why) FRAG_MUST_CHECK;

#endif
