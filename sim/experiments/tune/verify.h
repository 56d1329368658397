/* verify.h - settings and event streams for a run on a real device.
 *
 * A job a line, as JSON: "events" (a path), "conf" (the settings), "cap" (a
 * memory limit in bytes, 0: none), "repeat", and under "predicted" what is to
 * come of it. An event stream is records of 24 bytes, little-endian: u32 op
 * (0 alloc, 1 free, 2 empty_cache), u32 stream, u64 id, u64 bytes.
 */
#ifndef FRAG_SIM_EXPERIMENTS_TUNE_VERIFY_H
#define FRAG_SIM_EXPERIMENTS_TUNE_VERIFY_H

#include "sim/experiments/tune/search.h"

/* Writes the jobs to `path`, for each case the default's and the best trial's,
 * and beside it, as PATH.TRACE.DEVICE.events, the streams. UNSUPPORTED if a
 * case has private pools, which such a run does not have; IO, NOMEM. */
enum frag_err tune_verify_write(const char *path, const struct tune_search *s,
                                struct frag_error *e) FRAG_MUST_CHECK;

#endif
