/* nvml.c - the part of a libnvidia-ml.so.1 that PyTorch asks: the devices, and,
 * for the text of an out-of-memory error, what this process uses. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "real/device/gpus.h"
#include "real/dry/control.h"

enum { DRY_LACKING = 3, NOT_FOUND = 6, NO_ROOM = 7 }; /* NVML_ERROR_... */
#include "real/dry/stubs.h"

#include "real/dry/libraries/nvml.def"

/* A handle is the number of the device, plus 1. */
typedef uintptr_t handle;

struct process { /* nvmlProcessInfo_v1_t */
    unsigned pid;
    unsigned long long used;
};

struct memory { /* nvmlMemory_t */
    unsigned long long total, left, used;
};

struct fabric { /* the part of nvmlGpuFabricInfoV_t that all versions have */
    unsigned version;
    unsigned char cluster[16];
    int status;
    unsigned clique;
    unsigned char state;
};

DRY_EXPORT int nvmlDeviceGetCount_v2(unsigned *count);
DRY_EXPORT int nvmlDeviceGetHandleByIndex_v2(unsigned index, handle *out);
DRY_EXPORT int nvmlDeviceGetHandleByPciBusId_v2(const char *text, handle *out);
DRY_EXPORT int nvmlDeviceGetComputeRunningProcesses(handle, unsigned *,
                                                    struct process *);
DRY_EXPORT int nvmlDeviceGetGpuFabricInfoV(handle, struct fabric *);
DRY_EXPORT int nvmlDeviceGetMemoryInfo(handle, struct memory *);
DRY_EXPORT int nvmlDeviceGetName(handle, char *, unsigned);
DRY_EXPORT int nvmlSystemGetCudaDriverVersion_v2(int *version);

int nvmlDeviceGetCount_v2(unsigned *count)
{
    *count = (unsigned)frag_dry_devices();
    return 0;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, handle *out)
{
    unsigned count;

    nvmlDeviceGetCount_v2(&count);
    *out = index + 1;
    return index < count ? 0 : NOT_FOUND;
}

/* PyTorch 2.13 asks before its first expandable segment, and fails if the
 * question does. The device belongs to no fabric. */
int nvmlDeviceGetGpuFabricInfoV(handle device, struct fabric *fabric)
{
    (void)device;
    memset(fabric->cluster, 0, sizeof(fabric->cluster));
    fabric->status = 0;
    fabric->clique = 0;
    fabric->state = 0; /* NVML_GPU_FABRIC_STATE_NOT_SUPPORTED */
    return 0;
}

/* The text of cudaDeviceGetPCIBusId. */
int nvmlDeviceGetHandleByPciBusId_v2(const char *text, handle *out)
{
    unsigned domain, bus;

    if (sscanf(text, "%x:%x:", &domain, &bus) != 2 || !bus)
        return NOT_FOUND;
    return nvmlDeviceGetHandleByIndex_v2(bus - 1, out);
}

int nvmlDeviceGetComputeRunningProcesses(handle device, unsigned *count,
                                         struct process *out)
{
    const unsigned room = *count;

    *count = 1;
    if (!room)
        return NO_ROOM;
    *out = (struct process){(unsigned)getpid(), frag_dry_used((int)device - 1)};
    return 0;
}

int nvmlDeviceGetMemoryInfo(handle device, struct memory *out)
{
    size_t total = 0;

    cuDeviceTotalMem_v2(&total, (int)device - 1);
    out->total = total;
    out->used = frag_dry_used((int)device - 1);
    out->left = out->total > out->used ? out->total - out->used : 0;
    return 0;
}

int nvmlDeviceGetName(handle device, char *name, unsigned room)
{
    return cuDeviceGetName(name, (int)room, (int)device - 1);
}

int nvmlSystemGetCudaDriverVersion_v2(int *version)
{
    return cuDriverGetVersion(version);
}
