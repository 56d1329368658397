/* verb_validate.c - the command validate: compares the torch policy with the
 * recorded allocator. The comparison itself is in sim/validate/. */
#include <inttypes.h>
#include <string.h>

#include "policies/torch/platform.h"
#include "sim/arena/arena.h"
#include "sim/cli/cli.h"
#include "sim/cli/output/answer.h"
#include "sim/cli/output/inputs.h"
#include "sim/experiments/release.h"
#include "sim/results/row.h"
#include "sim/validate/validate.h"
#include "traces/printable.h"
#include "traces/setting_changes.h"

struct validate_values {
    struct common common;
    const char *stats, *json;
    frag_size limit, total;
    bool force;
};

/* The limits of one trace, from the options and its file of counters. */
struct setting {
    struct frag_stats_file
        *stats;      /* NULL if the trace has no file of counters */
    frag_size limit; /* 0: not known */
    frag_size total; /* 0: not known */
};

static enum frag_err settle(const struct validate_values *v, const char *path,
                            struct setting *s, struct frag_error *e)
{
    *s = (struct setting){.limit = v->limit, .total = v->total};
    FRAG_TRY(frag_stats_file_of(v->stats, path, &s->stats, e));
    if (!s->total && s->stats)
        s->total = frag_stats_file_total(s->stats);
    if (!s->limit && s->stats)
        s->limit = frag_stats_file_limit(s->stats);
    return FRAG_OK;
}

/* -- output -------------------------------------------------------------- */

/* clang-format off */ /* clang-format on */

static void json_divergence(struct frag_json *j, const char *key,
                            const struct frag_divergence *d)
{
    frag_json_line(j, 3);
    JSON_OBJECT(j, key, frag_divergence, d->found ? d : NULL,
                NUMBER("event", event), TEXT("expected", expected),
                TEXT("found", replayed));
}

/* The evidence for the comparison of a device, besides the notes of the reader.
 */
struct remarks {
    char texts[5][RELEASE_NOTE + 32];
    size_t count;
};

static void add_remark(struct remarks *m, uint32_t device, const char *text)
{
    if (*text)
        snprintf(m->texts[m->count++], sizeof(m->texts[0]), "%s: %s",
                 FRAG_DEVICE_NAME(device), text);
}

/* Why nothing of the device can be compared. */
static const char *why_no_evidence(const struct frag_device_trace *d,
                                   const struct frag_validation *r)
{
    if (d->count == d->initial)
        return "the device has no history, so nothing can be compared; record "
               "with torch.cuda.memory._record_memory_history() before the job "
               "starts";
    if (r->evidence)
        return "the history lacks its beginning and its end, and blocks that "
               "were live throughout it are in no entry, so a difference is "
               "not enough to judge; record from the start of the job to the "
               "snapshot";
    return "no address, segment that was taken, OOM or counter could be "
           "compared; record a longer history (max_entries of "
           "_record_memory_history)";
}

/* Counters that began before the recording did. */
static void add_lower_bounds(struct remarks *m, uint32_t device,
                             const struct frag_validation *r)
{
    char text[FRAG_LIMIT_TEXT];
    uint64_t count = 0;

    for (uint64_t i = 0; i < r->stat_count; i++)
        count += r->stats[i].is_lower_bound;
    if (!count)
        return;
    snprintf(text, sizeof(text),
             "%" PRIu64 " counters are totals and peaks since the process "
             "began, and the recording %s: the replayed values are lower "
             "bounds of them, and are not compared otherwise",
             count,
             r->ends_early ? "ended before they were read" : "began later");
    add_remark(m, device, text);
}

static struct remarks remarks_of(const struct frag_device_trace *d,
                                 const struct frag_validation *r,
                                 const char *release)
{
    struct remarks m = {.count = 0};
    char limit[FRAG_LIMIT_TEXT];

    add_remark(&m, d->device, release);
    frag_recorded_limit_note(&r->limit, limit);
    add_remark(&m, d->device, limit);
    add_lower_bounds(&m, d->device, r);
    if (r->verdict == FRAG_VERDICT_NO_EVIDENCE)
        add_remark(&m, d->device, why_no_evidence(d, r));
    return m;
}

