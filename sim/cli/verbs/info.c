/* info.c - what is in a trace. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "sim/cli/cli.h"
#include "sim/cli/output/inputs.h"
#include "sim/cli/output/sink.h"
#include "traces/facts.h"

struct values {
    struct common common;
    const char *json;
    frag_size limit;
    bool force;
};

/* What is shown of a device. */
struct device_view {
    const struct frag_device_trace *d;
    struct facts facts;
    uint64_t events, initial, streams, pools, marks, start_segments,
        end_segments;
};

/* A fact of a device that is one number: its words and its JSON key. */
struct number_row {
    const char *label, *key;
    size_t offset; /* in struct device_view */
    bool is_size;
};

/* clang-format off */
#define AT(field) offsetof(struct device_view, field)
static const struct number_row number_rows[] = {
    {"events", "events", AT(events), false},
    {"live before the recording", "initial_blocks", AT(initial), false},
    {"streams", "num_streams", AT(streams), false},
    {"pools", "num_pools", AT(pools), false},
    {"marks", "num_marks", AT(marks), false},
    {"peak requested", "peak_requested_bytes", AT(facts.peak_requested), true},
    {"peak live blocks", "peak_live_blocks", AT(facts.peak_live), false},
    {"recorded peak reserved", "recorded_peak_reserved_bytes",
     AT(facts.peak_reserved), true},
    {"segments at the start", "start_segments", AT(start_segments), false},
    {"segments at the end", "end_segments", AT(end_segments), false},
};
#undef AT
/* clang-format on */

enum { NUMBERS = sizeof(number_rows) / sizeof(*number_rows) };

static uint64_t number(const struct device_view *v, const struct number_row *r)
{
    uint64_t n;

    memcpy(&n, (const char *)v + r->offset, sizeof(n));
    return n;
}

static enum frag_err look(const struct frag_device_trace *d,
                          struct device_view *v)
{
    *v = (struct device_view){
        .d = d,
        .events = d->count,
        .initial = d->initial,
        .streams = d->stream_count,
        .pools = d->pool_count,
        .marks = d->mark_count,
        .start_segments = d->recorded.start.segment_count,
        .end_segments = d->recorded.end.segment_count,
    };
    return facts_gather(d, &v->facts);
}

/* -- words --------------------------------------------------------------- */

