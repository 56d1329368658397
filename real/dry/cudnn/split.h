/* split.h - what the mode of cuDNN without a device gets wrong, put
 * right: it names the engine and the knobs that a GPU takes (6,166 of 6,166
 * convolutions compared), but the engines for Hopper then spread their work
 * over the 18 multiprocessors of one group instead of the whole GPU, and their
 * workspace holds the partial sums of each. Private to real/dry/.
 */
#ifndef FRAG_REAL_DRY_CUDNN_SPLIT_H
#define FRAG_REAL_DRY_CUDNN_SPLIT_H

#include "real/dry/cudnn/cudnn_plan.h"

/* Changes the workspace (bytes) from that without a device to that of an H200,
 * if the engine divides its tiles. */
enum cudnn_judged frag_cudnn_split(const struct cudnn_plan *plan,
                                   int64_t *workspace);

/* The same if the engine leaves a convolution of 1x1 points to cuBLASLt, whose
 * stand-in asks for nothing. */
enum cudnn_judged frag_cudnn_product(const struct cudnn_plan *plan,
                                     int64_t *workspace);

#endif
