/* odds.h - how sure is it that a job lives with some settings under its bound,
 * counted on recorded jobs.
 *
 * Of a job that lived, the replay of its whole run tells. Of one that died, the
 * rest of the run is predicted (traces/steps/complete.h), and only a count of
 * how such predictions ended tells how far they can be trusted.
 */
#ifndef FRAG_SIM_EXPERIMENTS_TUNE_ODDS_H
#define FRAG_SIM_EXPERIMENTS_TUNE_ODDS_H

#include "traces/steps/complete.h"

enum odds_verdict {
    ODDS_NOT,    /* a request fails */
    ODDS_TRY,    /* less than nine of ten such jobs lived */
    ODDS_ENOUGH, /* nothing fails in the whole run, or at least nine of ten jobs
                    in this state lived */
    ODDS_VERDICTS
};

/* "not enough", "worth trying", "enough" */
extern const char *const odds_words[ODDS_VERDICTS];

struct odds {
    enum odds_verdict verdict;
    /* Of `of` jobs that died in this state, `lived` did with such settings.
     * Both are 0 if the whole run is known, or the settings are not enough for
     * what was recorded. */
    unsigned lived, of;
};

struct odds_question {
    const struct frag_completion *completion;
    bool serves;           /* no recorded request fails with the settings */
    bool went_on;          /* the job went on after a request that failed */
    frag_size need, bound; /* bytes; the need of the completed trace, 0: not
                              known */
};

struct odds odds_of(const struct odds_question *q);

/* Whether a is worse than b. */
bool odds_less(const struct odds *a, const struct odds *b);

#endif
