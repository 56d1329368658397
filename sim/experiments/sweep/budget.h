/* budget.h - how much memory a sweep may take, and what its parts do take. */
#ifndef FRAG_SIM_EXPERIMENTS_SWEEP_BUDGET_H
#define FRAG_SIM_EXPERIMENTS_SWEEP_BUDGET_H

#include "policies/policy.h"
#include "traces/trace.h"

/* Three quarters of the least of what the host has available, what the cgroup
 * of the process and those above it allow, and RLIMIT_AS and RLIMIT_DATA. */
frag_size budget_default(void);

/* Upper bounds, which the manual states; measured on 64-bit Linux. */
#define BUDGET_BASE   (32 * FRAG_MIB)
#define BUDGET_CELL   FRAG_MIB         /* whatever its trace */
#define BUDGET_EVENT  ((frag_size)96)  /* of an open trace */
#define BUDGET_LIVE   ((frag_size)512) /* a block live at the peak, a cell */
#define BUDGET_FUTURE ((frag_size)96)  /* an event, a cell that knows it */
/* Of a trace before it is read, times the size of its file. */
#define BUDGET_COMPRESSED 32
#define BUDGET_PLAIN      6

/* Of a trace that is open; of one before it is, from the size of its file. */
frag_size budget_of_trace(const struct frag_trace *t);
frag_size budget_of_file(const char *path, frag_size bytes);
/* Of a cell beyond its trace. */
frag_size budget_of_cell(const struct frag_device_trace *d,
                         const struct frag_policy *policy);

#endif
