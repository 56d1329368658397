/* service_device.c - serves the requests of one device by a policy on the real
 * GPU. It orders streams with CUDA events (service_order.h) and delays the free
 * of a block until every stream that uses the block has finished. */
#include "real/torch/service_device.h"

#include <inttypes.h>
#include <stdlib.h>
#include <time.h>

#include "real/device/cuda.h"
#include "real/torch/service_order.h"
#include "sim/arena/arena.h"
#include "sim/replay/serve.h"
#include "sim/twin.h"
#include "traces/grow.h"

/* A freed block that other streams use besides its own. The block has one event
 * on each of these streams and is free when all events have occurred. */
struct late {
    struct late *next;
    frag_addr addr;
    frag_size size;
    uint32_t ticket;
    frag_stream own;
    size_t count;
    cu_event events[];
};

/* The streams that use a live block besides its own stream. */
struct uses {
    size_t count;
    cu_stream streams[ORDER_STREAMS];
};

struct device {
    struct frag_backend *gpu, *arena, *mem; /* mem joins the two as a twin */
    const struct cu_driver *cu;
    struct frag_serve *serve;
    struct order order;
    cu_stream streams[ORDER_STREAMS]; /* by number, in the order of first use */
    cu_event marks[ORDER_STREAMS];    /* by stream: recorded if another has to
                                       * wait */
    uint32_t last;                    /* the number found by the last lookup */
    struct uses **uses;               /* by slot of the block; NULL: none */
    uint32_t uses_count, uses_room;
    struct late *late, **late_end; /* in the order of their frees */
    cu_event *spare;               /* events of frees that are complete */
    uint32_t spare_count, spare_room;
    bool refused; /* the driver failed to record an event or to wait */
    bool inside;  /* this call made the device's context current */
    int ordinal;
    const struct frag_torch_listener *listener;
    frag_size told; /* the reserved bytes that the listener knows */
};

/* ---- streams ---- */

/* Makes the device's context current until the end of the call of
 * service_device.h (leave). Only functions that call the driver do this, since
 * most requests need no call of the driver. */
static bool enter(struct device *d)
{
    if (!d->inside)
        d->inside = frag_cuda_enter(d->gpu) == FRAG_OK;
    d->refused = d->refused || !d->inside;
    return d->inside;
}

static void leave(struct device *d)
{
    if (d->inside)
        frag_cuda_leave(d->gpu);
    d->inside = false;
}

static void wait_for_device(struct device *d)
{
    if (enter(d))
        d->refused = d->cu->cuCtxSynchronize() != CU_SUCCESS || d->refused;
}

/* Waits for the whole device if the driver cannot use an event. */
static void make_wait(void *user, frag_stream stream, frag_stream other)
{
    struct device *d = user;
    const struct cu_driver *cu = d->cu;
    cu_event *mark = &d->marks[other];

    if (enter(d) &&
        (*mark || cu->cuEventCreate(mark, CU_UNTIMED) == CU_SUCCESS) &&
        cu->cuEventRecord(*mark, d->streams[other]) == CU_SUCCESS &&
        cu->cuStreamWaitEvent(d->streams[stream], *mark, 0) == CU_SUCCESS)
        return;
    wait_for_device(d);
}

/* The number of a stream. Returns ORDER_STREAMS if there are too many streams;
 * then it has waited for the whole device. */
static uint32_t number_of(struct device *d, cu_stream stream)
{
    if (d->last < d->order.streams && d->streams[d->last] == stream)
        return d->last;
    for (uint32_t i = 0; i < d->order.streams; i++)
        if (d->streams[i] == stream)
            return d->last = i;
    if (d->order.streams == ORDER_STREAMS) {
        wait_for_device(d);
        order_synchronized(&d->order);
        return ORDER_STREAMS;
    }
    d->last = d->order.streams;
    d->streams[d->last] = stream;
    order_stream(&d->order, (frag_stream)d->last);
    return d->last;
}

/* The stream that the policy sees. Streams beyond the limit count as the last
 * one. */
static frag_stream policy_stream(uint32_t number)
{
    return (frag_stream)(number < ORDER_STREAMS ? number : ORDER_STREAMS - 1);
}

static enum frag_err device_state(struct device *d, struct frag_error *e)
{
    const char *words = frag_cuda_words(d->gpu);

    if (!d->refused && !*words)
        return FRAG_OK;
    return frag_fail(e, FRAG_DEVICE, "the device failed: %s",
                     *words ? words : "it cannot wait for a stream");
}

/* ---- frees that wait for streams ---- */