/* Whether a remark replaces this note of the reader. */
static bool is_replaced(const char *note, bool is_limit_known)
{
    return !is_limit_known && strstr(note, FRAG_PEAK_AS_LIMIT);
}

static void say_notes(const char *path, const struct frag_trace *t,
                      bool is_limit_known)
{
    for (uint32_t i = 0; i < t->note_count; i++)
        if (!is_replaced(t->notes[i], is_limit_known))
            printable_line(stderr, "%s: %s", path, t->notes[i]);
}

static void json_notes(struct frag_json *j, const struct frag_trace *t,
                       bool is_limit_known, const struct remarks *m)
{
    frag_json_new_array(j, 3, "notes");
    for (uint32_t i = 0; i < t->note_count; i++)
        if (!is_replaced(t->notes[i], is_limit_known))
            frag_json_text(j, NULL, t->notes[i]);
    for (size_t i = 0; i < m->count; i++)
        frag_json_text(j, NULL, m->texts[i]);
    frag_json_end(j);
}

static void show_json(struct frag_json *j, const struct frag_trace *t,
                      const struct frag_device_trace *d,
                      const struct frag_validation *r, const struct remarks *m)
{
    char version[TORCH_VERSION_TEXT];

    frag_json_new_object(j, 2, NULL);
    frag_json_text(j, "trace", t->path);
    frag_json_number(j, "device", d->device);
    frag_json_text(j, "torch_version",
                   torch_version_text(t->settings, t->releases, version));
    frag_json_number(j, "settings_changes", changes_count(d));
    frag_json_text(j, "mode", "anchored");
    frag_json_bool(j, "exact", r->verdict == FRAG_VERDICT_EXACT);
    JSON_ROW(j, frag_validation, r,
             WORD("verdict", verdict, frag_verdict_words),
             WORD("limit_source", limit.source, frag_limit_source_words),
             NUMBER("limit_bytes", limit.limit), NUMBER("events", events),
             NUMBER("segment_events", segment_events),
             NUMBER("segment_events_matched", segment_events_matched),
             NUMBER("allocs", allocs),
             NUMBER("addresses_matched", addresses_matched),
             NUMBER("blocks", blocks), NUMBER("blocks_matched", blocks_matched),
             NUMBER("peak_reserved_recorded", peak_reserved_recorded),
             NUMBER("peak_reserved_replayed", peak_reserved_replayed),
             NUMBER("end_reserved_recorded", end_reserved_recorded),
             NUMBER("end_reserved_replayed", end_reserved_replayed),
             NUMBER("ooms_recorded", ooms_recorded),
             NUMBER("ooms_matched", ooms_matched), NUMBER("evidence", evidence),
             NUMBER("blocks_freed_later", blocks_freed_later),
             NUMBER("blocks_allocated_later", blocks_allocated_later),
             NUMBER("stats_matched", stats_matched));
    JSON_ROWS(j, "stats", 3, frag_compared, r->stats, r->stat_count,
              TEXT("name", name), NUMBER("recorded", recorded),
              NUMBER("replayed", replayed), NUMBER("determined", determined),
              NUMBER("is_lower_bound", is_lower_bound));
    json_divergence(j, "first_divergence", &r->first);
    frag_json_line(j, 3);
    frag_json_null(j, "cause"); /* no address is predicted any more */
    json_notes(j, t, r->limit.source == FRAG_LIMIT_GIVEN, m);
    frag_json_end(j);
}

/* The differences between the last entry and the snapshot. */
static void show_later(FILE *out, const struct frag_validation *r)
{
    if (r->ends_early)
        fprintf(out,
                "  between the last of %" PRIu64 " events and the snapshot: "
                "%" PRIu64 " blocks freed, %" PRIu64 " allocated, reserved %s "
                "-> %s\n",
                r->events, r->blocks_freed_later, r->blocks_allocated_later,
                FRAG_SHOW_SIZE(r->end_reserved_replayed),
                FRAG_SHOW_SIZE(r->end_reserved_recorded));
}

