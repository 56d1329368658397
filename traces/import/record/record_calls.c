/* record_calls.c - turns the calls of the CUDA driver into requests and frees
 * of the trace. import_record.c describes the rules. */
#include <inttypes.h>
#include <stdlib.h>

#include "traces/grow.h"
#include "traces/import/record/import_record.h"

/* Physical memory and arrays have no address of their own. In the trace, they
 * have addresses above all device addresses: physical_base plus the number of
 * the physical memory, and array_base plus the handle of the array. */
static const frag_addr physical_base = (frag_addr)2 << 62;
static const frag_addr array_base = (frag_addr)3 << 62;
static const uint64_t handle_end = (uint64_t)1 << 62;

/* Adds an entry to the trace. A negative device is no device of the trace: the
 * entry is dropped, and a request without a known device is counted. */
static enum frag_err put(struct log_reader *r, int32_t device,
                         struct frag_entry *entry)
{
    if (device < 0) {
        r->no_device += device == RECORD_NO_DEVICE &&
                        entry->kind != FRAG_ENTRY_FREE_COMPLETED;
        return FRAG_OK;
    }
    r->has_requests = r->is_used[device] = true;
    return frag_build_entry(
        r->build, device == ON_HOST ? FRAG_HOST_DEVICE : (uint32_t)device,
        entry, r->where, r->e);
}

static uint32_t slot_of(int32_t device)
{
    return (uint32_t)(device - RECORD_ELSEWHERE);
}

static int32_t device_of(const struct live_row *row)
{
    return (int32_t)row->slot + RECORD_ELSEWHERE;
}

/* Requests */

static struct frag_entry request_of(const struct record_call *call,
                                    uint64_t address)
{
    return (struct frag_entry){.kind = FRAG_ENTRY_ALLOC,
                               .addr = address,
                               .size = call->bytes,
                               .time = call->time};
}