/* An event costs two calls of the driver, so it is used again. */
static bool take_event(struct device *d, cu_event *event)
{
    if (d->spare_count) {
        *event = d->spare[--d->spare_count];
        return true;
    }
    return enter(d) && d->cu->cuEventCreate(event, CU_UNTIMED) == CU_SUCCESS;
}

static void return_event(struct device *d, cu_event event)
{
    if (GROW(d->spare, d->spare_room, d->spare_count + 1))
        d->spare[d->spare_count++] = event;
    else if (enter(d))
        d->cu->cuEventDestroy_v2(event);
}

static void destroy_events(struct device *d)
{
    while (d->spare_count && enter(d))
        d->cu->cuEventDestroy_v2(d->spare[--d->spare_count]);
}

static void return_events(struct device *d, const struct late *l)
{
    for (size_t i = 0; i < l->count; i++)
        return_event(d, l->events[i]);
}

static void drop_late(struct device *d, struct late *l)
{
    return_events(d, l);
    if (d->listener->freed)
        d->listener->freed(d->ordinal, l->addr);
    d->late = l->next;
    if (!d->late)
        d->late_end = &d->late;
    free(l);
}

static bool is_done(struct device *d, const struct late *l)
{
    for (size_t i = 0; i < l->count; i++)
        if (!enter(d) || d->cu->cuEventQuery(l->events[i]) == CU_NOT_READY)
            return false;
    return true;
}

/* Completes the late frees in their order, up to the first one whose streams
 * are still running. */
static enum frag_err complete(struct device *d, struct frag_error *e)
{
    while (d->late && is_done(d, d->late)) {
        struct late *l = d->late;

        FRAG_TRY(frag_serve_complete(d->serve, l->ticket, e));
        order_freed(&d->order, l->addr, l->size, l->own);
        drop_late(d, l);
    }
    return FRAG_OK;
}

/* Called after each call of the policy. If the policy waited for the device,
 * all late frees are complete. */
static void forget_completed(struct device *d)
{
    if (!d->late || frag_serve_has_pending(d->serve))
        return;
    order_synchronized(&d->order);
    while (d->late)
        drop_late(d, d->late);
}

/* Waits for the whole device if an event cannot be recorded on a stream, for
 * example because the program destroyed the stream. */
static struct late *new_late(struct device *d, const struct uses *u)
{
    struct late *l = calloc(1, sizeof(*l) + u->count * sizeof(*l->events));

    for (size_t i = 0; l && i < u->count; i++) {
        cu_event *event = &l->events[l->count];

        if (!take_event(d, event)) {
            wait_for_device(d);
            continue;
        }
        l->count++;
        if (!enter(d) ||
            d->cu->cuEventRecord(*event, u->streams[i]) != CU_SUCCESS)
            wait_for_device(d); /* the event counts as having occurred */
    }
    return l;
}

static enum frag_err free_late(struct device *d, struct frag_served block,
                               frag_stream own, const struct uses *u,
                               struct frag_error *e)
{
    struct late *l = new_late(d, u);
    enum frag_err err;

    if (!l)
        return frag_no_memory(e, "a late free");
    err = frag_serve_free_later(d->serve, block.addr, &l->ticket, e);
    if (err != FRAG_OK) {
        return_events(d, l);
        free(l);
        return err;
    }
    l->addr = block.addr;
    l->size = block.size;
    l->own = own;
    *d->late_end = l;
    d->late_end = &l->next;
    return FRAG_OK;
}

/* ---- the calls ---- */

/* The time of a request, for the rows of OOMs. It is that of the kernel's last
 * tick, a few ms ago at most: a more exact one costs as much as a search of the
 * policy. */
static frag_time now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_REALTIME_COARSE, &t);
    return (frag_time)t.tv_sec * 1000000000 + (frag_time)t.tv_nsec;
}

/* Waits for all late frees. They may make room if the policy has run out of
 * memory. */
static enum frag_err complete_all(struct device *d, struct frag_error *e)
{
    wait_for_device(d);
    FRAG_TRY(complete(d, e));
    order_synchronized(&d->order);
    return FRAG_OK;
}

static enum frag_err alloc(struct device *d, frag_size size, cu_stream stream,
                           struct frag_served *out, struct frag_error *e)
{
    const uint32_t number = number_of(d, stream);
    struct frag_served at = {0};
    enum frag_err err = complete(d, e);

    if (err == FRAG_OK)
        err = frag_serve_alloc(d->serve, size, policy_stream(number), now(),
                               &at, e);
    forget_completed(d);
    if (err == FRAG_OOM && d->late) {
        FRAG_TRY(complete_all(d, e));
        err = frag_serve_alloc(d->serve, size, policy_stream(number), now(),
                               &at, e);
    }
    if (err == FRAG_OK && number < ORDER_STREAMS) {
        d->order.coarse = frag_serve_has_aliases(d->serve);
        order_taken(&d->order, at.addr, at.size, (frag_stream)number);
    }
    if (err == FRAG_OK || err == FRAG_OOM)
        FRAG_TRY(device_state(d, e));
    if (err == FRAG_OK)
        *out = at;
    return err;
}

