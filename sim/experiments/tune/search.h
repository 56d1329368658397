/* search.h - searches for the best settings of PyTorch's allocator for a set of
 * traces.
 *
 * The search is a coarse grid, then simulated annealing from the best points of
 * the grid, then coordinate descent, which tries every place of every axis
 * until no change is better. Settings with and without expandable segments are
 * searched separately, with half of the effort each, because the best of one
 * kind does not help with the other kind. Last, coordinate descents with at
 * most 1, 2, ... knobs show what each further knob saves. The result depends on
 * the traces, the goal, the space, the seed and the number of evaluations, but
 * not on the number of threads.
 *
 * The search finds the best setting; choose.h chooses a simpler one that is
 * almost as good.
 */
#ifndef FRAG_SIM_EXPERIMENTS_TUNE_SEARCH_H
#define FRAG_SIM_EXPERIMENTS_TUNE_SEARCH_H

#include <pthread.h>

#include "sim/experiments/noted.h"
#include "sim/experiments/parallel.h"
#include "sim/experiments/tune/space.h"

struct tune_case {
    const char *name;
    const struct frag_device_trace *device;
    const struct frag_trace *trace; /* of the device; for its notes */
    struct tune_memo *memo; /* memo.h; of the device, or of a longer trace that
                               begins with it. NULL: every run is a replay */
};

/* One run, up to its first OOM. */
struct tune_result {
    frag_size peak; /* reserved */
    uint64_t calls; /* driver calls: segments, maps, unmaps, waits */
    double seconds; /* modelled time of those calls */
    uint64_t first_oom;
};

/* The search minimizes the mean, over all cases, of the logarithm of peak
 * reserved. Every case must survive the capacity and stay within both bounds.
 * The bounds are relative to the default settings at unlimited capacity;
 * INFINITY means no bound. */
struct tune_goal {
    frag_size capacity;     /* that every case must survive */
    double max_calls_ratio; /* upper bound on extra driver calls, relative to
                               the default: 0.01 is 1 % */
    double max_seconds;     /* upper bound on extra modelled seconds */
};

/* A point that was tried. */
struct tune_trial {
    struct tune_point point;
    const char *text;
    struct tune_result *results; /* one for each case */
    double excess;  /* how far the cases exceed the bounds, summed; 0: all are
                       within the bounds */
    double value;   /* mean over the cases of ln(peak / default's peak) */
    double seconds; /* over all cases */
    uint64_t calls;
    bool survives; /* no case runs out of memory */
    struct tune_size size;
};

struct tune_search;

/* Tells how far a search is. `began` is called when it starts, on its thread.
 * `told` is called after a setting was run: `done` of about `total` tries are
 * done, those of a setting that is already known included, and `saving` is that
 * of the best setting so far; `total` may grow. These calls come from any
 * thread, one at a time. Both are NULL if nobody wants to know. */
struct tune_progress {
    void (*began)(void *user, const struct tune_search *s);
    void (*told)(void *user, uint64_t done, uint64_t total, double saving);
    void *user;
};

struct tune_search {
    /* Input; the pointers are borrowed. */
    const struct cell_settings *settings; /* with stop_at_oom set */
    const struct tune_case *cases;
    size_t case_count;
    struct tune_goal goal;
    struct tune_space space;
    uint64_t seed,
        evaluations; /* evaluations: of the annealing, over all its chains */
    struct parallel on;
    struct tune_progress progress;

    /* Output. */
    struct tune_result *base;   /* the default's at unlimited capacity */
    struct tune_trial **trials; /* sorted, the best first */
    size_t trial_count;

    /* Used while the search runs. */
    pthread_mutex_t lock;
    void *known; /* tree of the trials by their texts */
    uint64_t done, planned;
    const struct tune_trial *best; /* NULL: none yet */
};

/* Runs the torch policy with the settings `text` and the rules of a version of
 * PyTorch 2 (one that is not modelled counts as 2.11) on one case. A result
 * that the case's memo implies needs no replay. Errors of cell_run. */
enum frag_err tune_run(unsigned version, const struct cell_settings *settings,
                       const struct stop *stop, const struct tune_case *on,
                       frag_size capacity, const char *text,
                       struct tune_result *out,
                       struct frag_error *e) FRAG_MUST_CHECK;

/* Finds the notes of case i with the settings `text`, at the capacity of the
 * goal; it runs the case once more. Errors of cell_run. */
enum frag_err tune_notes(const struct tune_search *s, size_t i,
                         const char *text, struct cell_notes *out,
                         struct frag_error *e) FRAG_MUST_CHECK;

/* The saving of a trial over all cases: 1 - the mean ratio of its peak to the
 * default's. NAN if a case runs out of memory. */
double tune_saving(const struct tune_trial *t);

/* Runs the search. It also sets the classes and the reference of the space.
 * Errors of cell_run. The caller closes s, on error too. */
enum frag_err tune_search_run(struct tune_search *s,
                              struct frag_error *e) FRAG_MUST_CHECK;
void tune_search_close(struct tune_search *s);

/* Finds or runs the trial of a settled point; s owns it. */
enum frag_err tune_try(struct tune_search *s, const struct tune_point *p,
                       const struct tune_trial **out,
                       struct frag_error *e) FRAG_MUST_CHECK;

/* Orders trials: those within the bounds first, then by value, by seconds, and
 * by the length of the text. */
int tune_compare(const struct tune_trial *a, const struct tune_trial *b);

#endif
