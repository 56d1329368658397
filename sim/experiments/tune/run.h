/* run.h - replays one case with one setting. Private to sim/experiments/tune/.
 */
#ifndef FRAG_SIM_EXPERIMENTS_TUNE_RUN_H
#define FRAG_SIM_EXPERIMENTS_TUNE_RUN_H

#include "policies/torch/torch.h"
#include "sim/experiments/tune/search.h"

/* As tune_run, by a replay in any case. The settings may have `brief` set. */
enum frag_err tune_replay(unsigned version,
                          const struct cell_settings *settings,
                          const struct stop *stop, const struct tune_case *on,
                          frag_size capacity, const char *text,
                          struct tune_result *out,
                          struct frag_error *e) FRAG_MUST_CHECK;

/* Opens the policy with a setting. Errors of frag_heap_open. */
enum frag_err tune_heap_open(unsigned version, const char *text,
                             struct frag_backend *mem,
                             struct frag_heap *out) FRAG_MUST_CHECK;

/* The rules of a setting, and the sizes of the blocks of `count` requests, in
 * place. Errors of frag_torch_rules_read. */
enum frag_err tune_rules(unsigned version, const char *text,
                         struct frag_torch_rules *out, frag_size *sizes,
                         size_t count) FRAG_MUST_CHECK;

#endif
