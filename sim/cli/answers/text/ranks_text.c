/* ranks_text.c - prints the ranks of a job as a table and sentences. */
#include "sim/cli/answers/text/ranks_text.h"

#include <inttypes.h>

#include "sim/cli/answers/text/subject_text.h"
#include "sim/cli/output/table.h"

/* -- the table ----------------------------------------------------------- */

static void put_growth(struct table *t, const struct replayed_steps *s)
{
    const bool shrinks = s->growth < 0;
    const uint64_t bytes = shrinks ? -(uint64_t)s->growth : (uint64_t)s->growth;

    if (s->count > 1)
        table_cell(t, false, "%s%s", shrinks ? "-" : "", FRAG_SHOW_SIZE(bytes));
    else
        table_cell(t, false, "-");
}

static void put_rank(struct table *t, const struct ranks *r, size_t i)
{
    const struct rank *rank = &r->items[i];

    table_cell(t, false, "%zu", i);
    table_cell(t, false, "%s", rank->on.trace);
    table_device(t, rank->on.device);
    table_cell(t, false, "%s", rank->on.policy);
    table_cell(t, false, "%" PRIu64, rank->events);
    table_size(t, rank->peak_requested);
    table_size(t, rank->peak_reserved);
    table_cell(t, false, "%.1f %%", 100 * rank->fragmentation);
    table_cell(t, false, "%" PRIu64, rank->steps.count);
    put_growth(t, &rank->steps);
    table_cell(t, rank->recorded_ooms > 0, "%" PRIu64, rank->recorded_ooms);
    if (r->capacity == FRAG_UNLIMITED)
        return;
    table_cell(t, rank->ooms > 0, "%" PRIu64, rank->ooms);
    table_size(t, r->capacity - rank->reserved_there);
}

static enum frag_err print_table(const struct ranks *r, FILE *out, bool color)
{
    struct table t = table_of(
        r->capacity == FRAG_UNLIMITED ? "rnrprrrrrrr" : "rnrprrrrrrrrr",
        "rank|trace|device|policy|events|peak requested|peak reserved|"
        "fragmentation|steps|growth a step|recorded OOMs|OOMs|free at peak");

    for (size_t i = 0; i < r->count; i++)
        put_rank(&t, r, i);
    return table_print(&t, out, color);
}

/* -- the sentences ------------------------------------------------------- */

static void print_imbalance(const struct ranks *r, const char *name,
                            size_t offset, FILE *out)
{
    const struct rank_imbalance b = ranks_imbalance(r, offset);

    fprintf(out, "imbalance of %s (max / mean): %.3f", name, b.ratio);
    if (b.difference)
        fprintf(out, "; rank %zu has the most, %s more than rank %zu", b.most,
                FRAG_SHOW_SIZE(b.difference), b.least);
    fputc('\n', out);
}

static void print_order(const struct ranks *r, const struct ranks_first *first,
                        FILE *out)
{
    if (first->dying < r->count)
        fprintf(out, "; %zu of %zu ranks survive", r->count - first->dying,
                r->count);
    if (first->dying > 1)
        fputs(first->by_time ? "; ordered by the recorded times"
                             : "; ordered by event, because a rank has no "
                               "times",
              out);
    fputc('\n', out);
}

static void print_first(const struct ranks *r, const char *where, size_t offset,
                        FILE *out)
{
    const struct ranks_first first = ranks_first(r, offset);
    const struct rank_death *death;

    fprintf(out, "dies first %s: ", where);
    if (first.rank == RANKS_NONE) {
        fputs("no rank\n", out);
        return;
    }
    death = rank_death_at(&r->items[first.rank], offset);
    fprintf(out, "rank %zu, at event %" PRIu64 ", when it requests %s",
            first.rank, death->event, FRAG_SHOW_SIZE(death->bytes));
    if (death->time)
        fprintf(out, ", %.3f s after its first event",
                (double)death->after / 1e9);
    print_order(r, &first, out);
}

enum frag_err ranks_text(const struct ranks *r, FILE *out, bool color)
{
    char where[64];

    FRAG_TRY(print_table(r, out, color));
    print_imbalance(r, "peak requested", offsetof(struct rank, peak_requested),
                    out);
    print_imbalance(r, "peak reserved", offsetof(struct rank, peak_reserved),
                    out);
    print_first(r, "in the recordings", offsetof(struct rank, recorded), out);
    if (r->capacity != FRAG_UNLIMITED) {
        snprintf(where, sizeof(where), "at %s", FRAG_SHOW_SIZE(r->capacity));
        print_first(r, where, offsetof(struct rank, replayed), out);
    }
    for (size_t i = 0; i < r->count; i++)
        subject_say_death(&r->items[i].on, out);
    return FRAG_OK;
}
