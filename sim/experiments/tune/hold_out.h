/* hold_out.h - tests a choice of settings on what the choice did not see: the
 * second half of the only trace, or each of several traces in turn. */
#ifndef FRAG_SIM_EXPERIMENTS_TUNE_HOLD_OUT_H
#define FRAG_SIM_EXPERIMENTS_TUNE_HOLD_OUT_H

#include "sim/experiments/tune/ladder.h"

/* The setting that was chosen without one part of the traces, or the recorded
 * ones if none was within the bounds, with its results on that part. */
struct tune_held_out {
    char *name;               /* of the part; owned */
    char *text;               /* the setting; owned; NULL: the recorded ones */
    struct tune_result base;  /* the recorded settings on that part */
    struct tune_result found; /* the setting on that part */
};

struct tune_held_outs {
    struct tune_held_out *parts;
    size_t count;
};

/* Climbs the ladder `of` again without each part. The halves of a single trace
 * meet at the step that is nearest to its middle, or in the middle of its
 * events; a trace that was completed, or is too short to cut, has no parts.
 * Errors of tune_climb and frag_edits_apply; the caller closes *out, on error
 * too. */
enum frag_err tune_hold_out(const struct tune_ladder *of,
                            struct tune_held_outs *out,
                            struct frag_error *e) FRAG_MUST_CHECK;
void tune_held_outs_close(struct tune_held_outs *h);

#endif