static void show_text(FILE *out, const struct frag_trace *t,
                      const struct frag_device_trace *d,
                      const struct frag_validation *r)
{
    char version[TORCH_VERSION_TEXT], changes[CHANGES_WORDS];
    static const char *const verdicts[] = {
        [FRAG_VERDICT_EXACT] = "exact",
        [FRAG_VERDICT_TO_LAST] = "exact up to the last entry",
        [FRAG_VERDICT_DIFFERS] = "DIFFERS",
        [FRAG_VERDICT_NO_EVIDENCE] = "not enough to judge",
    };

    changes_words(d, changes);
    printable_line(out, "%s, %s: %s%s%s", t->path, FRAG_DEVICE_NAME(d->device),
                   verdicts[r->verdict], *changes ? " with " : "", changes);
    fprintf(out,
            "  segment events %" PRIu64 " of %" PRIu64 ", addresses %" PRIu64
            " of %" PRIu64 ", final blocks %" PRIu64 " of %" PRIu64
            ", OOMs %" PRIu64 " of %" PRIu64 ", counters %" PRIu64
            " of %" PRIu64 ", rules of PyTorch %s\n",
            r->segment_events_matched, r->segment_events, r->addresses_matched,
            r->allocs, r->blocks_matched, r->blocks, r->ooms_matched,
            r->ooms_recorded, r->stats_matched, r->stat_count,
            torch_version_text(t->settings, t->releases, version));
    if (r->first.found)
        printable_line(out,
                       "  first at event %" PRIu64 ": recorded %s, replayed %s",
                       r->first.event, r->first.expected, r->first.replayed);
    show_later(out, r);
    for (uint64_t i = 0; i < r->stat_count; i++)
        if (r->stats[i].determined &&
            r->stats[i].recorded != r->stats[i].replayed)
            printable_line(out, "  %s: recorded %" PRIu64 ", replayed %" PRIu64,
                           r->stats[i].name, r->stats[i].recorded,
                           r->stats[i].replayed);
}

/* -- the command --------------------------------------------------------- */

struct validate_work {
    const struct call *call;
    const struct validate_values *values;
    struct progress progress;
    FILE *out;
    struct frag_json *json; /* NULL: as text */
    uint64_t rows, verdicts[FRAG_VERDICT_COUNT];
    struct unread unread;
};

/* What is to be said of the release that wrote the recording. */
static enum frag_err note_release(const struct frag_trace *t,
                                  const struct frag_device_trace *d,
                                  char release[RELEASE_NOTE],
                                  struct frag_error *e)
{
    struct policy_choice policy;
    enum frag_err err;

    FRAG_TRY(policy_choice_read("torch@recorded", &policy, e));
    err = release_note(&policy, t, d, release, e);
    policy_choice_free(&policy);
    return err;
}

static void show(struct validate_work *w, const struct frag_validate *spec,
                 const struct frag_validation *r, const char *release)
{
    const struct frag_trace *t = spec->trace;
    const struct remarks m = remarks_of(spec->device, r, release);

    for (size_t i = 0; !w->values->common.quiet && i < m.count; i++)
        printable_line(stderr, "%s: %s", t->path, m.texts[i]);
    if (w->json)
        show_json(w->json, t, spec->device, r, &m);
    else
        show_text(w->out, t, spec->device, r);
}

static enum frag_err judge(struct validate_work *w, const struct setting *s,
                           const struct frag_trace *t,
                           const struct frag_device_trace *d,
                           struct frag_error *e)
{
    struct frag_validate spec = {
        .trace = t,
        .device = d,
        .limit = t->limit,
        .total = s->total,
        .stats = s->stats,
    };
    struct frag_validation r;
    char release[RELEASE_NOTE];
    enum frag_err err;

    FRAG_TRY(note_release(t, d, release, e));
    err = frag_validate(&spec, &r, e);
    if (err == FRAG_OK) {
        show(w, &spec, &r, release);
        w->rows++;
        w->verdicts[r.verdict]++;
        frag_validation_free(&r);
    }
    return err == FRAG_OK && cli_interrupted() ? FRAG_CANCELLED : err;
}

static enum frag_err judge_trace(struct validate_work *w, const char *path,
                                 const struct setting *s, struct frag_error *e)
{
    const struct trace_reading raw = {READING_RAW, .limit = s->limit,
                                      .ignores_file = true};
    enum frag_err err = FRAG_OK;
    struct frag_trace *t;

    FRAG_TRY(input_open(path, &raw, &w->progress, &t, e));
    if (!w->values->common.quiet)
        say_notes(path, t, s->limit);
    for (uint32_t i = 0; err == FRAG_OK && i < t->device_count; i++)
        err = judge(w, s, t, &t->devices[i], e);
    frag_trace_close(t);
    return err;
}

