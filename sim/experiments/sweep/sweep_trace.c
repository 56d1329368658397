/* sweep_trace.c - a trace of a sweep: reads it, makes its cells, and closes it.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "sim/experiments/devices.h"
#include "sim/experiments/parallel.h"
#include "sim/experiments/recording.h"
#include "sim/experiments/sweep/sweep_parts.h"
#include "traces/bytes/sha256.h"
#include "traces/text.h"

static enum frag_err no_memory(const struct sweep_trace *trace,
                               struct frag_error *e)
{
    return frag_no_memory(e, "the cells of %s", trace->path);
}

/* -- the header ---------------------------------------------------------- */

static void trace_header_free(struct trace_header *s)
{
    free(s->texts);
    free(s->devices);
    *s = (struct trace_header){0};
}

static size_t room_of(const char *text)
{
    return text ? strlen(text) + 1 : 0;
}

/* Copies the text to *to, and moves *to behind the copy. */
static const char *keep(char **to, const char *text)
{
    char *mine = *to;

    if (!text)
        return NULL;
    *to = stpcpy(mine, text) + 1;
    return mine;
}

/* Copies all texts of the trace, which are borrowed, to one block of host
 * memory. */
static bool own_texts(struct trace_header *s)
{
    struct frag_trace_identity *t = &s->trace;
    const char **const single[] = {&t->format, &t->settings};
    const size_t singles = sizeof(single) / sizeof(*single);
    size_t room = (t->note_count + 1) * sizeof(char *);
    const char **notes;
    char *at;

    for (size_t i = 0; i < singles; i++)
        room += room_of(*single[i]);
    for (uint32_t i = 0; i < t->note_count; i++)
        room += room_of(t->notes[i]);
    notes = s->texts = malloc(room);
    if (!notes)
        return false;
    at = (char *)(notes + t->note_count);
    for (size_t i = 0; i < singles; i++)
        *single[i] = keep(&at, *single[i]);
    for (uint32_t i = 0; i < t->note_count; i++)
        notes[i] = keep(&at, t->notes[i]);
    t->notes = notes;
    return true;
}

static enum frag_err copy_devices(struct trace_header *s,
                                  const struct frag_trace *t)
{
    s->device_count = t->device_count;
    s->devices = calloc((size_t)t->device_count + 1, sizeof(*s->devices));
    if (!s->devices)
        return FRAG_NOMEM;
    for (uint32_t i = 0; i < t->device_count; i++) {
        const struct frag_device_trace *d = &t->devices[i];

        s->devices[i] = (struct trace_header_device){
            d->device,
            d->count,
            input_replays(&(const struct input){t, d, NULL}, INPUT_ANY_DEVICE),
            {0}};
        FRAG_TRY(recording_facts(t, d, &s->devices[i].facts, NULL));
    }
    return FRAG_OK;
}

/* NOMEM; on error *out is untouched. */
static enum frag_err trace_header_make(const struct frag_trace *t,
                                       const char *file_sha256,
                                       struct trace_header *out,
                                       struct frag_error *e)
{
    struct trace_header s = {.trace = frag_trace_identify(t, NULL, NULL)};
    const bool done = own_texts(&s) && copy_devices(&s, t) == FRAG_OK;

    snprintf(s.file_sha256, sizeof(s.file_sha256), "%s", file_sha256);
    if (done) {
        *out = s;
        return FRAG_OK;
    }
    trace_header_free(&s);
    return frag_no_memory(e, "the facts of %s", t->path);
}

/* -- cells --------------------------------------------------------------- */

