/* difference.c - matches the groups of two moments. */
#include "sim/answers/held/difference.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/answers/held/moved.h"

int64_t difference_bytes(frag_size before, frag_size after)
{
    return (int64_t)(after - before);
}

double difference_growth(frag_size before, frag_size after)
{
    if (before)
        return (double)difference_bytes(before, after) / (double)before;
    return after ? INFINITY : 0;
}

static frag_size size_of_change(const struct change *c)
{
    return c->after > c->before ? c->after - c->before : c->before - c->after;
}

static int by_change(const void *a, const void *b)
{
    const struct change *x = a, *y = b;
    const frag_size p = size_of_change(x), q = size_of_change(y);
    int order;

    if (p != q)
        return p > q ? -1 : 1;
    order = strcmp(x->name, y->name);
    return order ? order : strcmp(x->key, y->key);
}

static int by_key(const void *a, const void *b)
{
    const struct change *x = a, *y = b;

    return strcmp(x->key, y->key);
}

/* Appends a row for each group of one moment. */
static void add_all(struct difference *d, const struct holders *h,
                    bool is_after)
{
    for (uint64_t i = 0; i < h->count; i++) {
        const struct holder *g = &h->items[i];
        struct change *c = &d->items[d->count++];

        *c = (struct change){.key = g->key,
                             .name = g->name,
                             .calls = moved_calls(h->trace, g->stack)};
        *(is_after ? &c->after : &c->before) = g->bytes;
        *(is_after ? &c->blocks_after : &c->blocks_before) = g->blocks;
    }
}

/* Joins the two rows of each key that both moments have. */
static void join(struct difference *d)
{
    uint64_t kept = 0;

    qsort(d->items, d->count, sizeof(*d->items), by_key);
    for (uint64_t i = 0; i < d->count; i++) {
        struct change c = d->items[i];

        if (i + 1 < d->count && !strcmp(c.key, d->items[i + 1].key)) {
            const struct change *other = &d->items[++i];

            c.before += other->before;
            c.after += other->after;
            c.blocks_before += other->blocks_before;
            c.blocks_after += other->blocks_after;
        }
        d->items[kept++] = c;
    }
    d->count = kept;
}

/* Counts the groups that did not change, and removes them. */
static void keep_changed(struct difference *d)
{
    uint64_t kept = 0;

    for (uint64_t i = 0; i < d->count; i++) {
        const struct change c = d->items[i];

        if (c.before != c.after || c.blocks_before != c.blocks_after) {
            d->items[kept++] = c;
        } else if (c.blocks_before) {
            d->unchanged++;
            d->moved += c.name_before != NULL;
        }
    }
    d->count = kept;
}

enum frag_err difference_find(const struct holders *before,
                              const struct holders *after,
                              struct difference *out, struct frag_error *e)
{
    const int64_t growth = difference_bytes(before->bytes, after->bytes);
    struct difference d = {0};
    enum frag_err err = FRAG_OK;

    d.items = calloc(before->count + after->count + 1, sizeof(*d.items));
    if (!d.items)
        return frag_no_memory(e, "the changes");
    add_all(&d, before, false);
    add_all(&d, after, true);
    if (before->by == HOLDERS_BY_SITE)
        err = moved_join(&d, e);
    else
        join(&d);
    if (err != FRAG_OK) {
        difference_close(&d);
        return err;
    }
    keep_changed(&d);
    for (uint64_t i = 0; i < d.count; i++) {
        struct change *c = &d.items[i];

        c->share = growth ? (double)difference_bytes(c->before, c->after) /
                                (double)growth
                          : NAN;
    }
    qsort(d.items, d.count, sizeof(*d.items), by_change);
    *out = d;
    return FRAG_OK;
}

void difference_close(struct difference *d)
{
    free(d->items);
    *d = (struct difference){0};
}
