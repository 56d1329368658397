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

#include <strings.h>

#include "policies/device/backend.h"

#define KIB    1024
#define MIB    (1024 * (uint64_t)KIB)
#define GIB(x) ((uint64_t)((x)*1024) * MIB)
/* Four H200s beside each other have contexts of 620.9 MiB, one alone had 526.8.
 */
#define CONTEXT                                                                \
    "estimated: as on an H200 with 526.8 MiB, less for fewer multiprocessors", \
        94 * MIB

#define QUERY "output of deviceQuery that users published"
/* What a GA102 reports in common. */
#define GA102 99 * KIB, 100 * KIB, 1536, 16, 6 * MIB

const struct frag_gpu frag_gpus[] = {
    {"b200", "NVIDIA B200", GIB(178.35), 560 * MIB, 10, 0, 148, 227 * KIB,
     228 * KIB, 2048, 32, 126 * MIB + MIB / 2, 1965000, 3996000, 7680, 0,
     "a query of the device, in pull request 4002 of pytorch/ao", CONTEXT},
    {"h200", "NVIDIA H200", 150109880320, 648871936, 9, 0, 132, 227 * KIB,
     228 * KIB, 2048, 32, 60 * MIB, 1980000, 3201000, 6144, 0,
     "measured, driver 580.159.04",
     "measured, driver 580.159.04: 526.8 to 618.8 MiB on four hosts, the most",
     2 * MIB},
    {"gb10", "NVIDIA GB10", 122570 * MIB, 240 * MIB, 12, 1, 48, 99 * KIB,
     100 * KIB, 1536, 24, 24 * MIB, 2418000, 8533000, 256, 1,
     QUERY ": 122,570 MiB, shared with the host", CONTEXT},
    {"h20", "NVIDIA H20", GIB(95.22), 420 * MIB, 9, 0, 78, 227 * KIB, 228 * KIB,
     2048, 32, 60 * MIB, 1980000, 2619000, 6144, 0,
     "texts of PyTorch's errors: 95.22 GiB", CONTEXT},
    {"h100", "NVIDIA H100 80GB HBM3", 85017493504, 552402944, 9, 0, 132,
     227 * KIB, 228 * KIB, 2048, 32, 50 * MIB, 1980000, 2619000, 5120, 0,
     "measured, driver 580.159.04", CONTEXT},
    {"a100-80", "NVIDIA A100-SXM4-80GB", GIB(79.14), 445 * MIB, 8, 0, 108,
     163 * KIB, 164 * KIB, 2048, 32, 40 * MIB, 1410000, 1593000, 5120, 0, QUERY,
     CONTEXT},
    {"a6000", "NVIDIA RTX A6000", 48676 * MIB, 312 * MIB, 8, 6, 84, GA102,
     1800000, 8001000, 384, 0,
     QUERY ": 48,676 to 48,790 MiB, no error correction", CONTEXT},
    {"l40", "NVIDIA L40", GIB(44.39), 430 * MIB, 8, 9, 142, 99 * KIB, 100 * KIB,
     1536, 24, 96 * MIB, 2490000, 9001000, 384, 0,
     "texts of PyTorch's errors: 44.39 to 44.40 GiB", CONTEXT},
    {"l40s", "NVIDIA L40S", GIB(44.39), 430 * MIB, 8, 9, 142, 99 * KIB,
     100 * KIB, 1536, 24, 96 * MIB, 2520000, 9001000, 384, 0,
     "texts of PyTorch's errors: 44.39 to 44.52 GiB", CONTEXT},
    {"a100-40", "NVIDIA A100-SXM4-40GB", 42298834944, 445 * MIB, 8, 0, 108,
     163 * KIB, 164 * KIB, 2048, 32, 40 * MIB, 1410000, 1215000, 5120, 0, QUERY,
     CONTEXT},
    {"rtx5090", "NVIDIA GeForce RTX 5090", 33677180928, 480 * MIB, 12, 0, 170,
     99 * KIB, 100 * KIB, 1536, 24, 96 * MIB, 2550000, 14001000, 512, 0, QUERY,
     CONTEXT},
    {"rtx3090", "NVIDIA GeForce RTX 3090", 25414860800, 308 * MIB, 8, 6, 82,
     GA102, 1695000, 9751000, 384, 0, QUERY, CONTEXT},
    {"a5000", "NVIDIA RTX A5000", 24226 * MIB, 272 * MIB, 8, 6, 64, GA102,
     1695000, 8001000, 384, 0,
     "estimated: nvidia-smi's 24,564 MiB, less what the RTX 3090 keeps",
     CONTEXT},
    {"rtx4090", "NVIDIA GeForce RTX 4090", GIB(23.64), 400 * MIB, 8, 9, 128,
     99 * KIB, 100 * KIB, 1536, 24, 72 * MIB, 2520000, 10501000, 384, 0,
     "texts of PyTorch's errors: 23.64 GiB", CONTEXT},
    {"a10g", "NVIDIA A10G", 22485 * MIB, 304 * MIB, 8, 6, 80, GA102, 1710000,
     6251000, 384, 0,
     "estimated: nvidia-smi's 23,028 MiB, less what the L4 keeps", CONTEXT},
    {"l4", "NVIDIA L4", 23583784960, 260 * MIB, 8, 9, 58, 99 * KIB, 100 * KIB,
     1536, 24, 48 * MIB, 2040000, 6251000, 192, 0, QUERY, CONTEXT},
    {"t4", "Tesla T4", GIB(14.56), 150 * MIB, 7, 5, 40, 64 * KIB, 64 * KIB,
     1024, 16, 4 * MIB, 1590000, 5001000, 256, 0,
     "texts of PyTorch's errors: 14.56 to 14.75 GiB", CONTEXT},
    {0},
};

const struct frag_gpu *frag_gpu_find(const char *id)
{
    const struct frag_gpu *g = frag_gpus;

    while (g->id && strcasecmp(g->id, id) != 0)
        g++;
    return g->id ? g : NULL;
}

frag_size frag_gpu_room(const struct frag_gpu *g)
{
    return frag_device_room(g->total - g->context);
}
