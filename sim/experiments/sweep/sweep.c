/* sweep.c - opens a sweep, recalls the cells of its chunks, runs the others,
 * and reports what failed. */
#include "sim/experiments/sweep/sweep.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "sim/experiments/sweep/host_memory.h"
#include "sim/experiments/sweep/sweep_parts.h"
#include "traces/name.h"
#include "traces/printable.h"

/* -- open and close ------------------------------------------------------ */

/* The largest file first, so that the last cells are short. */
static int by_opening(const void *a, const void *b)
{
    const struct sweep_trace *x = a, *y = b;

    if (x->file_bytes != y->file_bytes)
        return x->file_bytes < y->file_bytes ? 1 : -1;
    return (x->index > y->index) - (x->index < y->index);
}

/* The memory that reading needs for each byte of the file, measured on 64-bit
 * Linux; the open trace needs less. The manual of `fragsim sweep` states it
 * too. */
static frag_size cost_of(const struct sweep_trace *trace)
{
    const bool is_packed = frag_trace_form(trace->path) == FRAG_FORM_PACKED;

    return trace->file_bytes * (is_packed ? 32 : 6) *
           (trace->edit->edits ? 2 : 1);
}

/* Makes the traces of which the shard has cells. */
static bool make_traces(struct sweep *s)
{
    const struct grid *grid = s->spec->grid;
    const uint64_t cells = grid_cells(grid);
    const size_t pairs = grid->traces.count * grid->edit_count;
    const uint64_t each = cells / pairs;
    const uint64_t first = shard_first(&s->spec->shard, cells);
    const uint64_t end = shard_end(&s->spec->shard, cells);

    s->counts.cells = end - first;
    s->traces = calloc(pairs, sizeof(*s->traces));
    if (!s->traces)
        return false;
    for (size_t i = 0; i < pairs; i++) {
        struct sweep_trace trace = {
            .path = grid->traces.items[i / grid->edit_count],
            .edit = &grid->edits[i % grid->edit_count],
            .index = i,
            .first = i * each,
            .end = (i + 1) * each};
        struct stat at;

        if (stat(trace.path, &at) == 0)
            trace.file_bytes = (uint64_t)at.st_size;
        trace.first = trace.first > first ? trace.first : first;
        trace.end = trace.end < end ? trace.end : end;
        trace.cost = cost_of(&trace);
        if (trace.first >= trace.end)
            continue;
        trace.name = frag_trace_name(trace.path);
        s->traces[s->trace_count++] = trace;
        if (!trace.name)
            return false;
    }
    qsort(s->traces, s->trace_count, sizeof(*s->traces), by_opening);
    return true;
}

static int by_key(const void *a, const void *b)
{
    const struct recalled_run *x = a, *y = b;

    return strcmp(x->key, y->key);
}

static bool recall_runs(struct sweep *s)
{
    const struct chunks *chunks = s->spec->chunks;
    size_t room = 0;

    for (size_t i = 0; i < chunks->count; i++)
        room += chunks->loaded[i].count;
    s->runs = calloc(room + 1, sizeof(*s->runs));
    for (size_t i = 0; s->runs && i < chunks->count; i++)
        for (size_t k = 0; k < chunks->loaded[i].count; k++) {
            const struct frag_loaded_run *r = &chunks->loaded[i].runs[k];

            if (r->id.trace.note_count == 2)
                s->runs[s->run_count++] = (struct recalled_run){
                    r->id.trace.notes[0],
                    {r->run, r->id.total,
                     (char *)(uintptr_t)r->id.trace.notes[1]}};
        }
    if (s->run_count)
        qsort(s->runs, s->run_count, sizeof(*s->runs), by_key);
    return s->runs;
}

enum frag_err sweep_open(const struct sweep_spec *spec, struct sweep **out,
                         struct frag_error *e)
{
    struct sweep *s = malloc(sizeof(*s));

    if (!s)
        return frag_no_memory(e, "a sweep");
    *s = (struct sweep){.spec = spec,
                        .memory = host_memory(),
                        .lock = PTHREAD_MUTEX_INITIALIZER,
                        .changed = PTHREAD_COND_INITIALIZER,
                        .finished = PTHREAD_COND_INITIALIZER,
                        .hdf5 = PTHREAD_MUTEX_INITIALIZER};
    s->fresh_end = &s->fresh;
    if (make_traces(s) && recall_runs(s)) {
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
    for (size_t i = 0; i < s->trace_count; i++) {
        sweep_trace_close(&s->traces[i]);
        sweep_trace_free(&s->traces[i]);
    }
    free(s->traces);
    free(s->runs);
    free(s);
}

/* -- running ------------------------------------------------------------- */

enum frag_err sweep_run(struct sweep *s, struct frag_error *e)
{
    const struct parallel *on = &s->spec->on;

