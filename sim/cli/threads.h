/* threads.h - the number of threads for a command, and the interrupt that stops
 * their work. It starts no thread; sim/experiments/parallel.h does. */
#ifndef FRAG_SIM_CLI_THREADS_H
#define FRAG_SIM_CLI_THREADS_H

#include "sim/cli/cli.h"
#include "sim/experiments/parallel.h"

/* The threads for a command whose user requested `wanted` threads; 0: one for
 * each processor (see parallel_room). If the address space has room for fewer
 * threads, a note goes to stderr unless `quiet`. Work on the threads stops when
 * cli_interrupted() is true. */
struct parallel cli_threads(const struct call *call, uint64_t wanted,
                            bool quiet);

#endif
