/* figure_need.c - figure: the least bound from which on nothing fails, of each
 * policy, beside its peak allocated. `fragsim sweep --need' finds it.
 */
#include <math.h>

#include "sim/cli/figures/bars.h"

/* The need is a number of the run without a bound. */
static bool is_shown(const struct frag_loaded_run *r)
{
    return r->bound.bytes == FRAG_UNLIMITED;
}

static bool has_need(const struct frag_loaded_run *r)
{
    return is_shown(r) && r->run.summary.need != FRAG_UNLIMITED;
}

/* The place of the first run of the same trace and device. */
static size_t group_of(const struct selection *s, size_t i)
{
    size_t k = 0;

    while (!is_same_trace(s->runs[k], s->runs[i]) ||
           s->runs[k]->device != s->runs[i]->device)
        k++;
    return k;
}

static enum frag_err find(const struct figure_source *s, struct frag_error *e)
{
    const struct selection *all = s->runs;
    struct bars *b = s->found;

    (void)e;
    FRAG_TRY(bars_begin(b, all));
    b->title = "Least bound from which on nothing fails";
    b->value = "need";
    b->mark = "peak allocated";
    b->units = "byte";
    b->absent = "not known, or no bound is enough";
    for (size_t i = 0; i < all->count; i++) {
        const struct frag_loaded_run *r = all->runs[i];

        if (is_shown(r))
            b->items[b->count++] = (struct bar){
                .run = r,
                .value = has_need(r) ? (double)r->run.summary.need : NAN,
                .mark = (double)r->run.summary.peak_allocated,
                .group = group_of(all, i),
                .order = i,
            };
    }
    bars_sort(b);
    return FRAG_OK;
}

static const char *lacks(const struct selection *s)
{
    for (size_t i = 0; i < s->count; i++)
        if (has_need(s->runs[i]))
            return NULL;
    return "no run holds its need; fragsim sweep --need capacity -c inf "
           "finds it";
}

static size_t count_bars(const void *found)
{
    return ((const struct bars *)found)->count;
}

const struct figure figure_need = {
    .name = "need",
    .script = "compare",
    .files = BARS_FILES,
    .size = sizeof(struct bars),
    .find = find,
    .release = bars_release,
    .limits = {{"policies", "those that need least", 400, BARS_MOST,
                count_bars}},
    .lacks = lacks,
};
