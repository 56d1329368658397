/* budget.h - how much memory a sweep may use, and upper bounds of the memory of
 * its traces and cells. It allocates nothing and limits nothing. */
#ifndef FRAG_SIM_EXPERIMENTS_SWEEP_BUDGET_H
#define FRAG_SIM_EXPERIMENTS_SWEEP_BUDGET_H

#include "policies/policy.h"
#include "traces/trace.h"

/* The default budget: three quarters of the smallest of these: the memory that
 * the host has available, the limits of the process's cgroup and of the cgroups
 * above it, RLIMIT_AS, and RLIMIT_DATA. */
frag_size budget_default(void);

/* Upper bounds in bytes, measured on 64-bit Linux. The manual of `fragsim
 * sweep` states them too. */
#define BUDGET_BASE  (32 * FRAG_MIB)  /* the process */
#define BUDGET_CELL  FRAG_MIB         /* a cell, for any trace */
#define BUDGET_EVENT ((frag_size)96)  /* an event of an open trace */
#define BUDGET_LIVE  ((frag_size)512) /* a cell, per block live at the peak */
#define BUDGET_ROW   ((frag_size)8 << 10) /* a row that is written early */
#define BUDGET_FUTURE                                        \
    ((frag_size)96) /* a cell whose policy knows the future, \
                       per event */
/* Before a trace is read: the size of its file times this. */
#define BUDGET_COMPRESSED 32
#define BUDGET_PLAIN      6

/* Bytes of an open trace. */
frag_size budget_of_trace(const struct frag_trace *t);
/* Bytes of a trace that is not open, from the size of its file. */
frag_size budget_of_file(const char *path, frag_size bytes);
/* Bytes of a running cell, without its trace. */
frag_size budget_of_cell(const struct frag_device_trace *d,
                         const struct frag_policy *policy);

#endif
