/* run_changes.c - matches the runs of two result files. */
#include "sim/answers/held/run_changes.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/answers/held/difference.h"

/* A run, its file (0: before, 1: after) and its row there. */
struct entry {
    const struct frag_loaded_run *run;
    uint64_t row;
    int file;
};

bool run_is_worse(const struct run_change *c, double most)
{
    const struct frag_summary *x, *y;

    if (isnan(most) || !c->before || !c->after)
        return false;
    x = &c->before->run.summary;
    y = &c->after->run.summary;
    return y->num_ooms > x->num_ooms ||
           difference_growth(x->peak_reserved, y->peak_reserved) > most;
}

/* 0 if both are the same run. */
static int by_run(const struct frag_loaded_run *a,
                  const struct frag_loaded_run *b)
{
    int order = strcmp(a->id.trace.name, b->id.trace.name);

    order = order ? order : frag_order(a->id.trace.device, b->id.trace.device);
    order = order ? order : strcmp(a->id.policy, b->id.policy);
    return order ? order : frag_bound_order(a->id.bound, b->id.bound);
}

static int by_file(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;
    int order = by_run(x->run, y->run);

    order = order ? order : x->file - y->file;
    return order ? order : frag_order(x->row, y->row);
}

static void add_runs(struct entry *entries, const struct frag_loaded *f,
                     int file)
{
    for (uint64_t i = 0; i < f->count; i++)
        entries[i] = (struct entry){&f->runs[i], i, file};
}

/* Matches the entries from..to - 1, which are one run; those of the file before
 * are first. */
static void match(struct run_changes *r, const struct entry *entries,
                  uint64_t from, uint64_t to)
{
    uint64_t middle = from;

    while (middle < to && !entries[middle].file)
        middle++;
    for (uint64_t i = 0; from + i < middle || middle + i < to; i++) {
        struct run_change *c = &r->items[r->count++];

        c->before = from + i < middle ? entries[from + i].run : NULL;
        c->after = middle + i < to ? entries[middle + i].run : NULL;
        r->matched += c->before && c->after;
    }
}

static void match_all(struct run_changes *r, const struct entry *entries,
                      uint64_t count)
{
    uint64_t from = 0;

    for (uint64_t i = 1; i <= count; i++)
        if (i == count || by_run(entries[i].run, entries[from].run)) {
            match(r, entries, from, i);
            from = i;
        }
}

enum frag_err run_changes_find(const struct frag_loaded *before,
                               const struct frag_loaded *after,
                               struct run_changes *out, struct frag_error *e)
{
    const uint64_t count = before->count + after->count;
    struct entry *entries = calloc(count + 1, sizeof(*entries));
    struct run_changes r = {0};

    r.items = calloc(count + 1, sizeof(*r.items));
    if (!entries || !r.items) {
        free(entries);
        free(r.items);
        return frag_no_memory(e, "the runs");
    }
    add_runs(entries, before, 0);
    add_runs(entries + before->count, after, 1);
    qsort(entries, count, sizeof(*entries), by_file);
    match_all(&r, entries, count);
    free(entries);
    *out = r;
    if (r.matched)
        return FRAG_OK;
    run_changes_close(out);
    return frag_fail(e, FRAG_INVALID,
                     "no run is in both result files: expected runs with the "
                     "same trace, device, policy and capacity");
}

void run_changes_close(struct run_changes *r)
{
    free(r->items);
    *r = (struct run_changes){0};
}