    FRAG_TRY(pool_run(s, on->threads, e));
    return stop_is_asked(&on->stop) ? FRAG_CANCELLED : FRAG_OK;
}

/* -- results ------------------------------------------------------------- */

struct sweep_counts sweep_counts(const struct sweep *s)
{
    struct sweep_counts counts = s->counts;

    for (size_t i = 0; i < s->trace_count; i++) {
        counts.faults += s->traces[i].err != FRAG_OK;
        for (size_t k = 0; k < s->traces[i].count; k++)
            counts.faults += s->traces[i].cells[k].err != FRAG_OK;
    }
    return counts;
}

static const char *words_of(const char *words, enum frag_err err)
{
    return words && *words ? words : frag_err_text(err);
}

static void say_faults(const struct sweep *s, const struct sweep_trace *trace,
                       FILE *out, enum frag_err *first)
{
    if (trace->err != FRAG_OK) {
        *first = *first == FRAG_OK ? trace->err : *first;
        printable_line(out, "%s", words_of(trace->words, trace->err));
    }
    for (size_t i = 0; i < trace->count; i++) {
        const struct sweep_cell *c = &trace->cells[i];

        if (c->err == FRAG_OK)
            continue;
        *first = *first == FRAG_OK ? c->err : *first;
        printable_line(out, "%s, %s at %s: %s", trace->path,
                       s->spec->grid->policies[c->policy].text,
                       FRAG_SHOW_BOUND(c->bound), words_of(c->words, c->err));
    }
}

char *sweep_faults(const struct sweep *s, enum frag_err *first)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);

    *first = FRAG_OK;
    for (size_t i = 0;
         out && i < s->spec->grid->traces.count * s->spec->grid->edit_count;
         i++)
        for (size_t k = 0; k < s->trace_count; k++)
            if (s->traces[k].index == i)
                say_faults(s, &s->traces[k], out, first);
    if (!out || fclose(out) != 0 || *first == FRAG_OK) {
        free(text);
        return NULL;
    }
    text[size - 1] = '\0'; /* without the last newline */
    return text;
}

struct sweep_row {
    const struct sweep_cell *cell;
    struct frag_run_identity id;
};

static int by_identity(const void *a, const void *b)
{
    const struct sweep_row *x = a, *y = b;

    return frag_results_order(&x->id, cell_params(x->cell), &y->id,
                              cell_params(y->cell));
}

/* The finished cells in order; the caller frees them. NULL if the host has no
 * memory. */
static struct sweep_row *sorted(const struct sweep *s, size_t *count)
{
    struct sweep_row *rows;
    size_t room = 0;

    for (size_t i = 0; i < s->trace_count; i++)
        room += s->traces[i].count;
    rows = calloc(room + 1, sizeof(*rows));
    *count = 0;
    for (size_t i = 0; rows && i < s->trace_count; i++)
        for (size_t k = 0; k < s->traces[i].count; k++) {
            const struct sweep_trace *trace = &s->traces[i];
            const struct sweep_cell *c = &trace->cells[k];

            if (c->result)
                rows[(*count)++] =
                    (struct sweep_row){c, sweep_cell_identity(s, trace, c)};
        }
    if (rows)
        qsort(rows, *count, sizeof(*rows), by_identity);
    return rows;
}

enum frag_err sweep_write(const struct sweep *s, sweep_add *add, void *user,
                          struct frag_error *e)
{
    enum frag_err err = FRAG_OK;
    size_t count;
    struct sweep_row *rows = sorted(s, &count);

    if (!rows)
        return frag_no_memory(e, "the order of the results");
    for (size_t i = 0; err == FRAG_OK && i < count; i++) {
        const struct sweep_result *r = rows[i].cell->result;

        if (i && by_identity(&rows[i - 1], &rows[i]) == 0)
            continue;
        err = stop_is_asked(&s->spec->on.stop)
                  ? FRAG_CANCELLED
                  : add(user, &rows[i].id, r->notes, &r->run, e);
    }
    free(rows);
    return err;
}
