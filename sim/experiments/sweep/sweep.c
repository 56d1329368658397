/* sweep.c - opens a sweep, recalls what its journal holds, runs the rest and
 * hands on the finished cells in order. */
#include "sim/experiments/sweep/sweep.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "sim/experiments/sweep/budget.h"
#include "sim/experiments/sweep/parts.h"
#include "traces/grow.h"

/* -- open and close ------------------------------------------------------ */

static int larger_first(const void *a, const void *b)
{
    const struct lane *x = a, *y = b;

    if (x->file_bytes != y->file_bytes)
        return x->file_bytes < y->file_bytes ? 1 : -1;
    return x->index < y->index ? -1 : x->index > y->index;
}

/* One lane for each trace that the shard has cells of. */
static bool make_lanes(struct sweep *s)
{
    const struct grid *grid = s->spec->grid;
    const uint64_t cells = grid_cells(grid);
    const uint64_t each = cells / grid->traces.count;
    const uint64_t first = shard_first(&s->spec->shard, cells);
    const uint64_t end = shard_end(&s->spec->shard, cells);

    s->counts.cells = end - first;
    s->lanes = calloc(grid->traces.count, sizeof(*s->lanes));
    for (size_t i = 0; s->lanes && i < grid->traces.count; i++) {
        struct lane lane = {.path = grid->traces.items[i],
                            .index = i,
                            .first = i * each,
                            .end = (i + 1) * each};
        struct stat at;

        if (stat(lane.path, &at) == 0)
            lane.file_bytes = (uint64_t)at.st_size;
        lane.first = lane.first > first ? lane.first : first;
        lane.end = lane.end < end ? lane.end : end;
        if (lane.first < lane.end)
            s->lanes[s->lane_count++] = lane;
    }
    if (!s->lanes)
        return false;
    qsort(s->lanes, s->lane_count, sizeof(*s->lanes), larger_first);
    return true;
}

enum frag_err sweep_open(const struct sweep_spec *spec, struct sweep **out,
                         struct frag_error *e)
{
    struct sweep *s = malloc(sizeof(*s));

    if (!s)
        return frag_no_memory(e, "a sweep");
    *s = (struct sweep){.spec = spec,
                        .used = BUDGET_BASE,
                        .lock = PTHREAD_MUTEX_INITIALIZER,
                        .changed = PTHREAD_COND_INITIALIZER,
                        .hdf5 = PTHREAD_MUTEX_INITIALIZER};
    s->last = &s->parcels;
    if (make_lanes(s)) {
        *out = s;
        return FRAG_OK;
    }
    sweep_close(s);
    return frag_no_memory(e, "the traces of a sweep");
}

void sweep_close(struct sweep *s)
{
    if (!s)
        return;
    for (size_t i = 0; i < s->lane_count; i++) {
        lane_close(s, &s->lanes[i]);
        lane_free(&s->lanes[i]);
    }
    free(s->lanes);
    for (size_t i = 0; i < s->known_count; i++)
        subject_free(&s->known[i]);
    free(s->known);
    for (size_t i = 0; i < s->run_count; i++)
        free(s->runs[i].key);
    free(s->runs);
    free(s);
}

/* -- what the journal holds ---------------------------------------------- */

static enum frag_err recall_trace(struct sweep *s,
                                  const struct journal_entry *entry)
{
    if (!GROW(s->known, s->known_room, s->known_count + 1))
        return FRAG_NOMEM;
    FRAG_TRY(
        subject_unpack(entry->bytes, entry->size, &s->known[s->known_count]));
    s->known_count++;
    return FRAG_OK;
}

static enum frag_err recall_run(struct sweep *s,
                                const struct journal_entry *entry)
{
    const char *key = run_key(entry->bytes, entry->size);
    char *mine;

    if (!key)
        return FRAG_CORRUPT;
    mine = strdup(key);
    if (!mine || !GROW(s->runs, s->run_room, s->run_count + 1)) {
        free(mine);
        return FRAG_NOMEM;
    }
    s->runs[s->run_count++] = (struct recalled_run){mine, entry->offset};
    return FRAG_OK;
}

enum frag_err sweep_recall(void *user, const struct journal_entry *entry,
                           struct frag_error *e)
{
    enum frag_err err = FRAG_CORRUPT;

    if (entry->kind == SWEEP_TRACE)
        err = recall_trace(user, entry);
    if (entry->kind == SWEEP_RUN)
        err = recall_run(user, entry);
    if (err == FRAG_OK)
        return FRAG_OK;
    return frag_fail(e, err, "the journal's record at byte %llu: %s",
                     (unsigned long long)entry->offset, frag_err_text(err));
}

static int by_key(const void *a, const void *b)
{
    const struct recalled_run *x = a, *y = b;

    return strcmp(x->key, y->key);
}

/* -- running ------------------------------------------------------------- */

/* A trace that found no memory is counted anew when it is opened again. */
static void uncount(struct sweep *s, struct lane *lane)
{
    s->counts.cells += lane->end - lane->first;
    lane->counted = false;
}

