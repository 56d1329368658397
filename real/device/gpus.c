/* gpus.c - the table of gpus.h.
 *
 * Clocks and buses are those that deviceQuery prints, by published outputs or
 * by the datasheets. Multiprocessors, shared memory, threads and blocks are
 * those of NVIDIA's CUDA C++ Programming Guide 13.0, tables "Technical
 * Specifications per Compute Capability", and of the whitepapers of the GPUs;
 * the cache is what the driver reports. The total is smaller than the memory on
 * the label: the driver and the error correction keep a part of it.
 */
#include "real/device/gpus.h"

#include <string.h>

#include "policies/device/backend.h"

#define KIB     1024
#define MIB     (1024 * KIB)
#define GIB(x)  ((uint64_t)((x)*1024) * MIB)
#define CONTEXT "estimated: as on the H200, less for fewer multiprocessors"

const struct frag_gpu frag_gpus[] = {
    {"h200", "NVIDIA H200", 150109880320, 552402944, 9, 0, 132, 227 * KIB,
     228 * KIB, 2048, 32, 60 * MIB, 1980000, 3201000, 6144,
     "measured, driver 580.159.04", "measured, driver 580.159.04"},
    {"h100", "NVIDIA H100 80GB HBM3", 85017493504, 552402944, 9, 0, 132,
     227 * KIB, 228 * KIB, 2048, 32, 50 * MIB, 1980000, 2619000, 5120,
     "measured, driver 580.159.04", CONTEXT},
    {"a100-80", "NVIDIA A100-SXM4-80GB", GIB(79.14), 445 * (uint64_t)MIB, 8, 0,
     108, 163 * KIB, 164 * KIB, 2048, 32, 40 * MIB, 1410000, 1593000, 5120,
     "output of deviceQuery that users published", CONTEXT},
    {"l40s", "NVIDIA L40S", GIB(44.39), 430 * (uint64_t)MIB, 8, 9, 142,
     99 * KIB, 100 * KIB, 1536, 24, 96 * MIB, 2520000, 9001000, 384,
     "texts of PyTorch's errors: 44.39 to 44.52 GiB", CONTEXT},
    {"a100-40", "NVIDIA A100-SXM4-40GB", 42298834944, 445 * (uint64_t)MIB, 8, 0,
     108, 163 * KIB, 164 * KIB, 2048, 32, 40 * MIB, 1410000, 1215000, 5120,
     "output of deviceQuery that users published", CONTEXT},
    {"rtx5090", "NVIDIA GeForce RTX 5090", 33677180928, 480 * (uint64_t)MIB, 12,
     0, 170, 99 * KIB, 100 * KIB, 1536, 24, 96 * MIB, 2550000, 14001000, 512,
     "output of deviceQuery that users published", CONTEXT},
    {"rtx4090", "NVIDIA GeForce RTX 4090", GIB(23.64), 400 * (uint64_t)MIB, 8,
     9, 128, 99 * KIB, 100 * KIB, 1536, 24, 72 * MIB, 2520000, 10501000, 384,
     "texts of PyTorch's errors: 23.64 GiB", CONTEXT},
    {"l4", "NVIDIA L4", 23583784960, 260 * (uint64_t)MIB, 8, 9, 58, 99 * KIB,
     100 * KIB, 1536, 24, 48 * MIB, 2040000, 6251000, 192,
     "output of deviceQuery that users published", CONTEXT},
    {"t4", "Tesla T4", GIB(14.56), 150 * (uint64_t)MIB, 7, 5, 40, 64 * KIB,
     64 * KIB, 1024, 16, 4 * MIB, 1590000, 5001000, 256,
     "texts of PyTorch's errors: 14.56 to 14.75 GiB", CONTEXT},
    {0},
};

const struct frag_gpu *frag_gpu_find(const char *id)
{
    const struct frag_gpu *g = frag_gpus;

    while (g->id && strcmp(g->id, id) != 0)
        g++;
    return g->id ? g : NULL;
}

frag_size frag_gpu_room(const struct frag_gpu *g)
{
    return frag_device_room(g->total - g->context);
}
