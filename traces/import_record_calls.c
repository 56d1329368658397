/* import_record_calls.c - from calls of the CUDA driver to requests. */
#include <inttypes.h>
#include <stdlib.h>

#include "traces/grow.h"
#include "traces/import_record.h"

enum { DEVICES = 1024 };

/* Physical memory has no address of its own: in the trace it has its number,
 * above every address of a device. */
static const frag_addr physical_base = (frag_addr)1 << 63;

static enum frag_err wrong(const struct log_reader *r, const char *expected,
                           uint64_t found)
{
    return frag_fail(r->e, FRAG_CORRUPT,
                     "%s:%" PRIu64 ": expected %s, found %" PRIu64,
                     frag_source_name(r->source), r->where, expected, found);
}

static enum frag_err put(struct log_reader *r, int32_t device,
                         struct frag_entry *entry)
{
    if (device < 0) /* the host's */
        return FRAG_OK;
    r->has_requests = true;
    return frag_build_entry(r->build, (uint32_t)device, entry, r->where, r->e);
}

static uint32_t slot_of(int32_t device)
{
    return (uint32_t)(device - RECORD_ON_HOST);
}

static int32_t device_of(const struct live_row *row)
{
    return (int32_t)row->slot + RECORD_ON_HOST;
}

/* Requests. */

/* A call that gave nothing: want of memory is a request, all else is not. */
static enum frag_err refuse(struct log_reader *r,
                            const struct record_call *call,
                            struct frag_entry *entry, int32_t device)
{
    const bool is_request = call->result == RECORD_OUT_OF_MEMORY &&
                            call->bytes && call->bytes >> 63 == 0;

    if (!is_request) {
        r->refused++;
        return FRAG_OK;
    }
    entry->kind = FRAG_ENTRY_FAILED;
    return put(r, device, entry);
}

static enum frag_err free_block(struct log_reader *r, struct live_row *row,
                                frag_time time)
{
    struct frag_entry entry = {.kind = FRAG_ENTRY_FREE_COMPLETED,
                               .addr = row->key,
                               .size = 1,
                               .time = time};
    const int32_t device = device_of(row);

    live_remove(&r->blocks, row);
    return put(r, device, &entry);
}

/* The device of the pool, and the pool if it is not the device's default. */
static int32_t find_pool(const struct log_reader *r,
                         const struct record_call *call,
                         struct frag_entry *entry)
{
    const struct live_row *row =
        call->other ? live_find(&r->pools, call->other) : NULL;

    if (!call->other || (row && row->state))
        return row ? device_of(row) : call->device;
    entry->has_pool = true;
    entry->pool = (struct frag_pool_id){0, call->other};
    return row ? device_of(row) : call->device;
}

static enum frag_err on_alloc(struct log_reader *r,
                              const struct record_call *call)
{
    struct frag_entry entry = {.kind = FRAG_ENTRY_ALLOC,
                               .addr = call->address,
                               .size = call->bytes,
                               .stream = call->stream,
                               .time = call->time};
    const int32_t device = find_pool(r, call, &entry);
    struct live_row *row;

    if (call->result != RECORD_SUCCESS)
        return refuse(r, call, &entry, device);
    if (call->address >= physical_base)
        return wrong(r, "an address below 2^63", call->address);
    row = live_find(&r->blocks, call->address);
    if (row) { /* with its context, or by a call that is not recorded */
        r->vanished++;
        FRAG_TRY(free_block(r, row, call->time));
    }
    if (!live_put(&r->blocks, call->address, slot_of(device)))
        return FRAG_NOMEM;
    r->managed += call->kind == RECORD_ALLOC_MANAGED;
    return put(r, device, &entry);
}

static enum frag_err on_free(struct log_reader *r,
                             const struct record_call *call)
{
    struct live_row *row = live_find(&r->blocks, call->address);

    if (row)
        return free_block(r, row, call->time);
    r->unknown += call->address != 0; /* a null pointer is no block */
    return FRAG_OK;
}

static enum frag_err on_pool(struct log_reader *r,
                             const struct record_call *call)
{
    struct live_row *row = live_find(&r->pools, call->other);

    if (row)
        live_remove(&r->pools, row);
    if (!live_put(&r->pools, call->other, slot_of(call->device)))
        return FRAG_NOMEM;
    live_find(&r->pools, call->other)->state = call->bytes != 0;
    return FRAG_OK;
}

