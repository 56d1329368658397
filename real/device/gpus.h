/* gpus.h - the GPUs that the stand-ins can answer for: what each has, and from
 * where each number is.
 */
#ifndef FRAG_REAL_DEVICE_GPUS_H
#define FRAG_REAL_DEVICE_GPUS_H

#include <string.h>

#include "traces/base.h"

struct frag_gpu {
    const char *id;   /* as the user names it, such as "h200" */
    const char *name; /* as the driver names it */
    uint64_t total;   /* bytes, as the driver reports them */
    uint64_t context; /* bytes that a CUDA context takes when it is created */
    int major, minor; /* compute capability */
    int processors;   /* streaming multiprocessors */
    int shared_most;  /* bytes of shared memory that a block can ask for */
    int shared_all;   /* bytes of shared memory of a multiprocessor */
    int threads;      /* resident threads of a multiprocessor */
    int blocks;       /* resident blocks of a multiprocessor */
    int cache;        /* bytes of the second-level cache */
    int clock, memory_clock; /* kHz, the highest */
    int bus;                 /* bits of the memory bus */
    int is_unified;          /* 1: device and host share the memory */
    const char *memory_source, *context_source; /* of total and of context */
    uint64_t beside; /* bytes by which a context is larger beside other GPUs
                        that the process sees */
};

/* The ids, for texts. */
#define FRAG_GPU_IDS                                                      \
    "h200, h100, h20, b200, gb10, a100-80, a100-40, a6000, a5000, a10g, " \
    "l40s, l40, l4, rtx5090, rtx4090, rtx3090 or t4"
enum { FRAG_GPUS_MOST = 64 }; /* devices that one process can have */

/* All GPUs, the largest memory on the label first, ended by a row whose id is
 * NULL. */
extern const struct frag_gpu frag_gpus[];

/* The GPU of that id, in upper or lower case; NULL if there is none. */
const struct frag_gpu *frag_gpu_find(const char *id);

/* Whether GPUs of the model reach each other's memory, as GeForce cards do not.
 */
static inline bool frag_gpu_reaches_peers(const struct frag_gpu *g)
{
    return strncmp(g->id, "rtx", 3) != 0;
}

/* Bytes that one process can allocate of it: the total less its context and
 * what the driver keeps. */
frag_size frag_gpu_room(const struct frag_gpu *g);

#endif