/* A call that failed. The call is a request if it failed for lack of memory. */
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
    if (!r->failed_bytes && call->address && device >= 0 &&
        device == call->device) {
        r->failed_bytes = call->bytes;
        r->failed_left = call->address;
        r->failed_device = device;
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

/* The state of a block is OF_GRAPH, or 0 for a block without a context, or 1 +
 * the number of its context. */
#define OF_GRAPH UINT32_MAX

/* Adds a block to the live ones. `context` is a handle, or 0. */
static enum frag_err add_block(struct log_reader *r, uint64_t key,
                               int32_t device, uint64_t context)
{
    struct live_row *row = context ? live_find(&r->contexts, context) : NULL;
    uint32_t number = row ? row->slot : (uint32_t)r->contexts.count;

    if (context && !row && !live_put(&r->contexts, context, number))
        return FRAG_NOMEM;
    if (!live_put(&r->blocks, key, slot_of(device)))
        return FRAG_NOMEM;
    live_find(&r->blocks, key)->state = context ? 1 + number : 0;
    return FRAG_OK;
}

/* A new block has the address `key`. A block that is live there was freed
 * without a call in the log, so it is freed now. */
static enum frag_err free_vanished(struct log_reader *r, uint64_t key,
                                   frag_time time)
{
    struct live_row *row = live_find(&r->blocks, key);

    if (!row)
        return FRAG_OK;
    r->vanished += device_of(row) != RECORD_ELSEWHERE;
    return free_block(r, row, time);
}

/* Adds the request of a call that allocates: the new block, or the failure. */
static enum frag_err put_request(struct log_reader *r,
                                 const struct record_call *call,
                                 struct frag_entry *entry, int32_t device)
{
    if (call->result != RECORD_SUCCESS)
        return refuse(r, call, entry, device);
    FRAG_TRY(free_vanished(r, entry->addr, call->time));
    FRAG_TRY(add_block(r, entry->addr, device, call->context));
    return put(r, device, entry);
}

/* Returns the device of the pool that the call allocates from. Stores the pool
 * in the entry, unless the pool is the default of its device. */
static int32_t find_pool(const struct log_reader *r,
                         const struct record_call *call,
                         struct frag_entry *entry)
{
    const bool is_used = call->kind == RECORD_ALLOC_ASYNC && call->device >= 0;
    const uint64_t pool = is_used ? r->pool_used[call->device] : call->other;
    const struct live_row *row = pool ? live_find(&r->pools, pool) : NULL;

    if (pool && !(row && row->state)) {
        entry->has_pool = true;
        entry->pool = (struct frag_pool_id){0, pool};
    }
    return row ? device_of(row) : call->device;
}

static enum frag_err on_alloc(struct log_reader *r,
                              const struct record_call *call)
{
    struct frag_entry entry = request_of(call, call->address);

    entry.stream = call->stream;
    if (call->result == RECORD_SUCCESS && call->address >= physical_base)
        return log_wrong(r, "an address below 2^63", call->address);
    r->managed +=
        call->result == RECORD_SUCCESS && call->kind == RECORD_ALLOC_MANAGED;
    return put_request(r, call, &entry, find_pool(r, call, &entry));
}

static enum frag_err on_free(struct log_reader *r,
                             const struct record_call *call)
{
    struct live_row *row = live_find(&r->blocks, call->address);

    if (row)
        return row->state == OF_GRAPH ? FRAG_OK
                                      : free_block(r, row, call->time);
    r->unknown += call->address != 0; /* a null pointer is no block */
    return FRAG_OK;
}

/* The pool of the ranges that the program allocated and registered itself: the
 * driver did not place them. */
static const struct frag_pool_id registered_pool = {0, 1};

/* A request of no bytes returns no block. */
static enum frag_err on_host(struct log_reader *r,
                             const struct record_call *call)
{
    const bool is_done = call->result == RECORD_SUCCESS;
    const bool is_foreign = call->device == RECORD_ELSEWHERE;
    struct frag_entry entry = request_of(call, call->address);

    if (is_done && call->address >= physical_base)
        return log_wrong(r, "an address below 2^63", call->address);
    if (call->kind == RECORD_HOST_REGISTER) {
        entry.has_pool = true;
        entry.pool = registered_pool;
        r->registered += is_done && !is_foreign;
        r->registered_bytes += is_done && !is_foreign ? call->bytes : 0;
    }
    r->foreign += is_done && is_foreign;
    return put_request(
        r, call, &entry,
        is_foreign || (is_done && !call->bytes) ? RECORD_ELSEWHERE : ON_HOST);
}

/* An array of unknown size produces no events. */
static enum frag_err on_array(struct log_reader *r,
                              const struct record_call *call)
{
    struct frag_entry entry = request_of(call, array_base + call->other);
    int32_t device = call->device;

    if (call->result == RECORD_SUCCESS && call->other >= handle_end)
        return log_wrong(r, "a handle below 2^62", call->other);
    if (call->result == RECORD_SUCCESS && device >= 0) {
        r->arrays += call->bytes != 0;
        r->unsized += call->bytes == 0;
        device = call->bytes ? device : RECORD_ELSEWHERE;
    }
    return put_request(r, call, &entry, device);
}

static enum frag_err on_array_gone(struct log_reader *r,
                                   const struct record_call *call)
{
    struct live_row *row = live_find(&r->blocks, array_base + call->other);

    if (row)
        return free_block(r, row, call->time);
    r->unknown++;
    return FRAG_OK;
}

/* A node of a graph produces no events, because a launch of the graph allocates
 * its memory (on_graph_memory). Its address is remembered, so that the program
 * may free the address any number of times. */
static enum frag_err on_graph(struct log_reader *r,
                              const struct record_call *call)
{
    struct frag_entry entry = request_of(call, 0);

    if (call->result != RECORD_SUCCESS)
        return refuse(r, call, &entry, call->device);
    r->graphs++;
    r->graph_bytes += call->bytes;
    FRAG_TRY(free_vanished(r, call->address, call->time));
    FRAG_TRY(add_block(r, call->address, RECORD_ELSEWHERE, 0));
    live_find(&r->blocks, call->address)->state = OF_GRAPH;
    return FRAG_OK;
}

static enum frag_err on_pool(struct log_reader *r,
                             const struct record_call *call)
{
    if (!live_put(&r->pools, call->other, slot_of(call->device)))
        return FRAG_NOMEM;
    live_find(&r->pools, call->other)->state = call->bytes != 0;
    return FRAG_OK;
}

static enum frag_err on_pool_used(struct log_reader *r,
                                  const struct record_call *call)
{
    if (call->device >= 0)
        r->pool_used[call->device] = call->other;
    return FRAG_OK;
}

/* A device that used the destroyed pool uses its default pool again (cuda.h,
 * cuMemPoolDestroy). Blocks of the pool stay live until they are freed. */
static enum frag_err on_pool_gone(struct log_reader *r,
                                  const struct record_call *call)
{
    struct live_row *row = live_find(&r->pools, call->other);

    if (row)
        live_remove(&r->pools, row);
    for (int i = 0; i < DEVICES; i++)
        if (r->pool_used[i] == call->other)
            r->pool_used[i] = 0;
    return FRAG_OK;
}

static int by_address(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

/* Frees all blocks and arrays with a state, lowest address first. */
static enum frag_err free_all(struct log_reader *r, uint32_t state,
                              frag_time time)
{
    const uint64_t rows = r->blocks.rows ? (uint64_t)1 << r->blocks.bits : 0;
    uint64_t *addresses = malloc((r->blocks.count + 1) * sizeof(*addresses));
    uint64_t count = 0;
    enum frag_err err = addresses ? FRAG_OK : FRAG_NOMEM;

    for (uint64_t i = 0; addresses && i < rows; i++)
        if (r->blocks.rows[i].slot != UINT32_MAX &&
            r->blocks.rows[i].state == state)
            addresses[count++] = r->blocks.rows[i].key;
    if (count)
        qsort(addresses, (size_t)count, sizeof(*addresses), by_address);
    for (uint64_t i = 0; err == FRAG_OK && i < count; i++) {
        struct live_row *row = live_find(&r->blocks, addresses[i]);

        r->with_context += device_of(row) >= 0;
        err = free_block(r, row, time);
    }
    free(addresses);
    return err;
}

/* Memory that is allocated in the green context belongs to the other one. */
static enum frag_err on_context_green(struct log_reader *r,
                                      const struct record_call *call)
{
    const struct live_row *other = live_find(&r->contexts, call->other);
    const uint32_t number = other ? other->slot : (uint32_t)r->contexts.count;

    if (!call->context || !call->other)
        return FRAG_OK;
    if (!other && !live_put(&r->contexts, call->other, number))
        return FRAG_NOMEM;
    return live_put(&r->contexts, call->context, number) ? FRAG_OK : FRAG_NOMEM;
}

static enum frag_err on_context_gone(struct log_reader *r,
                                     const struct record_call *call)
{
    const struct live_row *row =
        call->context ? live_find(&r->contexts, call->context) : NULL;

    return row ? free_all(r, 1 + row->slot, call->time) : FRAG_OK;
}

/* Virtual memory */

/* Adds physical memory that has one reference. */
static enum frag_err add_referenced(struct log_reader *r, int32_t device)
{
    if (!GROW(r->physical, r->physical_room, r->physical_count + 1))
        return FRAG_NOMEM;
    r->physical[r->physical_count++] =
        (struct physical){.device = device, .handles = 1};
    return FRAG_OK;
}

/* Adds physical memory with one handle. */
static enum frag_err add_physical(struct log_reader *r,
                                  const struct record_call *call)
{
    if (!live_put(&r->handles, call->other, (uint32_t)r->physical_count))
        return FRAG_NOMEM;
    return add_referenced(r, call->device);
}

static enum frag_err on_create(struct log_reader *r,
                               const struct record_call *call)
{
    struct frag_entry entry =
        request_of(call, physical_base + r->physical_count);

    if (call->result != RECORD_SUCCESS)
        return refuse(r, call, &entry, call->device);
    if (!call->bytes || call->bytes > INT64_MAX - r->physical_count)
        return log_wrong(r, "a size from 1 to 2^63 - 1", call->bytes);
    FRAG_TRY(add_physical(r, call));
    return put(r, call->device, &entry);
}

/* Memory that was allocated elsewhere and is imported, by its address or by its
 * handle. A handle that the program already has refers to memory of the program
 * itself, which counts since its creation; the import only adds a reference. */
static enum frag_err on_foreign(struct log_reader *r,
                                const struct record_call *call)
{
    struct live_row *row = live_find(&r->handles, call->other);

    r->foreign++;
    if (call->address) {
        FRAG_TRY(free_vanished(r, call->address, call->time));
        return add_block(r, call->address, RECORD_ELSEWHERE, 0);
    }
    if (!row)
        return add_physical(r, call);
    r->physical[row->slot].handles++;
    return FRAG_OK;
}

/* Frees physical memory that has no handle and no mapping left. */
static enum frag_err free_unreferenced(struct log_reader *r, uint32_t index,
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
    return free_unreferenced(r, index, call->time);
}

static struct mapping *find_mapping(const struct log_reader *r,
                                    uint64_t address)
{
    const struct live_row *row = live_find(&r->mappings, address);

    return row ? &r->mapping[row->slot] : NULL;
}

/* Adds a reference to the memory mapped at the address. The handle may have a
 * new value. */
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

/* One call may unmap several adjacent mappings. */
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
        FRAG_TRY(free_unreferenced(r, m.physical, call->time));
        done += m.bytes;
    }
    return FRAG_OK;
}

