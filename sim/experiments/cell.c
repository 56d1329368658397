/* cell.c - runs a cell on fresh memory of its backend. */
#include "sim/experiments/cell.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "sim/arena/arena.h"
#include "sim/experiments/plugin.h"
#include "sim/experiments/start.h"
#include "sim/validate/recorded.h"

enum frag_err cell_arena(const struct cell_settings *s, struct frag_bound bound,
                         frag_size total, struct frag_backend **out,
                         struct frag_error *e)
{
    struct frag_backend *arena =
        frag_arena_open(&(const struct frag_arena_options){
            .capacity = frag_bound_of(bound, FRAG_BOUND_CAPACITY),
            .limit = bound.kind == FRAG_BOUND_LIMIT ? bound.bytes : 0,
            .total = total,
            .rule = s->rule,
            .costs = &s->costs,
        });

    if (!arena)
        return frag_no_memory(e, "the arena");
    *out = arena;
    return FRAG_OK;
}

static enum frag_err arena_open(const struct cell_settings *s,
                                struct frag_bound bound,
                                struct cell_memory *out, struct frag_error *e)
{
    *out = (struct cell_memory){0};
    return cell_arena(s, bound, s->total, &out->mem, e);
}

void cell_close_arena(struct cell_memory *m)
{
    frag_arena_close(m->mem);
    if (m->parts)
        frag_anchors_free(m->parts);
    free(m->parts);
}

/* The arena borrows the addresses, so they stay in m->parts. */
static enum frag_err open_anchored(const struct cell_settings *s,
                                   const struct frag_device_trace *trace,
                                   struct frag_bound bound,
                                   struct cell_memory *m, struct frag_error *e)
{
    struct frag_arena_options *o = m->parts;

    FRAG_TRY(frag_recorded_arena(trace, s->total, o, e));
    o->capacity = frag_bound_of(bound, FRAG_BOUND_CAPACITY);
    o->limit = bound.kind == FRAG_BOUND_LIMIT ? bound.bytes : 0;
    o->costs = &s->costs;
    m->mem = frag_arena_open(o);
    return m->mem ? FRAG_OK : frag_no_memory(e, "the arena");
}

static bool has_addresses(const struct cell_settings *s,
                          const struct frag_device_trace *trace)
{
    return s->rule == FRAG_RULE_DRIVER && trace->recorded.addr &&
           trace->recorded.has_actions;
}

enum frag_err cell_open_arena(const struct cell_settings *s,
                              const struct frag_device_trace *trace,
                              struct frag_bound bound, bool repeats,
                              struct cell_memory *out, struct frag_error *e)
{
    struct cell_memory m = {0};
    enum frag_err err;

    if (!repeats || !has_addresses(s, trace))
        return arena_open(s, bound, out, e);
    m.parts = calloc(1, sizeof(struct frag_arena_options));
    if (!m.parts)
        return frag_no_memory(e, "the arena");
    err = open_anchored(s, trace, bound, &m, e);
    if (err == FRAG_OK)
        *out = m;
    else
        cell_close_arena(&m);
    return err;
}

const struct cell_backend cell_arena_backend = {
    .name = "arena",
    .open = arena_open,
    .close = cell_close_arena,
};

/* The name of measured costs, or a checksum of others. */
static void name_costs(char *text, size_t room, const struct frag_costs *costs)
{
    const struct frag_measured_costs *m = frag_measured_costs;

    while (m->name && memcmp(costs, m->costs, sizeof(*costs)) != 0)
        m++;
    if (m->name)
        snprintf(text, room, "%s", m->name);
    else
        snprintf(text, room, "%08lx",
                 crc32_z(0, (const void *)costs, sizeof(*costs)));
}

char *cell_settings_text(const struct cell_settings *s,
                         const struct trace_reading *reading)
{
    static const char *const rules[] = {"driver", "hostile", "exact"};
    static const char *const checks[] = {"plugins", "all", "none"};
    static const char *const readings[] = {"completed", "recorded", "raw"};
    char costs[16], *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);

    if (!out)
        return NULL;
    name_costs(costs, sizeof(costs), &s->costs);
    fprintf(out, "backend=%s,address_rule=%s,costs=%s,", s->backend->name,
            rules[s->rule], costs);
    fprintf(out, "total=%" PRIu64 ",limit=%" PRIu64 ",quantum=%" PRIu64 ",",
            s->total, reading->limit, s->quantum);
    fprintf(out, "traces=%s,further_steps=%" PRIu64 ",step_mark=%s,",
            readings[reading->kind], reading->completion.further,
            reading->completion.mark ? reading->completion.mark : "");
    fprintf(out, "stop_at_oom=%d,check=%s,points=%" PRIu64 ",ooms=%" PRIu64,
            s->stop_at_oom, checks[s->check], s->points, s->ooms);
    if (s->need)
        fprintf(out, ",need=%s", frag_bound_words[s->need - 1]);
    if (fclose(out) == 0)
        return text;
    free(text);
    return NULL;
}

