/* search.h - the walk over capacities of spans.h, on several threads. */
#ifndef FRAG_SIM_EXPERIMENTS_CAPACITY_SEARCH_H
#define FRAG_SIM_EXPERIMENTS_CAPACITY_SEARCH_H

#include "sim/experiments/capacity/spans.h"
#include "sim/experiments/parallel.h"

/* Does what frag_capacity_walk does, in slices of capacities that the threads
 * share. The spans do not depend on the number of threads. `from` is a multiple
 * of FRAG_CAPACITY_STEP. */
enum frag_err capacity_search(const struct frag_capacity_spec *spec,
                              frag_size from, frag_size to, bool first,
                              const struct parallel *on,
                              struct frag_capacity_spans *spans,
                              struct frag_error *e) FRAG_MUST_CHECK;

#endif
