/* contents.c - who may access device memory, and copies. */
#include <stdio.h>
#include <string.h>

#include "real/dry/driver/dry_driver.h"
#include "real/dry/dry_notes.h"
#include "real/dry/dry_shadow.h"
#include "real/dry/stubs.h"

/* Whether the device may access the mapping. Peers access segments if that was
 * enabled, but mapped memory only with rights of their own. */
static bool may_access(int device, const struct dry_holding *m)
{
    const struct dry_holding *r = held_around(dry.reservations, m->at, 1);

    return m->rights >> device & 1 ||
           (r && r->is_segment &&
            dry.gpus[m->memory->device].peers >> device & 1);
}

/* Whether the device may read and write [address, address + size). */
static bool is_open_to(int device, cu_address address, size_t size)
{
    while (size) {
        const struct dry_holding *m = held_around(dry.maps, address, 1);
        size_t here;

        if (!m || !may_access(device < 0 ? m->memory->device : device, m))
            return false;
        here = m->size - (size_t)(address - m->at);
        if (here >= size)
            return true;
        address += here;
        size -= here;
    }
    return true;
}

/* Whether the memory's own device may. */
bool memory_is_open(cu_address address, size_t size)
{
    return is_open_to(-1, address, size);
}

int frag_dry_owner(uint64_t address)
{
    const struct dry_holding *r, *m;

    pthread_mutex_lock(&dry.lock);
    r = held_around(dry.reservations, address, 1);
    m = held_around(dry.maps, address, 1);
    pthread_mutex_unlock(&dry.lock);
    return !r ? FRAG_DRY_HOST : m ? m->memory->device : FRAG_DRY_UNMAPPED;
}

uint64_t frag_dry_used(int device)
{
    return dry.gpus[device].used;
}

uint64_t frag_dry_base(uint64_t address)
{
    const struct dry_holding *r;

    pthread_mutex_lock(&dry.lock);
    r = held_around(dry.reservations, address, 1);
    pthread_mutex_unlock(&dry.lock);
    return r && r->is_segment ? r->at : 0;
}

DRY_EXPORT cu_result cuPointerGetAttribute(void *out, int which, cu_address at);
cu_result cuPointerGetAttribute(void *out, int which, cu_address at)
{
    enum { DEVICE_POINTER = 3 };
    char name[64];

    if (which == DEVICE_POINTER && frag_dry_owner(at) >= 0) {
        memcpy(out, &at, sizeof(at));
        return CU_SUCCESS;
    }
    if (which == DEVICE_POINTER) /* as of memory that CUDA does not know */
        return INVALID_VALUE;
    snprintf(name, sizeof(name), "attribute %d of a pointer", which);
    frag_dry_note(DRY_LACKS, name);
    return NOT_SUPPORTED;
}

DRY_EXPORT cu_result cuMemGetAddressRange_v2(cu_address *, size_t *,
                                             cu_address);
cu_result cuMemGetAddressRange_v2(cu_address *base, size_t *size, cu_address at)
{
    const struct dry_holding *r;

    pthread_mutex_lock(&dry.lock);
    r = held_around(dry.reservations, at, 1);
    if (r && base)
        *base = r->at;
    if (r && size)
        *size = r->size;
    pthread_mutex_unlock(&dry.lock);
    return r ? CU_SUCCESS : INVALID_VALUE;
}

bool frag_dry_may(int device, uint64_t address, size_t size)
{
    bool open;

    pthread_mutex_lock(&dry.lock);
    open = is_open_to(device, address, size);
    pthread_mutex_unlock(&dry.lock);
    return open;
}

cu_result cuCtxEnablePeerAccess(cu_context context, unsigned flags)
{
    struct gpu *peer = (void *)context;
    uint64_t bit;

    ENTER();
    NEEDS_CONTEXT();
    bit = UINT64_C(1) << dry_current_device();
    if (!dry_is_context(context) || flags || peer == dry_current())
        LEAVE(INVALID_VALUE);
    if (peer->peers & bit)
        LEAVE(PEER_TWICE);
    peer->peers |= bit;
    LEAVE(CU_SUCCESS);
}

cu_result cuCtxDisablePeerAccess(cu_context context)
{
    ENTER();
    NEEDS_CONTEXT();
    if (!dry_is_context(context))
        LEAVE(INVALID_VALUE);
    ((struct gpu *)(void *)context)->peers &=
        ~(UINT64_C(1) << dry_current_device());
    LEAVE(CU_SUCCESS);
}

void *memory_host(cu_address address)
{
    return (void *)(uintptr_t)address;
}

cu_result cuMemcpyDtoDAsync_v2(cu_address dst, cu_address src, size_t size,
                               cu_stream stream)
{
    (void)stream;
    ENTER();
    NEEDS_CONTEXT();
    if (!memory_is_open(dst, size) || !memory_is_open(src, size))
        LEAVE(dry_blame("a copy of memory that is not there"));
    if (dry.is_empty) {
        frag_dry_copied(dst, src, size);
        LEAVE(CU_SUCCESS);
    }
    memmove(memory_host(dst), memory_host(src), size);
    if (++dry.copies == dry.corrupt_at)
        ((char *)memory_host(dst))[size / 2] ^= 1;
    LEAVE(CU_SUCCESS);
}

cu_result cuMemcpyDtoH_v2(void *dst, cu_address src, size_t size)
{
    ENTER();
    if (!memory_is_open(src, size))
        LEAVE(dry_blame("a copy of memory that is not there"));
    if (!dry.is_empty) {
        memcpy(dst, memory_host(src), size);
        LEAVE(CU_SUCCESS);
    }
    pthread_mutex_unlock(&dry.lock); /* a reader may call the driver */
    memset(dst, 0, size);
    frag_dry_read(dst, src, size);
    return CU_SUCCESS;
}

cu_result cuMemcpyHtoD_v2(cu_address dst, const void *src, size_t size)
{
    ENTER();
    if (!memory_is_open(dst, size))
        LEAVE(dry_blame("a copy to memory that is not there"));
    if (dry.is_empty)
        frag_dry_wrote(dst, src, size);
    else
        memcpy(memory_host(dst), src, size);
    LEAVE(CU_SUCCESS);
}
