/* lane.c - a trace of a sweep: read, taken apart into cells, closed. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "sim/experiments/devices.h"
#include "sim/experiments/parallel.h"
#include "sim/experiments/sweep/budget.h"
#include "sim/experiments/sweep/parts.h"
#include "traces/bytes/sha256.h"
#include "traces/name.h"

static enum frag_err no_memory(const struct lane *lane, struct frag_error *e)
{
    return frag_no_memory(e, "the cells of %s", lane->path);
}

/* -- cells --------------------------------------------------------------- */

struct frag_run_identity lane_identity(const struct sweep *s,
                                       const struct lane *lane,
                                       const struct sweep_cell *cell)
{
    const struct policy_choice *policy = &s->spec->grid->policies[cell->policy];
    const struct subject_device *device = &lane->subject->devices[cell->device];
    struct frag_trace_identity trace = lane->subject->trace;

    trace.name = lane->name;
    trace.path = lane->path;
    trace.device = device->device;
    trace.events = device->events;
    return (struct frag_run_identity){
        .trace = trace,
        .policy = policy->text,
        .policy_used = policy->policy,
        .capacity = cell->capacity,
        .backend = s->spec->settings->backend->name,
        .stopped_at_oom = s->spec->settings->stop_at_oom,
        .bare = !s->spec->settings->points,
    };
}

/* "hash device capacity policy params"; NULL if there is no memory. */
static char *make_key(const struct sweep *s, const struct lane *lane,
                      const struct sweep_cell *cell)
{
    const struct policy_choice *policy = &s->spec->grid->policies[cell->policy];
    size_t size;
    char *key = NULL;
    FILE *out = open_memstream(&key, &size);

    if (!out)
        return NULL;
    fprintf(out, "%s %" PRIu32 " %" PRIu64 " %s\t%s\t%s",
            lane->subject->file_sha256,
            lane->subject->devices[cell->device].device, cell->capacity,
            policy->text, policy->digest, cell_params(cell));
    if (fclose(out) == 0)
        return key;
    free(key);
    return NULL;
}

static int by_key(const void *key, const void *run)
{
    return strcmp(key, ((const struct recalled_run *)run)->key);
}

/* Fills a cell in. A policy that cannot run on this trace is the cell's fault,
 * not the trace's. NOMEM: the cell is not whole and must not run. */
static enum frag_err make_cell(const struct sweep *s, const struct lane *lane,
                               const struct grid_cell *at, uint32_t device,
                               struct sweep_cell *out)
{
    const struct grid *grid = s->spec->grid;
    const struct policy_choice *policy = &grid->policies[at->policy];
    const struct recalled_run *done;
    struct frag_error e = {""};

    *out = (struct sweep_cell){
        .device = device,
        .policy = (uint32_t)at->policy,
        .capacity = capacity_choice_bytes(
            &grid->capacities[at->capacity],
            lane->subject->devices[device].peak_requested),
    };
    out->err = policy_choice_params(policy, lane->subject->trace.settings,
                                    lane->path, &out->params, &e);
    out->key = make_key(s, lane, out);
    if (out->err == FRAG_NOMEM || !out->key)
        return FRAG_NOMEM;
    if (out->err != FRAG_OK) {
        out->words = strdup(e.text);
        return FRAG_OK;
    }
    done = s->run_count ? bsearch(out->key, s->runs, s->run_count,
                                  sizeof(*s->runs), by_key)
                        : NULL;
    out->offset = done ? done->offset : 0;
    return FRAG_OK;
}

static enum frag_err make_device_cells(const struct sweep *s, struct lane *lane,
                                       uint32_t device, struct frag_error *e)
{
    for (uint64_t i = lane->first; i < lane->end; i++) {
        struct grid_cell at = grid_cell(s->spec->grid, i);

        if (make_cell(s, lane, &at, device, &lane->cells[lane->count++]) !=
            FRAG_OK)
            return no_memory(lane, e);
    }
    return FRAG_OK;
}

static void drop_cells(struct lane *lane)
{
    for (size_t i = 0; i < lane->count; i++) {
        free(lane->cells[i].params);
        free(lane->cells[i].key);
        free(lane->cells[i].words);
    }
    free(lane->cells);
    lane->cells = NULL;
    lane->count = 0;
}

