/* batch.h - which batch sizes fit: replays the traces that a job would make at
 * other batch sizes than those that were recorded (traces/scale/scale.h).
 */
#ifndef FRAG_SIM_ANSWERS_BATCH_H
#define FRAG_SIM_ANSWERS_BATCH_H

#include <stdio.h>

#include "sim/experiments/cell.h"
#include "sim/experiments/choices.h"
#include "traces/scale/scale.h"

/* The question; borrowed. */
struct batch_question {
    const struct scaling *scaling;
    const struct cell_settings *settings;
    struct frag_bound bound;
    const struct policy_choice *policies;
    struct frag_params *const *params; /* of each policy */
    size_t policy_count;
    const uint64_t *at; /* the batch sizes; without any, the largest batch size
                           that fits is searched */
    size_t at_count;
    bool (*tick)(void *user, uint64_t done, uint64_t total);
    void *user; /* passed to tick */
};

/* A replay. */
struct batch_row {
    uint64_t batch;
    size_t policy;
    bool recorded; /* the trace is the recording at this batch size */
    struct frag_summary
        summary; /* up to the first OOM, at which the job dies */
    /* Over the replays of this batch size, with the predicted sizes and with
     * each of scale_guesses: the least and the most peak reserved, their
     * number, and how many had an OOM. A recording has one replay, and so has a
     * trace without guessed requests. */
    frag_size low_reserved, high_reserved;
    size_t num_replays, num_replays_with_oom;
    /* The most bytes that the trace requests, and at that moment the bytes that
     * do not grow with the batch, and those of one sample more. */
    frag_size requested, constant;
    double per_sample;
};

struct batch_answer {
    struct batch_row *rows; /* for each policy, ascending by batch */
    size_t count;
    uint64_t room;
    uint64_t *largest; /* of each policy: the largest batch size that was
                          replayed without an OOM; 0: none */
    /* The same, of those of which no replay had an OOM, and of those of which
     * at least one replay had none. */
    uint64_t *low_largest, *high_largest;
};

/* A search doubles the batch size until a request fails, and then halves the
 * interval. It assumes that a batch size fits if a larger one does; replays of
 * the BATCH_BEYOND sizes above the result check this, and the search goes on
 * from the largest of them that fits. */
enum { BATCH_BEYOND = 4 };

/* INVALID if a search has no finite bound, or if no batch size is too large;
 * errors of scale_make and cell_run. The caller closes *out, on error too. */
enum frag_err batch_answer(const struct batch_question *q,
                           struct batch_answer *out,
                           struct frag_error *e) FRAG_MUST_CHECK;
void batch_close(struct batch_answer *a);

/* Whether the replays agree: all have an OOM, or none has one and every peak
 * reserved is within 2 % of the predicted one. */
bool batch_is_sure(const struct batch_row *r);

/* The share of the bytes at the peak that grows with the batch. */
double batch_growing_share(const struct batch_row *r);

#endif
