/* moved.c - pairs the sites of two moments by an alignment of the lines of each
 * function, as a comparison of texts does. */
#include "sim/answers/held/moved.h"

#include <stdlib.h>
#include <string.h>

#include "sim/answers/sites.h"
#include "sim/measures.h"

/* A function with more sites is paired by its lines alone. A cell counts bytes
 * above SITES_MOST lines that stay, so it has room for 2^54 bytes. */
enum { SITES_MOST = 1023 };

/* The rows of one function; before[0, m) and after[0, n) by line. */
struct function {
    struct change *before, *after;
    size_t m, n;
    uint64_t *cost; /* [i * (n + 1) + j]: of the first i and the first j */
};

uint64_t moved_calls(const struct frag_trace *t, uint32_t stack)
{
    const struct frag_frame *site = site_of(t, stack);
    uint64_t hash = 14695981039346656037u; /* FNV-1a */

    if (!site)
        return hash;
    for (uint64_t i = t->stack_first[stack]; &t->frames[i] != site; i++)
        for (const char *c = t->strings[t->frames[i].function]; *c; c++)
            hash = (hash ^ (unsigned char)*c) * 1099511628211u;
    return hash;
}

/* The line at the end of the key of a site, "step (train.py:12)"; NULL if the
 * site has none, as that of C++ code. */
static const char *line_in(const char *key)
{
    const char *line = strrchr(key, ':');

    return line && line[1 + strspn(line + 1, "0123456789")] == ')' ? line
                                                                   : NULL;
}

static size_t function_length(const char *key)
{
    const char *line = line_in(key);

    return line ? (size_t)(line - key) : strlen(key);
}

static unsigned long line_of(const struct change *c)
{
    const char *line = line_in(c->key);

    return line ? strtoul(line + 1, NULL, 10) : 0;
}

static int order_functions(const struct change *x, const struct change *y)
{
    const size_t p = function_length(x->key), q = function_length(y->key);
    const int order = memcmp(x->key, y->key, p < q ? p : q);

    return order || p == q ? order : p < q ? -1 : 1;
}

/* By function, then those of before, then by line. */
static int by_place(const void *a, const void *b)
{
    const struct change *x = a, *y = b;
    int order = order_functions(x, y);

    if (!order)
        order = frag_order(!x->blocks_before, !y->blocks_before);
    return order ? order : frag_order(line_of(x), line_of(y));
}

/* Those that are not paired first; by bytes and blocks, then those of before.
 */
static int by_bytes(const void *a, const void *b)
{
    const struct change *x = a, *y = b;
    int order = frag_order(x->blocks_before && x->blocks_after,
                           y->blocks_before && y->blocks_after);

    if (!order)
        order = frag_order(x->before + x->after, y->before + y->after);
    if (!order)
        order = frag_order(x->blocks_before + x->blocks_after,
                           y->blocks_before + y->blocks_after);
    if (!order)
        order = frag_order(!x->blocks_before, !y->blocks_before);
    return order ? order : strcmp(x->key, y->key);
}

static void pair(struct change *before, struct change *after)
{
    if (strcmp(before->key, after->key) != 0)
        after->name_before = before->name;
    after->before = before->before;
    after->blocks_before = before->blocks_before;
    before->before = before->blocks_before = 0;
}

/* -- one function -------------------------------------------------------- */

static uint64_t cost_alone(const struct change *c)
{
    return (c->before + c->after) * (SITES_MOST + 1) + 1;
}

static uint64_t cost_of_pair(const struct change *before,
                             const struct change *after)
{
    const uint64_t bytes = before->before > after->after
                               ? before->before - after->after
                               : after->after - before->before;
    const bool stays = line_of(before) == line_of(after);

    if (before->calls != after->calls)
        return cost_alone(before) + cost_alone(after) + !stays - stays;
    return bytes * (SITES_MOST + 1) + !stays;
}

