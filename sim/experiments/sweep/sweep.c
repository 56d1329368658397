/* sweep.c - opens a sweep, recalls the cells in its journal, runs the others,
 * and reports what failed. */
#include "sim/experiments/sweep/sweep.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "sim/experiments/sweep/budget.h"
#include "sim/experiments/sweep/parts.h"
#include "traces/grow.h"
#include "traces/name.h"
#include "traces/printable.h"

/* -- open and close ------------------------------------------------------ */

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
    s->order = calloc(pairs, sizeof(struct sweep_trace *));
    if (!s->traces || !s->order)
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
        trace.opening = budget_of_file(trace.path, trace.file_bytes) *
                        (trace.edit->edits ? 2 : 1);
        if (trace.first >= trace.end)
            continue;
        trace.name = frag_trace_name(trace.path);
        s->traces[s->trace_count++] = trace;
        if (!trace.name)
            return false;
    }
    schedule_order(s);
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
                        .finished = PTHREAD_COND_INITIALIZER,
                        .putting = PTHREAD_MUTEX_INITIALIZER,
                        .hdf5 = PTHREAD_MUTEX_INITIALIZER};
    s->paces = calloc(spec->grid->policy_count, sizeof(*s->paces));
    if (s->paces && make_traces(s)) {
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
    free(s->order);
    free(s->paces);
    for (size_t i = 0; i < s->known_count; i++)
        trace_header_free(&s->known[i]);
    free(s->known);
    for (size_t i = 0; i < s->run_count; i++)
        free(s->runs[i].key);
    free(s->runs);
    free(s);
}

/* -- recalling the journal ----------------------------------------------- */

static enum frag_err recall_trace(struct sweep *s,
                                  const struct journal_entry *entry)
{
    if (!GROW(s->known, s->known_room, s->known_count + 1))
        return FRAG_NOMEM;
    FRAG_TRY(trace_header_unpack(entry->bytes, entry->size,
                                 &s->known[s->known_count]));
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
    return frag_fail(e, err, "the journal's entry at byte %llu: %s",
                     (unsigned long long)entry->offset, frag_err_text(err));
}

static int by_key(const void *a, const void *b)
{
    const struct recalled_run *x = a, *y = b;

    return strcmp(x->key, y->key);
}

/* -- running ------------------------------------------------------------- */

/* A trace for which the host had no memory is counted again when it is opened
 * again. */
static void uncount(struct sweep *s, struct sweep_trace *trace)
{
    s->counts.cells += trace->end - trace->first;
    trace->counted = false;
}

/* Prepares a second try of all traces and cells for which the host had no
 * memory. Whether there are any. */
static bool prepare_retry(struct sweep *s)
{
    bool any = false;

    for (size_t i = 0; i < s->trace_count; i++) {
        struct sweep_trace *trace = &s->traces[i];
        bool again = trace->err == FRAG_NOMEM;

        if (again)
            uncount(s, trace);
        for (size_t k = 0; k < trace->count; k++) {
            struct sweep_cell *c = &trace->cells[k];

            if (c->err != FRAG_NOMEM)
                continue;
            free(c->words);
            c->words = NULL;
            c->err = FRAG_OK;
            again = true;
        }
        if (!again)
            continue;
        free(trace->words);
        trace->words = NULL;
        trace->err = FRAG_OK;
        trace->state = TRACE_WAITING;
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
    if (!stop_is_asked(&on->stop) && prepare_retry(s))
        FRAG_TRY(pool_run(s, 1, j, e));
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
    char size[FRAG_BOUND_TEXT];

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
                       frag_bound_format(c->bound, size),
                       words_of(c->words, c->err));
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
