/* anchors.h - the recorded base addresses of segments, for an arena that places
 * its segments there (FRAG_RULE_ANCHORED). */
#ifndef FRAG_SIM_VALIDATE_ANCHORS_H
#define FRAG_SIM_VALIDATE_ANCHORS_H

#include "sim/arena/arena.h"
#include "traces/trace.h"

/* Lists the recorded base and size of each ordinary segment, in order, in
 * arena->bases, sizes and base_count; frag_anchors_free frees them, also after
 * NOMEM. */
enum frag_err frag_anchors_make(const struct frag_recorded *r,
                                struct frag_arena_options *arena,
                                struct frag_error *e) FRAG_MUST_CHECK;
void frag_anchors_free(struct frag_arena_options *arena);

#endif
