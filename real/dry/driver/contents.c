/* contents.c - who may access device memory, and copies. */
#include <string.h>

#include "real/dry/driver/capture.h"
#include "real/dry/driver/dry_driver.h"
#include "real/dry/driver/pinned.h"
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

/* A copy that involves device memory without contents. */
static void move_nothing(void *to, const void *from, size_t size)
{
    const bool into = frag_dry_owner((uintptr_t)to) >= 0;
    const bool out_of = frag_dry_owner((uintptr_t)from) >= 0;

    if (into && out_of)
        frag_dry_copied((uintptr_t)to, (uintptr_t)from, size);
    else if (into)
        frag_dry_wrote((uintptr_t)to, from, size);
    else if (out_of) {
        if (!frag_dry_pinned_clear(to, size))
            memset(to, 0, size);
        frag_dry_read(to, (uintptr_t)from, size);
    } else
        memmove(to, from, size);
}

void frag_dry_move(void *to, const void *from, size_t size)
{
    if (frag_dry_has_contents())
        memmove(to, from, size);
    else
        move_nothing(to, from, size);
}

static bool is_there(cu_address at, size_t size)
{
    return frag_dry_owner(at) == FRAG_DRY_HOST || frag_dry_may(-1, at, size);
}

/* A copy inside a capture happens at the launches: nothing is known of what it
 * writes. */
DRY_EXPORT cu_result cuMemcpyAsync(cu_address to, cu_address from, size_t size,
                                   cu_stream stream)
{
    if (!is_there(to, size) || !is_there(from, size))
        return dry_blame("a copy of memory that is not there");
    if (capture_has(stream))
        frag_dry_launched();
    else
        frag_dry_move(memory_host(to), memory_host(from), size);
    return CU_SUCCESS;
}

/* The forms of CUDA 12 and 13 differ in what follows `count`. */
DRY_EXPORT cu_result cuMemcpyBatchAsync(const cu_address *to,
                                        const cu_address *from,
                                        const size_t *sizes, size_t count)
{
    cu_result code = CU_SUCCESS;

    for (size_t i = 0; i < count && code == CU_SUCCESS; i++)
        code = cuMemcpyAsync(to[i], from[i], sizes[i], NULL);
    return code;
}