static int by_address(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

/* All blocks of the device are gone, lowest address first. */
static enum frag_err on_reset(struct log_reader *r,
                              const struct record_call *call)
{
    const uint64_t rows = r->blocks.rows ? (uint64_t)1 << r->blocks.bits : 0;
    uint64_t *addresses = malloc((r->blocks.count + 1) * sizeof(*addresses));
    uint64_t count = 0;
    enum frag_err err = addresses ? FRAG_OK : FRAG_NOMEM;

    for (uint64_t i = 0; addresses && i < rows; i++)
        if (r->blocks.rows[i].slot == slot_of(call->device))
            addresses[count++] = r->blocks.rows[i].key;
    if (count)
        qsort(addresses, (size_t)count, sizeof(*addresses), by_address);
    for (uint64_t i = 0; err == FRAG_OK && i < count; i++)
        err = free_block(r, live_find(&r->blocks, addresses[i]), call->time);
    free(addresses);
    return err;
}

/* Virtual memory. */

static enum frag_err on_create(struct log_reader *r,
                               const struct record_call *call)
{
    struct frag_entry entry = {.kind = FRAG_ENTRY_ALLOC,
                               .addr = physical_base + r->physical_count,
                               .size = call->bytes,
                               .time = call->time};
    struct live_row *row;

    if (call->result != RECORD_SUCCESS)
        return refuse(r, call, &entry, call->device);
    if (!call->bytes || call->bytes > INT64_MAX - r->physical_count)
        return wrong(r, "a size from 1 to 2^63 - 1", call->bytes);
    if (!GROW(r->physical, r->physical_room, r->physical_count + 1))
        return FRAG_NOMEM;
    row = live_find(&r->handles, call->other);
    if (row)
        live_remove(&r->handles, row);
    if (!live_put(&r->handles, call->other, (uint32_t)r->physical_count))
        return FRAG_NOMEM;
    r->physical[r->physical_count++] = (struct physical){
        .bytes = call->bytes, .device = call->device, .handles = 1};
    return put(r, call->device, &entry);
}

/* Gives it back if nothing holds it any more. */
static enum frag_err let_go(struct log_reader *r, uint32_t index,
                            frag_time time)
{
    const struct physical *p = &r->physical[index];
    struct frag_entry entry = {.kind = FRAG_ENTRY_FREE_COMPLETED,
                               .addr = physical_base + index,
                               .size = 1,
                               .time = time};

    return p->handles || p->maps ? FRAG_OK : put(r, p->device, &entry);
}

static enum frag_err on_release(struct log_reader *r,
                                const struct record_call *call)
{
    struct live_row *row = live_find(&r->handles, call->other);
    uint32_t index;

    if (!row) {
        r->unknown++;
        return FRAG_OK;
    }
    index = row->slot;
    if (--r->physical[index].handles == 0)
        live_remove(&r->handles, row);
    return let_go(r, index, call->time);
}

static struct mapping *find_mapping(const struct log_reader *r,
                                    uint64_t address)
{
    const struct live_row *row = live_find(&r->mappings, address);

    return row ? &r->mapping[row->slot] : NULL;
}

/* Another handle of what is mapped there; its value may be a new one. */
static enum frag_err on_retain(struct log_reader *r,
                               const struct record_call *call)
{
    const struct mapping *m = find_mapping(r, call->address);
    const struct live_row *row = live_find(&r->handles, call->other);

    if (row) {
        r->physical[row->slot].handles++;
        return FRAG_OK;
    }
    if (!m)
        return FRAG_OK;
    if (!live_put(&r->handles, call->other, m->physical))
        return FRAG_NOMEM;
    r->physical[m->physical].handles++;
    return FRAG_OK;
}

static enum frag_err on_map(struct log_reader *r,
                            const struct record_call *call)
{
    const struct live_row *row = live_find(&r->handles, call->other);
    uint32_t physical;

    if (!row || find_mapping(r, call->address))
        return FRAG_OK;
    physical = row->slot;
    if (!GROW(r->mapping, r->mapping_room, r->mapping_count + 1) ||
        !live_put(&r->mappings, call->address, (uint32_t)r->mapping_count))
        return FRAG_NOMEM;
    r->mapping[r->mapping_count++] = (struct mapping){call->bytes, physical};
    r->physical[physical].maps++;
    return FRAG_OK;
}

/* One call may take several mappings in a row. */
static enum frag_err on_unmap(struct log_reader *r,
                              const struct record_call *call)
{
    uint64_t done = 0;

    while (done < call->bytes) {
        struct live_row *row = live_find(&r->mappings, call->address + done);
        struct mapping m;

        if (!row)
            return FRAG_OK;
        m = r->mapping[row->slot];
        live_remove(&r->mappings, row);
        r->physical[m.physical].maps--;
        FRAG_TRY(let_go(r, m.physical, call->time));
        done += m.bytes;
    }
    return FRAG_OK;
}

static enum frag_err on_addresses(struct log_reader *r,
                                  const struct record_call *call)
{
    (void)r;
    (void)call;
    return FRAG_OK;
}

static const struct kind {
    enum frag_err (*take)(struct log_reader *r, const struct record_call *call);
    bool hands_out; /* failed, it may be a request; others are none */
} kinds[] = {
    [RECORD_ALLOC] = {on_alloc, true},
    [RECORD_ALLOC_PITCH] = {on_alloc, true},
    [RECORD_ALLOC_MANAGED] = {on_alloc, true},
    [RECORD_FREE] = {on_free, false},
    [RECORD_ALLOC_ASYNC] = {on_alloc, true},
    [RECORD_ALLOC_POOL] = {on_alloc, true},
    [RECORD_FREE_ASYNC] = {on_free, false},
    [RECORD_POOL] = {on_pool, false},
    [RECORD_CREATE] = {on_create, true},
    [RECORD_RELEASE] = {on_release, false},
    [RECORD_RETAIN] = {on_retain, false},
    [RECORD_MAP] = {on_map, false},
    [RECORD_UNMAP] = {on_unmap, false},
    [RECORD_RESERVE] = {on_addresses, false},
    [RECORD_UNRESERVE] = {on_addresses, false},
    [RECORD_RESET] = {on_reset, false},
};

_Static_assert(sizeof(kinds) / sizeof(*kinds) == RECORD_KIND_COUNT,
               "a row for each kind of call");

enum frag_err log_take(struct log_reader *r, const struct record_call *call)
{
    if (call->kind >= RECORD_KIND_COUNT)
        return wrong(r, "a kind of call", call->kind);
    if (call->device < RECORD_ON_HOST || call->device >= DEVICES)
        return wrong(r, "a device below 1024", (uint32_t)call->device);
    if (call->result != RECORD_SUCCESS && !kinds[call->kind].hands_out) {
        r->refused++;
        return FRAG_OK;
    }
    return kinds[call->kind].take(r, call);
}

void log_fini(struct log_reader *r)
{
    live_fini(&r->blocks);
    live_fini(&r->pools);
    live_fini(&r->handles);
    live_fini(&r->mappings);
    free(r->physical);
    free(r->mapping);
}
