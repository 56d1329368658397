/* dry_json.c - the answer of `fragsim dry` as JSON. */
#include "sim/cli/verbs/dry/dry_answer.h"
#include "sim/results/row.h"

/* clang-format off */ /* clang-format on */

static void put_place(struct frag_json *j, const char *key,
                      const struct dry_place *p)
{
    JSON_OBJECT(j, key, dry_place, p->event == FRAG_NEVER ? NULL : p,
                NUMBER("event", event), NUMBER("step", step),
                NUMBER("steps", steps), FILLED("site", site),
                NUMBER("after_site", is_after), NUMBER("request_bytes", bytes),
                NUMBER("live_bytes", live));
}

static void put_classes(struct frag_json *j, const struct dry_device *d)
{
    frag_json_array(j, "classes");
    for (int k = 0; k < CLASS_COUNT; k++) {
        frag_json_object(j, NULL);
        frag_json_text(j, "class", memory_class_names[k]);
        JSON_ROW(j, class_row, &d->classes[k], NUMBER("at_peak_bytes", at_peak),
                 NUMBER("most_bytes", most));
        frag_json_end(j);
    }
    frag_json_end(j);
}

static void put_ways(struct frag_json *j, const struct dry_answer *a,
                     const struct dry_device *d)
{
    frag_json_array(j, "settings");
    for (size_t w = 0; w < DRY_WAYS; w++) {
        const struct frag_summary *run = &d->ways[w].unlimited.run;

        frag_json_object(j, NULL);
        frag_json_text(j, "setting", a->ways[w].name);
        JSON_ROW(j, dry_bounds, &d->need[w], NUMBER("need_bytes", most),
                 NUMBER("need_at_least_bytes", least),
                 NUMBER("need_at_most_bytes", most));
        JSON_ROW(j, dry_bounds, &d->reserved[w],
                 NUMBER("peak_reserved_at_least_bytes", least),
                 NUMBER("peak_reserved_at_most_bytes", most));
        JSON_ROW(j, frag_summary, run,
                 NUMBER("peak_reserved_bytes", peak_reserved),
                 NUMBER("peak_allocated_bytes", peak_allocated));
        frag_json_end(j);
    }
    frag_json_end(j);
}

/* Whether the device fits the GPU under the setting; null if nobody knows. */
static void put_fits(struct frag_json *j, const char *key,
                     const struct dry_answer *a, const struct dry_device *d,
                     const struct frag_gpu *g, size_t way)
{
    if (dry_any_lacks_memory(a) || !dry_tells(a, g))
        frag_json_null(j, key);
    else
        frag_json_bool(j, key, dry_fits(a, d, g, way));
}

static void put_gpus(struct frag_json *j, const struct dry_answer *a,
                     const struct dry_device *d)
{
    frag_json_array(j, "gpus");
    for (const struct frag_gpu *g = frag_gpus; g->id; g++) {
        frag_json_new_object(j, 6, NULL);
        JSON_ROW(j, frag_gpu, g, TEXT("gpu", id), NUMBER("memory_bytes", total),
                 TEXT("memory_source", memory_source));
        frag_json_number(j, "others_bytes", dry_outside(a, d, g));
        frag_json_text(j, "others_source", g->context_source);
        frag_json_array(j, "fits");
        for (size_t w = 0; w < DRY_WAYS; w++)
            put_fits(j, NULL, a, d, g, w);
        frag_json_end(j);
        frag_json_end(j);
    }
    frag_json_end(j);
}

static void put_limit(void *user, const char *text)
{
    frag_json_text(user, NULL, text);
}

void dry_put_server(const struct dry_answer *a, struct frag_json *j)
{
    if (!a->server.server) {
        frag_json_null(j, "server");
        return;
    }
    frag_json_object(j, "server");
    startup_json(&a->server, j);
    frag_json_end(j);
}

void dry_put_json(const struct dry_answer *a, struct frag_json *j)
{
    for (size_t i = 0; i < a->count; i++) {
        const struct dry_device *d = &a->devices[i];

        frag_json_new_object(j, 4, NULL);
        frag_json_text(j, "process", d->process->number);
        frag_json_count(j, "rank", (uint64_t)d->process->rank);
        frag_json_number(j, "device", d->device);
        frag_json_text(j, "trace", a->is_kept ? d->process->trace : NULL);
        frag_json_text(j, "gpu", a->gpu->id);
        frag_json_number(j, "status", (uint64_t)a->status);
        frag_json_number(j, "runs", a->runs);
        frag_json_bool(j, "whole", dry_is_whole(a));
        put_fits(j, "fits", a, d, a->gpu, 0);
        JSON_ROW(j, dry_device, d,
                 NUMBER("counted_allocated_bytes", counted_allocated),
                 NUMBER("counted_reserved_bytes", counted_reserved));
        frag_json_number(j, "pinned_bytes", dry_pinned(d->process));
        dry_put_server(a, j);
        put_place(j, "peak", &d->peak);
        put_place(j, "death", &d->death);
        frag_json_number(j, "outside_bytes", d->outside);
        put_classes(j, d);
        put_ways(j, a, d);
        put_gpus(j, a, d);
        JSON_ROWS(j, "notes", 0, dry_note, d->process->notes, d->process->count,
                  TEXT("kind", kind), NUMBER("number", number),
                  TEXT("name", name));
        frag_json_array(j, "rests_on");
        dry_limits(a, put_limit, j);
        frag_json_end(j);
        frag_json_end(j);
    }
}
