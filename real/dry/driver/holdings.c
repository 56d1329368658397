/* holdings.c - what the program holds: allocations, reservations, mappings; and
 * where memory and addresses come from. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "real/dry/driver/dry_driver.h"
#include "real/dry/driver/places.h"
#include "real/dry/dry_live.h"

struct dry_holding *held_add(struct dry_holding **list, struct dry_holding h)
{
    struct dry_holding *made = malloc(sizeof(*made));

    if (!made)
        abort();
    *made = h;
    made->next = *list;
    *list = made;
    return made;
}

void held_drop(struct dry_holding **list, const struct dry_holding *h)
{
    while (*list != h)
        list = &(*list)->next;
    *list = h->next;
    free((void *)(uintptr_t)h);
}

struct dry_holding *held_at(struct dry_holding *list, uint64_t address)
{
    while (list && list->at != address)
        list = list->next;
    return list;
}

struct dry_holding *held_around(struct dry_holding *list, uint64_t address,
                                size_t size)
{
    while (list && (address < list->at || address - list->at > list->size ||
                    size > list->size - (address - list->at)))
        list = list->next;
    return list;
}

bool held_meets(const struct dry_holding *list, uint64_t address, size_t size)
{
    while (list &&
           (address >= list->at + list->size || list->at >= address + size))
        list = list->next;
    return list != NULL;
}

size_t granules(size_t size)
{
    return (size + GRANULE - 1) / GRANULE * GRANULE;
}

cu_result memory_take(int device, size_t size, struct dry_holding **out)
{
    if (dry.room < dry.gpus[device].used ||
        size > dry.room - dry.gpus[device].used)
        return CU_OUT_OF_MEMORY;
    if (!dry.is_empty && size > SPACE - dry.end)
        abort();
    *out = held_add(&dry.memory, (struct dry_holding){.at = ++dry.handles,
                                                      .size = size,
                                                      .offset = dry.end,
                                                      .device = device,
                                                      .handles = 1,
                                                      .uses = 1});
    dry.end += size;
    dry.gpus[device].used += size;
    dry_live_used(device, dry.gpus[device].used);
    return CU_SUCCESS;
}

void memory_let_go(struct dry_holding *memory)
{
    if (--memory->uses)
        return;
    if (memory->file) /* other processes may still have it */
        close(memory->file);
    else if (!dry.is_empty)
        fallocate(dry.file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                  (off_t)memory->offset, (off_t)memory->size);
    if (!memory->imported)
        dry.gpus[memory->device].used -= memory->size;
    held_drop(&dry.memory, memory);
}

static uint64_t reserve_anywhere(size_t size)
{
    char *room = mmap(NULL, size + GRANULE, PROT_NONE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    uintptr_t first;

    if (room == MAP_FAILED)
        abort();
    first = granules((uintptr_t)room);
    munmap(room, first - (uintptr_t)room);
    munmap((void *)(first + size), GRANULE - (first - (uintptr_t)room));
    return first;
}

uint64_t addresses_take(int device, size_t size, bool is_segment)
{
    return dry.is_empty ? place_take(device, dry.gpu_count, dry.capacity, size,
                                     is_segment)
                        : reserve_anywhere(size);
}

void addresses_return(const struct dry_holding *r)
{
    if (dry.is_empty)
        place_return(r->device, r->at, r->size, r->is_segment);
    else
        munmap((void *)(uintptr_t)r->at, r->size);
}

void memory_show(uint64_t address, const struct dry_holding *memory, int rights)
{
    if (!dry.is_empty &&
        mmap((void *)(uintptr_t)address, memory->size, rights,
             MAP_SHARED | MAP_FIXED, memory->file ? memory->file : dry.file,
             (off_t)memory->offset) == MAP_FAILED)
        abort();
}

void memory_hide(uint64_t address, size_t size)
{
    if (!dry.is_empty)
        mmap((void *)(uintptr_t)address, size, PROT_NONE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
}
