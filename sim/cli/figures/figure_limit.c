/* figure_limit.c - counts what a figure could show, and chooses the policies.
 */
#include "sim/cli/figures/figure_limit.h"

#include <string.h>

enum frag_err limit_count_runs(const struct selection *s, size_t *out)
{
    *out = s->count;
    return FRAG_OK;
}

enum frag_err limit_count_policies(const struct selection *s, size_t *out)
{
    struct ranking r;

    FRAG_TRY(ranking_make(s, &r));
    *out = r.count;
    ranking_free(&r);
    return FRAG_OK;
}

enum frag_err limit_count_subjects(const struct selection *s, size_t *out)
{
    struct ranking r;

    FRAG_TRY(ranking_make(s, &r));
    *out = r.subject_count;
    ranking_free(&r);
    return FRAG_OK;
}

/* How soon a policy is shown. */
static int rank(const struct standing *s)
{
    if (!strcmp(s->first->policy, "torch"))
        return 0;
    return s->is_offline ? 2 : 1;
}

void limit_policies(const struct standing *const *policies, size_t count,
                    size_t most, bool *shown)
{
    for (int now = 0; now <= 2; now++)
        for (size_t i = 0; i < count; i++)
            if (rank(policies[i]) == now) {
                shown[i] = most > 0;
                most -= most > 0;
            }
}
