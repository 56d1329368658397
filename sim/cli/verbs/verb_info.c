/* verb_info.c - the command info: prints the contents of traces, as text or
 * JSON. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "policies/torch/platform.h"
#include "sim/cli/cli.h"
#include "sim/cli/output/answer.h"
#include "sim/cli/output/inputs.h"
#include "sim/results/row.h"
#include "traces/facts.h"
#include "traces/printable.h"
#include "traces/setting_changes.h"

struct info_values {
    struct common common;
    const char *json;
    frag_size limit;
    bool force;
};

/* The facts of a device that are printed. */
struct device_view {
    const struct frag_trace *trace;
    struct frag_device_trace d; /* borrowed, all of it */
    struct facts facts;
    struct facts_pool *by_pool; /* [pool_count] */
    uint64_t events;            /* of the recording */
};

/* The facts that are one number: the key of JSON, and the label in the text. */
/* clang-format off */
#define FACT(key, label, unit, field)                                          \
    {.name = key, .kind = NUMBER_KIND(struct device_view, field),              \
     .offset = offsetof(struct device_view, field), .units = unit,             \
     .meaning = label}
static const struct frag_column facts[] = {
    FACT("events", "events", "1", events),
    FACT("initial_blocks", "live before the recording", "1", d.initial),
    FACT("num_streams", "streams", "1", d.stream_count),
    FACT("num_pools", "pools", "1", d.pool_count),
    FACT("num_marks", "marks", "1", d.mark_count),
    FACT("peak_requested_bytes", "peak requested", "byte", facts.peak_served),
    FACT("peak_live_blocks", "peak live blocks", "1", facts.peak_live),
    FACT("failed_requests", "failed requests", "1", facts.failed),
    FACT("peak_with_failed_bytes", "peak with failed ones", "byte",
         facts.peak_requested),
    FACT("end_live_bytes", "live at the end", "byte", facts.end_requested),
    FACT("end_live_blocks", "live blocks at the end", "1", facts.end_live),
    FACT("recorded_peak_reserved_bytes", "recorded peak reserved", "byte",
         facts.peak_reserved),
    FACT("start_segments", "segments at the start", "1",
         d.recorded.start.segment_count),
    FACT("end_segments", "segments at the end", "1",
         d.recorded.end.segment_count),
    END};
/* clang-format on */

/* The caller frees v->by_pool, on error too. */
static enum frag_err look(const struct frag_trace *t,
                          const struct frag_device_trace *d,
                          struct device_view *v)
{
    *v = (struct device_view){
        .trace = t,
        .d = *d,
        .by_pool = calloc((size_t)d->pool_count + 1, sizeof(*v->by_pool)),
        .events = d->count - d->initial,
    };
    if (!v->by_pool)
        return FRAG_NOMEM;
    FRAG_TRY(facts_pools(d, v->by_pool));
    return facts_gather(d, &v->facts);
}

/* -- words --------------------------------------------------------------- */

static void line(FILE *out, const char *label, const char *text)
{
    printable_line(out, "  %-26s %s", label, text);
}

static void print_counts(FILE *out, const char *label, const uint64_t *counts,
                         const char *const *names, size_t n)
{
    bool any = false;

    fprintf(out, "  %-26s", label);
    for (size_t i = 0; i < n; i++)
        if (counts[i]) {
            fprintf(out, "%s %s %" PRIu64, any ? "," : "", names[i], counts[i]);
            any = true;
        }
    fputs(any ? "\n" : " none\n", out);
}

static void print_fact(FILE *out, const struct device_view *v,
                       const struct frag_column *fact)
{
    const uint64_t n = frag_column_number(fact, v);

    if (n == FRAG_UNLIMITED)
        line(out, fact->meaning, "not recorded");
    else if (*fact->units == 'b')
        line(out, fact->meaning, FRAG_SHOW_SIZE(n));
    else
        fprintf(out, "  %-26s %" PRIu64 "\n", fact->meaning, n);
}

static void print_pools(FILE *out, const struct device_view *v)
{
    for (uint32_t i = 0; i < v->d.pool_count; i++) {
        const struct facts_pool *p = &v->by_pool[i];
        char name[FRAG_POOL_NAME];

        fprintf(out, "    %-24s peak requested %s, live at the end %s",
                frag_pool_name(v->trace, &v->d, (frag_pool)i, name),
                FRAG_SHOW_SIZE(p->peak_requested),
                FRAG_SHOW_SIZE(p->end_requested));
        if (v->d.recorded.has_end)
            fprintf(out, ", reserved %s", FRAG_SHOW_SIZE(p->end_reserved));
        fputc('\n', out);
    }
}

