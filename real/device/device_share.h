/* device_share.h - physical memory that another process maps too.
 *
 * The memory of one map leaves the process as a file descriptor. The other
 * process copies the descriptor with pidfd_getfd, which needs Linux 5.6 and the
 * right to trace the first process. Memory stays until neither process has it
 * mapped or holds a descriptor of it. A failure is no lasting error of the
 * device, except where noted, and changes nothing.
 */
#ifndef FRAG_REAL_DEVICE_DEVICE_SHARE_H
#define FRAG_REAL_DEVICE_DEVICE_SHARE_H

#include "policies/device/backend.h"

/* Stores a new file descriptor of the memory of the map at addr, which the
 * caller closes. The backend was opened with `shared`. Returns FRAG_UNSUPPORTED
 * if the driver or the process can make none, with a message. */
enum frag_err frag_cuda_export(struct frag_backend *mem, frag_addr addr,
                               int *file, struct frag_error *e) FRAG_MUST_CHECK;

/* Memory of another process: `count` maps, with these sizes in bytes and file
 * descriptors of that process. */
struct frag_cuda_shared {
    int process;
    const uint64_t *sizes;
    const int *files;
    size_t count;
};

/* Maps the memory one part after the other and stores the address. Returns
 * FRAG_UNSUPPORTED if the kernel does not pass the descriptors or the driver
 * does not accept them, FRAG_DEVICE (lasting) if access cannot be set; all with
 * a message. */
enum frag_err frag_cuda_import(struct frag_backend *mem,
                               const struct frag_cuda_shared *from,
                               frag_addr *addr,
                               struct frag_error *e) FRAG_MUST_CHECK;
/* Waits for the device and unmaps what frag_cuda_import mapped, `size` bytes in
 * all. Returns FRAG_DEVICE with a message; the memory then stays mapped. */
enum frag_err frag_cuda_forget(struct frag_backend *mem, frag_addr addr,
                               frag_size size,
                               struct frag_error *e) FRAG_MUST_CHECK;

#endif
