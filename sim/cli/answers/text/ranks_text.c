/* ranks_text.c - the table of the ranks, and how unequal they are. */
#include "sim/cli/answers/text/ranks_text.h"

#include <stdlib.h>
#include <string.h>

#include "sim/cli/output/table.h"
#include "traces/grow.h"

enum frag_err ranks_add(struct ranks *r, const char *trace,
                        const struct rank *rank, struct frag_error *e)
{
    struct rank *out;

    if (!GROW(r->items, r->room, r->count + 1))
        return frag_no_memory(e, "the ranks");
    out = &r->items[r->count];
    *out = *rank;
    out->trace = strdup(trace);
    if (!out->trace)
        return frag_no_memory(e, "the ranks");
    r->count++;
    return FRAG_OK;
}

void ranks_free(struct ranks *r)
{
    for (size_t i = 0; i < r->count; i++)
        free(r->items[i].trace);
    free(r->items);
}

/* How unequal a size is. */
struct imbalance {
    size_t most, least;   /* ranks; the first one of several */
    double ratio;         /* largest / mean; 1 if all are equal */
    frag_size difference; /* largest - smallest */
};

static struct imbalance imbalance_of(const struct ranks *r, size_t size)
{
    struct imbalance out = {.ratio = 1};
    frag_size most, least;
    double sum = 0;

    for (size_t i = 0; i < r->count; i++) {
        const frag_size here = r->items[i].sizes[size];

        sum += (double)here;
        if (here > r->items[out.most].sizes[size])
            out.most = i;
        if (here < r->items[out.least].sizes[size])
            out.least = i;
    }
    most = r->items[out.most].sizes[size];
    least = r->items[out.least].sizes[size];
    out.difference = most - least;
    if (sum > 0)
        out.ratio = (double)most * (double)r->count / sum;
    return out;
}

enum frag_err ranks_print(const struct ranks *r, FILE *out, bool color)
{
    struct table t =
        table_of(r->names[1] ? "rnrrrl" : "rnrrl", "rank|trace|device");

    for (size_t s = 0; s < RANK_SIZES && r->names[s]; s++)
        table_cell(&t, false, "%s", r->names[s]);
    table_cell(&t, false, "%s", r->heading);
    for (size_t i = 0; i < r->count; i++) {
        const struct rank *rank = &r->items[i];

        table_cell(&t, false, "%zu", i);
        table_cell(&t, false, "%s", rank->trace);
        table_device(&t, rank->device);
        for (size_t s = 0; s < RANK_SIZES && r->names[s]; s++)
            table_size(&t, rank->sizes[s]);
        table_cell(&t, false, "%s", rank->word);
    }
    FRAG_TRY(table_print(&t, out, color));
    for (size_t s = 0; s < RANK_SIZES && r->names[s]; s++) {
        const struct imbalance b = imbalance_of(r, s);

        fprintf(out, "imbalance of %s (max / mean): %.3f", r->names[s],
                b.ratio);
        if (b.difference)
            fprintf(out, "; rank %zu has the most, %s more than rank %zu",
                    b.most, FRAG_SHOW_SIZE(b.difference), b.least);
        fputc('\n', out);
    }
    return FRAG_OK;
}

void ranks_json(const struct ranks *r, struct frag_json *j)
{
    frag_json_new_object(j, 1, "imbalance");
    for (size_t s = 0; s < RANK_SIZES && r->names[s]; s++) {
        const struct imbalance b = imbalance_of(r, s);

        frag_json_new_object(j, 2, r->keys[s]);
        frag_json_real(j, "max_to_mean_ratio", b.ratio);
        frag_json_number(j, "most_rank", b.most);
        frag_json_number(j, "least_rank", b.least);
        frag_json_number(j, "difference_bytes", b.difference);
        frag_json_end(j);
    }
    frag_json_end(j);
}
