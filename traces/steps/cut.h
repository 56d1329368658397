/* cut.h - a step that a recording cuts off, and what is known about its rest.
 * Private to traces/steps. */
#ifndef FRAG_TRACES_STEPS_CUT_H
#define FRAG_TRACES_STEPS_CUT_H

#include "traces/steps/extend.h"
#include "traces/steps/predict.h"
#include "traces/steps/steps.h"

/* A complete step and an ALLOC in it that corresponds to the failed request. */
struct cut_place {
    const struct frag_step *step;
    uint64_t at;
    uint64_t alike; /* events before it that are as before the failed request */
    uint64_t apart; /* difference of the lengths of both beginnings */
    bool fits;      /* its size can be that of the failed request */
};

struct cut {
    struct extension *x;
    const struct frag_device_trace *d;
    const struct blocks *b;
    const struct frag_steps *steps;
    uint64_t from, at; /* the cut step, and its failed request */
    struct cut_place place;
    struct frag_error *e;
};

/* Sets c->place. False if no complete step has a request that can be the failed
 * one, by its size or by the events before it. */
bool cut_find_place(struct cut *c);

/* The requests of the chosen step, in order. sizes[i].now is the size of the
 * request in the cut step: as recorded before the place, predicted after it, 0
 * if the cut step has no such request. */
struct requests {
    struct block_list list; /* of the chosen step */
    struct sizes *sizes;    /* a row for each of them */
    unsigned step_count;    /* complete steps that are compared */
    uint64_t before;        /* requests before the place */
};

/* Fills *r, and makes the blocks of both beginnings counterparts. The caller
 * closes *r, on error too. NOMEM. */
enum frag_err requests_open(const struct cut *c,
                            struct requests *r) FRAG_MUST_CHECK;
void requests_close(struct requests *r);

#endif
