/* anchors.h - the recorded base addresses of segments and reservations, for
 * an arena that places them there (FRAG_RULE_ANCHORED). */
#ifndef FRAG_SIM_VALIDATE_ANCHORS_H
#define FRAG_SIM_VALIDATE_ANCHORS_H

#include "sim/arena/arena.h"
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

#endif
