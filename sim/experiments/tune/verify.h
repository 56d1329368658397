/* verify.h - writes the settings and event streams that a run on a real device
 * needs to verify a result. It does not run them.
 *
 * A job is one line of JSON: "events" (the path of an event stream), "conf"
 * (the settings), "cap" (a limit of the process in bytes, 0: none), "repeat",
 * and "predicted" (the expected result). An event stream is a sequence of
 * entries of 24 bytes, little-endian: u32 op (0 alloc, 1 free, 2 empty_cache),
 * u32 stream, u64 id, u64 bytes.
 */
#ifndef FRAG_SIM_EXPERIMENTS_TUNE_VERIFY_H
#define FRAG_SIM_EXPERIMENTS_TUNE_VERIFY_H

#include <stdio.h>

#include "sim/experiments/tune/ladder.h"

/* UNSUPPORTED if a case has private pools or a capacity, which an event stream
 * and a job cannot express. */
enum frag_err tune_verify_check(const struct tune_ladder *l,
                                struct frag_error *e) FRAG_MUST_CHECK;

/* Writes the event stream of a case. */
void tune_verify_events(const struct tune_case *of, FILE *out);

/* Writes the two jobs of case i: the recorded settings and those of `rung`. The
 * event stream of the case is in the file `events`. */
void tune_verify_jobs(const struct tune_ladder *l, const struct tune_rung *rung,
                      size_t i, const char *events, FILE *out);

#endif