static enum frag_err judge_file(void *user, const char *path,
                                struct frag_error *e)
{
    struct validate_work *w = user;
    struct setting s;
    enum frag_err err = FRAG_OK;

    FRAG_TRY(settle(w->values, path, &s, e));
    err = judge_trace(w, path, &s, e);
    progress_clear(&w->progress);
    frag_stats_file_close(s.stats);
    if (err == FRAG_UNSUPPORTED) /* the trace is no snapshot */
        err = FRAG_CORRUPT;
    return err == FRAG_OK ? FRAG_OK : unread_add(&w->unread, err, e);
}

static enum frag_err put(void *user, FILE *out, struct frag_json *j,
                         struct frag_error *e)
{
    struct validate_work *w = user;

    w->out = out;
    w->json = j;
    return unread_each(&w->unread, judge_file, w, e);
}

/* The number of devices with each verdict. */
static void say_verdicts(const struct validate_work *w)
{
    fprintf(stderr, "%" PRIu64 " of %" PRIu64 " exact",
            w->verdicts[FRAG_VERDICT_EXACT], w->rows);
    for (int i = FRAG_VERDICT_EXACT + 1; i < FRAG_VERDICT_COUNT; i++)
        if (w->verdicts[i])
            fprintf(stderr, ", %" PRIu64 " %s", w->verdicts[i],
                    frag_verdict_words[i]);
    fputc('\n', stderr);
}

static int validate_run(const struct call *call, const void *values)
{
    const struct validate_values *v = values;
    struct validate_work w = {.call = call, .values = v};
    struct frag_error e = {""};
    enum frag_err err;
    int code;

    code = cli_may_write(call, v->json, v->force);
    if (code != EXIT_DONE)
        return code;
    w.progress = progress_start(&v->common);
    w.unread = unread_of(call, &v->common);
    cli_catch_signals();
    err =
        answer_write(call, &(const struct answer){put, NULL, &w}, v->json, &e);
    if (err != FRAG_OK)
        return cli_fail(call, err, &e);
    if (!v->common.quiet)
        say_verdicts(&w);
    return unread_exit(&w.unread, w.verdicts[FRAG_VERDICT_DIFFERS] ? EXIT_NO
                                  : w.verdicts[FRAG_VERDICT_NO_EVIDENCE]
                                      ? EXIT_UNKNOWN
                                      : EXIT_DONE);
}

/* clang-format off */
#define AT(field) offsetof(struct validate_values, field)
static const struct option_row options[] = {
    STATS_OPTION(AT(stats)),
    RECORDED_LIMIT_OPTION(AT(limit)),
    {"total", 0, "SIZE", OPTION_TOTAL, AT(total), NULL,
     "memory of the device (default: `total_memory' of the counters, or an "
     "H200's)"},
    {"json", 0, "FILE", OPTION_TEXT, AT(json), NULL,
     "write the result as JSON; - is stdout"},
    FORCE_OPTION(AT(force)),
    {0},
};
/* clang-format on */

const struct verb verb_validate = {
    .name = "validate",
    .args = "TRACE...",
    .summary = "compare the torch policy with the recorded allocator",
    .about =
        "The command replays the requests of a snapshot with its recorded "
        "settings, and compares the result with everything that was recorded: "
        "each segment event, each address, each OOM, each block of the final "
        "snapshot, and the counters of memory_stats if there is a file of "
        "them. A history that ends before the snapshot was taken is compared "
        "up to its last entry. There is not enough to judge if "
        "nothing that the allocator decided could be compared: no address, no "
        "segment that was taken, no OOM, no counter. If the keys of the "
        "snapshot show a release of PyTorch that places "
        "otherwise, the replay follows its rules, and a note says so. A "
        "snapshot of one device has the settings of its end: if the replay "
        "differs, changes of settings are looked for with which it is exact; "
        "a note says where each lies.",
    .example = "fragsim validate snapshot.pickle",
    .options = options,
    .size = sizeof(struct validate_values),
    .defaults = &(const struct validate_values){.json = NULL},
    .args_min = 1,
    .args_max = SIZE_MAX,
    .run = validate_run,
};
