#include "sim/experiments/cell.h"

#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "real/device/cuda.h"
#include "sim/arena/arena.h"
#include "sim/cli/cli.h"

enum frag_err cell_arena(const struct cell_settings *s, frag_size capacity,
                         frag_size total, struct frag_backend **out,
                         struct frag_error *e)
{
    struct frag_backend *arena =
        frag_arena_open(&(const struct frag_arena_options){
            .capacity = capacity,
            .total = total,
            .rule = s->rule,
            .costs = &s->costs,
        });

    if (!arena)
        return frag_fail(e, FRAG_NOMEM, "no memory for the arena");
    *out = arena;
    return FRAG_OK;
}

static enum frag_err arena_open(const struct cell_settings *s,
                                frag_size capacity, struct cell_memory *out,
                                struct frag_error *e)
{
    *out = (struct cell_memory){0};
    FRAG_TRY(cell_arena(s, capacity, s->total, &out->arena, e));
    out->mem = out->arena;
    return FRAG_OK;
}

static void arena_close(struct cell_memory *m)
{
    frag_arena_close(m->arena);
}

/* In the order of the choices of --backend. */
const struct cell_backend cell_backends[] = {
    {"arena", arena_open, arena_close},
    {"cuda", cell_cuda_open, cell_cuda_close},
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
        .gpu = v->gpu < INT_MAX ? (int)v->gpu : INT_MAX,
        .stop_at_oom = v->stop_at_oom,
        .check = v->check,
        .timed = !cli_is_reproducible(),
        .ooms = CELL_OOMS,
    };

    if (v->costs)
        FRAG_TRY(frag_costs_read(v->costs, &s.costs, e));
    *out = s;
    return FRAG_OK;
}

char *cell_settings_text(const struct cell_settings *s, frag_size limit)
{
    static const char *const rules[] = {"driver", "hostile"};
    char costs[16] = "h200", *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);

    if (!out)
        return NULL;
    if (memcmp(&s->costs, &frag_costs_h200, sizeof(s->costs)) != 0)
        snprintf(costs, sizeof(costs), "%08lx",
                 crc32_z(0, (const void *)&s->costs, sizeof(s->costs)));
    fprintf(out, "backend=%s,address_rule=%s,costs=%s,", s->backend->name,
            rules[s->rule], costs);
    fprintf(out, "total=%" PRIu64 ",limit=%" PRIu64 ",", s->total, limit);
    fprintf(out, "stop_at_oom=%d,check=%d,points=%" PRIu64 ",ooms=%" PRIu64,
            s->stop_at_oom, s->check, s->points, s->ooms);
    if (fclose(out) == 0)
        return text;
    free(text);
    return NULL;
}

/* A device that failed once explains all that failed after it, and no number
 * of such a run is to be trusted. */
static enum frag_err trust(const struct cell_memory *m, enum frag_err err,
                           struct frag_run *out, struct frag_error *e)
{
    const char *words = m->device ? frag_cuda_words(m->device) : "";
    const struct frag_error before = *e;

    if (!*words)
        return err;
    if (err == FRAG_OK)
        frag_run_free(out);
    return frag_fail(e, FRAG_DEVICE, "%.200s%s%s",
                     err == FRAG_OK ? "" : before.text,
                     err == FRAG_OK ? "" : ": ", words);
}

enum frag_err
cell_replay(const struct cell_settings *s, const struct cell_memory *m,
            const struct frag_run_identity *id, const char *params,
            bool (*tick)(void *user, uint64_t done, uint64_t total), void *user,
            struct frag_run *out, struct frag_error *e)
{
    enum frag_err err = frag_replay(
        &(const struct frag_replay){
            .trace = id->device,
            .policy = id->policy_used,
            .params = params,
            .mem = m->mem,
            .check = s->check,
            .contents = m->contents,
            .stop_at_oom = s->stop_at_oom,
            .repeat = 1,
            .points = s->points,
            .max_ooms = s->ooms,
            .progress = tick,
            .user = user,
        },
        out, e);

    if (err == FRAG_OK && !s->timed)
        out->summary.ns_per_event = NAN;
    return trust(m, err, out, e);
}

enum frag_err cell_run(const struct cell_settings *s,
                       struct frag_run_identity *id, const char *params,
                       bool (*tick)(void *user, uint64_t done, uint64_t total),
                       void *user, struct frag_run *out, struct frag_error *e)
{
    struct cell_memory m;
    enum frag_err err;

    FRAG_TRY(s->backend->open(s, id->capacity, &m, e));
    id->backend = s->backend->name;
    id->total = m.mem->total;
    id->stopped_at_oom = s->stop_at_oom;
    err = cell_replay(s, &m, id, params, tick, user, out, e);
    s->backend->close(&m);
    return err;
}
