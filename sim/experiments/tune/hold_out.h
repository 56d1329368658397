/* hold_out.h - tests a choice of settings on what the search did not see: the
 * second half of the only trace, or each of several traces in turn. */
#ifndef FRAG_SIM_EXPERIMENTS_TUNE_HOLD_OUT_H
#define FRAG_SIM_EXPERIMENTS_TUNE_HOLD_OUT_H

#include "sim/experiments/tune/choose.h"

/* A setting that a search without one part of the traces chose, or the nearest
 * to the bounds if none was within them, with its results on that part. */
struct tune_held_out {
    char *name;               /* of the part; owned */
    char *text;               /* the setting; owned */
    struct tune_result base;  /* PyTorch's default on that part */
    struct tune_result found; /* the setting on that part */
};

struct tune_held_outs {
    struct tune_held_out *parts;
    size_t count;
};

/* Repeats the search `of` and its choice without each part. A single trace that
 * is too short to cut has no parts. Errors of tune_search_run; the caller
 * closes *out, on error too. */
enum frag_err tune_hold_out(const struct tune_search *of,
                            const struct tune_rule *rule,
                            struct tune_held_outs *out,
                            struct frag_error *e) FRAG_MUST_CHECK;
void tune_held_outs_close(struct tune_held_outs *h);

#endif
