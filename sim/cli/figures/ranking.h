/* ranking.h - compares policies over the traces of a selection.
 *
 * A subject is one device of one trace; a cell is a subject under one bound.
 * Policies are compared on the cells that every candidate has, a candidate
 * being a policy that does not know the future. A cell whose bound is below
 * what its subject asks for is left out as well, because no policy can survive
 * there. The policy that fails on fewer of these cells is better; of equals,
 * the one with less memory, then the one with less driver time. Memory is that
 * of the roomiest compared run of each subject: the need if all of these have
 * it (`fragsim sweep --need'), else peak reserved.
 */
#ifndef FRAG_SIM_CLI_FIGURES_RANKING_H
#define FRAG_SIM_CLI_FIGURES_RANKING_H

#include "sim/cli/figures/selection.h"

/* The result of one policy, on the compared cells; on its own ones if it has
 * none of these. */
struct standing {
    size_t row;                          /* its row in ranking.cells */
    size_t rank;                         /* its place in ranking.order */
    const struct frag_loaded_run *first; /* its first run: name, parameters */
    const struct frag_loaded_run *worst; /* its roomiest run with the highest
                                            memory over lower bound */
    const struct frag_loaded_run *worst_need; /* private to ranking.c */
    size_t cells;                             /* cells on which it has a run */
    size_t compared; /* those of them that are compared */
    size_t subjects; /* subjects of its roomiest runs */
    size_t failed;   /* roomiest runs with an OOM */
    size_t limited;  /* compared runs on a limited device */
    size_t survived; /* those of them without an OOM */
    uint64_t ooms;   /* sum over the roomiest runs */
    double reserved; /* geometric mean over subjects of peak reserved / lower
                        bound; a subject with nothing served counts as 1 */
    double need;     /* the same for the need, if ranking.has_needs */
    double memory;   /* the one of both that is compared */
    double seconds;  /* modelled device seconds, sum over subjects */
    frag_size peak;  /* the highest peak reserved */
    frag_size moved; /* bytes, sum over subjects */
    bool is_offline; /* it knows the future: a bound, not a usable policy */
    bool is_whole;   /* it has a roomiest run on every subject and none failed,
                        so that its means can be compared */
};

/* One device of one trace. */
struct ranked_subject {
    const struct frag_loaded_run *first;
    frag_size asked;  /* highest peak requested of its runs; a run that serves
                         every request has it */
    frag_size bound;  /* highest demand of its runs: no policy of the
                         selection serves every request with less */
    bool is_compared; /* it has a compared cell, or no subject has one */
};

/* Whether a cell is compared. */
enum ranked_state {
    RANKED_COMPARED,
    RANKED_IMPOSSIBLE, /* its bound is below the bound of its subject */
    RANKED_UNSHARED,   /* a candidate has no run on it */
    RANKED_STATES
};

/* A run, with the indices of its policy and subject, its place in the
 * selection, and the state of its cell. */
struct ranked_entry {
    const struct frag_loaded_run *run;
    size_t policy, subject, order;
    enum ranked_state state;
    bool is_repeated; /* an earlier run has its policy and cell, and counts */
};

struct ranking {
    struct standing *rows;         /* in the order of their first runs */
    const struct standing **order; /* the same, the best first */
    size_t count;
    struct ranked_subject *subjects;
    size_t subject_count;
    struct ranked_entry *entries; /* every run; by policy, subject, then
                              capacity, the largest first */
    size_t run_count;
    size_t cell_count[RANKED_STATES];
    bool has_needs; /* every roomiest run without an OOM has its need (`fragsim
                       sweep --need') */
    const struct frag_loaded_run *
        *cells; /* [count][subject_count]: the roomiest run, of the compared
                   ones if there is one; NULL: no run */
};

/* Peak reserved / lower bound; 1 if nothing was served. The need / lower bound;
 * 1 if it is not known, too. */
double peak_over_bound(const struct frag_loaded_run *r);
double need_over_bound(const struct frag_loaded_run *r);

/* Whether a run is compared and on a limited device. */
bool ranking_is_limited(const struct ranked_entry *e);

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