/* Graphs */

/* Adds memory that the driver allocated for graphs. */
static enum frag_err add_graph_memory(struct log_reader *r, int32_t device,
                                      uint64_t bytes, frag_time time)
{
    struct frag_entry entry = {.kind = FRAG_ENTRY_ALLOC,
                               .addr = physical_base + r->physical_count,
                               .size = bytes,
                               .time = time};

    if (bytes > INT64_MAX - r->physical_count)
        return log_wrong(r, "a size from 0 to 2^63 - 1", bytes);
    if (!GROW(r->graph, r->graph_room, r->graph_count + 1))
        return FRAG_NOMEM;
    r->graph[r->graph_count++] =
        (struct graph_block){device, (uint32_t)r->physical_count, bytes};
    r->graph_blocks++;
    FRAG_TRY(add_referenced(r, device));
    return put(r, device, &entry);
}

static enum frag_err free_graph_memory(struct log_reader *r, uint64_t index,
                                       frag_time time)
{
    const uint32_t physical = r->graph[index].physical;

    r->graph_count--;
    for (uint64_t i = index; i < r->graph_count; i++)
        r->graph[i] = r->graph[i + 1];
    r->physical[physical].handles = 0;
    return free_unreferenced(r, physical, time);
}

/* The log has only the sum of the memory that the driver holds for the graphs
 * of a device. In the trace, a larger sum is one block more. For a smaller sum
 * the newest blocks are freed, and the rest of the last one is a new block. */
