/* rows.c - passes finished cells to the results, in their order. The journal
 * holds the cells; the rows of the first traces are passed on while cells of
 * other traces run. */
#include <stdlib.h>
#include <string.h>

#include "sim/experiments/sweep/parts.h"

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

/* The finished cells of order[from ... end - 1], in order; the caller frees
 * them. NULL if the host has no memory. */
static struct row *sorted(const struct sweep *s, size_t from, size_t end,
                          size_t *count)
{
    struct row *rows;
    size_t room = 0;

    for (size_t i = from; i < end; i++)
        room += s->order[i]->count;
    rows = calloc(room + 1, sizeof(*rows));
    *count = 0;
    for (size_t i = from; rows && i < end; i++)
        for (size_t k = 0; k < s->order[i]->count; k++) {
            const struct sweep_trace *trace = s->order[i];
            const struct sweep_cell *c = &trace->cells[k];

            if (c->offset)
                rows[(*count)++] =
                    (struct row){c, sweep_cell_identity(s, trace, c)};
        }
    if (rows)
        qsort(rows, *count, sizeof(*rows), by_identity);
    return rows;
}

static enum frag_err write_row(const struct journal *j, const struct row *row,
                               sweep_add *add, void *user, struct frag_error *e)
{
    struct frag_run_identity id = row->id;
    struct cell_notes notes;
    struct frag_run run;
    enum frag_err err;
    void *bytes;
    size_t size;

    FRAG_TRY(journal_get(j, row->cell->offset, &bytes, &size, e));
    err = run_unpack(bytes, size, &id.total, &notes, &run);
    free(bytes);
    if (err != FRAG_OK)
        return frag_fail(e, err, "the journal's entry at byte %llu: %s",
                         (unsigned long long)row->cell->offset,
                         frag_err_text(err));
    err = add(user, &id, &notes, &run, e);
    frag_run_free(&run);
    return err;
}

enum frag_err sweep_write_rows(struct sweep *s, const struct journal *j,
                               size_t from, size_t end, sweep_add *add,
                               void *user, struct frag_error *e)
{
    enum frag_err err = FRAG_OK;
    size_t count;
    struct row *rows = sorted(s, from, end, &count);

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

bool sweep_has_early_rows(const struct sweep *s)
{
    return s->rows.written && !s->rows.are_off;
}

enum frag_err sweep_write(struct sweep *s, const struct journal *j, bool anew,
                          sweep_add *add, void *user, struct frag_error *e)
{
    return sweep_write_rows(s, j, anew ? 0 : s->rows.written, s->trace_count,
                            add, user, e);
}
