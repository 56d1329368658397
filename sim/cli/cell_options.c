/* cell_options.c - makes the settings of cells from a command's options. */
#include "sim/cli/cell_options.h"

#include <limits.h>
#include <stdio.h>

#include "sim/cli/cli.h"

/* In the order of the choices of --backend in cell_options.h. */
static const struct cell_backend *const backends[] = {
    &cell_arena_backend,
    &cell_cuda_backend,
};

enum frag_err cell_settings_read(const struct cell_values *v,
                                 struct cell_settings *out,
                                 struct frag_error *e)
{
    const struct frag_measured_costs *measured =
        v->costs ? frag_costs_named(v->costs) : frag_measured_costs;
    struct cell_settings s = {
        .backend = backends[v->backend],
        .total = v->total,
        .rule = v->rule,
        .gpu = v->gpu < INT_MAX ? (int)v->gpu : INT_MAX,
        .stop_at_oom = v->stop_at_oom,
        .check = v->check ? CELL_CHECK_ALL : CELL_CHECK_PLUGINS,
        .timed = !cli_is_reproducible(),
        .ooms = CELL_OOMS,
    };

    if (measured)
        s.costs = *measured->costs;
    else
        FRAG_TRY(frag_costs_read(v->costs, &s.costs, e));
    *out = s;
    return FRAG_OK;
}

const char *gpu_unknown(const char *id, const char *memory,
                        char text[GPU_UNKNOWN])
{
    struct nearest near = nearest_to(id);
    char names[NEAREST_NAMES];

    for (const struct frag_gpu *g = frag_gpus; g->id; g++)
        nearest_try(&near, g->id);
    snprintf(text, GPU_UNKNOWN,
             "--gpu %.60s: expected a GPU of the table%s; for any other one "
             "pass its memory with %s",
             id, nearest_names(&near, "GPUs", names), memory);
    return text;
}

enum frag_err one_bound_read(const struct one_bound *b, struct frag_bound *out,
                             struct frag_error *e)
{
    const struct frag_gpu *gpu = b->gpu ? frag_gpu_find(b->gpu) : NULL;
    char unknown[GPU_UNKNOWN];

    if (!!b->capacity + !!b->limit + !!b->gpu > 1)
        return frag_fail(e, FRAG_INVALID,
                         "--capacity, --gpu and --process-limit exclude each "
                         "other: pass one of them");
    if (b->gpu && !gpu)
        return frag_fail(e, FRAG_INVALID, "%s",
                         gpu_unknown(b->gpu, "--capacity", unknown));
    *out = FRAG_NO_BOUND;
    if (gpu || b->capacity)
        *out = frag_capacity_bound(gpu ? frag_gpu_room(gpu) : b->capacity);
    if (b->limit)
        *out = frag_bound_at(b->limit, FRAG_BOUND_LIMIT);
    return FRAG_OK;
}

struct trace_reading cell_reading(const struct cell_values *v)
{
    return (struct trace_reading){
        .kind = v->as_recorded ? READING_RECORDED : READING_COMPLETED,
        .limit = v->limit,
        .completion = {.further = v->further, .mark = v->mark},
    };
}
