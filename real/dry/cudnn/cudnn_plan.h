/* cudnn_plan.h - a plan of cuDNN for a convolution, as its JSON tells it
 * (CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION). Private to real/dry/.
 */
#ifndef FRAG_REAL_DRY_CUDNN_CUDNN_PLAN_H
#define FRAG_REAL_DRY_CUDNN_CUDNN_PLAN_H

#include <stdbool.h>
#include <stdint.h>

enum cudnn_operation {
    CUDNN_FORWARD,  /* the result */
    CUDNN_BACKWARD, /* the gradient of the data */
    CUDNN_FILTER,   /* the gradient of the weights */
};
enum cudnn_type { CUDNN_HALF, CUDNN_BFLOAT16, CUDNN_FLOAT, CUDNN_OTHER };

enum { CUDNN_DIMENSIONS = 5 };

struct cudnn_shape {
    int64_t dim[CUDNN_DIMENSIONS];
    int64_t area;  /* of all dimensions beyond the first two */
    bool together; /* the channels of a point lie together */
};

struct cudnn_plan {
    const char *json;
    enum cudnn_operation operation;
    enum cudnn_type type; /* of the data */
    int64_t engine;       /* CUDNN_ATTR_ENGINE_GLOBAL_INDEX */
    struct cudnn_shape x, w, y;
};

/* How a workspace that the mode without a device says was judged. */
enum cudnn_judged {
    CUDNN_TRUE,    /* it is that of the GPU */
    CUDNN_CHANGED, /* it now is that of an H200 */
    CUDNN_GUESSED, /* 0 or 512 bytes, by a rule that is right nine times of ten
                    */
    CUDNN_UNKNOWN,
};

/* False if it is no convolution. The text is borrowed. */
bool frag_cudnn_plan_read(const char *json, struct cudnn_plan *plan);

/* The value of CUDNN_KNOB_TYPE_...; -1 if the engine has no such knob. */
int64_t frag_cudnn_knob(const struct cudnn_plan *plan, const char *name);

/* Whole parts of `by` that hold all of `of`. */
static inline int64_t cudnn_share(int64_t of, int64_t by)
{
    return (of + by - 1) / by;
}

#endif
