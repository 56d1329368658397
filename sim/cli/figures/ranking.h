/* ranking.h - compares policies over the traces of a selection.
 *
 * A subject is one device of one trace. The memory of policies is compared by
 * their run with the largest capacity on each subject (unlimited, if there is
 * such a run). Runs on limited devices show which policies survive. A run whose
 * capacity is below the lower bound of its subject is impossible: no policy of
 * the selection can survive there, so the run counts for no policy.
 */
#ifndef FRAG_SIM_CLI_FIGURES_RANKING_H
#define FRAG_SIM_CLI_FIGURES_RANKING_H

#include "sim/cli/figures/selection.h"

/* The result of one policy. "Roomiest run": its run with the largest capacity
 * on a subject. */
struct standing {
    size_t row;                          /* its row in ranking.cells */
    const struct frag_loaded_run *first; /* its first run: name, parameters */
    /* The roomiest runs with the highest peak, and need, over lower bound. */
    const struct frag_loaded_run *worst, *worst_need;
    size_t subjects; /* subjects on which it has a run */
    size_t failed;   /* subjects whose roomiest run has an OOM */
    size_t limited;  /* runs on a limited device that are not impossible */
    size_t survived; /* those of them without an OOM */
    uint64_t ooms;   /* sum over the roomiest runs */
    double memory;   /* geometric mean over subjects of peak reserved / lower
                        bound; a subject with nothing served counts as 1 */
    double need;     /* the same for the need, if ranking.has_needs */
    double seconds;  /* modelled device seconds, sum over subjects */
    frag_size peak;  /* the highest peak reserved */
    frag_size moved; /* bytes, sum over subjects */
    bool is_offline; /* it knows the future: a bound, not a usable policy */
    bool is_whole;   /* it has a run on every subject and none failed, so that
                        its means can be compared */
};

/* One device of one trace. */
struct ranked_subject {
    const struct frag_loaded_run *first;
    frag_size asked; /* highest peak requested of its runs; a run that serves
                        every request has it */
    frag_size bound; /* highest demand of its runs: no policy of the
                        selection serves every request with less */
};

/* A run, with the indices of its policy and subject, and its place in the
 * selection. */
struct ranked_entry {
    const struct frag_loaded_run *run;
    size_t policy, subject, order;
};

struct ranking {
    struct standing *rows; /* in the order of their first runs */
    size_t count;
    struct ranked_subject *subjects;
    size_t subject_count;
    struct ranked_entry *entries; /* every run; by policy, subject, then
                              capacity, the largest first */
    size_t run_count;
    bool has_needs; /* every roomiest run without an OOM has its need (`fragsim
                       sweep --need') */
    const struct frag_loaded_run *
        *cells; /* [count][subject_count]: the roomiest run; NULL: no run */
};

/* For qsort over copies of the rows: whole policies first, then by memory,
 * ascending, then by seconds, ascending, then by name. */
int standing_compare(const void *left, const void *right);

/* Peak reserved / lower bound; 1 if nothing was served. The need / lower bound;
 * 1 if it is not known, too. */
double peak_over_bound(const struct frag_loaded_run *r);
double need_over_bound(const struct frag_loaded_run *r);

/* Whether no policy of the selection can survive a run: its capacity is below
 * the bound of its subject. */
bool is_impossible(const struct ranking *g, const struct ranked_entry *e);

/* The ranking points into the runs of s. NOMEM. O(runs x (policies +
 * subjects)).
 */
enum frag_err ranking_make(const struct selection *s,
                           struct ranking *out) FRAG_MUST_CHECK;
void ranking_free(struct ranking *r);

/* For the limits of a figure that finds a ranking, or what begins with one. */
size_t ranking_count_policies(const void *found);
size_t ranking_count_subjects(const void *found);

#endif
