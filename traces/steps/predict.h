/* predict.h - predicts the sizes that the rest of a step will request, from the
 * sizes of its beginning and from complete steps.
 *
 * The sizes of a step follow from the shape of its input: a gradient is as
 * large as the activation before it, and a logit grows in proportion to the
 * tokens. The rules, in order, for a request of the complete step:
 *   1. The beginning has a request that was equal in the complete steps: the
 *      same size as there.
 *   2. The request was equal in all complete steps: that size. With a single
 *      complete step: it is as large as a block that lives longer than a step,
 *      such as a weight.
 *   3. The beginning has a request of which it was a linear function in the
 *      complete steps: that function.
 *   4. Otherwise its size in the complete step, times the ratio of all sizes
 *      that differ in the beginning.
 */
#ifndef FRAG_TRACES_STEPS_PREDICT_H
#define FRAG_TRACES_STEPS_PREDICT_H

#include "traces/steps/step_blocks.h"

enum { PREDICT_STEPS = 6 }; /* complete steps that are compared */

/* A request of the complete step, and what the beginning requested there. */
struct sizes {
    frag_size steps[PREDICT_STEPS]; /* of the same request in complete steps; 0
                                       where a step lacks it, never the first */
    frag_size now;
};

struct prediction {
    struct sizes *known; /* distinct `steps`, sorted */
    uint64_t known_count;
    unsigned step_count; /* entries of `steps` that are used: at least 1 */
    frag_size *constant; /* sizes of blocks that outlive a step, sorted */
    uint64_t constant_count;
    double ratio; /* of rule 4 */
};

/* Prepares the prediction from `count` pairs, which it sorts and keeps as
 * p->known, and from p->step_count and p->constant, which the caller sets. */
void predict_learn(struct prediction *p, struct sizes *pairs, uint64_t count);

/* The size of a request whose sizes in the complete steps are given. */
frag_size predict_size(const struct prediction *p,
                       const frag_size steps[PREDICT_STEPS]);

#endif
