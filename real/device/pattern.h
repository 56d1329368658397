/* pattern.h - a pattern of its own in every block, on the device.
 *
 * Two kernels, in PTX so that no compiler is needed to build them: one fills a
 * range, one finds the first place where it is no longer as filled. Both go
 * through it 16 bytes a thread at a time; the last part of a range is rounded
 * up to 16 bytes, which lie in the same block as every block begins on a
 * multiple of 256.
 */
#ifndef FRAG_REAL_DEVICE_PATTERN_H
#define FRAG_REAL_DEVICE_PATTERN_H

#include "policies/device/backend.h"

struct frag_pattern;

/* mem is a backend of real/device/cuda.h, borrowed. DEVICE with the driver's
 * words, NOMEM. */
enum frag_err frag_pattern_open(struct frag_backend *mem,
                                struct frag_pattern **out,
                                struct frag_error *e) FRAG_MUST_CHECK;
void frag_pattern_close(struct frag_pattern *p); /* NULL is fine */

/* Queues the filling of a range after all copies queued before. Ranges with
 * different seeds have different contents. DEVICE. */
enum frag_err frag_pattern_fill(struct frag_pattern *p, frag_addr addr,
                                frag_size size, uint64_t seed) FRAG_MUST_CHECK;

/* Waits for the device; *wrong is the offset of the first 16 bytes that are not
 * as filled, UINT64_MAX if all are. DEVICE. */
enum frag_err frag_pattern_verify(struct frag_pattern *p, frag_addr addr,
                                  frag_size size, uint64_t seed,
                                  frag_size *wrong) FRAG_MUST_CHECK;

#endif
