/* chrome.c - a trace of Chrome's format, which Perfetto and chrome://tracing
 * open: the counters requested, allocated and reserved of each policy, its
 * OOMs, and the marks of the trace as slices.
 *
 * Each policy is a process, so that the policies lie under each other. Counters
 * are separate tracks, because the viewers stack the series of one counter. A
 * sample is the largest value of its events, so no peak is lost where samples
 * are fewer than events.
 *
 * Source: "Trace Event Format", the document that catapult's trace viewer
 * refers to.
 */
#include "sim/export/export_parts.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "sim/results/json.h"
#include "sim/version.h"
#include "traces/bytes/sink.h"

enum { THREAD = 1, MOST_INSTANTS = 1000 };

enum counter { REQUESTED, ALLOCATED, RESERVED, COUNTERS };

static const char *const counter_names[COUNTERS] = {"requested", "allocated",
                                                    "reserved"};

struct chrome {
    struct frag_json j;
    const struct export_job *job;
    frag_time start; /* of the first event that has a time */
    uint64_t process;

    uint64_t bucket;          /* events in a sample */
    uint64_t first;           /* first event of the sample under way */
    bool is_open;             /* a sample is under way */
    frag_size most[COUNTERS]; /* of the sample under way */
    frag_size last[COUNTERS]; /* of the latest sample */
    bool has_last;
    frag_size reserved_peak; /* of the meter, before the event */
    uint64_t ooms;
};

/* -- times --------------------------------------------------------------- */

static double us_since(const struct chrome *c, frag_time time)
{
    return time > c->start ? (double)(time - c->start) / 1e3 : 0;
}

/* The time of an event, in microseconds; its number if the trace has no
 * times. */
static double event_us(const struct chrome *c, uint64_t event)
{
    const struct frag_device_trace *d = c->job->device;
    const uint64_t at = event < d->count ? event : d->count - 1;

    if (!d->time)
        return (double)event;
    return d->count ? us_since(c, d->time[at]) : 0;
}

static frag_time first_time(const struct frag_device_trace *d)
{
    for (uint64_t i = 0; d->time && i < d->count; i++)
        if (d->time[i])
            return d->mark_count && d->marks[0].time &&
                           d->marks[0].time < d->time[i]
                       ? d->marks[0].time
                       : d->time[i];
    return 0;
}

static double mark_us(const struct chrome *c, const struct frag_mark *m)
{
    return c->job->device->time ? us_since(c, m->time) : (double)m->event;
}

/* -- events of the format ------------------------------------------------ */

static void begin_event(struct chrome *c, const char *phase, const char *name,
                        double us)
{
    frag_json_new_object(&c->j, 1, NULL);
    frag_json_text(&c->j, "ph", phase);
    frag_json_text(&c->j, "name", name);
    frag_json_number(&c->j, "pid", c->process);
    frag_json_number(&c->j, "tid", THREAD);
    frag_json_real(&c->j, "ts", us);
}

static void put_name(struct chrome *c, const char *kind, const char *name)
{
    begin_event(c, "M", kind, 0);
    frag_json_object(&c->j, "args");
    frag_json_text(&c->j, "name", name);
    frag_json_end(&c->j);
    frag_json_end(&c->j);
}

/* Begins a process, shown in the order of the processes. */
static void begin_process(struct chrome *c, const char *name)
{
    c->process++;
    put_name(c, "process_name", name);
    begin_event(c, "M", "process_sort_index", 0);
    frag_json_object(&c->j, "args");
    frag_json_number(&c->j, "sort_index", c->process);
    frag_json_end(&c->j);
    frag_json_end(&c->j);
}

static void put_counter(struct chrome *c, enum counter k, double us,
                        frag_size bytes)
{
    begin_event(c, "C", counter_names[k], us);
    frag_json_object(&c->j, "args");
    frag_json_number(&c->j, "bytes", bytes);
    frag_json_end(&c->j);
    frag_json_end(&c->j);
}

static void put_oom(struct chrome *c, uint64_t event, frag_size bytes)
{
    begin_event(c, "i", "OOM", event_us(c, event));
    frag_json_text(&c->j, "s", "p");
    frag_json_object(&c->j, "args");
    frag_json_number(&c->j, "event", event);
    frag_json_number(&c->j, "bytes", bytes);
    frag_json_end(&c->j);
    frag_json_end(&c->j);
}

