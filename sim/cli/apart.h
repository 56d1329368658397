/* apart.h - continues a command in a child process before it loads a policy
 * from a shared library, and reports how that policy ended the process. The
 * parent has loaded nothing and waits.
 */
#ifndef FRAG_SIM_CLI_APART_H
#define FRAG_SIM_CLI_APART_H

#include "sim/cli/cli.h"

/* In the environment: the seconds that a policy may work on one event (0: no
 * limit; default: 60), and the memory of the host that its run may take
 * (default: that of host_memory). */
#define APART_SECONDS "FRAGSIM_PLUGIN_SECONDS"
#define APART_MEMORY  "FRAGSIM_PLUGIN_MEMORY"

/* For plugin_guard; user is a const struct call. Returns in the child only;
 * the parent ends with the child's exit code, with the signal that a user sent,
 * or, if the policy ended the child or did not return, with EXIT_NO and a
 * message that names the policy, the event and the signal. INVALID for a limit
 * that cannot be read; NOMEM, IO: there is no child. */
enum frag_err apart_continue(const void *user, struct frag_error *e);

#endif