/* Gives what found no memory another chance; whether there is any. */
static bool rearm(struct sweep *s)
{
    bool any = false;

    for (size_t i = 0; i < s->lane_count; i++) {
        struct lane *lane = &s->lanes[i];
        bool again = lane->err == FRAG_NOMEM;

        if (again)
            uncount(s, lane);
        for (size_t k = 0; k < lane->count; k++) {
            struct sweep_cell *c = &lane->cells[k];

            if (c->err != FRAG_NOMEM)
                continue;
            free(c->words);
            c->words = NULL;
            c->err = FRAG_OK;
            again = true;
        }
        if (!again)
            continue;
        free(lane->words);
        lane->words = NULL;
        lane->err = FRAG_OK;
        lane->next = 0;
        lane->state = LANE_WAITING;
        any = true;
    }
    return any;
}

enum frag_err sweep_run(struct sweep *s, struct journal *j,
                        struct frag_error *e)
{
    const struct parallel *on = &s->spec->on;

    if (s->run_count)
        qsort(s->runs, s->run_count, sizeof(*s->runs), by_key);
    FRAG_TRY(pool_run(s, on->threads, j, e));
    if (!stop_is_asked(&on->stop) && rearm(s))
        FRAG_TRY(pool_run(s, 1, j, e));
    return stop_is_asked(&on->stop) ? FRAG_CANCELLED : FRAG_OK;
}

/* -- what came of it ----------------------------------------------------- */

struct sweep_counts sweep_counts(const struct sweep *s)
{
    struct sweep_counts counts = s->counts;

    for (size_t i = 0; i < s->lane_count; i++) {
        counts.faults += s->lanes[i].err != FRAG_OK;
        for (size_t k = 0; k < s->lanes[i].count; k++)
            counts.faults += s->lanes[i].cells[k].err != FRAG_OK;
    }
    return counts;
}

static const char *words_of(const char *words, enum frag_err err)
{
    return words && *words ? words : frag_err_text(err);
}

static void say_faults(const struct sweep *s, const struct lane *lane,
                       FILE *out, enum frag_err *first)
{
    char size[FRAG_SIZE_TEXT];

    if (lane->err != FRAG_OK) {
        *first = *first == FRAG_OK ? lane->err : *first;
        fprintf(out, "%s\n", words_of(lane->words, lane->err));
    }
    for (size_t i = 0; i < lane->count; i++) {
        const struct sweep_cell *c = &lane->cells[i];

        if (c->err == FRAG_OK)
            continue;
        *first = *first == FRAG_OK ? c->err : *first;
        fprintf(out, "%s, %s at %s: %s\n", lane->path,
                s->spec->grid->policies[c->policy].text,
                frag_size_format(c->capacity, size),
                words_of(c->words, c->err));
    }
}

char *sweep_faults(const struct sweep *s, enum frag_err *first)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);

    *first = FRAG_OK;
    for (size_t i = 0; out && i < s->spec->grid->traces.count; i++)
        for (size_t k = 0; k < s->lane_count; k++)
            if (s->lanes[k].index == i)
                say_faults(s, &s->lanes[k], out, first);
    if (!out || fclose(out) != 0 || *first == FRAG_OK) {
        free(text);
        return NULL;
    }
    text[size - 1] = '\0'; /* the last newline */
    return text;
}

struct row {
    const struct sweep_cell *cell;
    struct frag_run_identity id;
};

static int by_identity(const void *a, const void *b)
{
    const struct row *x = a, *y = b;

    return frag_results_order(&x->id, cell_params(x->cell), &y->id,
                              cell_params(y->cell));
}

/* All finished cells, in order; to be freed. NULL if there is no memory. */
static struct row *sorted(const struct sweep *s, size_t *count)
{
    struct row *rows;
    size_t room = 0;

    for (size_t i = 0; i < s->lane_count; i++)
        room += s->lanes[i].count;
    rows = calloc(room + 1, sizeof(*rows));
    *count = 0;
    for (size_t i = 0; rows && i < s->lane_count; i++)
        for (size_t k = 0; k < s->lanes[i].count; k++) {
            const struct lane *lane = &s->lanes[i];
            const struct sweep_cell *c = &lane->cells[k];

            if (c->offset)
                rows[(*count)++] = (struct row){c, lane_identity(s, lane, c)};
        }
    if (rows)
        qsort(rows, *count, sizeof(*rows), by_identity);
    return rows;
}

static enum frag_err write_row(const struct journal *j, const struct row *row,
                               sweep_add *add, void *user, struct frag_error *e)
{
    struct frag_run_identity id = row->id;
    struct frag_run run;
    enum frag_err err;
    void *bytes;
    size_t size;

    FRAG_TRY(journal_get(j, row->cell->offset, &bytes, &size, e));
    err = run_unpack(bytes, size, &id.total, &run);
    free(bytes);
    if (err != FRAG_OK)
        return frag_fail(e, err, "the journal's record at byte %llu: %s",
                         (unsigned long long)row->cell->offset,
                         frag_err_text(err));
    err = add(user, &id, &run, e);
    frag_run_free(&run);
    return err;
}

enum frag_err sweep_write(struct sweep *s, const struct journal *j,
                          sweep_add *add, void *user, struct frag_error *e)
{
    enum frag_err err = FRAG_OK;
    size_t count;
    struct row *rows = sorted(s, &count);

    if (!rows)
        return frag_no_memory(e, "the order of the results");
    for (size_t i = 0; err == FRAG_OK && i < count; i++)
        if (!i || by_identity(&rows[i - 1], &rows[i]) != 0)
            err = stop_is_asked(&s->spec->on.stop)
                      ? FRAG_CANCELLED
                      : write_row(j, &rows[i], add, user, e);
    free(rows);
    return err;
}
