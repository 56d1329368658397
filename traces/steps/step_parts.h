/* step_parts.h - what the files of traces/steps share to find boundaries of
 * steps. Private to traces/steps. */
#ifndef FRAG_TRACES_STEPS_STEP_PARTS_H
#define FRAG_TRACES_STEPS_STEP_PARTS_H

#include "traces/steps/step_blocks.h"
#include "traces/steps/steps.h"

/* A candidate: ascending events at which steps may begin. */
struct bounds {
    uint64_t *at;
    uint64_t count, room;
    enum frag_steps_source source;
    const char *mark;
    double likeness, score; /* see bounds_score */
    double live;            /* mean of the live bytes at the boundaries */
};

struct candidates {
    struct bounds *items;
    uint64_t count, room;
};

/* A trace whose steps are searched. */
struct search {
    const struct frag_trace *trace;
    const struct frag_device_trace *device;
    const struct blocks *blocks;
    const uint32_t *shape; /* see shape_of */
    struct candidates found;
    struct frag_error *error;
};

/* Adds an empty candidate. NULL if the host has no memory. */
struct bounds *candidates_add(struct search *s);
void candidates_close(struct candidates *c);
/* Adds a boundary; false if the host has no memory. */
bool bounds_push(struct bounds *b, uint64_t event);

/* Adds a candidate for each name of marks, or only for `mark` if it is not
 * NULL. NOMEM. */
enum frag_err marks_candidates(struct search *s,
                               const char *mark) FRAG_MUST_CHECK;
/* Adds the most regular periods of the events. NOMEM. */
enum frag_err period_candidates(struct search *s) FRAG_MUST_CHECK;

#endif