static enum frag_err free_block(struct device *d, frag_addr addr,
                                cu_stream stream, bool *waits,
                                struct frag_error *e)
{
    const frag_stream own = policy_stream(number_of(d, stream));
    struct frag_served block = {.addr = addr};
    struct uses *u = NULL;

    if (frag_serve_find(d->serve, addr, &block) && block.slot < d->uses_count)
        u = d->uses[block.slot];
    if (!u) {
        FRAG_TRY(frag_serve_free(d->serve, addr, e));
        order_freed(&d->order, addr, block.size, own);
        return device_state(d, e);
    }
    *waits = true;
    FRAG_TRY(free_late(d, block, own, u, e));
    free(u);
    d->uses[block.slot] = NULL;
    return device_state(d, e);
}

static void add_use(struct uses *u, cu_stream stream)
{
    for (size_t i = 0; i < u->count; i++)
        if (u->streams[i] == stream)
            return;
    if (u->count < ORDER_STREAMS)
        u->streams[u->count++] = stream;
}

enum frag_err device_use(struct device *d, frag_addr addr,
                         frag_torch_stream stream)
{
    struct frag_served block;
    struct uses **u;

    if (!frag_serve_find(d->serve, addr, &block))
        return FRAG_OK;
    if (!GROW(d->uses, d->uses_room, (uint64_t)block.slot + 1))
        return FRAG_NOMEM;
    while (d->uses_count <= block.slot)
        d->uses[d->uses_count++] = NULL;
    u = &d->uses[block.slot];
    if (!*u && !(*u = calloc(1, sizeof(**u))))
        return FRAG_NOMEM;
    add_use(*u, stream);
    return FRAG_OK;
}

static void tell_reserved(struct device *d)
{
    const frag_size bytes = frag_serve_reserved(d->serve);

    if (bytes == d->told)
        return;
    d->told = bytes;
    if (d->listener->reserved)
        d->listener->reserved(d->ordinal, bytes);
}

/* Ends a call of service_device.h and returns its result. */
static enum frag_err done(struct device *d, enum frag_err err)
{
    leave(d);
    tell_reserved(d);
    return err;
}

enum frag_err device_alloc(struct device *d, frag_size size,
                           frag_torch_stream stream, struct frag_served *out,
                           struct frag_error *e)
{
    return done(d, alloc(d, size, stream, out, e));
}

enum frag_err device_free(struct device *d, frag_addr addr,
                          frag_torch_stream stream, bool *waits,
                          struct frag_error *e)
{
    return done(d, free_block(d, addr, stream, waits, e));
}

/* The device memory that the policy can use: what it holds now, plus what the
 * driver can still allocate, since other programs, contexts and kernels hold
 * the rest. A capacity that the user set stays as it is. */
static enum frag_err find_capacity(struct device *d, frag_size *capacity,
                                   struct frag_error *e)
{
    *capacity = d->arena->capacity;
    if (*capacity != FRAG_UNLIMITED)
        return FRAG_OK;
    if (frag_cuda_free_bytes(d->gpu, capacity) != FRAG_OK)
        return device_state(d, e);
    *capacity = frag_device_room(*capacity);
    if (d->serve)
        *capacity += frag_serve_reserved(d->serve);
    return FRAG_OK;
}

static enum frag_err trim(struct device *d, struct frag_error *e)
{
    frag_size capacity;
    enum frag_err err = complete(d, e);

    if (err == FRAG_OK)
        err = frag_serve_trim(d->serve, e);
    if (err == FRAG_OK)
        err = find_capacity(d, &capacity, e);
    if (err == FRAG_OK)
        frag_serve_bound(d->serve, frag_capacity_bound(capacity));
    forget_completed(d);
    destroy_events(d);
    return err;
}

enum frag_err device_trim(struct device *d, struct frag_error *e)
{
    return done(d, trim(d, e));
}

/* ---- peers and limits ---- */

static enum frag_err grant(void *user, frag_addr addr, frag_size size)
{
    return frag_cuda_grant(((struct device *)user)->gpu, addr, size);
}

enum frag_err device_add_peer(struct device *d, int ordinal,
                              struct frag_error *e)
{
    enum frag_err err = frag_cuda_add_peer(d->gpu, ordinal);

    if (err == FRAG_OK)
        err = frag_serve_each_map(d->serve, grant, d);
    return err == FRAG_OK
               ? err
               : frag_fail(e, err, "device %d cannot access device %d: %s",
                           ordinal, d->ordinal, frag_cuda_words(d->gpu));
}

