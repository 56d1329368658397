/* verify.h - settings and event streams for a run on a real device.
 *
 * A job a line, as JSON: "events" (a path), "conf" (the settings), "cap" (a
 * memory limit in bytes, 0: none), "repeat", and under "predicted" what is to
 * come of it. An event stream is records of 24 bytes, little-endian: u32 op
 * (0 alloc, 1 free, 2 empty_cache), u32 stream, u64 id, u64 bytes.
 */
#ifndef FRAG_SIM_EXPERIMENTS_TUNE_VERIFY_H
#define FRAG_SIM_EXPERIMENTS_TUNE_VERIFY_H

#include <stdio.h>

#include "sim/experiments/tune/search.h"

/* UNSUPPORTED if a case has private pools, which such a run does not have. */
enum frag_err tune_verify_check(const struct tune_search *s,
                                struct frag_error *e) FRAG_MUST_CHECK;

/* The event stream of a case. */
void tune_verify_events(const struct tune_case *of, FILE *out);

/* The jobs of case i, whose stream is in the file `events`: the default's and
 * the best trial's. */
void tune_verify_jobs(const struct tune_search *s, size_t i, const char *events,
                      FILE *out);

#endif
