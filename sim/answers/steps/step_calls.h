/* step_calls.h - whether the blocks of a site come from many calls of a library
 * or from one: a call of a module, a step of an optimizer, the load of a model.
 * The layers of a forward pass allocate within one call; a loop of the program
 * allocates outside of them in between, by its own lines. */
#ifndef FRAG_SIM_ANSWERS_STEPS_STEP_CALLS_H
#define FRAG_SIM_ANSWERS_STEPS_STEP_CALLS_H

#include "traces/trace.h"

struct step_calls {
    const struct frag_trace *trace;
    const struct frag_device_trace *device;
    uint64_t passed, last;    /* ALLOCs; the last of them */
    uint64_t between, within; /* pairs of ALLOCs between which the program left
                                 its calls, and did not */
    uint64_t varied;          /* of between: the sizes differ */
    uint64_t rounds;  /* of between: the program allocated elsewhere, too */
    uint64_t worked;  /* of these: for a module, an optimizer or gradients */
    uint64_t trained; /* of these: for an optimizer or a backward pass */
    uint64_t inside;  /* ALLOCs within a call of a library */
};

/* Passes the next ALLOC of the site whose block stays. It counts if it has a
 * Python stack. */
void calls_next(struct step_calls *c, uint64_t alloc);

/* Whether the blocks may be what one piece of work keeps until it ends: most
 * pairs lie within a call, and the calls keep blocks of the same size, as those
 * of one generation do for each token. */
bool calls_are_one(const struct step_calls *c);

#endif
