/* recorded.c - reads the settings, the limit and the addresses of a recording.
 */
#include "sim/validate/recorded.h"

#include <stdlib.h>

#include "policies/torch/platform.h"
#include "sim/replay/reservations.h"
#include "traces/setting_changes.h"

#define ABOVE_ALL ((frag_addr)1 << 48) /* recorded addresses */

/* ---- the recorded base addresses of segments and reservations ---- */

static enum frag_err list_segments(const struct frag_recorded *r,
                                   struct frag_arena_options *arena,
                                   struct frag_error *e)
{
    frag_addr *bases = calloc(r->action_count + 1, sizeof(*bases));
    frag_size *sizes = calloc(r->action_count + 1, sizeof(*sizes));

    arena->bases = bases;
    arena->sizes = sizes;
    arena->base_count = 0;
    if (!bases || !sizes)
        return frag_no_memory(e, "the recorded addresses");
    for (uint64_t i = 0; i < r->action_count; i++) {
        if (r->actions[i].action != FRAG_SEGMENT_ALLOC)
            continue;
        bases[arena->base_count] = r->actions[i].addr;
        sizes[arena->base_count++] = r->actions[i].size;
    }
    return FRAG_OK;
}

/* The reservations that were made during the recording. One of which nothing
 * was ever mapped was above the others of its stream, which PyTorch uses first.
 */
static enum frag_err list_ranges(const struct frag_device_trace *d,
                                 struct frag_arena_options *arena,
                                 struct frag_error *e)
{
    struct frag_reservation *rows = NULL;
    uint64_t count = 0;
    frag_addr *bases, above = ABOVE_ALL;
    frag_size *sizes;

    arena->range_count = 0;
    FRAG_TRY(frag_reservations(d, arena->total, &rows, &count, e));
    arena->range_bases = bases = calloc(count + 1, sizeof(*bases));
    arena->range_sizes = sizes = calloc(count + 1, sizeof(*sizes));
    for (uint64_t i = 0; bases && sizes && i < count; i++) {
        if (rows[i].held)
            continue;
        sizes[arena->range_count] =
            frag_reservation_size(&rows[i], arena->total);
        bases[arena->range_count] = rows[i].unseen ? above : rows[i].addr;
        above += rows[i].unseen ? sizes[arena->range_count] : 0;
        arena->range_count++;
    }
    free(rows);
    return bases && sizes ? FRAG_OK
                          : frag_no_memory(e, "the recorded addresses");
}

void frag_anchors_free(struct frag_arena_options *arena)
{
    free((void *)(uintptr_t)arena->bases);
    free((void *)(uintptr_t)arena->sizes);
    free((void *)(uintptr_t)arena->range_bases);
    free((void *)(uintptr_t)arena->range_sizes);
}

/* ---- the setup ---- */

/* Lowers *total to what fits between the recorded reservations. */
static enum frag_err fit_total(const struct frag_device_trace *d,
                               frag_size *total, struct frag_error *e)
{
    struct frag_reservation *rows = NULL;
    uint64_t count = 0;

    FRAG_TRY(frag_reservations(d, *total, &rows, &count, e));
    *total = frag_reservations_total(rows, count, *total);
    free(rows);
    return FRAG_OK;
}

enum frag_err frag_recorded_arena(const struct frag_device_trace *d,
                                  frag_size total,
                                  struct frag_arena_options *out,
                                  struct frag_error *e)
{
    struct frag_arena_options arena = {
        .capacity = FRAG_UNLIMITED,
        .total = total ? total : FRAG_H200_TOTAL,
        .rule = FRAG_RULE_ANCHORED,
    };
    enum frag_err err = total ? FRAG_OK : fit_total(d, &arena.total, e);

    if (err == FRAG_OK)
        err = list_segments(&d->recorded, &arena, e);
    if (err == FRAG_OK)
        err = list_ranges(d, &arena, e);
    if (err == FRAG_OK)
        *out = arena;
    else
        frag_anchors_free(&arena);
    return err;
}

/* The settings with the recorded release; NULL: no memory. */
static char *recorded_params(const struct frag_validate *spec)
{
    const struct frag_trace *t = spec->trace;
    const char *chosen = spec->settings ? spec->settings : t->settings;

    return torch_settings_for(t->settings, t->releases, chosen ? chosen : "");
}

enum frag_err frag_recorded_setup(const struct frag_validate *spec,
                                  struct frag_recorded_setup *out,
                                  struct frag_error *e)
{
    struct frag_recorded_setup s = {
        .arena = {.capacity = FRAG_UNLIMITED, .rule = FRAG_RULE_EXACT},
    };

    if (spec->device->device != FRAG_HOST_DEVICE)
        FRAG_TRY(frag_recorded_arena(spec->device, spec->total, &s.arena, e));
    if (spec->limit != FRAG_UNLIMITED && !changes_limit(spec->device))
        s.arena.limit = spec->limit;
    s.params = recorded_params(spec);
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
