/* watch.c - calls of the driver that are running. It counts how deep a thread
 * is inside the driver, so that only the outermost call is recorded. */
#include "real/recorder/watch.h"

#include <string.h>

static __thread unsigned depth; /* calls of this thread that are running */

struct watch watch_begin(enum record_kind kind)
{
    return (struct watch){
        .call = {.kind = kind, .device = RECORD_NO_DEVICE},
        .is_outer = depth++ == 0,
    };
}

struct watch watch_begin_release(enum record_kind kind)
{
    struct watch w = watch_begin(kind);

    if (w.is_outer) {
        w.place = log_claim();
        w.call.time = log_time();
    }
    return w;
}

struct watch watch_begin_unread(const char *name)
{
    struct watch w = watch_begin(RECORD_UNREAD);

    strncpy(w.call.name, name, sizeof(w.call.name) - 1);
    return w;
}

driver_result watch_end(struct watch *w, driver_result result)
{
    depth--;
    if (!w->is_outer)
        return result;
    w->call.result = result;
    w->call.thread = log_thread();
    if (!w->call.time) {
        w->place = log_claim();
        w->call.time = log_time();
    }
    log_commit(w->place, &w->call);
    return result;
}

static int current_device(void)
{
    const struct driver *d = driver_get();
    int device;

    if (!d->cuCtxGetDevice || d->cuCtxGetDevice(&device) != DRIVER_SUCCESS)
        return RECORD_NO_DEVICE;
    return device;
}

uint64_t watch_context(void)
{
    const struct driver *d = driver_get();
    void *context;

    if (!d->cuCtxGetCurrent || d->cuCtxGetCurrent(&context) != DRIVER_SUCCESS)
        return 0;
    return (uint64_t)(uintptr_t)context;
}

/* The free bytes of the device. 0 if the device is not that of the thread's
 * context, since the driver reports no other device. */
static uint64_t memory_free(int device)
{
    const struct driver *d = driver_get();
    size_t left, total;

    if (device != current_device() || !d->cuMemGetInfo_v2 ||
        d->cuMemGetInfo_v2(&left, &total) != DRIVER_SUCCESS)
        return 0;
    return left;
}

driver_result watch_end_alloc(struct watch *w, driver_result result)
{
    if (w->is_outer && w->call.device == RECORD_NO_DEVICE)
        w->call.device = current_device();
    if (w->is_outer && result == RECORD_OUT_OF_MEMORY)
        w->call.address = memory_free(w->call.device);
    return watch_end(w, result);
}

driver_result watch_end_block(struct watch *w, driver_result result,
                              const driver_address *at)
{
    if (result == DRIVER_SUCCESS)
        w->call.address = *at;
    return watch_end_alloc(w, result);
}
