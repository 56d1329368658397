/* dry_setup.h - makes an environment in which programs run without a GPU.
 */
#ifndef FRAG_SIM_CLI_VERBS_DRY_DRY_SETUP_H
#define FRAG_SIM_CLI_VERBS_DRY_DRY_SETUP_H

#include <limits.h>

#include "sim/cli/options.h"

/* Finds a module of real/dry/ beside the tool or where it is installed. IO if
 * it is in neither place. */
enum frag_err dry_module(const char *name, char path[PATH_MAX],
                         struct frag_error *e) FRAG_MUST_CHECK;

/* Makes the environment in the folder, with these requirements of pip, by the
 * python3 on the PATH, in place of this process: returns only if that fails.
 * IO, NOMEM. */
enum frag_err dry_setup(const char *folder, const struct texts *requirements,
                        struct frag_error *e) FRAG_MUST_CHECK;

#endif