static void print_changes(FILE *out, const struct frag_device_trace *d)
{
    if (d->change_count)
        fprintf(out, "  %-26s %" PRIu64 "\n", "changes of settings",
                d->change_count);
    for (uint64_t i = 0; i < d->change_count; i++) {
        const struct frag_setting_change *x = &d->changes[i];
        char text[CHANGE_TEXT];

        printable_line(out, "    %-3" PRIu64 " at event %-12" PRIu64 " %s (%s)",
                       i + 1, x->event, change_text(d, x, text),
                       change_origins[x->origin]);
    }
}

static void print_device(FILE *out, const struct device_view *v)
{
    fprintf(out, "\n%s\n", FRAG_DEVICE_NAME(v->d.device));
    for (const struct frag_column *c = facts; c->name; c++) {
        print_fact(out, v, c);
        if (c->offset == offsetof(struct device_view, d.pool_count) &&
            v->d.pool_count > 1)
            print_pools(out, v);
        if (c->offset == offsetof(struct device_view, d.mark_count))
            print_changes(out, &v->d);
    }
    if (v->facts.duration)
        fprintf(out, "  %-26s %.3f s\n", "duration",
                (double)v->facts.duration / 1e9);
    print_counts(out, "requests", v->facts.ops, frag_op_names, FRAG_OP_COUNT);
    if (v->d.recorded.has_actions)
        print_counts(out, "recorded answers", v->facts.actions,
                     frag_action_names, FRAG_ACTION_COUNT);
}

static void print_trace(FILE *out, const struct frag_trace *t)
{
    const char *settings = t->settings ? t->settings : "not recorded";
    char version[TORCH_VERSION_TEXT];

    printable_line(out, "%s", t->path);
    line(out, "format", t->format ? t->format : "unknown");
    line(out, "file size", FRAG_SHOW_SIZE(t->file_bytes));
    line(out, "SHA-256", t->sha256);
    if (t->releases)
        printable_line(out, "  %-26s PyTorch %s; policy torch follows %s",
                       "written by", t->releases,
                       torch_version_text(t->settings, t->releases, version));
    line(out, "recorded settings", *settings ? settings : "defaults");
    for (uint32_t i = 0; i < t->note_count; i++)
        line(out, i ? "" : "notes", t->notes[i]);
}

/* -- JSON ---------------------------------------------------------------- */

static void json_counts(struct frag_json *j, const char *key,
                        const uint64_t *counts, const char *const *names,
                        size_t n)
{
    frag_json_object(j, key);
    for (size_t i = 0; i < n; i++)
        frag_json_number(j, names[i], counts[i]);
    frag_json_end(j);
}

static void json_pools(struct frag_json *j, const struct device_view *v)
{
    frag_json_new_array(j, 4, "by_pool");
    for (uint32_t i = 0; i < v->d.pool_count; i++) {
        const struct facts_pool *p = &v->by_pool[i];
        char name[FRAG_POOL_NAME];

        frag_json_new_object(j, 5, NULL);
        frag_json_text(j, "pool_name",
                       frag_pool_name(v->trace, &v->d, (frag_pool)i, name));
        JSON_ROW(j, facts_pool, p,
                 NUMBER("peak_requested_bytes", peak_requested),
                 NUMBER("end_live_bytes", end_requested));
        frag_json_count(j, "end_reserved_bytes",
                        v->d.recorded.has_end ? p->end_reserved
                                              : FRAG_UNLIMITED);
        frag_json_end(j);
    }
    frag_json_end(j);
}

static void json_streams(struct frag_json *j, const struct frag_device_trace *d)
{
    frag_json_array(j, "streams");
    for (uint32_t i = 0; i < d->stream_count; i++)
        frag_json_number(j, NULL, d->streams[i]);
    frag_json_end(j);
    frag_json_array(j, "pools");
    for (uint32_t i = 0; i < d->pool_count; i++) {
        frag_json_array(j, NULL);
        frag_json_number(j, NULL, d->pools[i].owner);
        frag_json_number(j, NULL, d->pools[i].number);
        frag_json_end(j);
    }
    frag_json_end(j);
}

static void json_changes(struct frag_json *j, const struct frag_device_trace *d)
{
    frag_json_new_array(j, 4, "settings_changes");
    for (uint64_t i = 0; i < d->change_count; i++) {
        const struct frag_setting_change *x = &d->changes[i];
        const bool sets = x->kind == FRAG_CHANGE_SETTINGS;

        frag_json_new_object(j, 5, NULL);
        frag_json_number(j, "event", x->event);
        frag_json_text(j, "settings", sets ? d->strings[x->text] : NULL);
        frag_json_count(j, "limit_bytes", sets ? FRAG_UNLIMITED : x->limit);
        frag_json_text(j, "origin", change_origins[x->origin]);
        frag_json_end(j);
    }
    frag_json_end(j);
}