/* All cells of the lane, or none. */
static enum frag_err make_cells(const struct sweep *s, struct lane *lane,
                                struct frag_error *e)
{
    const struct subject *on = lane->subject;
    const uint64_t wanted = s->spec->device;
    size_t room = (size_t)(lane->end - lane->first) * on->device_count;
    enum frag_err err = FRAG_OK;
    bool found = false;

    lane->cells = calloc(room + 1, sizeof(*lane->cells));
    if (!lane->cells)
        return no_memory(lane, e);
    for (uint32_t i = 0; err == FRAG_OK && i < on->device_count; i++) {
        if (wanted != INPUT_ANY_DEVICE && on->devices[i].device != wanted)
            continue;
        err = make_device_cells(s, lane, i, e);
        found = true;
    }
    if (err == FRAG_OK && !found)
        err = input_no_device(lane->path, wanted, e);
    if (err != FRAG_OK)
        drop_cells(lane);
    return err;
}

static bool all_done(const struct lane *lane)
{
    for (size_t i = 0; i < lane->count; i++)
        if (!lane->cells[i].offset && lane->cells[i].err == FRAG_OK)
            return false;
    return true;
}

/* -- the trace ----------------------------------------------------------- */

/* HDF5 may not be entered by two threads, so a lock is taken for its files. */
static enum frag_err read_trace(struct sweep *s, struct lane *lane,
                                struct frag_error *e)
{
    struct stop stop = s->spec->on.stop;
    const struct frag_read_options options = {
        .limit = s->spec->limit, .progress = stop_tick, .user = &stop};
    enum frag_err err;

    if (frag_trace_form(lane->path) != FRAG_FORM_TRACE_FILE)
        return frag_trace_open(lane->path, &options, &lane->trace, e);
    pthread_mutex_lock(&s->hdf5);
    err = frag_trace_open(lane->path, &options, &lane->trace, e);
    pthread_mutex_unlock(&s->hdf5);
    return err;
}

/* What the journal knows of the file, NULL if nothing. */
static const struct subject *recall_subject(const struct sweep *s,
                                            const char *hash)
{
    for (size_t i = 0; i < s->known_count; i++)
        if (!strcmp(s->known[i].file_sha256, hash))
            return &s->known[i];
    return NULL;
}

static enum frag_err new_subject(struct lane *lane, const char *hash,
                                 struct parcel **out, struct frag_error *e)
{
    struct parcel *p = calloc(1, sizeof(*p));

    if (!p)
        return no_memory(lane, e);
    *out = p;
    FRAG_TRY(subject_make(lane->trace, hash, &lane->found, e));
    lane->subject = &lane->found;
    p->bytes = subject_pack(lane->subject, &p->size);
    return p->bytes ? FRAG_OK : no_memory(lane, e);
}

/* Frees what an opening found out, whether or not it failed. */
static void forget(struct lane *lane)
{
    free(lane->name);
    lane->name = NULL;
    lane->subject = NULL;
    subject_free(&lane->found);
}

enum frag_err lane_open(struct sweep *s, struct lane *lane,
                        struct parcel **parcel, struct frag_error *e)
{
    char hash[65];

    if (lane->count) /* it was open before */
        return read_trace(s, lane, e);
    forget(lane);
    FRAG_TRY(sha256_file(lane->path, hash, e));
    lane->name = frag_trace_name(lane->path);
    if (!lane->name)
        return no_memory(lane, e);
    lane->subject = recall_subject(s, hash);
    if (lane->subject) {
        FRAG_TRY(make_cells(s, lane, e));
        return all_done(lane) ? FRAG_OK : read_trace(s, lane, e);
    }
    FRAG_TRY(read_trace(s, lane, e));
    FRAG_TRY(new_subject(lane, hash, parcel, e));
    return make_cells(s, lane, e);
}

void lane_close(struct sweep *s, struct lane *lane)
{
    pthread_mutex_lock(&s->hdf5);
    frag_trace_close(lane->trace);
    pthread_mutex_unlock(&s->hdf5);
    lane->trace = NULL;
}

void lane_free(struct lane *lane)
{
    drop_cells(lane);
    forget(lane);
    free(lane->words);
}
