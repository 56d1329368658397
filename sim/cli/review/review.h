/* review.h - judges the policies of result files, and writes the page with the
 * recommendation.
 *
 * The question is always the same: which policy or setting fits where others
 * fail, what does it save, and what does it cost? ranking.h orders the policies
 * and says on which runs they are compared; the words, the tables and the
 * figures follow it. A policy whose driver calls add too much to the recorded
 * time is shown but never chosen. A policy that knows the future is a bound,
 * not a candidate: it is shown apart, never chosen, and never the baseline.
 */
#ifndef FRAG_SIM_CLI_REVIEW_REVIEW_H
#define FRAG_SIM_CLI_REVIEW_REVIEW_H

#include "sim/cli/figures/ranking.h"
#include "sim/cli/output/progress.h"

/* Why a policy is the baseline. */
enum review_baseline {
    BASELINE_NAMED, /* the user named it */
    BASELINE_PLAIN, /* it is torch */
    BASELINE_EQUAL, /* its parameters are those of torch */
    BASELINE_FIRST, /* it is the first candidate; the results lack torch */
};

struct review {
    /* Input; borrowed. */
    const struct texts *paths;
    const struct result_files *files;
    const char *command;       /* command line that writes the page */
    const char *baseline_name; /* policy to compare with; NULL: torch, else a
                                  policy with the parameters of torch, else the
                                  first candidate */
    double slowdown; /* driver time that a choice may add to the baseline's, as
                        a share of the recorded time */
    const struct drawing *look; /* of all figures; its title is the page's */
    struct progress *progress;

    /* Output of review_make. */
    struct selection runs;
    struct ranking ranking;
    /* Pointers into ranking.order. */
    const struct standing *baseline;
    enum review_baseline baseline_kind;
    const struct standing *choice;  /* best within the slowdown */
    const struct standing *setting; /* best within the slowdown that is a
                                       setting of PyTorch; NULL: none, or the
                                       baseline is best */
    const struct standing *ceiling; /* best that can run, at any cost */
    const struct standing *loser;   /* last that can run */
    double recorded;   /* s, sum over subjects; 0: the traces have no times */
    bool is_limited;   /* at least one compared run is on a limited device */
    size_t impossible; /* runs that no policy can survive */
};

/* Fills the output members. INVALID if there are no runs of candidates or of
 * baseline_name, or if that policy knows the future; NOMEM. On error nothing
 * need be freed. */
enum frag_err review_make(struct review *r,
                          struct frag_error *e) FRAG_MUST_CHECK;
void review_free(struct review *r);

/* Driver seconds of s minus those of the baseline, as a share of the recorded
 * time; 0 if that is not known. */
double review_extra(const struct review *r, const struct standing *s);

/* The value of PYTORCH_CUDA_ALLOC_CONF that selects s, such as
 * "expandable_segments:True"; NULL if s is not a setting of PyTorch. It can be
 * printed between single quotes. */
const char *review_setting(const struct standing *s);

/* Writes the page. Runs gnuplot for each figure: IO if it is missing. CANCELLED
 * if the user interrupted; errors of page_write. */
enum frag_err review_write(struct review *r, const char *path,
                           struct frag_error *e) FRAG_MUST_CHECK;

#endif
