/* settings.h - what the environment asks of the adaptor; see adaptor.h. */
#ifndef FRAG_REAL_TORCH_SETTINGS_H
#define FRAG_REAL_TORCH_SETTINGS_H

#include "policies/policy.h"

struct settings {
    const struct frag_policy *policy;
    const char *text;           /* as given: "best_fit:segment=64MiB" */
    struct frag_params *params; /* of the policy, until the program ends */
    frag_size capacity;
    char output[4096]; /* "" if no results are wanted */
};

/* INVALID with the variable and what is wrong with it. */
enum frag_err settings_read(struct settings *out,
                            struct frag_error *e) FRAG_MUST_CHECK;

#endif
