/* figure_failure.c - the map of the command explain: the addresses of all
 * blocks and holes up to the failure. */
#include <stdlib.h>

#include "sim/cli/answers/figures/draw.h"
#include "sim/cli/figures/figure.h"
#include "sim/cli/review/view.h"
#include "traces/name.h"

bool draw_can_map(const char *out)
{
    return gnuplot_can_draw(out) || view_can(out);
}

/* A view of the events up to the failure. */
static struct frag_device_trace cut_at(const struct explain *x)
{
    struct frag_device_trace d = *x->device;

    d.count = x->event + 1;
    while (d.recorded.action_count &&
           d.recorded.actions[d.recorded.action_count - 1].event > x->event)
        d.recorded.action_count--;
    return d;
}

static enum frag_err draw_view(const struct explain *x, struct trace_view *view,
                               const char *out, const char *keep,
                               struct frag_error *e)
{
    struct frag_params *params;
    char *name;
    enum frag_err err;

    FRAG_TRY(policy_choice_params(view->policy, x->used, NULL, x->trace->path,
                                  x->device->device, &params, e));
    name = frag_trace_name(x->trace->path);
    err = name ? FRAG_OK : frag_no_memory(e, "the map");
    if (err == FRAG_OK) {
        view->params = params;
        view->name = name;
        err = view_can(out)
                  ? view_write(view, 1, out, e)
                  : figure_draw_trace(&figure_map, view, out, keep, e);
    }
    free(name);
    free(params);
    return err;
}

enum frag_err draw_map(const struct explain *x, const char *out,
                       const char *keep, struct progress *progress,
                       struct frag_error *e)
{
    const struct frag_device_trace cut = cut_at(x);
    struct trace_view view = {
        .trace = x->trace,
        .device = &cut,
        .bound = x->bound,
        .color = FIGURE_SIZE,
        .progress = progress,
    };
    struct policy_choice policy;
    enum frag_err err;

    FRAG_TRY(policy_choice_read("torch@recorded", &policy, e));
    view.policy = &policy;
    err = draw_view(x, &view, out, keep, e);
    policy_choice_free(&policy);
    return err;
}
