/* memory.c - the functions of the driver for device memory: segments, virtual
 * memory, and memory of other processes. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "real/dry/driver/capture.h"
#include "real/dry/driver/dry_driver.h"
#include "real/dry/driver/memory_file.h"

/* ---- segments ---- */

static cu_result new_segment(cu_address *out, size_t size)
{
    struct dry_holding *memory;
    cu_result code;

    if (!size)
        return dry_blame("a segment of nothing");
    if (capture_forbids())
        return capture_refuses("cuMemAlloc");
    code = memory_take(dry_current_device(), granules(size), &memory);
    if (code != CU_SUCCESS)
        return code;
    *out = addresses_take(memory->device, memory->size, true);
    held_add(&dry.reservations, (struct dry_holding){.at = *out,
                                                     .device = memory->device,
                                                     .size = memory->size,
                                                     .memory = memory,
                                                     .is_segment = true});
    held_add(&dry.maps,
             (struct dry_holding){.at = *out,
                                  .size = memory->size,
                                  .memory = memory,
                                  .rights = UINT64_C(1) << memory->device});
    memory_show(*out, memory, PROT_READ | PROT_WRITE);
    return CU_SUCCESS;
}

cu_result cuMemAlloc_v2(cu_address *out, size_t size)
{
    ENTER();
    NEEDS_CONTEXT();
    LEAVE(new_segment(out, size));
}

static cu_result free_segment(cu_address address)
{
    struct dry_holding *r = held_at(dry.reservations, address);

    if (!r || !r->is_segment)
        return dry_blame("cuMemFree of 0x%llx, which is no segment",
                         (unsigned long long)address);
    if (capture_forbids())
        return capture_refuses("cuMemFree");
    addresses_return(r);
    memory_let_go(r->memory);
    held_drop(&dry.maps, held_at(dry.maps, address));
    held_drop(&dry.reservations, r);
    return CU_SUCCESS;
}

cu_result cuMemFree_v2(cu_address address)
{
    ENTER();
    NEEDS_CONTEXT();
    LEAVE(free_segment(address));
}

/* ---- virtual memory ---- */

cu_result cuMemGetAllocationGranularity(size_t *size,
                                        const struct cu_memory_prop *prop,
                                        int kind)
{
    *size = GRANULE;
    return prop->type == CU_PINNED && prop->location.type == CU_ON_DEVICE &&
                   kind == CU_MINIMUM
               ? CU_SUCCESS
               : dry_blame("memory of another kind");
}

cu_result cuMemAddressReserve(cu_address *out, size_t size, size_t alignment,
                              cu_address wish, unsigned long long flags)
{
    const int device = dry_current() ? dry_current_device() : 0;

    ENTER();
    if (!size || size % GRANULE || alignment || wish || flags)
        LEAVE(dry_blame("cuMemAddressReserve of %zu bytes", size));
    *out = addresses_take(device, size, false);
    held_add(&dry.reservations,
             (struct dry_holding){.at = *out, .size = size, .device = device});
    LEAVE(CU_SUCCESS);
}

static cu_result free_reservation(cu_address address, size_t size)
{
    struct dry_holding *r = held_at(dry.reservations, address);

    if (!r || r->is_segment || r->size != size)
        return dry_blame(
            "cuMemAddressFree of 0x%llx, %zu bytes: no reservation",
            (unsigned long long)address, size);
    if (held_meets(dry.maps, address, size)) /* as after an unmap that failed */
        return INVALID_VALUE;
    addresses_return(r);
    held_drop(&dry.reservations, r);
    return CU_SUCCESS;
}

cu_result cuMemAddressFree(cu_address address, size_t size)
{
    ENTER();
    LEAVE(free_reservation(address, size));
}

