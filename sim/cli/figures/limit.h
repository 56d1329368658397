/* limit.h - what is shown of more runs or policies than a figure has room for.
 */
#ifndef FRAG_SIM_CLI_FIGURES_LIMIT_H
#define FRAG_SIM_CLI_FIGURES_LIMIT_H

#include "sim/cli/figures/ranking.h"

enum frag_err limit_count_runs(const struct selection *s,
                               size_t *out) FRAG_MUST_CHECK;
enum frag_err limit_count_policies(const struct selection *s,
                                   size_t *out) FRAG_MUST_CHECK;
enum frag_err limit_count_subjects(const struct selection *s,
                                   size_t *out) FRAG_MUST_CHECK;

/* The rule of limit_choose_runs, in words. A run is worse than another one if
 * it has more OOMs; with equally many, if its peak reserved is higher. */
#define LIMIT_RULE_OF_RUNS                                           \
    "of each trace in turn the worst run, the best, the next worst " \
    "and so on (worse: more OOMs, then a higher peak)"

/* Adds the `most` most telling runs of s to *out, in their order: of each
 * subject in turn the worst run, the best, the next worst, the next best and so
 * on. Of runs of a subject with equally many OOMs and the same peak reserved,
 * all but the first come after all other runs. The subject with the worst run
 * is first. NOMEM. */
enum frag_err limit_choose_runs(const struct selection *s, size_t most,
                                struct selection *out) FRAG_MUST_CHECK;

#define LIMIT_RULE_OF_POLICIES \
    "torch and the best others, those that know the future last"

/* Sets shown[i] for `most` of the policies, which are in the order of the
 * figure, the best first: torch without settings; then those that do not know
 * the future; then the others. */
void limit_policies(const struct standing *const *policies, size_t count,
                    size_t most, bool *shown);

#endif
