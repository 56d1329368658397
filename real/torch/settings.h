/* settings.h - the adaptor's settings from the environment; adaptor.h lists the
 * variables. */
#ifndef FRAG_REAL_TORCH_SETTINGS_H
#define FRAG_REAL_TORCH_SETTINGS_H

#include "policies/policy.h"

struct settings {
    const struct frag_policy *policy;
    const char *text;           /* as in the variable:
                                 * "best_fit:segment=64MiB" */
    struct frag_params *params; /* of the policy; kept until the program ends */
    frag_size capacity;
    char output[4096]; /* "": write no results */
};

/* Reads all variables. Returns FRAG_INVALID with a message that names the
 * variable and its fault, or FRAG_NOMEM. */
enum frag_err settings_read(struct settings *out,
                            struct frag_error *e) FRAG_MUST_CHECK;

#endif