cu_result cuMemCreate(cu_memory *out, size_t size,
                      const struct cu_memory_prop *prop,
                      unsigned long long flags)
{
    struct dry_holding *memory = NULL;
    cu_result code;

    ENTER();
    if (!size || size % GRANULE || flags || prop->type != CU_PINNED ||
        prop->location.type != CU_ON_DEVICE)
        LEAVE(dry_blame("cuMemCreate of %zu bytes", size));
    if (prop->handle_types & ~CU_FILE_DESCRIPTOR) /* as without a fabric */
        LEAVE(NOT_PERMITTED);
    if (prop->location.id < 0 || prop->location.id >= dry.gpu_count)
        LEAVE(NO_DEVICE);
    code = memory_take(prop->location.id, size, &memory);
    if (code == CU_SUCCESS) {
        memory->shareable = prop->handle_types == CU_FILE_DESCRIPTOR;
        *out = memory->at;
    }
    LEAVE(code);
}

static cu_result release(cu_memory handle)
{
    struct dry_holding *memory = held_at(dry.memory, handle);

    if (!memory || !memory->handles)
        return dry_blame("cuMemRelease of a handle that is none");
    memory->handles--;
    memory_let_go(memory);
    return CU_SUCCESS;
}

cu_result cuMemRelease(cu_memory handle)
{
    ENTER();
    LEAVE(release(handle));
}

static cu_result map(cu_address address, size_t size, size_t offset,
                     cu_memory handle, unsigned long long flags)
{
    struct dry_holding *memory = held_at(dry.memory, handle);
    const struct dry_holding *r = held_around(dry.reservations, address, size);

    if (!memory || !memory->handles || memory->size != size || offset || flags)
        return dry_blame("cuMemMap of memory that is not there as asked");
    if (!r || r->is_segment || address % GRANULE)
        return dry_blame("cuMemMap outside of a reservation");
    if (held_meets(dry.maps, address, size))
        return dry_blame("cuMemMap over a mapping");
    memory->uses++;
    held_add(&dry.maps, (struct dry_holding){
                            .at = address, .size = size, .memory = memory});
    return CU_SUCCESS;
}

cu_result cuMemMap(cu_address address, size_t size, size_t offset,
                   cu_memory handle, unsigned long long flags)
{
    ENTER();
    LEAVE(map(address, size, offset, handle, flags));
}

/* Both functions accept only whole mappings, one or several in a row. */
static cu_result each_map(cu_address address, size_t size,
                          void (*act)(struct dry_holding *), const char *name)
{
    const cu_address end = address + size;

    for (cu_address next = address; next < end;) {
        const struct dry_holding *m = held_at(dry.maps, next);

        if (!m || m->size > end - next)
            return dry_blame("%s of part of a mapping, or of none", name);
        next += m->size;
    }
    while (address < end) {
        struct dry_holding *m = held_at(dry.maps, address);

        address += m->size;
        act(m);
    }
    return CU_SUCCESS;
}

/* Rights that cuMemSetAccess sets; only under the lock. */
static uint64_t rights;

static void open_map(struct dry_holding *m)
{
    m->rights |= rights;
    memory_show(m->at, m->memory, PROT_READ | PROT_WRITE);
}

cu_result cuMemSetAccess(cu_address address, size_t size,
                         const struct cu_access *access, size_t count)
{
    ENTER();
    rights = 0;
    for (size_t i = 0; i < count; i++) {
        if (access[i].flags != CU_READ_AND_WRITE ||
            access[i].location.type != CU_ON_DEVICE)
            LEAVE(dry_blame("cuMemSetAccess for something else"));
        if (access[i].location.id < 0 || access[i].location.id >= dry.gpu_count)
            LEAVE(NO_DEVICE);
        rights |= UINT64_C(1) << access[i].location.id;
    }
    if (!rights)
        LEAVE(dry_blame("cuMemSetAccess for no device"));
    LEAVE(each_map(address, size, open_map, "cuMemSetAccess"));
}

static void unmap(struct dry_holding *m)
{
    memory_hide(m->at, m->size);
    memory_let_go(m->memory);
    held_drop(&dry.maps, m);
}

