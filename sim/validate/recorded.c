/* recorded.c - reads the settings, the limit and the addresses of a recording.
 */
#include "sim/validate/recorded.h"

#include <inttypes.h>
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

enum frag_err frag_recorded_can_start(const struct frag_trace *t,
                                      const struct frag_device_trace *d,
                                      const char *instead, struct frag_error *e)
{
    const struct frag_layout *start = &d->recorded.start;

    for (uint64_t i = 0; i < start->segment_count; i++)
        if (start->segments[i].is_expandable)
            return frag_fail(
                e, FRAG_UNSUPPORTED,
                "%s: device %" PRIu32 ": expandable segments were held before "
                "the first event, and the recorded allocator cannot be "
                "repeated from there; record with torch.cuda.memory._record_"
                "memory_history() before the job starts%s%s",
                t->path, d->device,
                instead ? ", or replay the requests on an empty device with "
                        : "",
                instead ? instead : "");
    return FRAG_OK;
}

void frag_recorded_setup_free(struct frag_recorded_setup *s)
{
    frag_anchors_free(&s->arena);
    s->arena.bases = s->arena.range_bases = NULL;
    s->arena.sizes = s->arena.range_sizes = NULL;
}
