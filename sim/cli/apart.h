/* apart.h - continues a command in a child process before it loads a policy
 * from a shared library, and reports how that policy ended the process. The
 * parent has loaded nothing and waits.
 */
#ifndef FRAG_SIM_CLI_APART_H
#define FRAG_SIM_CLI_APART_H

#include "sim/cli/cli.h"

/* The limits of the child; the values of APART_OPTIONS. */
struct apart_limits {
    uint64_t seconds; /* without the end of an event; 0: no limit */
    frag_size memory; /* of the host, in bytes; 0: budget_default() */
};

#define APART_DEFAULTS \
    {                  \
        .seconds = 60  \
    }

/* clang-format off */
/* Rows for the option table of a verb; main.c finds them by their names. */
#define APART_SECONDS "plugin-seconds"
#define APART_MEMORY  "plugin-memory"
#define APART_OPTIONS(AT, LIMITS)                                              \
    {APART_SECONDS, 0, "N", OPTION_NUMBER, AT(LIMITS.seconds), NULL,           \
     "end a policy in a shared library that works on one event for N seconds " \
     "(default: 60; 0: never)"},                                               \
    {APART_MEMORY, 0, "SIZE", OPTION_SIZE, AT(LIMITS.memory), NULL,            \
     "memory of the host for a run with a policy in a shared library "         \
     "(default: three quarters of what is available)"}
/* clang-format on */

struct apart {
    const struct call *call;
    struct apart_limits limits;
};

/* For plugin_guard; user is a const struct apart. Returns in the child only;
 * the parent ends with the child's exit code, with the signal that a user sent,
 * or, if the policy ended the child or did not return, with EXIT_NO and a
 * message that names the policy, the event and the signal. NOMEM, IO: there is
 * no child. */
enum frag_err apart_continue(const void *user, struct frag_error *e);

#endif
