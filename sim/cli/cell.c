#include "sim/cli/cell.h"

#include <math.h>

#include "sim/arena.h"
#include "sim/cli/cli.h"

static enum frag_err arena_open(const struct cell_settings *s,
                                frag_size capacity, struct frag_backend **out,
                                struct frag_error *e)
{
    struct frag_backend *arena =
        frag_arena_open(&(const struct frag_arena_options){
            .capacity = capacity,
            .total = s->total,
            .rule = s->rule,
            .costs = &s->costs,
        });

    if (!arena)
        return frag_fail(e, FRAG_NOMEM, "no memory for the arena");
    *out = arena;
    return FRAG_OK;
}

/* In the order of the choices of --backend. */
const struct cell_backend cell_backends[] = {
    {"arena", arena_open, frag_arena_close},
};

enum frag_err cell_settings_read(const struct cell_values *v,
                                 struct cell_settings *out,
                                 struct frag_error *e)
{
    struct cell_settings s = {
        .backend = &cell_backends[v->backend],
        .costs = frag_costs_h200,
        .total = v->total,
        .rule = v->rule,
        .stop_at_oom = v->stop_at_oom,
        .check = v->check,
        .timed = !cli_is_reproducible(),
    };

    if (v->costs)
        FRAG_TRY(frag_costs_read(v->costs, &s.costs, e));
    *out = s;
    return FRAG_OK;
}

enum frag_err cell_run(const struct cell_settings *s,
                       struct frag_run_identity *id, const char *params,
                       bool (*tick)(void *user, uint64_t done, uint64_t total),
                       void *user, struct frag_run *out, struct frag_error *e)
{
    struct frag_backend *mem;
    enum frag_err err;

    FRAG_TRY(s->backend->open(s, id->capacity, &mem, e));
    id->backend = s->backend->name;
    id->total = mem->total;
    id->stopped_at_oom = s->stop_at_oom;
    err = frag_replay(
        &(const struct frag_replay){
            .trace = id->device,
            .policy = id->policy_used,
            .params = params,
            .mem = mem,
            .check = s->check,
            .stop_at_oom = s->stop_at_oom,
            .repeat = 1,
            .points = s->points,
            .max_ooms = CELL_OOMS,
            .progress = tick,
            .user = user,
        },
        out, e);
    s->backend->close(mem);
    if (err == FRAG_OK && !s->timed)
        out->summary.ns_per_event = NAN;
    return err;
}
