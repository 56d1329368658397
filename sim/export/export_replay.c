/* export_replay.c - the replay of a policy on a simulated device, with a tap.
 */
#include <stdlib.h>

#include "sim/arena/arena.h"
#include "sim/export/export_parts.h"

struct export_run {
    const struct export_job *job;
    const bool *stop;
};

static bool tick(void *user, uint64_t done, uint64_t total)
{
    const struct export_run *c = user;

    if (c->stop && *c->stop)
        return true;
    return c->job->tick && c->job->tick(c->job->user, done, total);
}

static enum frag_err run(const struct export_job *job,
                         const struct frag_params *params, struct tap *tap,
                         struct frag_backend *arena, struct frag_run *out,
                         struct frag_error *e)
{
    struct export_run run_of = {job, tap->listener.stop};

    return frag_replay(
        &(const struct frag_replay){
            .trace = job->device,
            .watch = &tap->watch,
            .prepared = params,
            .mem = arena,
            .check = cell_is_checked(job->cell, params->policy),
            .stop_at_oom = job->cell->stop_at_oom,
            .repeat = 1,
            .max_ooms = 1,
            .progress = tick,
            .user = &run_of,
        },
        out, e);
}

static enum frag_err run_in_arena(const struct export_job *job,
                                  const struct frag_params *params,
                                  const struct tap_listener *listener,
                                  struct frag_run *out, struct frag_error *e)
{
    struct frag_backend *arena;
    struct tap tap;
    enum frag_err err;

    FRAG_TRY(cell_arena(job->cell, job->bound, job->cell->total, &arena, e));
    err = tap_open(&tap, job->device, listener);
    if (err == FRAG_OK)
        err = run(job, params, &tap, arena, out, e);
    else
        err = frag_no_memory(e, "the live blocks");
    tap_close(&tap);
    frag_arena_close(arena);
    return err;
}

enum frag_err export_replay(const struct export_job *job,
                            const struct policy_choice *policy,
                            const struct tap_listener *listener,
                            struct frag_run *out, struct frag_error *e)
{
    struct frag_params *params;
    enum frag_err err;

    FRAG_TRY(
        policy_choice_params_of(policy, job->trace, job->device, &params, e));
    err = run_in_arena(job, params, listener, out, e);
    free(params);
    return err;
}
