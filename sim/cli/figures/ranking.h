/* ranking.h - how each policy did over the traces of a selection.
 *
 * A subject is a device of a trace. Policies are compared by their run with the
 * most memory on each subject (unlimited, where there is such a run): what they
 * reserve when nothing stops them. Runs on a limited device say who survives.
 */
#ifndef FRAG_SIM_CLI_FIGURES_RANKING_H
#define FRAG_SIM_CLI_FIGURES_RANKING_H

#include "sim/cli/figures/selection.h"

/* One policy's row. */
struct standing {
    size_t row;                          /* its number in cells */
    const struct frag_loaded_run *first; /* its first run: name, parameters */
    const struct frag_loaded_run *worst; /* of its roomiest runs, that with the
                                            highest peak over lower bound */
    size_t subjects;                     /* that it has a run on */
    size_t failed;   /* of those, where even the roomiest run has an OOM */
    size_t limited;  /* runs on a limited device */
    size_t survived; /* of those, without an OOM */
    uint64_t ooms;   /* of the roomiest runs */
    double memory;   /* geometric mean over subjects of peak reserved over lower
                        bound; 1 where nothing was served */
    double seconds;  /* modelled device seconds, sum over subjects */
    frag_size peak;  /* the highest peak reserved */
    frag_size moved; /* bytes, sum over subjects */
    bool is_offline; /* it knows the future: a bound, and nothing to run */
    bool is_whole;   /* it has a run on every subject, and none has failed: the
                        means may be compared */
};

/* A device of a trace. */
struct subject {
    const struct frag_loaded_run *first;
    frag_size asked; /* the highest peak requested of its runs: that of those
                        that serve every request, where there is one */
};

/* A run, with the numbers of its policy and its subject. */
struct entry {
    const struct frag_loaded_run *run;
    size_t policy, subject, order;
};

struct ranking {
    struct standing *rows; /* in the order of first runs */
    size_t count;
    struct subject *subjects;
    size_t subject_count;
    struct entry *entries; /* every run; by policy, subject, then capacity, the
                              roomiest first */
    size_t run_count;
    const struct frag_loaded_run *
        *cells; /* [count][subject_count]: the roomiest
                   run, NULL where there is none */
};

/* By memory: the least first, then the fewest seconds; who is not whole comes
 * last. For qsort over copies of the rows. */
int standing_compare(const void *left, const void *right);

/* Peak reserved over the lower bound, 1 where nothing was served. */
double peak_over_bound(const struct frag_loaded_run *r);

bool is_same_subject(const struct frag_loaded_run *a,
                     const struct frag_loaded_run *b);

/* NOMEM. Borrows from s. O(runs x (policies + subjects)). */
enum frag_err ranking_make(const struct selection *s,
                           struct ranking *out) FRAG_MUST_CHECK;
void ranking_free(struct ranking *r);

#endif