bool cell_is_checked(const struct cell_settings *s,
                     const struct frag_policy *policy)
{
    return s->check == CELL_CHECK_ALL ||
           (s->check == CELL_CHECK_PLUGINS && plugin_made(policy));
}

/* A failed device is the cause of every later error of the run, and makes its
 * numbers invalid: the error of the device replaces or extends that of the run.
 */
static enum frag_err add_device_fault(const struct cell_backend *backend,
                                      const struct cell_memory *m,
                                      enum frag_err err, struct frag_run *out,
                                      struct frag_error *e)
{
    const char *words = backend->fault ? backend->fault(m) : "";
    struct frag_error before = {""};

    if (!*words)
        return err;
    before = *e;
    if (err == FRAG_OK)
        frag_run_free(out);
    return frag_fail(e, FRAG_DEVICE, "%.200s%s%s",
                     err == FRAG_OK ? "" : before.text,
                     err == FRAG_OK ? "" : ": ", words);
}

static enum frag_err replay(const struct cell_settings *s,
                            const struct cell_memory *m,
                            const struct frag_device_trace *trace,
                            const struct frag_params *params, bool adopt_start,
                            frag_progress *tick, void *user,
                            struct frag_run *out, struct frag_error *e)
{
    const struct frag_replay spec = {
        .trace = trace,
        .prepared = params,
        .mem = m->mem,
        .check = cell_is_checked(s, params->policy),
        .contents = m->contents,
        .quantum = s->quantum,
        .stop_at_oom = s->stop_at_oom,
        .adopt_start = adopt_start,
        .repeat = 1,
        .points = s->points,
        .max_ooms = s->ooms,
        .progress = tick,
        .user = user,
    };
    const enum frag_err err = frag_replay(&spec, out, e);

    if (err == FRAG_OK && !s->timed)
        out->summary.ns_per_event = NAN;
    return add_device_fault(s->backend, m, err, out, e);
}

enum frag_err cell_replay(const struct cell_settings *s,
                          const struct cell_memory *m,
                          const struct frag_device_trace *trace,
                          const struct frag_params *params, frag_progress *tick,
                          void *user, struct frag_run *out,
                          struct frag_error *e)
{
    return replay(s, m, trace, params, false, tick, user, out, e);
}

unsigned cell_rule(const struct cell_settings *s,
                   const struct frag_device_trace *trace)
{
    return trace->device == FRAG_HOST_DEVICE && s->rule == FRAG_RULE_DRIVER
               ? FRAG_RULE_EXACT
               : s->rule;
}

/* Opens the memory of a cell and completes its identity. */
static enum frag_err open_memory(const struct cell_settings *s,
                                 const struct frag_device_trace *trace,
                                 struct frag_run_identity *id,
                                 const struct frag_params *params,
                                 struct cell_memory *m, struct frag_error *e)
{
    if (id->repeats && s->backend == &cell_arena_backend)
        FRAG_TRY(cell_open_arena(s, trace, id->bound, true, m, e));
    else
        FRAG_TRY(s->backend->open(s, id->bound, m, e));
    id->backend = s->backend->name;
    id->total = m->mem->total;
    id->stopped_at_oom = s->stop_at_oom;
    id->checked = cell_is_checked(s, params->policy);
    return FRAG_OK;
}

enum frag_err cell_run(const struct cell_settings *s,
                       const struct frag_device_trace *trace,
                       struct frag_run_identity *id,
                       const struct frag_params *params, frag_progress *tick,
                       void *user, struct frag_run *out, struct frag_error *e)
{
    struct cell_settings own = *s;

    own.rule = cell_rule(s, trace);
    s = &own;

    bool adopts =
        !s->from_requests &&
        start_is_adoptable(trace, params->policy, params->text, id->bound);
    struct cell_memory m;
    enum frag_err err;

    FRAG_TRY(open_memory(s, trace, id, params, &m, e));
    err = replay(s, &m, trace, params, adopts, tick, user, out, e);
    s->backend->close(&m);
    if (err != FRAG_UNSUPPORTED || !adopts)
        return err;
    FRAG_TRY(open_memory(s, trace, id, params, &m, e));
    err = cell_replay(s, &m, trace, params, tick, user, out, e);
    s->backend->close(&m);
    return err;
}
