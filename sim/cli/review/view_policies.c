/* view_policies.c - reads the policies and the bound of a view. */
#include <stdlib.h>

#include "sim/cli/review/view_parts.h"
#include "sim/experiments/recording.h"
#include "traces/name.h"

static enum frag_err find_bound(const struct view_wish *w,
                                const struct policy_choice *policy,
                                struct frag_bound *out, struct frag_error *e)
{
    struct bound_choice *list = NULL;
    size_t count = 0;
    struct bound_facts facts;
    enum frag_err err = bound_choices_read(w->bounds, &list, &count, e);

    if (err == FRAG_OK && count != 1)
        err = frag_fail(e, FRAG_INVALID,
                        "--capacity, --process-limit: expected one bound, "
                        "found several");
    FRAG_THEN(err, recording_facts(w->trace, w->device, &facts, e));
    if (err == FRAG_OK)
        *out = bound_choice_of(&list[0], policy, &facts);
    free(list);
    return err;
}

enum frag_err view_policies_open(const struct view_wish *w,
                                 struct view_policies *out,
                                 struct frag_error *e)
{
    *out = (struct view_policies){.name = frag_trace_name(w->trace->path)};
    if (!out->name)
        return frag_no_memory(e, "the view");
    FRAG_TRY(policy_choices_read(w->policies, &out->choices, &out->count, e));
    for (size_t i = 0; i < out->count; i++) {
        struct trace_view *run = &out->runs[i];

        *run = (struct trace_view){.trace = w->trace,
                                   .device = w->device,
                                   .name = out->name,
                                   .policy = &out->choices[i],
                                   .progress = w->progress};
        FRAG_TRY(find_bound(w, run->policy, &run->bound, e));
        FRAG_TRY(policy_choice_params_of(run->policy, w->trace, w->device,
                                         &out->params[i], e));
        run->params = out->params[i];
    }
    return FRAG_OK;
}

void view_policies_close(struct view_policies *p)
{
    for (size_t i = 0; i < VIEW_RUNS; i++)
        free(p->params[i]);
    policy_choices_free(p->choices, p->count);
    free(p->name);
}
