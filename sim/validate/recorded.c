/* recorded.c - reads the settings, the limit and the addresses of a recording.
 */
#include "sim/validate/recorded.h"

#include <stdlib.h>

#include "policies/torch/platform.h"
#include "sim/replay/reservations.h"
#include "sim/validate/anchors.h"

/* Lowers *total to what fits between the recorded reservations. */
static enum frag_err fit_total(const struct frag_recorded *recorded,
                               frag_size *total, struct frag_error *e)
{
    struct frag_reservation *rows = NULL;
    uint64_t count = 0;

    FRAG_TRY(frag_reservations(recorded, *total, &rows, &count, e));
    *total = frag_reservations_total(recorded, rows, count, *total);
    free(rows);
    return FRAG_OK;
}

enum frag_err frag_recorded_arena(const struct frag_recorded *r,
                                  frag_size total,
                                  struct frag_arena_options *out,
                                  struct frag_error *e)
{
    struct frag_arena_options arena = {
        .capacity = FRAG_UNLIMITED,
        .total = total ? total : FRAG_H200_TOTAL,
        .rule = FRAG_RULE_ANCHORED,
    };
    enum frag_err err = total ? FRAG_OK : fit_total(r, &arena.total, e);

    if (err == FRAG_OK)
        err = frag_anchors_make(r, &arena, e);
    if (err == FRAG_OK)
        *out = arena;
    else
        frag_anchors_free(&arena);
    return err;
}

/* The settings with the recorded release and the limit; NULL: no memory. */
static char *recorded_params(const struct frag_validate *spec, frag_size total)
{
    const struct frag_trace *t = spec->trace;
    const char *chosen = spec->settings ? spec->settings : t->settings;
    char *settings =
        torch_settings_for(t->settings, t->releases, chosen ? chosen : "");
    char *params =
        settings ? torch_settings_limited(settings, spec->limit, total) : NULL;

    free(settings);
    return params;
}

enum frag_err frag_recorded_setup(const struct frag_validate *spec,
                                  struct frag_recorded_setup *out,
                                  struct frag_error *e)
{
    struct frag_recorded_setup s = {
        .arena = {.capacity = FRAG_UNLIMITED, .rule = FRAG_RULE_EXACT},
    };

    if (spec->device->device != FRAG_HOST_DEVICE)
        FRAG_TRY(frag_recorded_arena(&spec->device->recorded, spec->total,
                                     &s.arena, e));
    if (spec->predicted && spec->device->device != FRAG_HOST_DEVICE)
        s.arena.rule = FRAG_RULE_DRIVER;
    s.params = recorded_params(spec, s.arena.total);
    if (s.params) {
        *out = s;
        return FRAG_OK;
    }
    frag_recorded_setup_free(&s);
    return frag_no_memory(e, "the settings");
}

void frag_recorded_setup_free(struct frag_recorded_setup *s)
{
    frag_anchors_free(&s->arena);
    s->arena.bases = s->arena.range_bases = NULL;
    s->arena.sizes = s->arena.range_sizes = NULL;
    free(s->params);
    s->params = NULL;
}
