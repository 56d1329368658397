/* ladder.h - the one decision about settings: which settings of PyTorch's
 * allocator, if any, does a job need under its bound. Every command that names
 * a setting or a need takes them from here.
 *
 * The first rung is what the jobs had; then come PyTorch's default, expandable
 * segments, one size of blocks that are not split, and expandable segments with
 * smaller pages. No rung has a list of sizes, and no key that the
 * release which wrote a recording does not know. Of each rung is known what
 * happens under the bound, and what the job needs.
 *
 * The recorded settings stay if they are enough. Otherwise, of the rungs with
 * the best odds, the one that needs least has most room, and is chosen; a rung
 * with more knobs only if each of them is worth it: on steps that a search of
 * 2,000 settings did not see, what it found saved no more than expandable
 * segments alone (paper/pages/tune.md).
 */
#ifndef FRAG_SIM_EXPERIMENTS_TUNE_LADDER_H
#define FRAG_SIM_EXPERIMENTS_TUNE_LADDER_H

#include <pthread.h>

#include "sim/experiments/cell_notes.h"
#include "sim/experiments/parallel.h"
#include "sim/experiments/question.h"
#include "sim/experiments/tune/odds.h"
#include "sim/experiments/tune/requested_peak.h"

enum {
    TUNE_RUNGS = 12,  /* upper bound on their number */
    TUNE_TEXT = 1024, /* bytes that the text of a rung fits in */
};

/* What each further knob must save, of the need. */
#define TUNE_WORTH 0.01

/* The settings that are tried for pinned host memory; ended by NULL. */
extern const char *const tune_host_settings[];

struct tune_case {
    const char *name;
    const struct frag_device_trace *device;
    const struct frag_trace *trace;    /* of the device; for its settings, its
                                          release and its notes */
    struct frag_bound bound;           /* that the job must survive */
    struct frag_bound recorded;        /* under which it ran; FRAG_NO_BOUND */
    struct frag_completion completion; /* how far its recording reaches */
    frag_size peak; /* largest reserved bytes as recorded; 0: not known */
    bool went_on;   /* requests failed before that of which it died */
    struct requested_peak live; /* no allocator can help within less */
};

/* The known facts of a case with some settings. */
enum tune_outcome {
    TUNE_FAILS,    /* a request fails: of those that are recorded, or of a
                      complete run */
    TUNE_SERVES,   /* the recorded requests of a job that died are served */
    TUNE_SURVIVES, /* the complete run is known, and no request fails */
    TUNE_OUTCOMES
};

/* "fails", "serves what was recorded", "survives" */
extern const char *const tune_outcome_words[TUNE_OUTCOMES];

/* What some settings do for a case: a run under its bound, up to its first OOM,
 * and the need. */
struct tune_result {
    frag_size peak; /* reserved */
    uint64_t calls; /* driver calls: segments, maps, unmaps, waits */
    double seconds; /* modelled time of those calls */
    uint64_t first_oom;
    enum tune_outcome outcome;
    frag_size need; /* the least bound from which on no request fails, of a
                       job that died none of its completed trace; 0: not known
                     */
    bool is_most;   /* less may do: the search would have taken too long */
    frag_size
        enough; /* of a job that died: enough with a probability of
                   FRAG_SPREAD_LEVEL for all further steps; 0: not known */
    struct odds odds;
};

struct tune_rung {
    const char *text;            /* PYTORCH_CUDA_ALLOC_CONF; NULL: the recorded
                                    settings of each case, which differ */
    bool recorded;               /* the settings are the recorded ones */
    unsigned knobs;              /* settings in the text */
    struct tune_result *results; /* one for each case */
    double ratio;   /* mean of its needs to those of the recorded settings; of
                       peaks if a need is not known */
    double saving;  /* 1 - ratio; NAN if a case fails */
    uint64_t calls; /* over all cases */
    enum tune_outcome outcome; /* the worst of all cases */
    struct odds odds;          /* the worst of all cases */
};

/* Is told after each run, by one thread at a time, how many of `total` are
 * done. `began` is called before the first. Both are NULL if nobody asks. */
struct tune_progress {
    void (*began)(void *user, const struct tune_case *cases, size_t count);
    void (*told)(void *user, uint64_t done, uint64_t total);
    void *user;
};

struct tune_ladder {
    /* Input; the pointers are borrowed. */
    const struct cell_settings *settings; /* with stop_at_oom set */
    const struct tune_case *cases;
    size_t case_count;
    const struct texts *without; /* keys that no rung has */
    unsigned version; /* of PyTorch 2: no rung has a key that it does not know
                       */
    struct parallel on;
    struct tune_progress progress;

    /* Output. */
    struct tune_result *base; /* of each case as it was recorded; without a
                                 bound if it died */
    struct tune_rung rungs[TUNE_RUNGS];
    size_t count;
    const struct tune_rung *best;   /* the decision: the best odds, then the
                                       most room */
    const struct tune_rung *chosen; /* `best' if its odds are ENOUGH; else NULL
                                     */

    char recorded[TUNE_TEXT];    /* the recorded settings of all cases */
    struct tune_result *results; /* storage */
    pthread_mutex_t lock;
    uint64_t done;
};

/* Whether some rung has the key. */
bool tune_has_key(const char *key);

/* The oldest release of PyTorch 2 that may have written one of the cases; of
 * those that name none, the one whose placement the torch policy models. */
unsigned tune_release(const struct tune_case *cases, size_t count);

/* Makes the case of a question. `whole` is the device of its trace, or of the
 * trace that completes it. `name` and the traces are borrowed. NOMEM. */
enum frag_err tune_case_make(const struct question *q, const char *name,
                             const struct frag_trace *whole,
                             const struct frag_device_trace *device,
                             struct tune_case *out,
                             struct frag_error *e) FRAG_MUST_CHECK;

/* The total of the device on which the needs are found: that in question, or an
 * H200's. */
frag_size tune_total(struct frag_bound bound);

/* Runs every rung on every case, and chooses. The caller closes l, on error
 * too. Errors of cell_run. */
enum frag_err tune_climb(struct tune_ladder *l,
                         struct frag_error *e) FRAG_MUST_CHECK;
void tune_ladder_close(struct tune_ladder *l);

/* The rung that is the decision; no runs are made. Private to the folder and
 * its tests. */
const struct tune_rung *tune_choose(const struct tune_ladder *l);

/* The rung with these settings; NULL: the ladder has none. */
const struct tune_rung *tune_rung_of(const struct tune_ladder *l,
                                     const char *text);

/* Whether the job of a case died, and has a bound: nobody knows whether its
 * complete run stays below that. */
bool tune_is_open(const struct tune_case *c);

/* Whether the replay as recorded reserved what the recorded allocator did: only
 * then says the peak of another replay what it would have saved. */
bool tune_is_exact(const struct tune_ladder *l, size_t i);

/* Finds the notes of case i with the settings of a rung, under its bound; it
 * runs the case once more. Errors of cell_run. */
enum frag_err tune_notes(const struct tune_ladder *l, size_t i,
                         const struct tune_rung *rung, struct cell_notes *out,
                         struct frag_error *e) FRAG_MUST_CHECK;

#endif