/* Slices that may overlap are nestable async events; one name is one row. */
static void put_slice(struct chrome *c, const char *phase,
                      const struct frag_mark *m)
{
    begin_event(c, phase, c->job->trace->strings[m->name], mark_us(c, m));
    frag_json_text(&c->j, "cat", "mark");
    frag_json_number(&c->j, "id", m->name);
    frag_json_end(&c->j);
}

/* -- marks --------------------------------------------------------------- */

/* Writes the marks that have a partner: an end without a begin, and a begin
 * without an end, have no slice. `open` holds, for each name, 1 + the mark of
 * the innermost begin so far; `outer` the same for the begin around a begin. */
static uint64_t put_pairs(struct chrome *c, uint64_t *open, uint64_t *outer)
{
    const struct frag_device_trace *d = c->job->device;
    uint64_t pairs = 0;

    for (uint64_t i = 0; i < d->mark_count; i++) {
        const struct frag_mark *m = &d->marks[i];

        if (m->kind == FRAG_MARK_BEGIN) {
            outer[i] = open[m->name];
            open[m->name] = i + 1;
        } else if (open[m->name]) {
            const uint64_t begin = open[m->name] - 1;

            open[m->name] = outer[begin];
            put_slice(c, "b", &d->marks[begin]);
            put_slice(c, "e", m);
            pairs++;
        }
    }
    return pairs;
}

static enum frag_err put_marks(struct chrome *c, struct export_notes *notes)
{
    const struct frag_device_trace *d = c->job->device;
    uint64_t *open =
        calloc((size_t)c->job->trace->string_count + 1, sizeof(*open));
    uint64_t *outer = calloc((size_t)d->mark_count + 1, sizeof(*outer));
    enum frag_err err = open && outer ? FRAG_OK : FRAG_NOMEM;

    if (err == FRAG_OK) {
        const uint64_t pairs = put_pairs(c, open, outer);

        if (2 * pairs != d->mark_count)
            err = export_note(notes,
                              "%" PRIu64 " marks have no partner and are left "
                              "out",
                              d->mark_count - 2 * pairs);
    }
    free(open);
    free(outer);
    return err;
}

/* -- one run ------------------------------------------------------------- */

static void end_sample(struct chrome *c)
{
    const double us = event_us(c, c->first);

    for (enum counter k = 0; c->is_open && k < COUNTERS; k++)
        if (!c->has_last || c->most[k] != c->last[k]) {
            put_counter(c, k, us, c->most[k]);
            c->last[k] = c->most[k];
        }
    c->has_last |= c->is_open;
    c->is_open = false;
}

static void on_done(void *user, const struct tap *t, uint64_t event)
{
    struct chrome *c = user;

    if (c->is_open && event - c->first >= c->bucket)
        end_sample(c);
    if (!c->is_open) {
        c->first = event;
        memset(c->most, 0, sizeof(c->most));
    }
    c->is_open = true;
    frag_raise(&c->most[REQUESTED], t->requested);
    frag_raise(&c->most[ALLOCATED], t->allocated);
    frag_raise(&c->most[RESERVED], t->meter->reserved);
    if (t->meter->reserved_peak > c->reserved_peak) /* also if it fell again */
        frag_raise(&c->most[RESERVED], t->meter->reserved_peak);
    c->reserved_peak = t->meter->reserved_peak;
}

static void on_placed(void *user, const struct tap *t,
                      const struct placement *p)
{
    struct chrome *c = user;

    (void)t;
    if (p->kind == PLACED_REFUSED && c->ooms++ < MOST_INSTANTS)
        put_oom(c, p->event, p->size);
}

/* Ends the last sample and writes the values after the last event, with which
 * the tracks end. */
static void on_ended(void *user, const struct tap *t)
{
    struct chrome *c = user;
    const double us = event_us(c, c->job->device->count);
    const frag_size ends[COUNTERS] = {[REQUESTED] = t->requested,
                                      [ALLOCATED] = t->allocated,
                                      [RESERVED] = t->meter->reserved};

    end_sample(c);
    for (enum counter k = 0; k < COUNTERS; k++)
        put_counter(c, k, us, ends[k]);
}

