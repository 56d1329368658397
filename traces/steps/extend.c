/* extend.c - the columns of an extension and the counterparts of its blocks. */
#include "traces/steps/extend.h"

#include <stdlib.h>

#include "traces/grow.h"

/* Appends a row that is like event i of the trace. The time goes on as it did
 * from event i - 1 to i. */
static enum frag_err append(struct extension *x, uint64_t i, uint32_t slot,
                            frag_size bytes)
{
    const struct frag_device_trace *d = x->from;
    const uint64_t n = x->out.events.count;
    struct event ev = {.op = d->op[i],
                       .id = slot,
                       .bytes = bytes,
                       .stream = d->stream[i],
                       .pool = d->pool[i],
                       .stack = d->stack ? d->stack[i] : 0};

    if (d->time) {
        const frag_time gap =
            i && d->time[i] > d->time[i - 1] ? d->time[i] - d->time[i - 1] : 0;

        ev.time = n <= i ? d->time[i] : x->out.events.time[n - 1] + gap;
    }
    return build_push(&x->out, &ev) == FRAG_OK
               ? FRAG_OK
               : frag_no_memory(x->error, "the added events");
}

/* ---- blocks ---- */

static enum frag_err make(struct extension *x, uint64_t i, uint32_t slot,
                          frag_size bytes)
{
    if (!GROW(x->made, x->made_room, x->made_count + 1))
        return frag_no_memory(x->error, "the added blocks");
    x->made[x->made_count++] = (struct extension_block){
        .slot = slot,
        .stream = x->from->stream[i],
        .alloc = x->out.events.count,
        .bytes = bytes,
    };
    return FRAG_OK;
}

static enum frag_err copy(struct extension *x, uint64_t i)
{
    const struct frag_device_trace *d = x->from;
    const uint32_t block = x->blocks->of[i];

    if (d->op[i] == FRAG_ALLOC)
        FRAG_TRY(make(x, i, d->id[i], d->bytes[i]));
    else if (d->op[i] == FRAG_FREE_REQUESTED)
        x->made[block].state = BLOCK_PENDING;
    else if (d->op[i] == FRAG_FREE)
        x->made[block].state = BLOCK_GONE;
    return append(x, i, d->id[i], d->bytes[i]);
}

/* The slots of the trace that no block occupies after the copied events. */
static enum frag_err find_vacant(struct extension *x)
{
    bool *taken = calloc((size_t)x->from->slots + 1, sizeof(*taken));

    if (!taken || !GROW(x->out.vacant, x->out.vacant_room,
                        x->from->slots + (uint64_t)1)) {
        free(taken);
        return frag_no_memory(x->error, "the slots");
    }
    for (uint64_t k = 0; k < x->made_count; k++)
        if (x->made[k].state != BLOCK_GONE)
            taken[x->made[k].slot] = true;
    for (uint32_t slot = x->out.slots = x->from->slots; slot-- > 0;)
        if (!taken[slot])
            build_return_slot(&x->out, slot);
    free(taken);
    return FRAG_OK;
}

enum frag_err extension_open(struct extension *x,
                             const struct frag_device_trace *d,
                             const struct blocks *blocks, struct frag_error *e)
{
    *x = (struct extension){.from = d, .blocks = blocks, .error = e};
    x->counterpart = malloc(((size_t)blocks->count + 1) * sizeof(uint32_t));
    if (!x->counterpart)
        return frag_no_memory(e, "a copy of the trace");
    for (uint64_t k = 0; k < blocks->count; k++)
        x->counterpart[k] = UINT32_MAX;
    for (uint64_t i = 0; i < blocks->events; i++)
        FRAG_TRY(copy(x, i));
    return find_vacant(x);
}

void extension_close(struct extension *x)
{
    build_columns_free(&x->out.events);
    free(x->out.vacant);
    free(x->made);
    free(x->counterpart);
}

/* ---- playing ---- */

static enum frag_err play_alloc(struct extension *x, uint64_t i,
                                frag_size bytes)
{
    uint32_t slot;

    if (build_acquire_slot(&x->out, &slot) != FRAG_OK)
        return frag_no_memory(x->error, "the slots");
    FRAG_TRY(make(x, i, slot, bytes));
    x->counterpart[x->blocks->of[i]] = (uint32_t)x->made_count - 1;
    return append(x, i, slot, bytes);
}

/* After FREE_REQUESTED only FREE may follow. */
static bool is_allowed(const struct extension_block *b, uint8_t op)
{
    return b->state == BLOCK_HELD ||
           (b->state == BLOCK_PENDING && op == FRAG_FREE);
}

static enum frag_err play_use(struct extension *x, uint64_t i, uint32_t block)
{
    struct extension_block *b = &x->made[block];
    const uint8_t op = x->from->op[i];
    frag_stream *stream;

    if (!is_allowed(b, op))
        return FRAG_OK;
    FRAG_TRY(append(x, i, b->slot, x->from->bytes[i]));
    stream = &x->out.events.stream[x->out.events.count - 1];
    if (op == FRAG_FREE && *stream == b->stream + 1)
        *stream = 0; /* the counterpart's own stream */
    if (op == FRAG_FREE_REQUESTED)
        b->state = BLOCK_PENDING;
    if (op != FRAG_FREE)
        return FRAG_OK;
    b->state = BLOCK_GONE;
    build_return_slot(&x->out, b->slot);
    return FRAG_OK;
}

enum frag_err extension_play(struct extension *x, uint64_t i, frag_size bytes)
{
    const uint8_t op = x->from->op[i];

    if (op == FRAG_ALLOC)
        return play_alloc(x, i, bytes);
    if (op == FRAG_EMPTY_CACHE)
        return append(x, i, x->from->id[i], x->from->bytes[i]);
    if (x->counterpart[x->blocks->of[i]] == UINT32_MAX)
        return FRAG_OK;
    return play_use(x, i, x->counterpart[x->blocks->of[i]]);
}

enum frag_err extension_free(struct extension *x, uint32_t block)
{
    struct extension_block *b = &x->made[block];
    const struct columns *c = &x->out.events;

    if (b->state == BLOCK_GONE)
        return FRAG_OK;
    FRAG_TRY(append(x, x->blocks->events - 1, b->slot, 0));
    c->op[c->count - 1] = FRAG_FREE;
    c->stream[c->count - 1] = 0;
    c->pool[c->count - 1] = 0;
    b->state = BLOCK_GONE;
    build_return_slot(&x->out, b->slot);
    return FRAG_OK;
}

/* ---- counterparts ---- */

enum frag_err block_list_add(struct block_list *l, struct aligned block,
                             struct frag_error *e)
{
    if (!GROW(l->items, l->room, l->count + 1))
        return frag_no_memory(e, "the live blocks");
    l->items[l->count++] = block;
    return FRAG_OK;
}

enum frag_err extension_pair(struct extension *x, const struct block_list *of,
                             const struct block_list *with, bool *lone)
{
    uint32_t *pair = malloc(((size_t)of->count + 1) * sizeof(*pair));
    enum frag_err err;

    if (!pair)
        return frag_no_memory(x->error, "the live blocks");
    err = align(of->items, (uint32_t)of->count, with->items,
                (uint32_t)with->count, pair, x->error);
    for (uint64_t k = 0; k < with->count; k++)
        lone[k] = true;
    for (uint64_t k = 0; err == FRAG_OK && k < of->count; k++) {
        if (pair[k] == UINT32_MAX)
            continue;
        x->counterpart[of->items[k].block] = with->items[pair[k]].block;
        lone[pair[k]] = false;
    }
    free(pair);
    return err;
}
