/* build_device.c - the state of the builder: devices, event columns, slots,
 * streams and pools. Strings, stacks and notes are in build_text.c. */
#include "traces/build/build_device.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { DEVICES_MAX = 1024 };

struct frag_build *frag_build_open(const char *path, const char *format)
{
    struct frag_build *b = calloc(1, sizeof(*b));

    if (!b)
        return NULL;
    b->format = format;
    b->path = strdup(path);
    if (b->path)
        return b;
    free(b);
    return NULL;
}

void build_columns_free(struct columns *c)
{
#define X(name, type) free(c->name);
    COLUMNS(X)
#undef X
    *c = (struct columns){0};
}

static void device_close(struct device_build *d)
{
    if (!d)
        return;
    build_columns_free(&d->events);
    live_fini(&d->live);
    live_fini(&d->many_streams);
    live_fini(&d->many_pools);
    free(d->vacant);
    free(d->actions);
    free(d->flushes);
    free(d->streams);
    free(d->pools);
    free(d->early);
    free(d->segments);
    free(d->blocks);
    free(d->start_segments);
    free(d->start_blocks);
    free(d->marks);
    free(d->changes);
    free(d->changed);
    free(d->emptied);
    free(d);
}

void frag_build_close(struct frag_build *b)
{
    if (!b)
        return;
    for (uint64_t i = 0; i < b->device_count; i++)
        device_close(b->devices[i]);
    free(b->devices);
    build_text_close(b);
    free(b->path);
    free(b);
}

static struct device_build *find_device(const struct frag_build *b,
                                        uint32_t number)
{
    for (uint64_t i = 0; i < b->device_count; i++)
        if (b->devices[i]->device == number)
            return b->devices[i];
    return NULL;
}

static enum frag_err add_device(struct frag_build *b, uint32_t number,
                                struct frag_error *e)
{
    struct device_build *d;

    if (b->device_count == DEVICES_MAX)
        return frag_fail(e, FRAG_CORRUPT,
                         "%s: expected at most %d devices, found more", b->path,
                         DEVICES_MAX);
    d = calloc(1, sizeof(*d));
    if (d && GROW(d->pools, d->pool_room, 1) &&
        GROW(b->devices, b->device_room, b->device_count + 1)) {
        d->device = number;
        d->pools[d->pool_count++] = (struct frag_pool_id){0, 0};
        b->last = b->devices[b->device_count++] = d;
        return FRAG_OK;
    }
    device_close(d);
    return FRAG_NOMEM;
}

enum frag_err build_device(struct frag_build *b, uint32_t device,
                           struct device_build **out, struct frag_error *e)
{
    if (!b->last || b->last->device != device)
        b->last = find_device(b, device);
    if (!b->last)
        FRAG_TRY(add_device(b, device, e));
    *out = b->last;
    return FRAG_OK;
}

enum frag_err frag_build_device(struct frag_build *b, uint32_t device,
                                struct frag_error *e)
{
    struct device_build *d;

    return build_device(b, device, &d, e);
}

/* Columns and slots. */

static bool grow_columns(struct columns *c)
{
    uint64_t room = c->room;

#define X(name, type)                       \
    room = c->room;                         \
    if (!GROW(c->name, room, c->count + 1)) \
        return false;
    COLUMNS(X)
#undef X
    c->room = room;
    return true;
}

enum frag_err build_push(struct device_build *d, const struct event *event)
{
    struct columns *c = &d->events;

    if (c->count == c->room && !grow_columns(c))
        return FRAG_NOMEM;
#define X(name, type) c->name[c->count] = event->name;
    COLUMNS(X)
#undef X
    c->count++;
    return FRAG_OK;
}

enum frag_err build_acquire_slot(struct device_build *d, uint32_t *slot)
{
    if (d->vacant_count) {
        *slot = d->vacant[--d->vacant_count];
        return FRAG_OK;
    }
    /* `vacant` grows when a slot is first assigned, so that the return of the
     * slot cannot fail. */
    if (d->slots == UINT32_MAX - 1 ||
        !GROW(d->vacant, d->vacant_room, (uint64_t)d->slots + 1))
        return FRAG_NOMEM;
    *slot = d->slots++;
    return FRAG_OK;
}

void build_return_slot(struct device_build *d, uint32_t slot)
{
    d->vacant[d->vacant_count++] = slot;
}

/* Streams and pools are compared one by one up to this number, which nearly no
 * job exceeds; the others are found by hash. */
enum { FEW = 8 };

static struct live_row *find_many(const struct live *many, uint64_t count,
                                  uint64_t key)
{
    return count > FEW ? live_find(many, key) : NULL;
}

/* Whether the index of a new stream or pool is stored where it is needed. */
static bool put_many(struct live *many, uint64_t count, uint64_t key)
{
    return count < FEW || live_find(many, key) ||
           live_put(many, key, (uint32_t)count);
}

static uint64_t few_of(uint64_t count)
{
    return count < FEW ? count : FEW;
}

enum frag_err build_stream(struct frag_build *b, struct device_build *d,
                           uint64_t handle, uint32_t *index,
                           struct frag_error *e)
{
    const struct live_row *row;

    for (uint64_t i = 0; i < few_of(d->stream_count); i++)
        if (d->streams[i] == handle) {
            *index = (uint32_t)i;
            return FRAG_OK;
        }
    row = find_many(&d->many_streams, d->stream_count, handle);
    if (row) {
        *index = row->slot;
        return FRAG_OK;
    }
    if (d->stream_count > UINT16_MAX)
        return frag_fail(e, FRAG_CORRUPT,
                         "%s: expected at most 65536 streams, found more",
                         b->path);
    if (!GROW(d->streams, d->stream_room, d->stream_count + 1) ||
        !put_many(&d->many_streams, d->stream_count, handle))
        return FRAG_NOMEM;
    *index = (uint32_t)d->stream_count;
    d->streams[d->stream_count++] = handle;
    return FRAG_OK;
}

static bool is_pool(const struct device_build *d, uint64_t i,
                    struct frag_pool_id pool)
{
    return d->pools[i].owner == pool.owner && d->pools[i].number == pool.number;
}

/* The index of a pool; UINT64_MAX: it is new. Pools whose keys are equal are
 * compared one by one. */
static uint64_t find_pool(const struct device_build *d,
                          struct frag_pool_id pool, uint64_t key)
{
    const struct live_row *row = find_many(&d->many_pools, d->pool_count, key);
    const bool is_there = row && is_pool(d, row->slot, pool);
    const uint64_t end = row ? d->pool_count : few_of(d->pool_count);

    for (uint64_t i = 0; i < end && !is_there; i++)
        if (is_pool(d, i, pool))
            return i;
    return is_there ? row->slot : UINT64_MAX;
}

enum frag_err build_pool(struct frag_build *b, struct device_build *d,
                         struct frag_pool_id pool, uint32_t *index,
                         struct frag_error *e)
{
    const uint64_t key = pool.owner * 0x9e3779b97f4a7c15u + pool.number;
    const uint64_t found = find_pool(d, pool, key);

    *index = (uint32_t)found;
    if (found != UINT64_MAX)
        return FRAG_OK;
    if (d->pool_count > UINT16_MAX)
        return frag_fail(e, FRAG_CORRUPT,
                         "%s: expected at most 65536 pools, found more",
                         b->path);
    if (!GROW(d->pools, d->pool_room, d->pool_count + 1) ||
        !put_many(&d->many_pools, d->pool_count, key))
        return FRAG_NOMEM;
    *index = (uint32_t)d->pool_count;
    d->pools[d->pool_count++] = pool;
    return FRAG_OK;
}
