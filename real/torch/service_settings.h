/* service_settings.h - the adaptor's settings from the environment; adaptor.h
 * lists the variables. */
#ifndef FRAG_REAL_TORCH_SERVICE_SETTINGS_H
#define FRAG_REAL_TORCH_SERVICE_SETTINGS_H

#include "policies/policy.h"

struct settings {
    const struct frag_policy *policy;
    const char *text;           /* as in the variable:
                                 * "best_fit:segment=64MiB" */
    struct frag_params *params; /* of the policy; kept until the program ends */
    frag_size capacity;
    char output[4096]; /* "": write no results */
    uint64_t changes;  /* of the settings of PyTorch's own allocator */
    char last[200];    /* the text of the last one, cut off */
};

/* Reads all variables into *out, which is zeroed or was read before. Returns
 * FRAG_INVALID with a message that names the variable and its fault, or
 * FRAG_NOMEM. */
enum frag_err settings_read(struct settings *out,
                            struct frag_error *e) FRAG_MUST_CHECK;

/* Notes that the policy serves a process: removes the file FRAGSIM_UNUSED. */
void settings_use(void);

/* Before the results are written: if a file has the name by now and may not be
 * overwritten, inserts the number of this process before the suffix of
 * s->output, and prints this. A file that was written since FRAGSIM_STARTED is
 * never overwritten. */
void settings_keep_results(struct settings *s);

#endif
