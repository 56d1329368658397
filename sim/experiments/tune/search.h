/* search.h - the search for the best setting of PyTorch's allocator.
 *
 * A coarse grid, then simulated annealing from the best points of it, then
 * coordinate descent: every place of every axis, until none is better. Settings
 * with expandable segments and without are searched apart, half of the effort
 * each, as one kind's best says nothing of the other's. What is found is a
 * function of the traces, the goal, the space, the seed and the number of
 * evaluations, whatever the threads; no point that was tried is better.
 */
#ifndef FRAG_SIM_EXPERIMENTS_TUNE_SEARCH_H
#define FRAG_SIM_EXPERIMENTS_TUNE_SEARCH_H

#include <pthread.h>

#include "sim/experiments/cell.h"
#include "sim/experiments/parallel.h"
#include "sim/experiments/tune/space.h"

struct tune_case {
    const char *name;
    const struct frag_device_trace *device;
};

/* One run, up to its first OOM. */
struct tune_result {
    frag_size peak; /* reserved */
    uint64_t calls; /* of the driver: segments, maps, unmaps, waits */
    double seconds; /* of those calls, modelled */
    uint64_t first_oom;
};

/* Peak reserved is made small, over all cases the mean of its logarithm; on
 * every case within these bounds, which are over the default's at unlimited
 * capacity. */
struct tune_goal {
    frag_size capacity;     /* to survive */
    double max_calls_ratio; /* 0.01: 1 % more calls; INFINITY */
    double max_seconds;     /* more; INFINITY */
};

/* A setting that was tried. */
struct tune_trial {
    struct tune_point point;
    const char *text;
    struct tune_result *results; /* one a case */
    double excess;  /* 0: within the bounds; else how far from it, summed */
    double value;   /* mean over the cases of ln(peak / default's peak) */
    double seconds; /* over all cases */
    uint64_t calls;
};

struct tune_search {
    /* Given; borrowed. */
    const struct cell_settings *settings; /* stop_at_oom */
    const struct tune_case *cases;
    size_t case_count;
    struct tune_goal goal;
    struct tune_space space;
    uint64_t seed, evaluations; /* of the annealing, in all */
    struct parallel on;

    /* Found. */
    struct tune_result *base;   /* the default's at unlimited capacity */
    struct tune_trial **trials; /* sorted, the best first */
    size_t trial_count;

    /* While it runs. */
    pthread_mutex_t lock;
    void *known; /* tree of trials by text */
};

/* Runs torch with the settings on one case. Errors of cell_run. */
enum frag_err tune_run(const struct cell_settings *settings,
                       const struct stop *stop, const struct tune_case *on,
                       frag_size capacity, const char *text,
                       struct tune_result *out,
                       struct frag_error *e) FRAG_MUST_CHECK;

/* Errors of cell_run. Sets classes and reference of the space. s is to be
 * closed either way. */
enum frag_err tune_search_run(struct tune_search *s,
                              struct frag_error *e) FRAG_MUST_CHECK;
void tune_search_close(struct tune_search *s);

/* The trial of a settled point, run if it was not yet; owned by s. Not in
 * `trials` where it comes after the search. */
enum frag_err tune_try(struct tune_search *s, const struct tune_point *p,
                       const struct tune_trial **out,
                       struct frag_error *e) FRAG_MUST_CHECK;

/* Orders trials: within the bounds first, then by value, seconds, and the
 * shortest text. */
int tune_compare(const struct tune_trial *a, const struct tune_trial *b);

#endif
