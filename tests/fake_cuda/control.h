/* control.h - functions of the fake driver, beside those of the real driver,
 * with which a test controls it and reads its state. Tests find them with
 * dlsym, since the fake's name is libcuda.so.1 too.
 */
#ifndef FRAG_TESTS_FAKE_CUDA_CONTROL_H
#define FRAG_TESTS_FAKE_CUDA_CONTROL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "real/device/driver.h"

/* Queues work on the stream, as a kernel of the program does. */
void fake_cuda_queue(cu_stream stream);
/* With FAKE_CUDA_LAZY: finishes all work that is queued on the stream so
 * far. */
void fake_cuda_finish(cu_stream stream);
/* How often the stream was made to wait for all work then queued on the other
 * stream. */
uint64_t fake_cuda_waits(cu_stream stream, cu_stream other);
/* How often the program waited for the device; the number of existing
 * events. */
uint64_t fake_cuda_synchronizes(void);
uint64_t fake_cuda_events(void);
/* How often the function of that name was called, of those that can fail and
 * cuEventQuery. */
uint64_t fake_cuda_calls(const char *name);
/* Makes the next call of that name fail. The name is borrowed until then. */
void fake_cuda_fail(const char *name);

/* The device whose memory begins at or contains the address. */
enum { FAKE_CUDA_HOST = -1, FAKE_CUDA_UNMAPPED = -2 };
int fake_cuda_owner(uint64_t address);
/* The start of the segment around the address; 0 for any other memory. */
uint64_t fake_cuda_base(uint64_t address);
/* Whether the device may access the memory. */
bool fake_cuda_may(int device, uint64_t address, size_t size);

/* Functions of the driver that the runtime of cudart.c needs and fragsim does
 * not, by the names of the driver, except that cuStreamGetCaptureInfo has fewer
 * parameters. */
#define FAKE_CUDA_MORE(X)                                     \
    X(cuCtxGetCurrent, (cu_context *))                        \
    X(cuCtxSetCurrent, (cu_context))                          \
    X(cuStreamSynchronize, (cu_stream))                       \
    X(cuStreamQuery, (cu_stream))                             \
    X(cuEventSynchronize, (cu_event))                         \
    X(cuStreamBeginCapture_v2, (cu_stream, int))              \
    X(cuStreamEndCapture, (cu_stream, void **))               \
    X(cuStreamGetCaptureInfo, (cu_stream, int *, uint64_t *)) \
    X(cuThreadExchangeStreamCaptureMode, (int *))

#endif
