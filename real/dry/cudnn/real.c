/* real.c - loads the wheel's cuDNN and gives it a device. */
#define _GNU_SOURCE
#include "real/dry/cudnn/real.h"

#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "real/device/gpus.h"
#include "real/dry/control.h"
#include "real/dry/dry_notes.h"

/* The text of cuDNN 9.19 about an H200 (driver 580.159.04), as the value of
 * CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION. */
static const char h200[] =
    "{\"maxGridSize\":[2147483647,65535,65535],"
    "\"maxBlockSize\":[1024,1024,64],\"regsPerBlock\":65536,"
    "\"multiProcessorCount\":132,\"warpSize\":32,"
    "\"maxSharedMemoryPerBlock\":49152,"
    "\"maxSharedMemoryPerBlockOptin\":232448,"
    "\"reservedSharedMemoryPerBlock\":1024,\"maxRegistersPerSM\":65536,"
    "\"maxCtasPerSM\":32,\"maxThreadsPerBlock\":1024,"
    "\"maxThreadsPerSM\":2048,\"pciDeviceId\":6,\"isTccDriver\":0,"
    "\"supportCoopLaunch\":1,\"totalGlobalMem\":150109880320,"
    "\"smClockRateKHz\":1980000,\"memClockRateKHz\":3201000,"
    "\"l2CacheSize\":62914560,\"cudaDeviceId\":0,\"deviceVer\":900,"
    "\"driverVer\":13000,\"deviceName\":\"NVIDIA H200\"}";

enum { MEASURED = 919 }; /* the version of the formulas, times 100 */

size_t cudnnGetVersion(void);

static pthread_once_t loading = PTHREAD_ONCE_INIT;
static pthread_once_t starting = PTHREAD_ONCE_INIT;
static void *library;
static struct cudnn_backend backend;

static int beside_pytorch(struct dl_phdr_info *loaded, size_t size, void *path)
{
    const char *torch = strstr(loaded->dlpi_name, "/torch/lib/libtorch_cuda");

    (void)size;
    return torch &&
           snprintf(path, PATH_MAX, "%.*s/nvidia/cudnn/lib/libcudnn.so.9",
                    (int)(torch - loaded->dlpi_name), loaded->dlpi_name) > 0;
}

/* Notes that there is no cuDNN, and why. */
static void lacks(const char *why)
{
    char name[PATH_MAX + 256];

    snprintf(
        name, sizeof(name),
        "cuDNN of PyTorch's wheels, which convolutions, RNNs and attention "
        "need (%s)",
        why);
    frag_dry_note(DRY_LACKS, name);
}

static void load(void)
{
    const char *given = getenv("FRAGSIM_DRY_CUDNN");
    char path[PATH_MAX] = "libcudnn.so.9";

    if (given)
        snprintf(path, sizeof(path), "%s", given);
    else if (!dl_iterate_phdr(beside_pytorch, path)) {
        lacks("the process has not loaded PyTorch's libtorch_cuda.so");
        return;
    }
    library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        lacks(dlerror());
}

void *frag_cudnn_real(const char *name)
{
    pthread_once(&loading, load);
    return library ? dlsym(library, name) : NULL;
}

static int make_device(void)
{
    int result = backend.create(CUDNN_DEVICE, &backend.device);

    if (!result)
        result = backend.set(backend.device, CUDNN_DEVICE_JSON, CUDNN_TYPE_CHAR,
                             sizeof(h200) - 1, h200);
    return result ? result : backend.finalize(backend.device);
}

static void start(void)
{
    static const struct {
        const char *name;
        void *at;
    } functions[] = {
        {"cudnnBackendCreateDescriptor", &backend.create},
        {"cudnnBackendSetAttribute", &backend.set},
        {"cudnnBackendGetAttribute", &backend.get},
        {"cudnnBackendFinalize", &backend.finalize},
    };

    for (size_t i = 0; i < sizeof(functions) / sizeof(*functions); i++) {
        void *function = frag_cudnn_real(functions[i].name);

        if (!function)
            return;
        memcpy(functions[i].at, &function, sizeof(function));
    }
    if (make_device() != CUDNN_SUCCESS) {
        backend.device = NULL;
        lacks("found an older one than 9.8; pip install --no-deps "
              "nvidia-cudnn-cu12==9.8.0.87 takes its place");
        return;
    }
    if (strcmp(frag_dry_gpu()->id, "h200") != 0)
        frag_dry_note(DRY_SIZE,
                      "cuDNN's workspaces: they are those of an H200");
    if (FRAG_CUDNN_REAL(cudnnGetVersion, 0, ()) / 100 != MEASURED)
        frag_dry_note(DRY_SIZE,
                      "cuDNN's workspaces: the formulas are those of 9.19");
}

const struct cudnn_backend *frag_cudnn_backend(void)
{
    pthread_once(&starting, start);
    return backend.device ? &backend : NULL;
}
