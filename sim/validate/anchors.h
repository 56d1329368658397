/* anchors.h - the recorded base addresses of segments and reservations, for
 * an arena that places them there (FRAG_RULE_ANCHORED), and what these
 * addresses show of the memory of other users. */
#ifndef FRAG_SIM_VALIDATE_ANCHORS_H
#define FRAG_SIM_VALIDATE_ANCHORS_H

#include "sim/arena/arena.h"
#include "sim/arena/hidden.h"
#include "traces/trace.h"

/* Lists the recorded base and size of each ordinary segment, in order, in
 * arena->bases, sizes and base_count, and of each reservation that was made
 * during the recording in range_bases, range_sizes and range_count. The sizes
 * of reservations follow from arena->total. frag_anchors_free frees them, also
 * after NOMEM. */
enum frag_err frag_anchors_make(const struct frag_recorded *r,
                                struct frag_arena_options *arena,
                                struct frag_error *e) FRAG_MUST_CHECK;
void frag_anchors_free(struct frag_arena_options *arena);

/* Whether two recordings show one process: as far as both reach, their segments
 * have the same addresses and sizes. The driver's base addresses differ from
 * process to process. */
bool frag_anchors_same(const struct frag_recorded *a,
                       const struct frag_recorded *b);

/* Learns the memory of other users from a recording. frag_hidden_free frees it.
 * NOMEM; then *out is all zero. */
enum frag_err frag_anchors_hidden(const struct frag_recorded *r,
                                  struct frag_hidden *out,
                                  struct frag_error *e) FRAG_MUST_CHECK;

#endif