cu_result cuMemUnmap(cu_address address, size_t size)
{
    ENTER();
    if (capture_forbids())
        LEAVE(capture_refuses("cuMemUnmap"));
    LEAVE(each_map(address, size, unmap, "cuMemUnmap"));
}

/* ---- memory of other processes ---- */

static struct dry_holding *retained(struct dry_holding *memory)
{
    memory->handles++;
    memory->uses++;
    return memory;
}

cu_result cuMemRetainAllocationHandle(cu_memory *out, void *address)
{
    const struct dry_holding *m, *r;

    ENTER();
    m = held_around(dry.maps, (uintptr_t)address, 1);
    r = held_around(dry.reservations, (uintptr_t)address, 1);
    if (!m || !r || r->is_segment)
        LEAVE(INVALID_VALUE);
    *out = retained(m->memory)->at;
    LEAVE(CU_SUCCESS);
}

/* Moves an allocation to a file of its own, so that it outlives this process's
 * use of it. The name says the device. */
static cu_result move_to_file(struct dry_holding *memory)
{
    char name[32];
    void *from;
    int file;

    snprintf(name, sizeof(name), "fragsim_dry_%d", memory->device);
    file = memory_file(name);
    if (file < 0)
        return OPERATING_SYSTEM;
    from = mmap(NULL, memory->size, PROT_READ, MAP_SHARED, dry.file,
                (off_t)memory->offset);
    if (from == MAP_FAILED || ftruncate(file, (off_t)memory->size) != 0 ||
        write(file, from, memory->size) != (ssize_t)memory->size)
        abort();
    munmap(from, memory->size);
    memory->file = file;
    memory->offset = 0;
    for (struct dry_holding *m = dry.maps; m; m = m->next)
        if (m->memory == memory && m->rights)
            memory_show(m->at, memory, PROT_READ | PROT_WRITE);
    return CU_SUCCESS;
}

static cu_result export(int *out, struct dry_holding *memory, int type)
{
    if (!memory || !memory->handles || type != CU_FILE_DESCRIPTOR)
        return dry_blame(
            "cuMemExportToShareableHandle of a handle that is none");
    if (!memory->shareable)
        return INVALID_VALUE;
    if (!memory->file && move_to_file(memory) != CU_SUCCESS)
        return OPERATING_SYSTEM;
    *out = dup(memory->file);
    return *out < 0 ? OPERATING_SYSTEM : CU_SUCCESS;
}

cu_result cuMemExportToShareableHandle(void *out, cu_memory handle, int type,
                                       unsigned long long flags)
{
    ENTER();
    if (flags)
        LEAVE(dry_blame("cuMemExportToShareableHandle with flags"));
    LEAVE(export(out, held_at(dry.memory, handle), type));
}

/* The device of a file that was exported, or -1. */
static int device_of_file(int file)
{
    char path[64], name[64];
    int device = -1;
    ssize_t length;

    snprintf(path, sizeof(path), "/proc/self/fd/%d", file);
    length = readlink(path, name, sizeof(name) - 1);
    name[length > 0 ? length : 0] = '\0';
    return sscanf(name, "/memfd:fragsim_dry_%d", &device) == 1 &&
                   device < dry.gpu_count
               ? device
               : -1;
}

cu_result cuMemImportFromShareableHandle(cu_memory *out, void *what, int type)
{
    const int file = (int)(intptr_t)what, device = device_of_file(file);

    ENTER();
    if (type != CU_FILE_DESCRIPTOR)
        LEAVE(dry_blame("cuMemImportFromShareableHandle of another kind"));
    if (device < 0)
        LEAVE(INVALID_VALUE);
    *out =
        held_add(&dry.memory,
                 (struct dry_holding){.at = ++dry.handles,
                                      .size = (size_t)lseek(file, 0, SEEK_END),
                                      .device = device,
                                      .file = dup(file),
                                      .imported = true,
                                      .shareable = true,
                                      .handles = 1,
                                      .uses = 1})
            ->at;
    LEAVE(CU_SUCCESS);
}
