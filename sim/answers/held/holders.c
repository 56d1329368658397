/* holders.c - sorts the live blocks of a moment into groups. */
#include "sim/answers/held/holders.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "sim/answers/held/groupings.h"
#include "traces/facts.h"
#include "traces/printable.h"

/* Whether a stack was recorded for an ALLOC of the device. */
static bool has_stacks(const struct frag_trace *t,
                       const struct frag_device_trace *d)
{
    for (uint64_t i = 0; d->stack && i < d->count; i++)
        if (d->op[i] == FRAG_ALLOC && site_of(t, d->stack[i]))
            return true;
    return false;
}

const char *holders_stacks_remedy(const struct frag_trace *t)
{
    return frag_trace_is_snapshot(t)
               ? "torch.cuda.memory._record_memory_history() with "
                 "context=\"all\", its default, records stacks"
               : "`fragsim help formats' says which formats have stacks";
}

enum holders_by holders_best(const struct frag_trace *t,
                             const struct frag_device_trace *d)
{
    return has_stacks(t, d) ? HOLDERS_BY_SITE : HOLDERS_BY_SIZE;
}

bool holders_is_one(const struct holders *h)
{
    return h->count && h->items[0].bytes >= h->bytes / 10 * 9;
}

/* -- the filter ---------------------------------------------------------- */

static bool frame_has(const struct frag_trace *t, const struct frag_frame *f,
                      const char *text)
{
    char place[1024];

    snprintf(place, sizeof(place), "%s:%" PRIu32, t->strings[f->file], f->line);
    return strstr(t->strings[f->function], text) || strstr(place, text);
}

static bool stack_has(const struct frag_trace *t, uint32_t stack,
                      const char *text)
{
    for (uint64_t i = t->stack_first[stack]; i < t->stack_first[stack + 1]; i++)
        if (frame_has(t, &t->frames[i], text))
            return true;
    return false;
}

static bool passes(const struct holders *h, const char *filter,
                   const struct moment_block *b)
{
    return !filter || (b->stack < h->trace->stack_count &&
                       stack_has(h->trace, b->stack, filter));
}

/* -- grouping ------------------------------------------------------------ */

/* A live block with the number of its group. */
struct member {
    uint64_t number;
    const struct moment_block *block;
};

/* Blocks of one group in the order of their ALLOCs. */
static int by_number(const void *a, const void *b)
{
    const struct member *x = a, *y = b;

    if (x->number != y->number)
        return x->number < y->number ? -1 : 1;
    return x->block->event < y->block->event ? -1 : 1;
}

static int by_key(const void *a, const void *b)
{
    const struct holder *x = a, *y = b;
    const int order = strcmp(x->key, y->key);

    return order ? order : x->oldest < y->oldest ? -1 : 1;
}

static int by_bytes(const void *a, const void *b)
{
    const struct holder *x = a, *y = b;
    int order;

    if (x->bytes != y->bytes)
        return x->bytes > y->bytes ? -1 : 1;
    order = strcmp(x->name, y->name);
    return order ? order : strcmp(x->key, y->key);
}

static char *key_of(const struct holders *h, const struct moment_block *b)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    bool failed;

    if (!out)
        return NULL;
    groupings[h->by].key(&(const struct grouped){h, b}, out);
    failed = ferror(out);
    if (!fclose(out) && !failed)
        return text;
    free(text);
    return NULL;
}

/* Adds an empty group, whose oldest block is b. False if the host has no
 * memory. */
static bool add_group(struct holders *h, bool short_paths,
                      const struct moment_block *b)
{
    const bool named =
        !groupings[h->by].key || (short_paths && h->by != HOLDERS_BY_STACK);
    struct holder *g = &h->items[h->count++];
    char name[SITE_TEXT];

    groupings[h->by].name(&(const struct grouped){h, b}, name);
    *g = (struct holder){.oldest = b->event, .stack = b->stack};
    g->name = strdup(name);
    g->key = named ? strdup(name) : key_of(h, b);
    return g->name && g->key;
}

static void add_block(struct holder *g, const struct moment_block *b)
{
    g->bytes += b->bytes;
    g->pending += b->pending ? b->bytes : 0;
    g->blocks++;
    g->newest = b->event;
}

static bool make_groups(struct holders *h, bool short_paths,
                        const struct member *members)
{
    for (uint64_t i = 0; i < h->blocks; i++) {
        if (!i || members[i].number != members[i - 1].number)
            if (!add_group(h, short_paths, members[i].block))
                return false;
        add_block(&h->items[h->count - 1], members[i].block);
        h->bytes += members[i].block->bytes;
    }
    return true;
}