static enum frag_err on_graph_memory(struct log_reader *r,
                                     const struct record_call *call)
{
    uint64_t bytes = 0;

    for (uint64_t i = 0; i < r->graph_count; i++)
        bytes += r->graph[i].device == call->device ? r->graph[i].bytes : 0;
    for (uint64_t i = r->graph_count; i-- > 0 && bytes > call->bytes;)
        if (r->graph[i].device == call->device) {
            bytes -= r->graph[i].bytes;
            FRAG_TRY(free_graph_memory(r, i, call->time));
        }
    return bytes == call->bytes
               ? FRAG_OK
               : add_graph_memory(r, call->device, call->bytes - bytes,
                                  call->time);
}

static enum frag_err on_addresses(struct log_reader *r,
                                  const struct record_call *call)
{
    (void)r;
    (void)call;
    return FRAG_OK;
}

static const struct kind {
    enum frag_err (*run)(struct log_reader *r, const struct record_call *call);
    bool allocates; /* a failed call of this kind may be a request */
} kinds[] = {
    [RECORD_ALLOC] = {on_alloc, true},
    [RECORD_ALLOC_PITCH] = {on_alloc, true},
    [RECORD_ALLOC_MANAGED] = {on_alloc, true},
    [RECORD_FREE] = {on_free, false},
    [RECORD_ALLOC_ASYNC] = {on_alloc, true},
    [RECORD_ALLOC_POOL] = {on_alloc, true},
    [RECORD_FREE_ASYNC] = {on_free, false},
    [RECORD_POOL] = {on_pool, false},
    [RECORD_POOL_USED] = {on_pool_used, false},
    [RECORD_POOL_GONE] = {on_pool_gone, false},
    [RECORD_CREATE] = {on_create, true},
    [RECORD_RELEASE] = {on_release, false},
    [RECORD_RETAIN] = {on_retain, false},
    [RECORD_MAP] = {on_map, false},
    [RECORD_UNMAP] = {on_unmap, false},
    [RECORD_RESERVE] = {on_addresses, false},
    [RECORD_UNRESERVE] = {on_addresses, false},
    [RECORD_ARRAY] = {on_array, true},
    [RECORD_ARRAY_GONE] = {on_array_gone, false},
    [RECORD_GRAPH] = {on_graph, true},
    [RECORD_FOREIGN] = {on_foreign, false},
    [RECORD_CONTEXT_GONE] = {on_context_gone, false},
    [RECORD_UNREAD] = {log_unread, true},
    [RECORD_GRAPH_MEMORY] = {on_graph_memory, false},
    [RECORD_CONTEXT_GREEN] = {on_context_green, false},
    [RECORD_HOST_ALLOC] = {on_host, true},
    [RECORD_HOST_FREE] = {on_free, false},
    [RECORD_HOST_REGISTER] = {on_host, true},
    [RECORD_HOST_UNREGISTER] = {on_free, false},
    [RECORD_TEXT] = {log_text, false},
    [RECORD_CHANGE] = {log_change, false},
};

_Static_assert(sizeof(kinds) / sizeof(*kinds) == RECORD_KIND_COUNT,
               "a row for each kind of call");

enum frag_err log_add_call(struct log_reader *r, const struct record_call *call)
{
    if (call->kind >= RECORD_KIND_COUNT)
        return log_wrong(r, "a known kind of call", call->kind);
    if (call->device < RECORD_ELSEWHERE || call->device >= DEVICES)
        return log_wrong(r, "a device below 1024", (uint32_t)call->device);
    if (call->result != RECORD_SUCCESS && !kinds[call->kind].allocates) {
        r->refused++;
        return FRAG_OK;
    }
    return kinds[call->kind].run(r, call);
}

void log_fini(struct log_reader *r)
{
    live_fini(&r->contexts);
    live_fini(&r->blocks);
    live_fini(&r->pools);
    live_fini(&r->handles);
    live_fini(&r->mappings);
    free(r->physical);
    free(r->mapping);
    free(r->graph);
    free(r->text);
    free(r->change);
}
