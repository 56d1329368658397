/* search.h - a walk over capacities (sim/experiments/fit/fit.h) on several
 * threads. */
#ifndef FRAG_SIM_EXPERIMENTS_FIT_SEARCH_H
#define FRAG_SIM_EXPERIMENTS_FIT_SEARCH_H

#include "sim/experiments/fit/fit.h"
#include "sim/experiments/parallel.h"

/* As frag_fit_walk, to spans->items, in slices that threads take one by one.
 * The spans are the same however many threads there are. `from` is a multiple
 * of FRAG_FIT_STEP. */
enum frag_err fit_search(const struct frag_fit *fit, frag_size from,
                         frag_size to, bool first, const struct parallel *on,
                         struct frag_fit_spans *spans,
                         struct frag_error *e) FRAG_MUST_CHECK;

#endif