static void begin_run(struct chrome *c)
{
    const uint64_t count = c->job->device->count, points = c->job->points;

    c->bucket = points ? (count + points - 1) / points : 1;
    c->is_open = c->has_last = false;
    c->reserved_peak = 0;
    c->ooms = 0;
}

static enum frag_err put_run(struct chrome *c,
                             const struct policy_choice *policy,
                             struct export_notes *notes, struct frag_error *e)
{
    const struct tap_listener listener = {
        .user = c, .placed = on_placed, .done = on_done, .ended = on_ended};
    struct frag_run run;

    begin_process(c, policy->text);
    begin_run(c);
    FRAG_TRY(export_replay(c->job, policy, &listener, &run, e));
    frag_run_free(&run);
    if (c->ooms > MOST_INSTANTS)
        return export_note(notes, "%s: %d of %" PRIu64 " OOMs are in the file",
                           policy->text, MOST_INSTANTS, c->ooms);
    return FRAG_OK;
}

/* -- the file ------------------------------------------------------------ */

static enum frag_err note_times(const struct chrome *c,
                                struct export_notes *notes)
{
    if (c->bucket > 1)
        FRAG_TRY(export_note(notes,
                             "each sample of a counter is the largest value "
                             "of %" PRIu64 " events; `--points 0' writes one "
                             "for each event",
                             c->bucket));
    return c->job->device->time
               ? FRAG_OK
               : export_note(notes, "the trace has no times: a microsecond in "
                                    "the file is one event");
}

static void put_origin(struct chrome *c, const struct export_notes *notes)
{
    struct frag_json *j = &c->j;

    frag_json_new_object(j, 0, "otherData");
    frag_json_text(j, "fragsim", frag_version);
    frag_json_text(j, "trace", c->job->name);
    frag_json_text(j, "sha256", c->job->trace->sha256);
    frag_json_number(j, "device", c->job->device->device);
    frag_json_count(j, "capacity",
                    frag_bound_of(c->job->bound, FRAG_BOUND_CAPACITY));
    frag_json_count(j, "process_limit",
                    frag_bound_of(c->job->bound, FRAG_BOUND_LIMIT));
    frag_json_texts(j, "notes", (const char *const *)c->job->trace->notes,
                    c->job->trace->note_count);
    frag_json_texts(j, "export_notes", (const char *const *)notes->items,
                    notes->count);
    frag_json_end(j);
}

static enum frag_err put_all(struct chrome *c, struct export_notes *notes,
                             struct frag_error *e)
{
    char name[256];

    snprintf(name, sizeof(name), "trace %s, device %" PRIu32, c->job->name,
             c->job->device->device);
    frag_json_object(&c->j, NULL);
    frag_json_text(&c->j, "displayTimeUnit", "ms");
    frag_json_new_array(&c->j, 0, "traceEvents");
    begin_process(c, name);
    if (put_marks(c, notes) != FRAG_OK)
        return frag_no_memory(e, "the marks");
    for (size_t i = 0; i < c->job->policy_count; i++)
        FRAG_TRY(put_run(c, &c->job->policies[i], notes, e));
    frag_json_line(&c->j, 0);
    frag_json_end(&c->j);
    if (note_times(c, notes) != FRAG_OK)
        return frag_no_memory(e, "the notes");
    put_origin(c, notes);
    frag_json_end(&c->j);
    fputc('\n', c->j.out);
    return FRAG_OK;
}

enum frag_err export_chrome(const struct export_job *job, const char *path,
                            struct export_notes *notes, struct frag_error *e)
{
    struct chrome c = {.job = job, .start = first_time(job->device)};
    struct sink sink;
    enum frag_err err;

    if (!job->policy_count)
        return frag_fail(e, FRAG_INVALID,
                         "chrome shows runs of policies: expected -p POLICY, "
                         "found none; for example -p torch");
    FRAG_TRY(sink_open(&sink, path, e));
    c.j.out = sink.out;
    err = put_all(&c, notes, e);
    if (err == FRAG_OK)
        return sink_commit(&sink, e);
    sink_abort(&sink);
    return err;
}
