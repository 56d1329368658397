/* python.h - programs of Python in which a module of fragsim runs: `fragsim
 * run', `fragsim dry' and `fragsim record'. The programs load it through
 * real/torch/start/. Private to sim/cli/verbs/.
 */
#ifndef FRAG_SIM_CLI_VERBS_PYTHON_H
#define FRAG_SIM_CLI_VERBS_PYTHON_H

#include <limits.h>

#include "sim/cli/options.h"

/* Makes the name of an output file absolute, since the program may change its
 * folder, and checks that the file can be written there: IO if not. */
enum frag_err python_output(const char *out, char name[2 * PATH_MAX],
                            struct frag_error *e) FRAG_MUST_CHECK;

/* Sets *path to a PYTHONPATH, to be freed: the folder of sitecustomize.py, and
 * then the folders that the user set. IO, NOMEM. */
enum frag_err python_start(char **path, struct frag_error *e) FRAG_MUST_CHECK;

#endif
