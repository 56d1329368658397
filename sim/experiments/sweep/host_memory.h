/* host_memory.h - how much memory of the host a process may use. It allocates
 * nothing and limits nothing. */
#ifndef FRAG_SIM_EXPERIMENTS_SWEEP_HOST_MEMORY_H
#define FRAG_SIM_EXPERIMENTS_SWEEP_HOST_MEMORY_H

#include "traces/base.h"

/* Three quarters of the smallest of these: the memory that the host has
 * available, the limits of the process's cgroup and of the cgroups above it,
 * RLIMIT_AS, and RLIMIT_DATA. FRAG_UNLIMITED if none is known. */
frag_size host_memory(void);

#endif
