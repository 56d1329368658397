/* split.c - how the engines of cuDNN 9.19 for Hopper divide a convolution,
 * found by asking the library for plans of 1 to 18 multiprocessors, and
 * compared with 2,450 plans made on an H200: 2,387 workspaces are equal to the
 * byte.
 *
 * A convolution is a product of matrices, whose result is cut into tiles; each
 * tile takes `steps` steps. Blocks of threads run in clusters. If the clusters
 * of tiles do not fill the GPU, the steps of those of the last wave are divided
 * into parts, and the workspace holds the partial sums, a counter for each pair
 * of the tree that adds them up, and eight more counters. */
#include "real/dry/cudnn/split.h"

#include <stddef.h>

enum {
    ALONE = 18,   /* multiprocessors that cuDNN assumes without a device */
    ALIGNED = 16, /* bytes: what a workspace without parts is a multiple of */
    MARGIN = 127, /* bytes, to align the workspace */
    COUNTER = 4,  /* bytes */
    COUNTERS = 8,
    SUM = 4, /* bytes of a partial sum */
};

struct product {
    int64_t tiles[2];   /* tiles down and across */
    int64_t cluster[2]; /* blocks of a cluster, likewise */
    int64_t steps;
    int64_t area; /* elements of a tile */
    enum cudnn_type type;
    bool whole; /* the tiles are never divided */
};

/* Clusters of so many blocks that an H200 runs at once: one block takes a whole
 * multiprocessor, and a cluster lies within a group of at most 18 of them. From
 * cuOccupancyMaxActiveClusters. */
static const int clusters[] = {0, 132, 66, 39, 30, 22, 17, 15, 15,
                               9, 7,   7,  7,  7,  7,  7,  7};

/* Rows and columns of a tile, by CUDNN_KNOB_TYPE_TILE_SIZE; 0: not measured. */
static const int tile_sizes[][2] = {
    {128, 128}, {128, 64},  {128, 32}, {256, 128}, {256, 64}, {64, 64},
    {128, 256}, {64, 128},  {0},       {64, 256},  {0},       {0},
    {0},        {0},        {0},       {0},        {256, 32}, {0},
    {64, 192},  {128, 192}, {256, 96},
};

/* By the type of the data. A level of the tree costs as much time as `level`
 * steps and `tile` more for tiles of 4096 elements, less for larger ones; parts
 * have at least `least` steps where there are nine or more; a step takes
 * depth[TILEK] elements, and `filter` elements of a weight gradient. */
static const struct {
    double level, tile;
    int least;
    int depth[2];
    int filter;
} types[] = {
    [CUDNN_HALF] = {5, 8, 17, {128, 64}, 64},
    [CUDNN_BFLOAT16] = {37.5, 62.5, 17, {128, 64}, 64},
    [CUDNN_FLOAT] = {10.4, 14.6, 33, {32, 64}, 32},
};

/* The engines, by operation. */
static const int engines[][2] = {{62, 67}, {67, 71}, {65, 68}};

/* ---- the plan ---- */

static bool read_knobs(const struct cudnn_plan *plan, struct product *p,
                       int64_t tile[2])
{
    const size_t known = sizeof(tile_sizes) / sizeof(*tile_sizes);
    const int64_t size = frag_cudnn_knob(plan, "TILE_SIZE");

    p->cluster[0] = frag_cudnn_knob(plan, "TILE_CGA_M");
    p->cluster[1] = frag_cudnn_knob(plan, "TILE_CGA_N");
    p->whole = frag_cudnn_knob(plan, "WORKSPACE") == 1;
    if (size < 0 || (size_t)size >= known || !tile_sizes[size][0] ||
        p->cluster[1] < 1 ||
        p->cluster[0] * p->cluster[1] >
            (int64_t)(sizeof(clusters) / sizeof(int)) - 1)
        return false;
    tile[0] = tile_sizes[size][0];
    tile[1] = tile_sizes[size][1];
    p->area = tile[0] * tile[1];
    return true;
}

