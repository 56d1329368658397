/* properties.c - the properties and attributes of a device, from the table of
 * gpus.c. One table serves cudaDeviceProp of CUDA 12, of CUDA 13, and the
 * attributes, which have the same numbers in driver and runtime.
 *
 * Source: driver_types.h of CUDA 12.8 and 13.0, device_attributes of both.
 */
#include <stdint.h>
#include <string.h>

#include "real/device/gpus.h"
#include "real/dry/driver/properties.h"

#include <stddef.h>

enum { NO_PLACE = -1, PROPERTIES = 2 };

/* A number that a device reports: a member of struct frag_gpu, or the same for
 * all GPUs. */
struct fact {
    int attribute;      /* CUdevice_attribute, cudaDeviceAttr */
    int at[PROPERTIES]; /* in cudaDeviceProp of CUDA 12 and 13 */
    int bytes;          /* of the member there */
    int member;         /* offset in struct frag_gpu; 0: `all` */
    int all;
};

#define GPU(field)  (int)offsetof(struct frag_gpu, field), 0
#define ALL(number) 0, number
#define NOWHERE     {NO_PLACE, NO_PLACE}, 0

static const struct fact facts[] = {
    {75, {360, 360}, 4, GPU(major)},
    {76, {364, 364}, 4, GPU(minor)},
    {16, {388, 384}, 4, GPU(processors)},
    {97, {696, 672}, 8, GPU(shared_most)},
    {81, {640, 624}, 8, GPU(shared_all)},
    {39, {624, 604}, 4, GPU(threads)},
    {106, {712, 688}, 4, GPU(blocks)},
    {38, {616, 596}, 4, GPU(cache)},
    {37, {612, 592}, 4, GPU(bus)},
    {13, NOWHERE, GPU(clock)},
    {36, NOWHERE, GPU(memory_clock)},
    {8, {296, 296}, 8, ALL(48 << 10)},    /* shared memory per block */
    {111, {720, 696}, 8, ALL(1 << 10)},   /* of it, reserved */
    {10, {308, 308}, 4, ALL(32)},         /* threads of a warp */
    {12, {304, 304}, 4, ALL(65536)},      /* registers of a block */
    {82, {648, 632}, 4, ALL(65536)},      /* of a multiprocessor */
    {18, {396, 388}, 4, GPU(is_unified)}, /* integrated */
    {1, {320, 320}, 4, ALL(1024)},        /* threads of a block */
    {2, {324, 324}, 4, ALL(1024)},        /* in each dimension */
    {3, {328, 328}, 4, ALL(1024)},
    {4, {332, 332}, 4, ALL(64)},
    {5, {336, 336}, 4, ALL(INT32_MAX)}, /* blocks of a grid */
    {6, {340, 340}, 4, ALL(65535)},
    {7, {344, 344}, 4, ALL(65535)},
    {9, {352, 352}, 8, ALL(64 << 10)},   /* constant memory */
    {11, {312, 312}, 8, ALL(INT32_MAX)}, /* pitch of a copy */
    {14, {368, 368}, 8, ALL(512)},       /* alignment of a texture */
    {31, {576, 560}, 4, ALL(1)},         /* concurrent kernels */
    {40, {600, 584}, 4, ALL(3)},         /* copy engines */
    {41, {604, 588}, 4, ALL(1)},         /* unified addresses */
    {78, {628, 608}, 4, ALL(1)},         /* priorities of streams */
    {83, {652, 636}, 4, ALL(1)},         /* managed memory */
    {95, {688, 668}, 4, ALL(1)},         /* cooperative launch */
    {99, {728, 704}, 4, ALL(1)},         /* registration of host memory */
    {115, {744, 720}, 4, ALL(1)},        /* memory pools */
    {19, {400, 392}, 4, ALL(1)},         /* maps host memory */
    {89, {676, 656}, 4, ALL(1)},         /* shares managed memory */
    {110, NOWHERE, ALL(1)}, /* access of other devices to virtual memory */
    {102, NOWHERE, ALL(1)}, /* virtual memory */
    {128, NOWHERE, ALL(0)}, /* handles of a fabric */
    {132, NOWHERE, ALL(0)}, /* multicast of NVLink */
};
enum { FACTS = sizeof(facts) / sizeof(*facts) };

/* Bytes of the members of cudaDeviceProp. */
static const size_t sizes[PROPERTIES] = {1032, 1008};
enum { AT_TOTAL = 288 };

static int value_of(const struct fact *f, const struct frag_gpu *g)
{
    int value = f->all;

    if (f->member)
        memcpy(&value, (const char *)g + f->member, sizeof(value));
    return value;
}

static void put(char *out, const struct fact *f, int at,
                const struct frag_gpu *g)
{
    const int64_t value = value_of(f, g);

    memcpy(out + at, &value, (size_t)f->bytes); /* the first byte is lowest */
}

/* The bus of a device: each has one of its own, from 1. */
static const int at_bus[PROPERTIES] = {584, 568};

void dry_properties(const struct frag_gpu *gpu, int release, int ordinal,
                    uint64_t total, char *out)
{
    const int bus = ordinal + 1;

    memset(out, 0, sizes[release]);
    memcpy(out + AT_TOTAL, &total, sizeof(total));
    memcpy(out + at_bus[release], &bus, sizeof(bus));
    for (size_t i = 0; i < FACTS; i++)
        if (facts[i].at[release] != NO_PLACE)
            put(out, &facts[i], facts[i].at[release], gpu);
}

bool dry_attribute(const struct frag_gpu *gpu, int which, int *value)
{
    for (size_t i = 0; i < FACTS; i++)
        if (facts[i].attribute == which) {
            *value = value_of(&facts[i], gpu);
            return true;
        }
    return false;
}
