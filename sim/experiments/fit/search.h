/* search.h - a walk over capacities (sim/experiments/fit/fit.h) on several
 * threads. */
#ifndef FRAG_SIM_EXPERIMENTS_FIT_SEARCH_H
#define FRAG_SIM_EXPERIMENTS_FIT_SEARCH_H

#include "sim/experiments/fit/fit.h"

/* As frag_fit_walk, to spans->items, in slices that so many
 * threads, at least 1, take one by one. The spans are the same however many
 * there are. `from` is a multiple of FRAG_FIT_STEP. */
enum frag_err fit_search(const struct frag_fit *fit, frag_size from,
                         frag_size to, bool first, size_t threads,
                         struct frag_fit_spans *spans,
                         struct frag_error *e) FRAG_MUST_CHECK;

#endif