struct frag_backend *device_gpu(const struct device *d)
{
    return d->gpu;
}

void device_limit(struct device *d, frag_size limit)
{
    frag_serve_bound(d->serve, frag_bound_at(limit, FRAG_BOUND_LIMIT));
}

/* ---- open, close and numbers ---- */

static void changed(void *user, enum frag_call call, frag_addr addr,
                    frag_size size, frag_addr same)
{
    static const enum frag_torch_change changes[FRAG_CALL_COUNT] = {
        [FRAG_CALL_SEGMENT_ALLOC] = FRAG_TORCH_SEGMENT,
        [FRAG_CALL_SEGMENT_FREE] = FRAG_TORCH_SEGMENT_FREED,
        [FRAG_CALL_MAP] = FRAG_TORCH_MAP,
        [FRAG_CALL_UNMAP] = FRAG_TORCH_UNMAP,
    };
    struct device *d = user;

    if (d->listener->changed)
        d->listener->changed(d->ordinal, changes[call], addr, size, same);
    tell_reserved(d);
}

static enum frag_err open_memory(struct device *d, int ordinal,
                                 const struct settings *s, struct frag_error *e)
{
    const struct frag_cuda_options options = {
        .ordinal = ordinal, .busy = true, .shared = true};

    FRAG_TRY(frag_cuda_open(&options, &d->gpu, e));
    d->cu = frag_cuda_driver(d->gpu);
    /* As in a replay, a capacity is the size of the whole device. */
    d->arena = frag_arena_open(&(const struct frag_arena_options){
        .capacity = s->capacity,
        .total = s->capacity < d->gpu->total ? s->capacity : d->gpu->total});
    if (!d->arena || frag_twin_open(d->gpu, d->arena, &d->mem) != FRAG_OK)
        return frag_no_memory(e, "the simulation beside the device");
    return find_capacity(d, &d->mem->capacity, e);
}

static void device_close(struct device *d)
{
    frag_serve_close(d->serve);
    order_close(&d->order);
    frag_twin_close(d->mem);
    frag_arena_close(d->arena);
    frag_cuda_close(d->gpu);
    free(d);
}

enum frag_err device_open(int ordinal, const struct settings *settings,
                          const struct frag_torch_listener *listener,
                          struct device **out, struct frag_error *e)
{
    const struct frag_serve_options options = {.prepared = settings->params,
                                               .max_ooms = 1000};
    struct frag_serve_options serve = options;
    struct device *d = calloc(1, sizeof(*d));
    enum frag_err err;

    if (!d)
        return frag_no_memory(e, "a device");
    d->ordinal = ordinal;
    d->listener = listener;
    d->late_end = &d->late;
    d->order.wait = make_wait;
    d->order.user = d;
    err = open_memory(d, ordinal, settings, e);
    serve.mem = d->mem;
    serve.changed = changed;
    serve.user = d;
    if (err == FRAG_OK)
        err = frag_serve_open(&serve, &d->serve, e);
    if (err != FRAG_OK) {
        device_close(d);
        return err;
    }
    *out = d;
    return FRAG_OK;
}

struct device_numbers device_numbers(const struct device *d)
{
    struct device_numbers sum = {frag_serve_memory(d->serve), 0,
                                 d->mem->ops->now(d->mem)};

    for (int i = 0; i < FRAG_DRIVER_CALL_COUNT; i++)
        sum.calls += frag_twin_cost(d->mem, (enum frag_driver_call)i).calls;
    return sum;
}

enum frag_err device_report(struct device *d, int ordinal,
                            const struct settings *settings,
                            const char *program, struct frag_results *r,
                            struct frag_error *e)
{
    struct frag_run_identity id = {
        .trace = {.name = program,
                  .path = program,
                  .format = "program",
                  .device = (uint32_t)ordinal},
        .policy = settings->text,
        .policy_used = settings->policy,
        .bound = frag_capacity_bound(settings->capacity),
        .total = d->mem->total,
        .backend = "cuda",
    };
    const struct frag_run *run;
    char text[512];
    const char *const note = text;

    snprintf(text, sizeof(text),
             "%" PRIu64
             " calls changed the settings of PyTorch's own allocator "
             "while the program ran, the last one to \"%s\"; it serves memory "
             "pools and graphs only, and the policy kept the settings of its "
             "text",
             settings->changes, settings->last);
    id.trace.notes = &note;
    id.trace.note_count = settings->changes > 0;
    FRAG_TRY(frag_serve_sum(d->serve, &run));
    id.trace.events = frag_serve_device(d->serve)->count;
    return frag_results_add(r, &id, run, e);
}
