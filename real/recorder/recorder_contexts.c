/* recorder_contexts.c - intercepts the calls that end a context. The memory
 * that was allocated in a context is released with it. */
#include "real/recorder/watch.h"

#define DESTROY(name)                                 \
    WATCHED(name, (void *context), (context),         \
            watch_begin_release(RECORD_CONTEXT_GONE), \
            w.call.context = (uint64_t)(uintptr_t)context)

DESTROY(cuCtxDestroy)
DESTROY(cuCtxDestroy_v2)

/* ---- primary contexts ---- */

static bool is_active(int device)
{
    const struct driver *d = driver_get();
    unsigned flags;
    int active;

    return d->cuDevicePrimaryCtxGetState &&
           d->cuDevicePrimaryCtxGetState(device, &flags, &active) ==
               DRIVER_SUCCESS &&
           active;
}

static driver_result release(int device)
{
    const struct driver *d = driver_get();

    return d->cuDevicePrimaryCtxRelease_v2
               ? d->cuDevicePrimaryCtxRelease_v2(device)
               : DRIVER_NOT_FOUND;
}

/* A device's primary context, or 0 if it has none now. No driver call only
 * returns it, so it is retained and released at once. */
static uint64_t primary_context(int device)
{
    const struct driver *d = driver_get();
    void *context;

    if (!is_active(device) || !d->cuDevicePrimaryCtxRetain ||
        d->cuDevicePrimaryCtxRetain(&context, device) != DRIVER_SUCCESS)
        return 0;
    release(device);
    return (uint64_t)(uintptr_t)context;
}

/* A reset ends a primary context, even if others have retained it. */
#define RESET(name)                                   \
    WATCHED(name, (int device), (device),             \
            watch_begin_release(RECORD_CONTEXT_GONE), \
            w.call.context = primary_context(device))

RESET(cuDevicePrimaryCtxReset)
RESET(cuDevicePrimaryCtxReset_v2)

/* The last release also ends it. Only the driver knows which release is the
 * last one, so the state is read after the call. */
#define RELEASE(name)                                 \
    driver_result name(int device)                    \
    {                                                 \
        struct watch w;                               \
        driver_result result;                         \
                                                      \
        w = watch_begin_release(RECORD_CONTEXT_GONE); \
        w.call.context = primary_context(device);     \
        result = DRIVER_PASS_ON(name, device);        \
        if (is_active(device))                        \
            w.call.context = 0;                       \
        return watch_end(&w, result);                 \
    }

RELEASE(cuDevicePrimaryCtxRelease)
RELEASE(cuDevicePrimaryCtxRelease_v2)

/* ---- green contexts ---- */

/* A green context is the primary context of its device with a part of the
 * multiprocessors: memory that is allocated in it belongs to the primary
 * context, which it retains (cuda.h, cuCtxFromGreenCtx, cuGreenCtxCreate). */

/* The devices on which green contexts were created. */
static _Atomic uint64_t green_devices;

driver_result cuGreenCtxCreate(void **green, void *resources, int device,
                               unsigned flags)
{
    const struct driver *d = driver_get();
    struct watch w = watch_begin(RECORD_CONTEXT_GREEN);
    driver_result result;
    void *context;

    result = DRIVER_PASS_ON(cuGreenCtxCreate, green, resources, device, flags);
    if (result == DRIVER_SUCCESS && d->cuCtxFromGreenCtx &&
        d->cuCtxFromGreenCtx(&context, *green) == DRIVER_SUCCESS) {
        w.call.context = (uint64_t)(uintptr_t)context;
        w.call.other = primary_context(device);
    }
    if (result == DRIVER_SUCCESS && device >= 0 && device < DRIVER_DEVICES)
        atomic_fetch_or(&green_devices, (uint64_t)1 << device);
    return watch_end(&w, result);
}

/* The devices of `mask` whose primary context is active. */
static uint64_t active_devices(uint64_t mask)
{
    uint64_t active = 0;

    for (int device = 0; device < DRIVER_DEVICES; device++)
        if (mask >> device & 1 && is_active(device))
            active |= (uint64_t)1 << device;
    return active;
}

/* The end of a green context releases the primary context of its device, maybe
 * for the last time. Its device is the one whose primary context ends. */
driver_result cuGreenCtxDestroy(void *green)
{
    uint64_t contexts[DRIVER_DEVICES] = {0}, before;
    struct watch w = watch_begin_release(RECORD_CONTEXT_GONE);
    driver_result result;

    before = active_devices(atomic_load(&green_devices));
    for (int device = 0; device < DRIVER_DEVICES; device++)
        if (before >> device & 1)
            contexts[device] = primary_context(device);
    result = DRIVER_PASS_ON(cuGreenCtxDestroy, green);
    before &= ~active_devices(before);
    for (int device = 0; device < DRIVER_DEVICES; device++)
        if (before >> device & 1)
            w.call.context = contexts[device];
    return watch_end(&w, result);
}