static bool read_product(const struct cudnn_plan *plan, struct product *p)
{
    const int64_t depth = frag_cudnn_knob(plan, "TILEK");
    const bool forward = plan->operation == CUDNN_FORWARD;
    const struct cudnn_shape *to = forward ? &plan->y : &plan->x;
    const struct cudnn_shape *w = &plan->w, *y = &plan->y;
    int64_t tile[2];

    p->type = plan->type;
    if (depth < 0 || depth > 1 || !read_knobs(plan, p, tile))
        return false;
    if (plan->operation == CUDNN_FILTER) {
        p->tiles[0] = cudnn_share(w->dim[0], tile[0]);
        p->tiles[1] = w->area * cudnn_share(w->dim[1], tile[1]);
        p->steps = cudnn_share(y->dim[0] * y->area, types[p->type].filter);
        return true;
    }
    p->tiles[0] = cudnn_share(to->dim[0] * to->area, tile[0]);
    p->tiles[1] = cudnn_share(w->dim[!forward], tile[1]);
    p->steps =
        w->area * cudnn_share(w->dim[forward], types[p->type].depth[depth]);
    return true;
}

/* ---- the model ---- */

/* The pairs of the tree that adds up so many parts. */
static int64_t pairs(int64_t parts)
{
    int64_t all = 0;

    for (int64_t m = cudnn_share(parts, 2) * 2; m > 1;) {
        m = cudnn_share(m, 2);
        all += m;
    }
    return all;
}

/* The time of adding up the parts, in steps: later levels cost less where other
 * waves run beside them. */
static double adding(const struct product *p, int64_t parts, int64_t waves)
{
    static const double beside[] = {0, .5, 1, 1.39, 1.65, 1.78, 1.85, 1.85};
    const double cost =
        types[p->type].level + types[p->type].tile * 4096 / (double)p->area;
    int levels = 0;

    while ((int64_t)1 << levels < parts)
        levels++;
    return (double)(int)(cost + .5) *
           (waves ? beside[levels < 7 ? levels : 7] : levels);
}

static int64_t choose_parts(const struct product *p, int64_t most,
                            int64_t waves)
{
    const int64_t least = types[p->type].least;
    double best = (double)p->steps;
    int64_t parts = 1;

    if (!waves && most >= 9 && p->steps >= 9 * least)
        return most < p->steps / least ? most : p->steps / least;
    for (int64_t n = 2; n <= most; n++) {
        const double time =
            (double)cudnn_share(p->steps, n) + adding(p, n, waves);

        if (time <= best) {
            best = time;
            parts = n;
        }
    }
    return parts;
}

/* Bytes of the parts on a GPU that runs `room` clusters at once. If `parts` is
 * not 0 it is taken instead of the best number; -1 if there cannot be so many.
 */
static int64_t bytes_of_parts(const struct product *p, int64_t room,
                              int64_t parts)
{
    const int64_t size = p->cluster[0] * p->cluster[1];
    const int64_t all = cudnn_share(p->tiles[0], p->cluster[0]) *
                        cudnn_share(p->tiles[1], p->cluster[1]);
    const int64_t waves = all / room, rest = all % room;
    const bool is_long = cudnn_share(all, room) >= 3;

    if (p->whole || !rest)
        parts = parts > 1 ? -1 : 1;
    else if (!parts)
        parts = choose_parts(p, room / rest, waves);
    else if (parts > room / rest)
        parts = -1;
    if (parts < 0)
        return -1;
    if (parts == 1)
        return is_long ? MARGIN + COUNTER : 0;
    return parts * rest * size * p->area * SUM + MARGIN +
           COUNTER * (COUNTERS + rest * size * pairs(parts) + (waves >= 2));
}

/* The bytes of the workspace that are not of parts: what the library says less
 * its parts, which make the rest a multiple of ALIGNED. */
static int64_t other_bytes(const struct product *p, int64_t workspace)
{
    const int64_t size = p->cluster[0] * p->cluster[1];

    for (int64_t parts = 0; parts <= ALONE; parts++) {
        const int64_t rest =
            workspace -
            bytes_of_parts(p, size > ALONE ? 1 : ALONE / size, parts);

        if (rest >= 0 && rest <= workspace && rest % ALIGNED == 0)
            return rest;
    }
    return -1;
}

enum cudnn_judged frag_cudnn_split(const struct cudnn_plan *plan,
                                   int64_t *workspace)
{
    const int *own = engines[plan->operation];
    struct product p;
    int64_t other;

    if ((plan->engine != own[0] && plan->engine != own[1]) ||
        frag_cudnn_knob(plan, "TILE_CGA_M") < 1)
        return CUDNN_TRUE;
    if (plan->type == CUDNN_OTHER || !read_product(plan, &p))
        return CUDNN_UNKNOWN;
    other = other_bytes(&p, *workspace);
    if (other < 0)
        return CUDNN_UNKNOWN;
    *workspace =
        other + bytes_of_parts(&p, clusters[p.cluster[0] * p.cluster[1]], 0);
    return CUDNN_CHANGED;
}
