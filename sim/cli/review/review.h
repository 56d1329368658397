/* review.h - result files judged, and the page that says so.
 *
 * The question is always the same: which policy or setting fits where others
 * fail, what does it save, what does it cost? Policies are ordered by the runs
 * on limited devices that they do not survive, then by memory, then by modelled
 * seconds. One that knows the future is shown and never chosen; nor is one
 * whose driver calls take too much of the recorded time.
 */
#ifndef FRAG_SIM_CLI_REVIEW_REVIEW_H
#define FRAG_SIM_CLI_REVIEW_REVIEW_H

#include "sim/cli/figures/ranking.h"
#include "sim/cli/output/progress.h"

struct review {
    /* What the caller says; borrowed. */
    const struct texts *paths;
    const struct result_files *files;
    const char *command;       /* that made the page */
    const char *baseline_name; /* policy to compare with; NULL: torch, or the
                                  first where it is not there */
    double slowdown; /* share of the recorded time that a choice may add in
                        driver calls */
    struct progress *progress;

    /* What review_make finds. */
    struct selection runs;
    struct ranking ranking;
    struct standing *order;          /* ranking.rows, the best first */
    const struct standing *baseline; /* into order, as those below */
    const struct standing *choice;   /* best within the slowdown */
    const struct standing *setting;  /* best of those that PyTorch's users can
                                        switch on; NULL: none */
    const struct standing *ceiling;  /* best that can run, whatever it costs */
    double recorded; /* s, sum over subjects; 0: the traces carry no times */
    bool is_limited; /* some run is on a limited device */
};

/* Fills in the second part. INVALID where there are no runs or baseline_name is
 * not among them, NOMEM. On error nothing need be freed. */
enum frag_err review_make(struct review *r,
                          struct frag_error *e) FRAG_MUST_CHECK;
void review_free(struct review *r);

/* What s adds to the baseline's driver time, as a share of the recorded time; 0
 * where that is not known. */
double review_extra(const struct review *r, const struct standing *s);

/* What PyTorch's user exports for s: "expandable_segments:True", the value of
 * PYTORCH_CUDA_ALLOC_CONF; NULL if it is no setting of PyTorch. */
const char *review_setting(const struct standing *s);

/* Writes the page. Runs gnuplot once a figure: IO where it is missing.
 * CANCELLED where the user interrupted. */
enum frag_err review_write(const struct review *r, FILE *out,
                           struct frag_error *e) FRAG_MUST_CHECK;

#endif
