/* cuda.h - a CUDA device as a backend: implements policies/device/backend.h
 * with calls of the CUDA driver.
 *
 * Each operation is the driver's call of the same name; `map` also grants
 * access. `now` reads the host's clock, so the times that the replay engine
 * adds up are measured times. All copies are queued on the default stream,
 * whatever stream the caller names, so that copies, fills and checks of a
 * replay run one after another.
 *
 * The backend keeps no list of its memory. The caller releases everything that
 * it allocated, as the engine's meter does on every way out. A lasting error of
 * the device is FRAG_DEVICE, and the driver's message for the first one is
 * kept. Calls may come from any thread, one at a time.
 */
#ifndef FRAG_REAL_DEVICE_CUDA_H
#define FRAG_REAL_DEVICE_CUDA_H

#include "policies/device/backend.h"
#include "real/device/cuda_driver.h"

struct frag_cuda_options {
    int ordinal; /* number of the GPU, from 0 */
    bool busy;   /* a program has work queued on the device: unmap waits for
                  * that work first, as cuMemFree does by itself */
    bool shared; /* physical memory can be shared with other processes
                  * (device_share.h), if the driver supports it */
};

/* Returns FRAG_DEVICE with the driver's message, or FRAG_NOMEM. The capacity is
 * unlimited, since the device sets its own limit; sim/twin.h can set a lower
 * one. */
enum frag_err frag_cuda_open(const struct frag_cuda_options *options,
                             struct frag_backend **out,
                             struct frag_error *e) FRAG_MUST_CHECK;
void frag_cuda_close(struct frag_backend *mem); /* NULL is allowed */

/* The driver's message for the first lasting error of the device, "" if there
 * was none. */
const char *frag_cuda_words(const struct frag_backend *mem);

/* Stores the free bytes of the device as the driver reports them, counting all
 * processes. Returns FRAG_DEVICE. */
enum frag_err frag_cuda_free_bytes(struct frag_backend *mem,
                                   frag_size *bytes) FRAG_MUST_CHECK;

/* Writes a description such as "NVIDIA H200, CUDA driver API 13.0, driver
 * 580.159.04", as far as the driver and the kernel report it. */
enum { FRAG_CUDA_NAME = 176 };
void frag_cuda_describe(const struct frag_backend *mem,
                        char text[FRAG_CUDA_NAME]);

/* Lets another device access all memory that is mapped from now on, as
 * cudaDeviceEnablePeerAccess does for segments. On a busy device, the devices
 * that the program let access it before frag_cuda_open are known. Returns
 * INVALID if there are FRAG_CUDA_PEERS devices already, FRAG_DEVICE if the
 * driver knows no such device. */
enum { FRAG_CUDA_PEERS = 64 };
enum frag_err frag_cuda_add_peer(struct frag_backend *mem,
                                 int ordinal) FRAG_MUST_CHECK;
/* Sets the access to one whole map, or several adjacent ones, again, for peers
 * that were added later. Returns FRAG_DEVICE. */
enum frag_err frag_cuda_grant(struct frag_backend *mem, frag_addr addr,
                              frag_size size) FRAG_MUST_CHECK;

/* For other work on the same device: its driver, and its context, which
 * frag_cuda_enter makes current to this thread until frag_cuda_leave. Returns
 * FRAG_DEVICE. */
const struct cu_driver *frag_cuda_driver(const struct frag_backend *mem);
enum frag_err frag_cuda_enter(struct frag_backend *mem) FRAG_MUST_CHECK;
void frag_cuda_leave(struct frag_backend *mem);
/* Converts a result of the driver from such work to FRAG_OK, FRAG_OOM or
 * FRAG_DEVICE. It keeps the message of the first lasting error, which names
 * `call`. */
enum frag_err frag_cuda_answer(struct frag_backend *mem, const char *call,
                               cu_result code);

#endif