/* Joins groups that have the same key, for example stacks with one site. */
static void join_groups(struct holders *h)
{
    uint64_t kept = 0;

    qsort(h->items, h->count, sizeof(*h->items), by_key);
    for (uint64_t i = 0; i < h->count; i++) {
        struct holder *g = &h->items[i], *last = &h->items[kept - !!kept];

        if (!kept || strcmp(last->key, g->key)) {
            h->items[kept++] = *g;
            continue;
        }
        last->bytes += g->bytes;
        last->pending += g->pending;
        last->blocks += g->blocks;
        if (g->newest > last->newest)
            last->newest = g->newest;
        free(g->name);
        free(g->key);
    }
    h->count = kept;
    qsort(h->items, h->count, sizeof(*h->items), by_bytes);
}

static enum frag_err group(struct holders *h,
                           const struct holders_options *options,
                           const struct moment *m, struct frag_error *e)
{
    struct member *members = calloc(m->count + 1, sizeof(*members));
    bool done = false;

    h->items = calloc(m->count + 1, sizeof(*h->items));
    for (uint64_t i = 0; members && i < m->count; i++)
        if (passes(h, options->filter, &m->blocks[i]))
            members[h->blocks++] =
                (struct member){groupings[h->by].number(
                                    &(const struct grouped){h, &m->blocks[i]}),
                                &m->blocks[i]};
    if (members && h->items) {
        qsort(members, h->blocks, sizeof(*members), by_number);
        done = make_groups(h, options->short_paths, members);
    }
    free(members);
    if (!done)
        return frag_no_memory(e, "the groups of blocks");
    join_groups(h);
    return FRAG_OK;
}

/* -- the whole ----------------------------------------------------------- */

static enum frag_err check_stacks(const struct holders *h, const char *filter,
                                  struct frag_error *e)
{
    if (h->has_stacks || (!filter && !groupings[h->by].needs_stacks))
        return FRAG_OK;
    return frag_fail(
        e, FRAG_INVALID, "%s: the recording has no stacks, which %s needs; %s",
        h->trace->path, filter ? "a filter" : holders_by_names[h->by],
        holders_stacks_remedy(h->trace));
}

static enum frag_err fill(struct holders *h,
                          const struct holders_options *options,
                          struct frag_error *e)
{
    struct frag_steps steps = {0};
    struct moment m;
    enum frag_err err;

    if (options->steps || h->by == HOLDERS_BY_AGE)
        FRAG_TRY(frag_steps_find(h->trace, h->device, h->device->count, NULL,
                                 &steps, e));
    h->steps = steps;
    FRAG_TRY(check_stacks(h, options->filter, e));
    if (h->by == HOLDERS_BY_CLASS)
        h->classes = classes_find(h->trace, h->device);
    if (h->by == HOLDERS_BY_CLASS && !h->classes)
        return frag_no_memory(e, "the classes of blocks");
    FRAG_TRY(moment_open(h->device, h->event, &m, e));
    if (facts_has_failed(h->device, h->event))
        h->failed = h->device->bytes[h->event];
    h->requested = m.requested;
    h->pending = m.pending;
    h->live = m.count;
    err = group(h, options, &m, e);
    moment_close(&m);
    return err;
}

enum frag_err holders_find(const struct frag_trace *t,
                           const struct frag_device_trace *d, uint64_t event,
                           const struct holders_options *options,
                           struct holders *out, struct frag_error *e)
{
    struct holders h = {.trace = t,
                        .device = d,
                        .by = options->by,
                        .event = event,
                        .has_stacks = has_stacks(t, d)};
    const enum frag_err err = fill(&h, options, e);

    if (err == FRAG_OK)
        *out = h;
    else
        holders_close(&h);
    return err;
}

void holders_close(struct holders *h)
{
    for (uint64_t i = 0; i < h->count; i++) {
        free(h->items[i].name);
        free(h->items[i].key);
    }
    free(h->items);
    free(h->classes);
    frag_steps_close(&h->steps);
    *h = (struct holders){0};
}

void holders_put_folded(const struct holders *h, FILE *out)
{
    for (uint64_t i = 0; i < h->count; i++) {
        printable_put(out, h->items[i].key);
        fprintf(out, " %" PRIu64 "\n", h->items[i].bytes);
    }
}
