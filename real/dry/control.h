/* control.h - functions of the stand-in for the driver, beside those of the
 * real driver: for the other libraries of real/dry/, and for tests, which
 * control it and read its state. Tests find them with dlsym, since the name of
 * the stand-in is libcuda.so.1 too.
 */
#ifndef FRAG_REAL_DRY_CONTROL_H
#define FRAG_REAL_DRY_CONTROL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "real/device/cuda_driver.h"

#pragma GCC visibility push(default)

struct frag_gpu;

/* CUipcMemHandle, cudaIpcMemHandle_t and those of events. */
struct dry_ipc {
    uint64_t words[8];
};

/* The GPU of the table that FRAGSIM_DRY_GPU names. Without the variable, an
 * H200, whose memory and name the other variables set. */
const struct frag_gpu *frag_dry_gpu(void);
/* Whether device memory has contents. With FRAGSIM_DRY_GPU it is addresses
 * only. */
bool frag_dry_has_contents(void);
/* Writes the cudaDeviceProp of CUDA 12 (release 0) or 13 (release 1). */
cu_result frag_dry_properties(char *out, int release, int ordinal);
/* Number of devices, whatever CUDA_VISIBLE_DEVICES says. */
int frag_dry_devices(void);
/* Bytes of the device that are in use. */
uint64_t frag_dry_used(int device);

/* Queues work on the stream, as a kernel of the program does. */
void frag_dry_queue(cu_stream stream);
/* With FRAGSIM_DRY_LAZY: finishes all work that is queued on the stream so
 * far. */
void frag_dry_finish(cu_stream stream);
/* How often the stream was made to wait for all work then queued on the other
 * stream. */
uint64_t frag_dry_waits(cu_stream stream, cu_stream other);
/* How often the program waited for the device; the number of existing
 * events. */
uint64_t frag_dry_synchronizes(void);
uint64_t frag_dry_events(void);
/* A library took so many more bytes of the device, or fewer; how many fewer
 * than the most at one time it has now. */
void frag_dry_hold(int device, int64_t bytes);
/* A library takes `each` MiB of the device of this thread, and `first` MiB more
 * if the bit of the device in *seen was not set. */
void frag_dry_take(uint64_t *seen, unsigned each, unsigned first);
uint64_t frag_dry_dropped(int device);
/* The most bytes of host memory that were pinned at one time. */
uint64_t frag_dry_pinned_most(void);
/* How often the function of that name was called, of those that can fail and
 * cuEventQuery. */
uint64_t frag_dry_calls(const char *name);
/* Makes the next call of that name fail. The name is borrowed until then. */
void frag_dry_fail(const char *name);

/* The device whose memory begins at or contains the address. */
enum { FRAG_DRY_HOST = -1, FRAG_DRY_UNMAPPED = -2 };
int frag_dry_owner(uint64_t address);
/* Whether the device may access the memory; FRAG_DRY_HOST: whether its owner
 * may. */
bool frag_dry_may(int device, uint64_t address, size_t size);
/* Copies between device and host memory in any direction, at once. Memory
 * without contents gives the host what is known of it. */
void frag_dry_move(void *to, const void *from, size_t size);

#pragma GCC visibility pop

/* Functions of the driver that the runtime of cudart.c needs and fragsim does
 * not, by the names of the driver, except that cuStreamGetCaptureInfo has fewer
 * parameters. */
#define FRAG_DRY_MORE(X)                                               \
    X(cuCtxGetCurrent, (cu_context *))                                 \
    X(cuCtxSetCurrent, (cu_context))                                   \
    X(cuStreamSynchronize, (cu_stream))                                \
    X(cuStreamQuery, (cu_stream))                                      \
    X(cuEventSynchronize, (cu_event))                                  \
    X(cuStreamBeginCapture_v2, (cu_stream, int))                       \
    X(cuStreamEndCapture, (cu_stream, void **))                        \
    X(cuStreamGetCaptureInfo, (cu_stream, int *, uint64_t *))          \
    X(cuGetProcAddress_v2,                                             \
      (const char *, void **, int, unsigned long long, int *))         \
    X(cuIpcGetMemHandle, (struct dry_ipc *, cu_address))               \
    X(cuIpcOpenMemHandle_v2, (cu_address *, struct dry_ipc, unsigned)) \
    X(cuIpcCloseMemHandle, (cu_address))                               \
    X(cuThreadExchangeStreamCaptureMode, (int *))

#define X(name, arguments) \
    __attribute__((visibility("default"))) cu_result name arguments;
CU_DRIVER(X)
FRAG_DRY_MORE(X)
#undef X

#endif