struct frag_run_identity sweep_cell_identity(const struct sweep *s,
                                             const struct sweep_trace *trace,
                                             const struct sweep_cell *cell)
{
    const struct policy_choice *policy = &s->spec->grid->policies[cell->policy];
    const struct trace_header_device *device =
        &trace->header.devices[cell->device];
    struct frag_trace_identity identity = trace->header.trace;

    identity.name = trace->name;
    identity.edit = trace->edit->text;
    identity.path = trace->path;
    identity.device = device->device;
    identity.events = device->events;
    return (struct frag_run_identity){
        .trace = identity,
        .policy = policy->text,
        .policy_used = policy->policy,
        .bound = cell->bound,
        .capacity = cell->capacity,
        .repeats = cell->repeats,
        .total = cell->result ? cell->result->total : 0,
        .backend = s->spec->settings->backend->name,
        .stopped_at_oom = s->spec->settings->stop_at_oom,
        .bare = !s->spec->settings->points,
        .checked = cell_is_checked(s->spec->settings, policy->policy),
    };
}

/* The key of a cell: the hash of the file, the device, the bound and the
 * policy, separated by blanks; then the digest of the policy and its
 * parameters, each after a tab. NULL if the host has no memory. */
static char *make_key(const struct sweep *s, const struct sweep_trace *trace,
                      const struct sweep_cell *cell)
{
    const struct policy_choice *policy = &s->spec->grid->policies[cell->policy];

    return text_make(
        "%s %" PRIu32 " %" PRIu64 "%s %s\t%s\t%s", trace->header.file_sha256,
        trace->header.devices[cell->device].device, cell->bound.bytes,
        cell->bound.kind == FRAG_BOUND_LIMIT ? "l" : "", policy->text,
        policy->digest, cell_params(cell));
}

static int by_key(const void *key, const void *run)
{
    return strcmp(key, ((const struct recalled_run *)run)->key);
}

/* Fills in a cell. If the policy cannot run on this trace, that is an error of
 * the cell, not of the trace. NOMEM: the cell is incomplete and must not run.
 */
static enum frag_err make_cell(const struct sweep *s,
                               const struct sweep_trace *trace,
                               const struct grid_cell *at, uint32_t device,
                               struct sweep_cell *out)
{
    const struct grid *grid = s->spec->grid;
    const struct policy_choice *policy = &grid->policies[at->policy];
    const struct recalled_run *done;
    struct frag_error e = {""};

    *out = (struct sweep_cell){
        .trace = trace,
        .device = device,
        .policy = (uint32_t)at->policy,
        .bound = bound_choice_of(&grid->bounds[at->bound], policy,
                                 &trace->header.devices[device].facts),
        .capacity = bound_choice_capacity(&grid->bounds[at->bound]),
    };
    out->repeats = bound_repeats(policy, out->bound,
                                 trace->header.devices[device].facts.recorded);
    out->err = policy_choice_params(
        policy, trace->header.trace.settings, trace->header.trace.releases,
        trace->path, trace->header.devices[device].device, &out->params, &e);
    out->key = make_key(s, trace, out);
    if (out->err == FRAG_NOMEM || !out->key)
        return FRAG_NOMEM;
    if (out->err != FRAG_OK) {
        out->words = strdup(e.text);
        return FRAG_OK;
    }
    done = s->run_count ? bsearch(out->key, s->runs, s->run_count,
                                  sizeof(*s->runs), by_key)
                        : NULL;
    out->result = done ? &done->result : NULL;
    return FRAG_OK;
}

static enum frag_err make_device_cells(const struct sweep *s,
                                       struct sweep_trace *trace,
                                       uint32_t device, struct frag_error *e)
{
    for (uint64_t i = trace->first; i < trace->end; i++) {
        struct grid_cell at = grid_cell(s->spec->grid, i);

        if (make_cell(s, trace, &at, device, &trace->cells[trace->count++]) !=
            FRAG_OK)
            return no_memory(trace, e);
    }
    return FRAG_OK;
}

void sweep_result_free(struct sweep_result *r)
{
    if (!r)
        return;
    frag_run_free(&r->run);
    free(r->notes);
    free(r);
}

static void drop_cells(struct sweep_trace *trace)
{
    for (size_t i = 0; i < trace->count; i++) {
        free(trace->cells[i].params);
        free(trace->cells[i].key);
        free(trace->cells[i].words);
        sweep_result_free(trace->cells[i].own);
    }
    free(trace->cells);
    trace->cells = NULL;
    trace->count = trace->next = 0;
}

