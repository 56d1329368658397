/* product.c - the workspace of convolutions that are a product of cuBLASLt. Its
 * kernels for Hopper keep descriptors of tensors there (two of 128 bytes for
 * 16-bit types, three for float, and 16 bytes), and others keep nothing. Which
 * it takes follows the number of tiles: of 1,049 plans made on an H200, 855 are
 * equal and 991 within 512 bytes. The weight gradients of channels that lie
 * together also keep partial sums (up to 17 MB), of which no rule was found. */
#include "real/dry/cudnn/split.h"

enum {
    TILE = 128, /* rows and columns */
    WIDE = 16,  /* bytes that the kernels for Hopper load at once */
};

static const int engines[] = {
    [CUDNN_FORWARD] = 58, [CUDNN_BACKWARD] = 63, [CUDNN_FILTER] = 62};

/* By type: bytes of an element, bytes of the descriptors, and the tiles beyond
 * which they are used, where the channels lie apart or together. */
static const struct {
    int element, descriptors, tiles[2];
} types[] = {
    [CUDNN_HALF] = {2, 272, {232, 100}},
    [CUDNN_BFLOAT16] = {2, 272, {232, 100}},
    [CUDNN_FLOAT] = {4, 400, {80, 0}},
};

static bool is_wide(const struct cudnn_plan *plan)
{
    const int64_t size = types[plan->type].element;
    const bool together = plan->x.together;

    return (together || plan->y.area * size % WIDE == 0) &&
           plan->x.dim[1] * size % WIDE == 0 &&
           plan->w.dim[0] * size % WIDE == 0;
}

static bool uses_descriptors(const struct cudnn_plan *plan)
{
    const bool forward = plan->operation == CUDNN_FORWARD;
    const bool together = plan->x.together;
    const int64_t channels = forward ? plan->w.dim[0] : plan->x.dim[1];
    const int64_t batch = plan->y.dim[0], area = plan->y.area;
    const int64_t tiles = (together ? cudnn_share(batch * area, TILE)
                                    : batch * cudnn_share(area, TILE)) *
                          cudnn_share(channels, TILE);

    return tiles > types[plan->type].tiles[together] ||
           (!together && plan->type != CUDNN_FLOAT && channels % TILE);
}

enum cudnn_judged frag_cudnn_product(const struct cudnn_plan *plan,
                                     int64_t *workspace)
{
    if (plan->engine != engines[plan->operation] ||
        frag_cudnn_knob(plan, "WORKSPACE") < 1 ||
        frag_cudnn_knob(plan, "TILE_SIZE") >= 0)
        return CUDNN_TRUE;
    if (plan->type == CUDNN_OTHER ||
        (plan->operation == CUDNN_FILTER && plan->x.together))
        return CUDNN_UNKNOWN;
    if (plan->operation != CUDNN_FILTER && is_wide(plan) &&
        uses_descriptors(plan))
        *workspace += types[plan->type].descriptors;
    return CUDNN_GUESSED;
}
