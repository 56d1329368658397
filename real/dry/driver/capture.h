/* capture.h - the state of the fake driver's stream captures: which streams are
 * captured, and which calls a capture forbids. Private to real/dry/. The
 * caller holds the driver's lock.
 *
 * Source: CUDA driver API 13.0, cuStreamBeginCapture and
 * cuThreadExchangeStreamCaptureMode.
 */
#ifndef FRAG_REAL_DRY_DRIVER_CAPTURE_H
#define FRAG_REAL_DRY_DRIVER_CAPTURE_H

#include <stdbool.h>
#include <stdint.h>

#include "real/device/cuda_driver.h"

cu_result capture_begin(cu_stream stream, int mode);
/* Ends the capture that began on the stream. *graph is the number of the
 * capture, times 16; NULL if a forbidden call made the capture invalid. */
cu_result capture_end(cu_stream stream, void **graph);
/* CUstreamCaptureStatus of the stream; sets *id if it is captured. */
int capture_status(cu_stream stream, uint64_t *id);
bool capture_has(cu_stream stream);
bool capture_is_active(void);
/* `stream` waits for an event of a captured stream. */
void capture_joins(cu_stream stream, cu_stream captured);
/* Whether a call that may synchronize is forbidden in this thread. */
bool capture_forbids(void);
/* Prints the name of the forbidden call, makes all captures invalid and returns
 * the driver's error. */
cu_result capture_refuses(const char *name);
void capture_exchange(int *mode);

#endif
