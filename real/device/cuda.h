/* cuda.h - a CUDA device as a backend: policies/device/backend.h over the
 * driver.
 *
 * Each call is the driver's call of the same name; map also grants access.
 * `now` is the host's clock, so what the engine adds up are measured seconds.
 * Copies are queued on the default stream, whatever stream they are for, so
 * that they, the fills and the checks of a replay follow each other.
 *
 * The backend keeps no books: who uses it gives back what he took, as the
 * engine's meter does on every way out. A lasting error of the device is DEVICE
 * and its words are kept. Calls may come from any thread, one at a time.
 */
#ifndef FRAG_REAL_DEVICE_CUDA_H
#define FRAG_REAL_DEVICE_CUDA_H

#include "policies/device/backend.h"
#include "real/device/driver.h"

struct frag_cuda_options {
    int ordinal; /* of the GPU, from 0 */
    bool busy;   /* a program has work queued: unmap waits for it first, as a
                    cuMemFree does of its own */
};

/* DEVICE with the driver's words, NOMEM. capacity is unlimited: the device is
 * what it is; sim/twin.h sets limits. */
enum frag_err frag_cuda_open(const struct frag_cuda_options *options,
                             struct frag_backend **out,
                             struct frag_error *e) FRAG_MUST_CHECK;
void frag_cuda_close(struct frag_backend *mem); /* NULL is fine */

/* The first lasting error of the device in the driver's words, "" if none. */
const char *frag_cuda_words(const struct frag_backend *mem);

/* Bytes of device memory that nobody has taken, as the driver says. DEVICE. */
enum frag_err frag_cuda_free_bytes(struct frag_backend *mem,
                                   frag_size *bytes) FRAG_MUST_CHECK;

/* "NVIDIA H200, CUDA driver API 13.0, driver 580.159.04": what it is, as far as
 * the driver and the kernel say. */
enum { FRAG_CUDA_NAME = 160 };
void frag_cuda_describe(const struct frag_backend *mem,
                        char text[FRAG_CUDA_NAME]);

/* For other work on the same device: the driver, and its context made current
 * to this thread until leave. DEVICE. */
const struct cu_driver *frag_cuda_driver(const struct frag_backend *mem);
enum frag_err frag_cuda_enter(struct frag_backend *mem) FRAG_MUST_CHECK;
void frag_cuda_leave(struct frag_backend *mem);
/* Notes an error of the driver that came of such work; the answer is OK, OOM or
 * DEVICE. */
enum frag_err frag_cuda_answer(struct frag_backend *mem, const char *call,
                               cu_result code);

#endif
