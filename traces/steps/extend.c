/* extend.c - the columns of an extension and the counterparts of its blocks. */
#include "traces/steps/extend.h"

#include <stdlib.h>

#include "traces/grow.h"

/* ---- columns ---- */

static bool grow_columns(struct extension *x, uint64_t want)
{
    uint64_t rooms[6] = {x->room, x->room, x->room, x->room, x->room, x->room};
    uint64_t time_room = x->from->time ? x->room : want;
    bool grown = GROW(x->op, rooms[0], want) && GROW(x->id, rooms[1], want) &&
                 GROW(x->bytes, rooms[2], want) &&
                 GROW(x->stream, rooms[3], want) &&
                 GROW(x->pool, rooms[4], want) &&
                 (!x->from->stack || GROW(x->stack, rooms[5], want)) &&
                 (!x->from->time || GROW(x->time, time_room, want));

    if (grown)
        x->room = rooms[0];
    return grown;
}

static void point(struct extension *x)
{
    x->out.op = x->op;
    x->out.id = x->id;
    x->out.bytes = x->bytes;
    x->out.stream = x->stream;
    x->out.pool = x->pool;
    x->out.time = x->from->time ? x->time : NULL;
    x->out.stack = x->from->stack ? x->stack : NULL;
}

/* Appends a row that is like event i of the trace. The time goes on as it did
 * from event i - 1 to i. */
static enum frag_err append(struct extension *x, uint64_t i)
{
    const struct frag_device_trace *d = x->from;
    const uint64_t n = x->out.count;

    if (x->room < n + 1 && !grow_columns(x, n + 1))
        return frag_no_memory(x->error, "the added events");
    x->op[n] = d->op[i];
    x->id[n] = d->id[i];
    x->bytes[n] = d->bytes[i];
    x->stream[n] = d->stream[i];
    x->pool[n] = d->pool[i];
    if (d->stack)
        x->stack[n] = d->stack[i];
    if (d->time) {
        const frag_time gap =
            i && d->time[i] > d->time[i - 1] ? d->time[i] - d->time[i - 1] : 0;

        x->time[n] = n <= i ? d->time[i] : x->time[n - 1] + gap;
    }
    x->out.count++;
    point(x);
    return FRAG_OK;
}

/* ---- blocks ---- */

static enum frag_err vacate(struct extension *x, uint32_t slot)
{
    if (!GROW(x->vacant, x->vacant_room, x->vacant_count + 1))
        return frag_no_memory(x->error, "the slots");
    x->vacant[x->vacant_count++] = slot;
    return FRAG_OK;
}

static enum frag_err make(struct extension *x, uint64_t i, uint32_t slot,
                          frag_size bytes)
{
    if (!GROW(x->made, x->made_room, x->made_count + 1))
        return frag_no_memory(x->error, "the added blocks");
    x->made[x->made_count++] = (struct extension_block){
        .slot = slot,
        .stream = x->from->stream[i],
        .alloc = x->out.count,
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
    return append(x, i);
}

/* The slots of the trace that no block occupies after the copied events. */
static enum frag_err find_vacant(struct extension *x)
{
    bool *taken = calloc((size_t)x->from->slots + 1, sizeof(*taken));
    enum frag_err err = FRAG_OK;

    if (!taken)
        return frag_no_memory(x->error, "the slots");
    for (uint64_t k = 0; k < x->made_count; k++)
        if (x->made[k].state != BLOCK_GONE)
            taken[x->made[k].slot] = true;
    for (uint32_t slot = x->from->slots; err == FRAG_OK && slot-- > 0;)
        if (!taken[slot])
            err = vacate(x, slot);
    free(taken);
    return err;
}

enum frag_err extension_open(struct extension *x,
                             const struct frag_device_trace *d,
                             const struct blocks *blocks, struct frag_error *e)
{
    *x = (struct extension){.from = d, .blocks = blocks, .out = *d, .error = e};
    x->out.count = 0;
    x->counterpart = malloc(((size_t)blocks->count + 1) * sizeof(uint32_t));
    if (!x->counterpart || !grow_columns(x, 2 * blocks->events + 1))
        return frag_no_memory(e, "a copy of the trace");
    for (uint64_t k = 0; k < blocks->count; k++)
        x->counterpart[k] = UINT32_MAX;
    for (uint64_t i = 0; i < blocks->events; i++)
        FRAG_TRY(copy(x, i));
    return find_vacant(x);
}

void extension_close(struct extension *x)
{
    free(x->op);
    free(x->id);
    free(x->bytes);
    free(x->stream);
    free(x->pool);
    free(x->time);
    free(x->stack);
    free(x->made);
    free(x->vacant);
    free(x->counterpart);
}

/* ---- playing ---- */

static enum frag_err play_alloc(struct extension *x, uint64_t i,
                                frag_size bytes)
{
    uint32_t slot = x->out.slots;

    if (x->vacant_count)
        slot = x->vacant[--x->vacant_count];
    else
        x->out.slots++;
    FRAG_TRY(make(x, i, slot, bytes));
    x->counterpart[x->blocks->of[i]] = (uint32_t)x->made_count - 1;
    FRAG_TRY(append(x, i));
    x->id[x->out.count - 1] = slot;
    x->bytes[x->out.count - 1] = bytes;
    return FRAG_OK;
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

    if (!is_allowed(b, op))
        return FRAG_OK;
    FRAG_TRY(append(x, i));
    x->id[x->out.count - 1] = b->slot;
    if (op == FRAG_FREE && x->stream[x->out.count - 1] == b->stream + 1)
        x->stream[x->out.count - 1] = 0; /* the counterpart's own stream */
    if (op == FRAG_FREE_REQUESTED)
        b->state = BLOCK_PENDING;
    if (op != FRAG_FREE)
        return FRAG_OK;
    b->state = BLOCK_GONE;
    return vacate(x, b->slot);
}

enum frag_err extension_play(struct extension *x, uint64_t i, frag_size bytes)
{
    const uint8_t op = x->from->op[i];

    if (op == FRAG_ALLOC)
        return play_alloc(x, i, bytes);
    if (op == FRAG_EMPTY_CACHE)
        return append(x, i);
    if (x->counterpart[x->blocks->of[i]] == UINT32_MAX)
        return FRAG_OK;
    return play_use(x, i, x->counterpart[x->blocks->of[i]]);
}

enum frag_err extension_free(struct extension *x, uint32_t block)
{
    struct extension_block *b = &x->made[block];
    const uint64_t n = x->out.count;

    if (b->state == BLOCK_GONE)
        return FRAG_OK;
    FRAG_TRY(append(x, x->blocks->events - 1));
    x->op[n] = FRAG_FREE;
    x->id[n] = b->slot;
    x->bytes[n] = 0;
    x->stream[n] = 0;
    x->pool[n] = 0;
    b->state = BLOCK_GONE;
    return vacate(x, b->slot);
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
    for (uint64_t k = 0; lone && k < with->count; k++)
        lone[k] = true;
    for (uint64_t k = 0; err == FRAG_OK && k < of->count; k++) {
        if (pair[k] == UINT32_MAX)
            continue;
        x->counterpart[of->items[k].block] = with->items[pair[k]].block;
        if (lone)
            lone[pair[k]] = false;
    }
    free(pair);
    return err;
}
