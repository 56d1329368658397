/* service_device.h - one device under the adaptor: the policy that serves it,
 * the streams that use it, and the blocks whose frees wait for streams.
 *
 * Not thread-safe.
 */
#ifndef FRAG_REAL_TORCH_SERVICE_DEVICE_H
#define FRAG_REAL_TORCH_SERVICE_DEVICE_H

#include "real/torch/service.h"
#include "real/torch/service_settings.h"
#include "sim/replay/serve.h"
#include "sim/results/results.h"

struct device;

/* Returns FRAG_DEVICE, FRAG_UNSUPPORTED, FRAG_INVALID or FRAG_NOMEM, with a
 * message. The listener is borrowed; its functions may be NULL. */
enum frag_err device_open(int ordinal, const struct settings *settings,
                          const struct frag_torch_listener *listener,
                          struct device **out,
                          struct frag_error *e) FRAG_MUST_CHECK;

/* FRAG_OOM is a normal outcome; after any other error the program cannot
 * continue. */
enum frag_err device_alloc(struct device *d, frag_size size,
                           frag_torch_stream stream, struct frag_served *out,
                           struct frag_error *e) FRAG_MUST_CHECK;
/* `stream` is the stream of the block's request. Sets *waits if other streams
 * use the block; the listener's `freed` is called when they are done. Returns
 * FRAG_INVALID if no live block begins at addr. */
enum frag_err device_free(struct device *d, frag_addr addr,
                          frag_torch_stream stream, bool *waits,
                          struct frag_error *e) FRAG_MUST_CHECK;
/* Notes that the stream uses the block too. Does nothing if no block of this
 * device begins at addr. Returns FRAG_NOMEM. */
enum frag_err device_use(struct device *d, frag_addr addr,
                         frag_torch_stream stream) FRAG_MUST_CHECK;
enum frag_err device_trim(struct device *d,
                          struct frag_error *e) FRAG_MUST_CHECK;

/* Lets another device access the memory that is mapped now or later. Returns
 * FRAG_DEVICE, or FRAG_INVALID if there are too many peers. */
enum frag_err device_add_peer(struct device *d, int ordinal,
                              struct frag_error *e) FRAG_MUST_CHECK;
/* Sets the program's limit, 0: none (frag_backend.limit). It counts the bytes
 * of segments and maps; the capacity counts what the device uses for them. */
void device_limit(struct device *d, frag_size limit);

/* The CUDA backend, for memory that is shared with other processes. */
struct frag_backend *device_gpu(const struct device *d);

/* The numbers of service.h. */
struct device_numbers {
    struct frag_serve_memory memory;
    uint64_t calls; /* of the driver */
    frag_time ns;   /* spent in them */
};
struct device_numbers device_numbers(const struct device *d);

/* Ends the service of the device and adds its run to *r, under the name of the
 * program. */
enum frag_err device_report(struct device *d, int ordinal,
                            const struct settings *settings,
                            const char *program, struct frag_results *r,
                            struct frag_error *e) FRAG_MUST_CHECK;

#endif
