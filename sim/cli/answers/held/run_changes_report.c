/* run_changes_report.c - the table of the runs of two result files, and their
 * JSON. */
#include <inttypes.h>
#include <stdio.h>

#include "sim/cli/answers/held/held_report.h"
#include "sim/cli/output/table.h"
#include "sim/results/row.h"

/* A number of a run. */
struct number {
    const char *head, *key;
    uint64_t (*of)(const struct frag_loaded_run *r);
    bool is_size;
};

static uint64_t reserved(const struct frag_loaded_run *r)
{
    return r->run.summary.peak_reserved;
}

static uint64_t ooms(const struct frag_loaded_run *r)
{
    return r->run.summary.num_ooms;
}

static uint64_t driver_calls(const struct frag_loaded_run *r)
{
    return frag_calls_sum(r->run.summary.calls);
}

static const struct number numbers[] = {
    {"peak reserved", "peak_reserved_bytes", reserved, true},
    {"OOMs", "num_ooms", ooms, false},
    {"driver calls", "num_driver_calls", driver_calls, false},
};

enum { NUMBERS = sizeof(numbers) / sizeof(*numbers) };

static const struct frag_loaded_run *any(const struct run_change *c)
{
    return c->before ? c->before : c->after;
}

static bool is_matched(const struct run_change *c)
{
    return c->before && c->after;
}

/* -- text ---------------------------------------------------------------- */

static const char *number_text(const struct number *n,
                               const struct frag_loaded_run *r,
                               char text[FRAG_SIZE_TEXT])
{
    if (n->is_size)
        frag_size_format(n->of(r), text);
    else
        snprintf(text, FRAG_SIZE_TEXT, "%" PRIu64, n->of(r));
    return text;
}

static void put_number(struct table *t, const struct number *n,
                       const struct run_change *c)
{
    char before[FRAG_SIZE_TEXT], after[FRAG_SIZE_TEXT];

    number_text(n, any(c), before);
    if (is_matched(c) && n->of(c->before) != n->of(c->after))
        table_cell(t, false, "%s to %s", before,
                   number_text(n, c->after, after));
    else
        table_cell(t, false, "%s", before);
}

static void put_growth(struct table *t, const struct run_change *c,
                       const struct difference_view *v)
{
    if (is_matched(c))
        table_cell(
            t, run_is_worse(c, v->most), "%+.2f %%",
            100 * difference_growth(reserved(c->before), reserved(c->after)));
    else
        table_cell(t, false, "only %s", c->before ? "before" : "after");
}

static void put_run(struct table *t, const struct run_change *c,
                    const struct difference_view *v)
{
    table_cell(t, false, "%s", any(c)->id.trace.name);
    table_device(t, any(c)->id.trace.device);
    table_cell(t, false, "%s", any(c)->id.policy);
    table_bound(t, any(c)->id.bound);
    put_growth(t, c, v);
    for (size_t i = 0; i < NUMBERS; i++)
        put_number(t, &numbers[i], c);
}

enum frag_err run_changes_print(const struct run_changes *r,
                                const struct difference_view *v, FILE *out)
{
    struct table t = table_of("nrprrrrr", "trace|device|policy|bound|change");
    enum frag_err err;

    for (size_t i = 0; i < NUMBERS; i++)
        table_cell(&t, false, "%s", numbers[i].head);
    for (uint64_t i = 0; i < r->count; i++)
        put_run(&t, &r->items[i], v);
    err = table_print(&t, out, v->color);
    fprintf(out, "%" PRIu64 " of %" PRIu64 " runs are in both files\n",
            r->matched, r->count);
    return err;
}

/* -- JSON ---------------------------------------------------------------- */

static void json_number(struct frag_json *j, const struct number *n,
                        const struct frag_loaded_run *r, const char *when)
{
    char key[64];

    snprintf(key, sizeof(key), "%s_%s", n->key, when);
    if (r)
        frag_json_number(j, key, n->of(r));
    else
        frag_json_null(j, key);
}

static void json_run(struct frag_json *j, const struct run_change *c,
                     const struct difference_view *v)
{
    frag_json_new_object(j, 2, NULL);
    JSON_ROW(j, frag_loaded_run, any(c), TEXT("trace", id.trace.name),
             NUMBER("device", id.trace.device), TEXT("policy", id.policy),
             BOUND(id.bound));
    for (size_t i = 0; i < NUMBERS; i++) {
        json_number(j, &numbers[i], c->before, "before");
        json_number(j, &numbers[i], c->after, "after");
    }
    frag_json_bool(j, "fails", run_is_worse(c, v->most));
    frag_json_texts(j, "notes", (const char *const *)any(c)->id.trace.notes,
                    any(c)->id.trace.note_count);
    frag_json_end(j);
}

void run_changes_json(const struct run_changes *r,
                      const struct difference_view *v, struct frag_json *j)
{
    for (uint64_t i = 0; i < r->count; i++)
        json_run(j, &r->items[i], v);
}
