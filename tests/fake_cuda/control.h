/* control.h - functions of the fake driver, beside those of the real driver,
 * with which a test controls it and reads its state. Tests find them with
 * dlsym, since the fake's name is libcuda.so.1 too.
 */
#ifndef FRAG_TESTS_FAKE_CUDA_CONTROL_H
#define FRAG_TESTS_FAKE_CUDA_CONTROL_H

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
/* Makes the next call of that name fail. The name is borrowed until then. */
void fake_cuda_fail(const char *name);

#endif
