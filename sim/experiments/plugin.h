/* plugin.h - loads policies from shared libraries; see FRAG_POLICY_PLUGIN in
 * policies/policy.h. */
#ifndef FRAG_SIM_EXPERIMENTS_PLUGIN_H
#define FRAG_SIM_EXPERIMENTS_PLUGIN_H

#include "policies/policy.h"

/* Whether a policy's name, without its parameters, is the name of a file: it
 * contains a slash or ends in ".so". */
bool plugin_is_meant(const char *name);

/* Sets a function that is called with `user` before the process loads its first
 * plugin: nothing of a plugin has run then. Its error is that of plugin_load.
 */
void plugin_guard(enum frag_err (*guard)(const void *user,
                                         struct frag_error *e),
                  const void *user);

/* Loads the policy in a file; the library stays loaded until the process ends.
 * A path without a slash is a file in the current folder. INVALID if the file
 * cannot be loaded, contains no plugin, was built for another version of the
 * interface, or if its policy does not pass frag_policy_check; errors of the
 * guard. */
enum frag_err plugin_load(const char *path, const struct frag_policy **out,
                          struct frag_error *e) FRAG_MUST_CHECK;

/* Whether the policy comes from a shared library: it is not registered. */
bool plugin_made(const struct frag_policy *policy);

#endif
