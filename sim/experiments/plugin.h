/* plugin.h - policies from shared libraries; see FRAG_POLICY_PLUGIN. */
#ifndef FRAG_SIM_EXPERIMENTS_PLUGIN_H
#define FRAG_SIM_EXPERIMENTS_PLUGIN_H

#include "policies/policy.h"

/* Whether a policy's name, without its parameters, is that of a file: it has a
 * slash or ends in ".so". */
bool plugin_is_meant(const char *name);

/* The policy in a file, which stays loaded for as long as the process runs. A
 * path without a slash is one in the current folder. INVALID if the file cannot
 * be loaded, has no plugin, was built for another version of the interface, or
 * its policy lacks what each must have. */
enum frag_err plugin_load(const char *path, const struct frag_policy **out,
                          struct frag_error *e) FRAG_MUST_CHECK;

#endif