static void json_device(struct frag_json *j, const struct device_view *v)
{
    const struct frag_device_trace *d = &v->d;

    frag_json_new_object(j, 3, NULL);
    frag_json_number(j, "device", d->device);
    frag_row_json(j, facts, v);
    frag_json_real(j, "duration_seconds", (double)v->facts.duration / 1e9);
    json_counts(j, "requests", v->facts.ops, frag_op_names, FRAG_OP_COUNT);
    json_counts(j, "recorded", v->facts.actions, frag_action_names,
                FRAG_ACTION_COUNT);
    frag_json_bool(j, "has_recorded_answers", d->recorded.has_actions);
    json_streams(j, d);
    json_pools(j, v);
    json_changes(j, d);
    frag_json_end(j);
}

/* Writes the object of a trace, up to the start of its list of devices. */
static void json_trace(struct frag_json *j, const struct frag_trace *t)
{
    char version[TORCH_VERSION_TEXT];

    frag_json_new_object(j, 2, NULL);
    JSON_ROW(j, frag_trace, t, TEXT("path", path), TEXT("format", format),
             TEXT("sha256", sha256), NUMBER("bytes", file_bytes),
             TEXT("releases", releases));
    frag_json_text(j, "torch_version",
                   torch_version_text(t->settings, t->releases, version));
    frag_json_text(j, "settings", t->settings);
    frag_json_line(j, 3);
    frag_json_texts(j, "notes", t->notes, t->note_count);
    frag_json_new_array(j, 3, "devices");
}

/* -- the command --------------------------------------------------------- */

/* As text if j is NULL. */
static enum frag_err show(const struct frag_trace *t, FILE *out,
                          struct frag_json *j)
{
    if (j)
        json_trace(j, t);
    else
        print_trace(out, t);
    for (uint32_t i = 0; i < t->device_count; i++) {
        struct device_view v;
        const enum frag_err err = look(t, &t->devices[i], &v);

        if (err == FRAG_OK && j)
            json_device(j, &v);
        else if (err == FRAG_OK)
            print_device(out, &v);
        free(v.by_pool);
        FRAG_TRY(err);
    }
    if (j) {
        frag_json_end(j);
        frag_json_end(j);
    }
    return FRAG_OK;
}

struct info_work {
    const struct info_values *values;
    struct progress progress;
    struct unread unread;
    FILE *out;
    struct frag_json *json; /* NULL: as text */
    size_t shown;
};

static enum frag_err show_file(void *user, const char *path,
                               struct frag_error *e)
{
    struct info_work *w = user;
    const struct trace_reading reading = {READING_RECORDED,
                                          .limit = w->values->limit};
    struct frag_trace *t;
    enum frag_err err = input_open(path, &reading, &w->progress, &t, e);

    if (err != FRAG_OK)
        return unread_add(&w->unread, err, e);
    if (w->shown++ && !w->json)
        fputc('\n', w->out);
    err = show(t, w->out, w->json);
    if (err != FRAG_OK)
        err = frag_no_memory(e, "the facts of %s", path);
    frag_trace_close(t);
    return err;
}

static enum frag_err put(void *user, FILE *out, struct frag_json *j,
                         struct frag_error *e)
{
    struct info_work *w = user;

    w->out = out;
    w->json = j;
    return unread_each(&w->unread, show_file, w, e);
}

static int info_run(const struct call *call, const void *values)
{
    const struct info_values *v = values;
    struct info_work w = {.values = v,
                          .progress = progress_start(&v->common),
                          .unread = unread_of(call, &v->common)};
    const struct answer answer = {put, NULL, &w};
    struct frag_error e = {""};
    const int code = cli_may_write(call, v->json, v->force);

    if (code != EXIT_DONE)
        return code;
    cli_catch_signals();
    return unread_exit(
        &w.unread,
        cli_fail(call, answer_write(call, &answer, v->json, &e), &e));
}

static const struct option_row options[] = {
    {"json", 0, "FILE", OPTION_TEXT, offsetof(struct info_values, json), NULL,
     "write the same as JSON; - is stdout"},
    RECORDED_LIMIT_OPTION(offsetof(struct info_values, limit)),
    FORCE_OPTION(offsetof(struct info_values, force)),
    {0},
};

const struct verb verb_info = {
    .name = "info",
    .args = "TRACE...",
    .summary = "print the contents of traces",
    .about = "For each trace the command prints its recorded settings and the "
             "assumptions of the reader; for each device, the requests by "
             "kind, the streams, the pools, the peak of requested memory, and "
             "the answers of the recorded allocator. Blocks that were live "
             "before the recording are counted apart: they are no events of "
             "it, but the first numbers of events are theirs.",
    .example = "fragsim info snapshot.pickle",
    .options = options,
    .size = sizeof(struct info_values),
    .defaults = &(const struct info_values){.json = NULL},
    .args_min = 1,
    .args_max = SIZE_MAX,
    .run = info_run,
};
