/* ipc.c - segments that another process opens. Its use of them takes no memory
 * of the device. With contents they would have to be in a file of their own:
 * that is cuMemExportToShareableHandle (memory.c) alone. */
#include <string.h>
#include <unistd.h>

#include "real/dry/driver/dry_driver.h"
#include "real/dry/dry_notes.h"

enum { PROCESS, START, BYTES, DEVICE }; /* the words of a handle */

/* Mapped memory has no handle. */
cu_result cuIpcGetMemHandle(struct dry_ipc *out, cu_address at)
{
    const struct dry_holding *r;

    ENTER();
    memset(out, 0, sizeof(*out));
    r = held_around(dry.reservations, at, 1);
    if (!r || !r->is_segment)
        LEAVE(INVALID_VALUE);
    out->words[PROCESS] = (uint64_t)getpid();
    out->words[START] = r->at;
    out->words[BYTES] = r->size;
    out->words[DEVICE] = (uint64_t)r->device;
    LEAVE(CU_SUCCESS);
}

/* The mapping of a segment that was opened before, or NULL. */
static struct dry_holding *opened(const struct dry_ipc *handle)
{
    struct dry_holding *m = dry.maps;

    while (m && (!m->memory->imported ||
                 m->memory->handles != (unsigned)handle->words[PROCESS] ||
                 m->memory->offset != handle->words[START]))
        m = m->next;
    return m;
}

static cu_address open_new(const struct dry_ipc *handle)
{
    const int device = (int)handle->words[DEVICE];
    const size_t size = handle->words[BYTES];
    struct dry_holding *memory = held_add(
        &dry.memory,
        (struct dry_holding){.at = ++dry.handles,
                             .size = size,
                             .offset = handle->words[START],
                             .device = device,
                             .imported = true,
                             .handles = (unsigned)handle->words[PROCESS],
                             .uses = 1});
    const cu_address at = addresses_take(device, size, false);

    held_add(&dry.reservations,
             (struct dry_holding){.at = at, .size = size, .device = device});
    held_add(&dry.maps, (struct dry_holding){.at = at,
                                             .size = size,
                                             .memory = memory,
                                             .rights = UINT64_MAX});
    return at;
}

cu_result cuIpcOpenMemHandle_v2(cu_address *out, struct dry_ipc handle,
                                unsigned flags)
{
    enum { ENABLES_PEERS = 1 }; /* the only flag, which must be set */
    struct dry_holding *m;

    ENTER();
    NEEDS_CONTEXT();
    if (!dry.is_empty) {
        frag_dry_note(DRY_LACKS, "cuIpcOpenMemHandle");
        LEAVE(NOT_SUPPORTED);
    }
    if (flags != ENABLES_PEERS || !handle.words[BYTES])
        LEAVE(INVALID_VALUE);
    if (handle.words[PROCESS] == (uint64_t)getpid())
        LEAVE(NO_CONTEXT);
    if (handle.words[DEVICE] >= (uint64_t)dry.gpu_count)
        LEAVE(NO_DEVICE);
    m = opened(&handle);
    if (m)
        m->memory->uses++;
    *out = m ? m->at : open_new(&handle);
    LEAVE(CU_SUCCESS);
}

cu_result cuIpcCloseMemHandle(cu_address at)
{
    struct dry_holding *m, *r;

    ENTER();
    m = held_at(dry.maps, at);
    r = held_at(dry.reservations, at);
    if (!m || !m->memory->imported || !r)
        LEAVE(INVALID_VALUE);
    if (m->memory->uses == 1) {
        addresses_return(r);
        held_drop(&dry.reservations, r);
        memory_let_go(m->memory);
        held_drop(&dry.maps, m);
    } else {
        m->memory->uses--;
    }
    LEAVE(CU_SUCCESS);
}