static void line(FILE *out, const char *label, const char *text)
{
    fprintf(out, "  %-26s %s\n", label, text);
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

static void print_number(FILE *out, const struct device_view *v,
                         const struct number_row *r)
{
    uint64_t n = number(v, r);
    char text[FRAG_SIZE_TEXT];

    if (n == FRAG_UNLIMITED)
        line(out, r->label, "not recorded");
    else if (r->is_size)
        line(out, r->label, frag_size_format(n, text));
    else
        fprintf(out, "  %-26s %" PRIu64 "\n", r->label, n);
}

static void print_device(FILE *out, const struct device_view *v)
{
    fprintf(out, "\ndevice %" PRIu32 "\n", v->d->device);
    for (size_t i = 0; i < NUMBERS; i++)
        print_number(out, v, &number_rows[i]);
    if (v->facts.duration)
        fprintf(out, "  %-26s %.3f s\n", "duration",
                (double)v->facts.duration / 1e9);
    print_counts(out, "requests", v->facts.ops, frag_op_names, FRAG_OP_COUNT);
    if (v->d->recorded.has_actions)
        print_counts(out, "recorded answers", v->facts.actions,
                     frag_action_names, FRAG_ACTION_COUNT);
}

static void print_trace(FILE *out, const struct frag_trace *t)
{
    const char *settings = t->settings ? t->settings : "not recorded";
    char size[FRAG_SIZE_TEXT];

    fprintf(out, "%s\n", t->path);
    line(out, "format", t->format ? t->format : "unknown");
    line(out, "file size", frag_size_format(t->file_bytes, size));
    line(out, "SHA-256", t->sha256);
    line(out, "recorded settings", *settings ? settings : "defaults");
    for (uint32_t i = 0; i < t->note_count; i++)
        line(out, i ? "" : "notes", t->notes[i]);
}

/* -- JSON ---------------------------------------------------------------- */

static void pair(FILE *out, const char *key, const char *text)
{
    fprintf(out, ", \"%s\": ", key);
    if (text)
        frag_json_text(out, text);
    else
        fputs("null", out);
}

static void json_counts(FILE *out, const char *key, const uint64_t *counts,
                        const char *const *names, size_t n)
{
    fprintf(out, ", \"%s\": {", key);
    for (size_t i = 0; i < n; i++)
        fprintf(out, "%s\"%s\": %" PRIu64, i ? ", " : "", names[i], counts[i]);
    fputc('}', out);
}

static void json_device(FILE *out, const struct device_view *v)
{
    const struct frag_device_trace *d = v->d;

    fprintf(out, "\n   {\"device\": %" PRIu32, d->device);
    for (size_t i = 0; i < NUMBERS; i++) {
        uint64_t n = number(v, &number_rows[i]);

        fprintf(out, ", \"%s\": ", number_rows[i].key);
        if (n == FRAG_UNLIMITED)
            fputs("null", out);
        else
            fprintf(out, "%" PRIu64, n);
    }
    fputs(", \"duration_seconds\": ", out);
    frag_json_real(out, (double)v->facts.duration / 1e9);
    json_counts(out, "requests", v->facts.ops, frag_op_names, FRAG_OP_COUNT);
    json_counts(out, "recorded", v->facts.actions, frag_action_names,
                FRAG_ACTION_COUNT);
    fprintf(out, ", \"has_recorded_answers\": %s, \"streams\": [",
            d->recorded.has_actions ? "true" : "false");
    for (uint32_t i = 0; i < d->stream_count; i++)
        fprintf(out, "%s%" PRIu64, i ? ", " : "", d->streams[i]);
    fputs("], \"pools\": [", out);
    for (uint32_t i = 0; i < d->pool_count; i++)
        fprintf(out, "%s[%" PRIu64 ", %" PRIu64 "]", i ? ", " : "",
                d->pools[i].owner, d->pools[i].number);
    fputs("]}", out);
}

static void json_trace(FILE *out, const struct frag_trace *t)
{
    fputs("\"path\": ", out);
    frag_json_text(out, t->path);
    pair(out, "format", t->format);
    pair(out, "sha256", t->sha256);
    fprintf(out, ", \"bytes\": %" PRIu64, t->file_bytes);
    pair(out, "settings", t->settings);
    fputs(",\n   \"notes\": [", out);
    for (uint32_t i = 0; i < t->note_count; i++) {
        fputs(i ? ", " : "", out);
        frag_json_text(out, t->notes[i]);
    }
    fputs("],\n   \"devices\": [", out);
}

/* -- the command --------------------------------------------------------- */

static enum frag_err show(const struct frag_trace *t, FILE *out, bool json,
                          bool first)
{
    if (json)
        fputs(first ? "\n  {" : ",\n  {", out);
    else if (!first)
        fputc('\n', out);
    (json ? json_trace : print_trace)(out, t);
    for (uint32_t i = 0; i < t->device_count; i++) {
        struct device_view v;

        FRAG_TRY(look(&t->devices[i], &v));
        if (json && i)
            fputc(',', out);
        (json ? json_device : print_device)(out, &v);
    }
    if (json)
        fputs("]}", out);
    return FRAG_OK;
}

static enum frag_err show_all(const struct call *call, const struct values *v,
                              struct sink *sink, struct frag_error *e)
{
    struct progress progress = progress_start(&v->common);
    enum frag_err err = FRAG_OK;

    if (v->json)
        cli_json_open(call, sink->out);
    for (size_t i = 0; err == FRAG_OK && i < v->common.args.count; i++) {
        struct frag_trace *t;

        err = input_open(v->common.args.items[i], v->limit, &progress, &t, e);
        if (err != FRAG_OK)
            break;
        err = show(t, sink->out, v->json, i == 0);
        frag_trace_close(t);
    }
    if (v->json)
        frag_results_json_close(sink->out);
    return err;
}

static int info_run(const struct call *call, const void *values)
{
    const struct values *v = values;
    struct frag_error e = {""};
    struct sink sink;
    enum frag_err err;
    int code = cli_may_write(call, v->json, v->force);

    if (code != EXIT_DONE)
        return code;
    cli_catch_signals();
    err = sink_open(&sink, v->json ? v->json : "-", &e);
    if (err != FRAG_OK)
        return cli_fail(call, err, &e);
    err = show_all(call, v, &sink, &e);
    if (err == FRAG_OK)
        err = sink_commit(&sink, &e);
    else
        sink_abort(&sink);
    return cli_fail(call, err, &e);
}

static const struct option_row options[] = {
    {"json", 0, "FILE", "the same as JSON; - is stdout", OPTION_TEXT,
     offsetof(struct values, json), NULL},
    {"limit", 0, "SIZE",
     "memory limit inside the recorded allocator, if it had one", OPTION_SIZE,
     offsetof(struct values, limit), NULL},
    {"force", 'f', NULL, "write over an output that exists", OPTION_SWITCH,
     offsetof(struct values, force), NULL},
    {0},
};

const struct verb verb_info = {
    .name = "info",
    .args = "TRACE...",
    .summary = "say what is in a trace",
    .about = "Devices, requests by kind, streams, pools, peak requested, what "
             "the recorded allocator answered, its settings, and what the "
             "reader had to assume.",
    .example = "fragsim info snapshot.pickle",
    .options = options,
    .size = sizeof(struct values),
    .defaults = &(const struct values){.json = NULL},
    .args_min = 1,
    .args_max = SIZE_MAX,
    .run = info_run,
};
