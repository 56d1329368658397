/* pattern.h - fills blocks on the device with patterns that differ from block
 * to block, and verifies them.
 *
 * There are two kernels, written in PTX so that no CUDA compiler is needed. One
 * fills a range. The other finds the first place in a range that differs from
 * its pattern. Each thread handles 16 bytes at a time. The end of a range is
 * rounded up to 16 bytes; the extra bytes lie in the same block, since every
 * block begins at a multiple of 256.
 */
#ifndef FRAG_REAL_DEVICE_PATTERN_H
#define FRAG_REAL_DEVICE_PATTERN_H

#include "policies/device/backend.h"

struct frag_pattern;

/* mem is a borrowed backend of real/device/cuda.h. Returns FRAG_DEVICE with the
 * driver's message, or FRAG_NOMEM. */
enum frag_err frag_pattern_open(struct frag_backend *mem,
                                struct frag_pattern **out,
                                struct frag_error *e) FRAG_MUST_CHECK;
void frag_pattern_close(struct frag_pattern *p); /* NULL is allowed */

/* Queues a fill of the range behind all copies that were queued before. Ranges
 * with different seeds have different contents. Returns FRAG_DEVICE. */
enum frag_err frag_pattern_fill(struct frag_pattern *p, frag_addr addr,
                                frag_size size, uint64_t seed) FRAG_MUST_CHECK;

/* Waits for the device. *wrong is the offset of the first 16 bytes that differ
 * from the pattern, or UINT64_MAX if none differ. Returns FRAG_DEVICE. */
enum frag_err frag_pattern_verify(struct frag_pattern *p, frag_addr addr,
                                  frag_size size, uint64_t seed,
                                  frag_size *wrong) FRAG_MUST_CHECK;

#endif
