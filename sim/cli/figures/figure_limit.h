/* figure_limit.h - what is shown of more runs or policies than a figure has
 * room for.
 */
#ifndef FRAG_SIM_CLI_FIGURES_FIGURE_LIMIT_H
#define FRAG_SIM_CLI_FIGURES_FIGURE_LIMIT_H

#include "sim/cli/figures/ranking.h"

enum frag_err limit_count_runs(const struct selection *s,
                               size_t *out) FRAG_MUST_CHECK;
enum frag_err limit_count_policies(const struct selection *s,
                                   size_t *out) FRAG_MUST_CHECK;
enum frag_err limit_count_subjects(const struct selection *s,
                                   size_t *out) FRAG_MUST_CHECK;

/* The runs left out of a figure that has a row or panel for each run. */
#define LIMIT_RULE_OF_RUNS "the first runs of the files"

#define LIMIT_RULE_OF_POLICIES \
    "torch and the best others, those that know the future last"

/* Sets shown[i] for `most` of the policies, which are in the order of the
 * figure, the best first: torch without settings; then those that do not know
 * the future; then the others. */
void limit_policies(const struct standing *const *policies, size_t count,
                    size_t most, bool *shown);

#endif
