/* stream.c - opens the cells of a stream, and passes each window to all of
 * them. */
#include "sim/experiments/stream.h"

#include <stdlib.h>

#include "sim/experiments/devices.h"

static enum frag_err check_device(const struct stream *s, uint32_t device,
                                  struct frag_error *e)
{
    struct input_devices devices = {""};

    if (s->device == INPUT_ANY_DEVICE || s->device == device)
        return FRAG_OK;
    input_devices_add(&devices, device);
    return input_no_device(s->path, &devices, s->device, e);
}

static enum frag_err run_window(void *user,
                                const struct frag_device_trace *window,
                                struct frag_error *e)
{
    struct stream *s = user;

    FRAG_TRY(check_device(s, window->device, e));
    for (size_t i = 0; i < s->count; i++) {
        struct stream_cell *c = &s->cells[i];

        if (c->err == FRAG_OK)
            c->err = cell_feed_window(&c->feed, window, &c->error);
        if (c->err == FRAG_OK || cell_fails_alone(c->err))
            continue;
        *e = c->error;
        return c->err;
    }
    return FRAG_OK;
}

static enum frag_err check(const struct stream_plan *plan, const char *path,
                           struct frag_error *e)
{
    for (size_t i = 0; i < plan->bound_count; i++)
        if (plan->bounds[i].kind == BOUND_SHARE)
            return frag_fail(e, FRAG_INVALID,
                             "%s: expected capacities such as 24GiB, found "
                             "%gx, a share of the peak requested, which a "
                             "stream shows only at its end",
                             path, plan->bounds[i].share);
    if (plan->settings->backend != &cell_arena_backend &&
        plan->policy_count * plan->bound_count > 1)
        return frag_fail(e, FRAG_INVALID,
                         "%s: expected one policy and one capacity, found "
                         "several: they would run at the same time and share "
                         "the memory of the GPU",
                         path);
    return FRAG_OK;
}

static enum frag_err open_cell(const struct stream_plan *plan,
                               const struct stream *s,
                               const struct policy_choice *policy,
                               const struct bound_choice *capacity,
                               struct stream_cell *c, struct frag_error *e)
{
    c->policy = policy;
    c->id.policy = policy->text;
    c->id.policy_used = policy->policy;
    c->id.bound = capacity->fixed;
    c->id.capacity = bound_choice_capacity(capacity);
    FRAG_TRY(
        policy_choice_params(policy, NULL, NULL, s->path, 0, &c->params, e));
    return cell_feed_open(plan->settings, &c->id, c->params, &c->feed, e);
}

enum frag_err stream_open(const struct stream_plan *plan, struct stream *s,
                          struct frag_error *e)
{
    const size_t count = plan->policy_count * plan->bound_count;

    FRAG_TRY(check(plan, s->path, e));
    s->windows = (struct frag_windows){run_window, s};
    s->cells = calloc(count + 1, sizeof(*s->cells));
    if (!s->cells)
        return frag_no_memory(e, "the cells of a stream");
    for (; s->count < count; s->count++) /* stream_close skips a NULL feed */
        FRAG_TRY(open_cell(plan, s,
                           &plan->policies[s->count / plan->bound_count],
                           &plan->bounds[s->count % plan->bound_count],
                           &s->cells[s->count], e));
    return FRAG_OK;
}

void stream_close(struct stream *s)
{
    for (size_t i = 0; s->cells && i <= s->count; i++) {
        cell_feed_close(&s->cells[i].feed);
        free(s->cells[i].params);
    }
    free(s->cells);
    *s = (struct stream){0};
}