static uint64_t *cell(const struct function *f, size_t i, size_t j)
{
    return &f->cost[i * (f->n + 1) + j];
}

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static void find_costs(const struct function *f)
{
    for (size_t i = 0; i <= f->m; i++)
        for (size_t j = 0; j <= f->n; j++) {
            uint64_t cost = i || j ? UINT64_MAX : 0;

            if (i)
                cost = least(cost, *cell(f, i - 1, j) +
                                       cost_alone(&f->before[i - 1]));
            if (j)
                cost = least(cost,
                             *cell(f, i, j - 1) + cost_alone(&f->after[j - 1]));
            if (i && j)
                cost = least(cost, *cell(f, i - 1, j - 1) +
                                       cost_of_pair(&f->before[i - 1],
                                                    &f->after[j - 1]));
            *cell(f, i, j) = cost;
        }
}

static void pair_by_costs(const struct function *f)
{
    size_t i = f->m, j = f->n;

    while (i && j) {
        struct change *before = &f->before[i - 1], *after = &f->after[j - 1];
        const uint64_t cost = *cell(f, i, j);

        if (cost == *cell(f, i - 1, j - 1) + cost_of_pair(before, after)) {
            pair(before, after);
            i--, j--;
        } else if (cost == *cell(f, i, j - 1) + cost_alone(after)) {
            j--;
        } else {
            i--;
        }
    }
}

static void pair_by_lines(const struct function *f)
{
    for (size_t i = 0, j = 0; i < f->m && j < f->n;) {
        const unsigned long p = line_of(&f->before[i]),
                            q = line_of(&f->after[j]);

        if (p == q)
            pair(&f->before[i], &f->after[j]);
        i += p <= q;
        j += q <= p;
    }
}

static enum frag_err join_function(struct change *items, size_t count,
                                   struct frag_error *e)
{
    struct function f = {.before = items};

    while (f.m < count && items[f.m].blocks_before)
        f.m++;
    f.n = count - f.m;
    f.after = items + f.m;
    if (f.m > SITES_MOST || f.n > SITES_MOST) {
        pair_by_lines(&f);
        return FRAG_OK;
    }
    f.cost = calloc((f.m + 1) * (f.n + 1), sizeof(*f.cost));
    if (!f.cost)
        return frag_no_memory(e, "the sites of a function");
    find_costs(&f);
    pair_by_costs(&f);
    free(f.cost);
    return FRAG_OK;
}

/* -- all functions ------------------------------------------------------- */

static bool is_same_but_place(const struct change *x, const struct change *y)
{
    return x->before + x->after == y->before + y->after &&
           x->blocks_before + x->blocks_after ==
               y->blocks_before + y->blocks_after;
}

/* Pairs what is left: of the rows with the same bytes, the first of before with
 * the first of after, and so on. */
static void join_by_bytes(struct difference *d)
{
    uint64_t end, middle;

    qsort(d->items, d->count, sizeof(*d->items), by_bytes);
    for (uint64_t i = 0; i < d->count; i = end) {
        for (middle = end = i;
             end < d->count && is_same_but_place(&d->items[i], &d->items[end]);
             end++)
            middle += d->items[end].blocks_before != 0;
        if (d->items[i].blocks_before && d->items[i].blocks_after)
            return;
        for (uint64_t k = 0; i + k < middle && middle + k < end; k++)
            pair(&d->items[i + k], &d->items[middle + k]);
    }
}

enum frag_err moved_join(struct difference *d, struct frag_error *e)
{
    uint64_t end;

    qsort(d->items, d->count, sizeof(*d->items), by_place);
    for (uint64_t i = 0; i < d->count; i = end) {
        for (end = i;
             end < d->count && !order_functions(&d->items[i], &d->items[end]);
             end++)
            ;
        FRAG_TRY(join_function(&d->items[i], end - i, e));
    }
    join_by_bytes(d);
    return FRAG_OK;
}
