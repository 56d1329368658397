/* others.c - intercepts the calls that allocate memory in other ways than a
 * direct request of the program: memory of other processes or interfaces, and
 * calls that the log cannot describe. Memory that another process shares
 * through cuIpcOpenMemHandle is released by its own call and needs no line
 * here. */
#include "real/recorder/watch.h"

/* ---- memory that others allocated ---- */

static driver_result end_foreign_block(struct watch *w, driver_result result,
                                       const driver_address *at)
{
    w->call.device = RECORD_ELSEWHERE;
    return watch_end_block(w, result, at);
}

driver_result cuMemPoolImportPointer(driver_address *at, void *pool,
                                     void *shared)
{
    struct watch w = watch_begin(RECORD_FOREIGN);

    return end_foreign_block(
        &w, DRIVER_PASS_ON(cuMemPoolImportPointer, at, pool, shared), at);
}

driver_result cuExternalMemoryGetMappedBuffer(driver_address *at, void *memory,
                                              const void *buffer)
{
    struct watch w = watch_begin(RECORD_FOREIGN);

    return end_foreign_block(
        &w, DRIVER_PASS_ON(cuExternalMemoryGetMappedBuffer, at, memory, buffer),
        at);
}

static driver_result end_foreign_handle(struct watch *w, driver_result result,
                                        const driver_handle *handle)
{
    w->call.device = RECORD_ELSEWHERE;
    if (result == DRIVER_SUCCESS)
        w->call.other = *handle;
    return watch_end(w, result);
}

driver_result cuMemImportFromShareableHandle(driver_handle *handle,
                                             void *shared, int type)
{
    struct watch w = watch_begin(RECORD_FOREIGN);

    return end_foreign_handle(
        &w,
        DRIVER_PASS_ON(cuMemImportFromShareableHandle, handle, shared, type),
        handle);
}

/* A multicast object has no memory of its own: the memory that is bound to it
 * counts where it was created. */
driver_result cuMulticastCreate(driver_handle *handle, const void *like)
{
    struct watch w = watch_begin(RECORD_FOREIGN);

    return end_foreign_handle(
        &w, DRIVER_PASS_ON(cuMulticastCreate, handle, like), handle);
}

/* ---- calls that the log cannot describe ---- */

#define UNREAD(name, parameters, values) \
    WATCHED(name, parameters, values, watch_begin_unread(#name), (void)0)

UNREAD(cuMemMapArrayAsync, (void *map, unsigned count, void *stream),
       (map, count, stream))
UNREAD(cuMemMapArrayAsync_ptsz, (void *map, unsigned count, void *stream),
       (map, count, stream))
UNREAD(cuCtxDetach, (void *context), (context))
UNREAD(cuMemAlloc, (unsigned *at, unsigned bytes), (at, bytes))
UNREAD(cuMemAllocPitch,
       (unsigned *at, unsigned *pitch, unsigned width, unsigned rows,
        unsigned element),
       (at, pitch, width, rows, element))
UNREAD(cuMemFree, (unsigned at), (at))
UNREAD(cuArrayCreate, (void **array, const void *like), (array, like))
UNREAD(cuArray3DCreate, (void **array, const void *like), (array, like))
