/* nvml.c - the part of a libnvidia-ml.so.1 that PyTorch asks: the devices, and,
 * for the text of an out-of-memory error, what this process uses. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "real/device/gpus.h"
#include "real/dry/control.h"
#include "real/dry/driver/properties.h"

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

struct memory_v2 { /* nvmlMemory_v2_t */
    unsigned version;
    unsigned long long total, reserved, left, used;
};

struct pci { /* nvmlPciInfo_t */
    char legacy[16];
    unsigned domain, bus, device, product, system;
    char name[32];
};

struct fabric { /* the part of nvmlGpuFabricInfoV_t that all versions have */
    unsigned version;
    unsigned char cluster[16];
    int status;
    unsigned clique;
    unsigned char state;
};

DRY_EXPORT int nvmlDeviceGetCount_v2(unsigned *count)
{
    *count = (unsigned)frag_dry_devices();
    return 0;
}

DRY_EXPORT int nvmlDeviceGetHandleByIndex_v2(unsigned index, handle *out)
{
    unsigned count;

    nvmlDeviceGetCount_v2(&count);
    *out = index + 1;
    return index < count ? 0 : NOT_FOUND;
}

/* PyTorch 2.13 asks before its first expandable segment, and fails if the
 * question does. The device belongs to no fabric. */
DRY_EXPORT int nvmlDeviceGetGpuFabricInfoV(handle device, struct fabric *fabric)
{
    (void)device;
    memset(fabric->cluster, 0, sizeof(fabric->cluster));
    fabric->status = 0;
    fabric->clique = 0;
    fabric->state = 0; /* NVML_GPU_FABRIC_STATE_NOT_SUPPORTED */
    return 0;
}

/* The text of cudaDeviceGetPCIBusId. */
DRY_EXPORT int nvmlDeviceGetHandleByPciBusId_v2(const char *text, handle *out)
{
    unsigned domain, bus;

    if (sscanf(text, "%x:%x:", &domain, &bus) != 2 || !bus)
        return NOT_FOUND;
    return nvmlDeviceGetHandleByIndex_v2(bus - 1, out);
}

DRY_EXPORT int nvmlDeviceGetComputeRunningProcesses(handle device,
                                                    unsigned *count,
                                                    struct process *out)
{
    const unsigned room = *count;

    *count = 1;
    if (!room)
        return NO_ROOM;
    *out = (struct process){(unsigned)getpid(), frag_dry_used((int)device - 1)};
    return 0;
}

DRY_EXPORT int nvmlDeviceGetMemoryInfo(handle device, struct memory *out)
{
    size_t total = 0;

    frag_dry_room_read();
    cuDeviceTotalMem_v2(&total, (int)device - 1);
    out->total = total;
    out->used = frag_dry_used((int)device - 1);
    out->left = out->total > out->used ? out->total - out->used : 0;
    return 0;
}

DRY_EXPORT int nvmlDeviceGetMemoryInfo_v2(handle device, struct memory_v2 *out)
{
    struct memory m;

    nvmlDeviceGetMemoryInfo(device, &m);
    *out = (struct memory_v2){out->version, m.total, 0, m.left, m.used};
    return 0;
}

DRY_EXPORT int nvmlDeviceGetIndex(handle device, unsigned *out)
{
    *out = (unsigned)device - 1;
    return 0;
}

DRY_EXPORT int nvmlDeviceGetCudaComputeCapability(handle device, int *major,
                                                  int *minor)
{
    (void)device;
    *major = frag_dry_gpu()->major;
    *minor = frag_dry_gpu()->minor;
    return 0;
}

/* The number of the device's properties, as text. */
DRY_EXPORT int nvmlDeviceGetUUID(handle device, char *out, unsigned room)
{
    static const int groups[] = {4, 2, 2, 2, 6};
    char properties[2048], text[64] = "GPU";
    const unsigned char *next = (const unsigned char *)properties + DRY_AT_UUID;
    size_t length = strlen(text);

    frag_dry_properties(properties, 0, (int)device - 1);
    for (size_t i = 0; i < sizeof(groups) / sizeof(*groups); i++) {
        text[length++] = '-';
        for (int n = 0; n < groups[i]; n++, length += 2)
            snprintf(text + length, 3, "%02x", *next++);
    }
    if (room <= length)
        return NO_ROOM;
    memcpy(out, text, length + 1);
    return 0;
}

DRY_EXPORT int nvmlDeviceGetHandleByUUID(const char *text, handle *out)
{
    char other[64];

    for (int device = 1; device <= frag_dry_devices(); device++) {
        nvmlDeviceGetUUID((handle)device, other, sizeof(other));
        *out = (handle)device;
        if (!strcmp(text, other))
            return 0;
    }
    return NOT_FOUND;
}

DRY_EXPORT int nvmlDeviceGetPciInfo_v3(handle device, struct pci *out)
{
    memset(out, 0, sizeof(*out));
    out->bus = (unsigned)device;
    snprintf(out->legacy, sizeof(out->legacy), "0000:%02X:00.0", out->bus);
    snprintf(out->name, sizeof(out->name), "00000000:%02X:00.0", out->bus);
    return 0;
}

/* NVLink connects all GPUs of a machine that has these. */
DRY_EXPORT int nvmlDeviceGetP2PStatus(handle device, handle other, int way,
                                      int *status)
{
    enum { NVLINK = 2, OK = 0, UNSUPPORTED = 5 };
    static const char *const linked[] = {"h200", "h100",    "h20",
                                         "b200", "a100-80", "a100-40"};
    const char *id = frag_dry_gpu()->id;

    (void)device;
    (void)other;
    *status = way != NVLINK && frag_gpu_reaches_peers(frag_dry_gpu())
                  ? OK
                  : UNSUPPORTED;
    for (size_t i = 0; i < sizeof(linked) / sizeof(*linked); i++)
        if (!strcmp(id, linked[i]))
            *status = OK;
    return 0;
}

DRY_EXPORT int nvmlDeviceGetName(handle device, char *name, unsigned room)
{
    return cuDeviceGetName(name, (int)room, (int)device - 1);
}

DRY_EXPORT int nvmlSystemGetCudaDriverVersion_v2(int *version)
{
    return cuDriverGetVersion(version);
}