/* Makes all cells of the trace; none on error. */
static enum frag_err make_cells(const struct sweep *s,
                                struct sweep_trace *trace, struct frag_error *e)
{
    const struct trace_header *on = &trace->header;
    const uint64_t wanted = s->spec->device;
    size_t room = (size_t)(trace->end - trace->first) * on->device_count;
    enum frag_err err = FRAG_OK;
    struct input_devices devices = {""};
    bool found = false;

    trace->cells = calloc(room + 1, sizeof(*trace->cells));
    if (!trace->cells)
        return no_memory(trace, e);
    for (uint32_t i = 0; err == FRAG_OK && i < on->device_count; i++) {
        input_devices_add(&devices, on->devices[i].device);
        if (wanted == INPUT_ANY_DEVICE ? !on->devices[i].is_replayed
                                       : on->devices[i].device != wanted)
            continue;
        err = make_device_cells(s, trace, i, e);
        found = true;
    }
    if (err == FRAG_OK && !found)
        err = input_no_device(trace->path, &devices, wanted, e);
    if (err != FRAG_OK)
        drop_cells(trace);
    return err;
}

struct sweep_cell *sweep_trace_next(struct sweep_trace *trace)
{
    for (; trace->next < trace->count; trace->next++) {
        struct sweep_cell *c = &trace->cells[trace->next];

        if (!c->result && c->err == FRAG_OK)
            return c;
    }
    return NULL;
}

/* -- the trace ----------------------------------------------------------- */

/* HDF5 may not be used by two threads at once, so a lock protects it. If
 * there are more threads than traces, another one unpacks. */
static enum frag_err read_trace(struct sweep *s, struct sweep_trace *trace,
                                struct frag_error *e)
{
    struct stop stop = s->spec->on.stop;
    struct trace_reading reading = s->spec->reading;
    enum frag_err err;

    reading.edits = trace->edit->edits;
    reading.threads = s->spec->on.threads > s->trace_count ? 2 : 1;
    if (frag_trace_form(trace->path) != FRAG_FORM_TRACE_FILE)
        return reading_open(&reading, trace->path, stop_tick, &stop,
                            &trace->opened, e);
    pthread_mutex_lock(&s->hdf5);
    err = reading_open(&reading, trace->path, stop_tick, &stop, &trace->opened,
                       e);
    pthread_mutex_unlock(&s->hdf5);
    return err;
}

/* Adds a text and the 0 at its end. */
static void add_text(struct sha256 *sum, const char *text)
{
    sha256_add(sum, text, strlen(text) + 1);
}

/* Replaces the hash of the file by that of the edited trace: of the hash and
 * the edits. */
static void hash_edits(const struct sweep_trace *trace, char hash[65])
{
    struct sha256 sum;

    sha256_begin(&sum);
    add_text(&sum, hash);
    add_text(&sum, trace->edit->text);
    sha256_hex(&sum, hash);
}

static enum frag_err check_device(void *sweep, const struct input *in,
                                  struct frag_error *e)
{
    const struct sweep *s = sweep;

    return input_replays(in, s->spec->device) ? input_has_history(in, e)
                                              : FRAG_OK;
}

enum frag_err sweep_trace_open(struct sweep *s, struct sweep_trace *trace,
                               struct frag_error *e)
{
    char hash[65];

    FRAG_TRY(sha256_file(trace->path, hash, e));
    if (trace->edit->edits)
        hash_edits(trace, hash);
    FRAG_TRY(read_trace(s, trace, e));
    FRAG_TRY(input_each_device(trace->opened, trace->name, s->spec->device,
                               check_device, s, e));
    FRAG_TRY(trace_header_make(trace->opened, hash, &trace->header, e));
    return make_cells(s, trace, e);
}

void sweep_trace_close(struct sweep_trace *trace)
{
    frag_trace_close(trace->opened);
    trace->opened = NULL;
}

void sweep_trace_free(struct sweep_trace *trace)
{
    drop_cells(trace);
    trace_header_free(&trace->header);
    free(trace->name);
    free(trace->words);
}
