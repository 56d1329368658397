/* recorded.c - reads the settings, the limit and the addresses of a recording.
 */
#include "sim/validate/recorded.h"

#include <stdio.h>
#include <string.h>

#include "sim/validate/anchors.h"

static void set_params(const struct frag_validate *spec, frag_size total,
                       char *text, size_t room)
{
    const char *settings =
        spec->settings ? spec->settings : spec->trace->settings;

    snprintf(text, room, "%s", settings ? settings : "");
    if (spec->limit != FRAG_UNLIMITED) {
        size_t length = strlen(text);

        snprintf(text + length, room - length,
                 "%sper_process_memory_fraction:%.17g", length ? "," : "",
                 (double)spec->limit / (double)total);
    }
}

enum frag_err frag_recorded_setup(const struct frag_validate *spec,
                                  struct frag_recorded_setup *out,
                                  struct frag_error *e)
{
    const struct frag_recorded *recorded = &spec->device->recorded;
    struct frag_recorded_setup s = {
        .arena = {
            .capacity = FRAG_UNLIMITED,
            .total = spec->total ? spec->total : FRAG_H200_TOTAL,
            .rule = spec->predicted ? FRAG_RULE_DRIVER : FRAG_RULE_ANCHORED,
        }};
    enum frag_err err;

    err = frag_anchors_make(recorded, &s.arena, e);
    if (err != FRAG_OK) {
        frag_recorded_setup_free(&s);
        return err;
    }
    set_params(spec, s.arena.total, s.params, sizeof(s.params));
    *out = s;
    return FRAG_OK;
}

void frag_recorded_setup_free(struct frag_recorded_setup *s)
{
    frag_anchors_free(&s->arena);
    s->arena.bases = NULL;
    s->arena.sizes = NULL;
}
