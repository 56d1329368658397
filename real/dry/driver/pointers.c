/* pointers.c - what the driver says of an address: device memory and pinned
 * host memory, which every device reaches at the same address. */
#include <stdio.h>
#include <string.h>

#include "real/dry/driver/dry_driver.h"
#include "real/dry/driver/pinned.h"
#include "real/dry/dry_notes.h"
#include "real/dry/stubs.h"

/* CUpointer_attribute; CUmemorytype; CU_DEVICE_INVALID */
enum {
    CONTEXT = 1,
    TYPE,
    DEVICE_POINTER,
    HOST_POINTER,
    IS_MANAGED = 8,
    ORDINAL,
    START = 11,
    SIZE,
    ATTRIBUTES
};
enum { HOST = 1, DEVICE = 2 };
enum { NOBODY = -2 };

struct answers {
    uint64_t of[ATTRIBUTES]; /* of[TYPE] is 0 for memory that is not known */
};

static struct answers answers_of(cu_address at)
{
    const struct dry_holding *r, *m;
    int device = NOBODY, type = 0;
    uint64_t start = 0;
    size_t size = 0;

    pthread_mutex_lock(&dry.lock);
    r = held_around(dry.reservations, at, 1);
    m = held_around(dry.maps, at, 1);
    if (r && m) {
        start = m->at, size = m->size;
        type = DEVICE, device = m->memory->device;
    } else if (frag_dry_pinned_range(at, &start, &size))
        type = HOST, device = dry_current() ? dry_current_device() : 0;
    pthread_mutex_unlock(&dry.lock);
    return (struct answers){
        {[CONTEXT] = type ? (uintptr_t)&dry.gpus[device] : 0,
         [TYPE] = (uint64_t)type,
         [DEVICE_POINTER] = type ? at : 0,
         [HOST_POINTER] = type == HOST ? at : 0,
         [ORDINAL] = (uint64_t)(int64_t)device,
         [START] = start,
         [SIZE] = size}};
}

static cu_result give(void *out, int which, const struct answers *a)
{
    static const uint8_t bytes[ATTRIBUTES] = {
        [CONTEXT] = 8,    [TYPE] = 4,         [DEVICE_POINTER] = 8,
        [IS_MANAGED] = 4, [HOST_POINTER] = 8, [ORDINAL] = 4,
        [START] = 8,      [SIZE] = 8};
    char name[64];

    if (which > 0 && which < ATTRIBUTES && bytes[which]) {
        memcpy(out, &a->of[which], bytes[which]);
        return CU_SUCCESS;
    }
    snprintf(name, sizeof(name), "attribute %d of a pointer", which);
    frag_dry_note(DRY_LACKS, name);
    return NOT_SUPPORTED;
}

/* Fails for memory that CUDA does not know, and for the host's address of
 * memory that is the device's. */
DRY_EXPORT cu_result cuPointerGetAttribute(void *out, int which, cu_address at)
{
    const struct answers a = answers_of(at);

    if (!a.of[TYPE] || (which == HOST_POINTER && !a.of[HOST_POINTER]))
        return INVALID_VALUE;
    return give(out, which, &a);
}

/* Says of such memory that nothing is known. */
DRY_EXPORT cu_result cuPointerGetAttributes(unsigned count, const int *which,
                                            void **out, cu_address at)
{
    const struct answers a = answers_of(at);
    cu_result code = CU_SUCCESS;

    for (unsigned i = 0; i < count && code == CU_SUCCESS; i++)
        code = give(out[i], which[i], &a);
    return code;
}

DRY_EXPORT cu_result cuMemGetAddressRange_v2(cu_address *base, size_t *size,
                                             cu_address at)
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
