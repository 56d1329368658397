/* threads.h - the threads of a command, and the interrupt that ends their work.
 */
#ifndef FRAG_SIM_CLI_THREADS_H
#define FRAG_SIM_CLI_THREADS_H

#include "sim/cli/cli.h"
#include "sim/experiments/parallel.h"

/* The threads for a command that was asked for `wanted` (see parallel_room).
 * Unless quiet, stderr says where they are fewer. Work on them ends with
 * cli_interrupted. */
struct parallel cli_threads(const struct call *call, uint64_t wanted,
                            bool quiet);

#endif
