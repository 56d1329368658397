/* align.c - the cheapest alignment, by dynamic programming in a band around the
 * diagonal. */
#include "traces/steps/align.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

enum { MARGIN = 256 }; /* of the band, on both sides */

/* Costs. A block without a partner costs `alone`. A pair costs half of log2 of
 * the ratio of its sizes, at most 1; much less if both lives are known, because
 * lives are the better sign. */
static const float alone = 0.6f, other_stream = 0.5f, other_life = 0.6f,
                   most = 1.0f, less = 0.2f;

enum move { PAIR, SKIP_A, SKIP_B };

/* Row i of the table holds the columns from first(i) to first(i) + width - 1.
 */
struct band {
    const struct aligned *a, *b;
    uint32_t na, nb, width;
    float *cost[2];
    uint8_t *move; /* (na + 1) rows of `width` */
};

static uint32_t first_of(const struct band *t, uint32_t i)
{
    const uint64_t middle = t->na ? (uint64_t)i * t->nb / t->na : 0;

    return middle > t->width / 2 ? (uint32_t)middle - t->width / 2 : 0;
}

/* The cost of making b[k] the partner of a[i]. */
static float pair_cost(const struct band *t, uint32_t i, uint32_t k)
{
    const struct aligned *a = &t->a[i], *b = &t->b[k];
    const bool lives = a->life != FRAG_NEVER && b->life != FRAG_NEVER;
    const float ratio =
        fabsf(log2f((float)(a->bytes + 1)) - log2f((float)(b->bytes + 1)));

    return fminf(ratio / 2, most) * (lives ? less : 1) +
           (lives && a->life != b->life ? other_life : 0) +
           (a->stream != b->stream ? other_stream : 0);
}

/* The cost in a row, infinite outside of the band. */
static float at(const struct band *t, const float *row, uint32_t first,
                int64_t k)
{
    return k < first || k >= (int64_t)first + t->width ? INFINITY
                                                       : row[k - first];
}

static void fill_cell(const struct band *t, uint32_t i, uint32_t k)
{
    const uint32_t first = first_of(t, i);
    float *row = t->cost[i % 2];
    const float *above = t->cost[(i + 1) % 2];
    float best = i || k ? INFINITY : 0;
    uint8_t move = PAIR;

    if (i && k) {
        best = at(t, above, first_of(t, i - 1), (int64_t)k - 1);
        if (best < INFINITY)
            best += pair_cost(t, i - 1, k - 1);
    }
    if (i && at(t, above, first_of(t, i - 1), k) + alone < best) {
        best = at(t, above, first_of(t, i - 1), k) + alone;
        move = SKIP_A;
    }
    if (k && at(t, row, first, (int64_t)k - 1) + alone < best) {
        best = at(t, row, first, (int64_t)k - 1) + alone;
        move = SKIP_B;
    }
    row[k - first] = best;
    t->move[(size_t)i * t->width + (k - first)] = move;
}

static void fill(const struct band *t)
{
    for (uint32_t i = 0; i <= t->na; i++) {
        const uint32_t first = first_of(t, i);

        for (uint32_t k = first; k <= t->nb && k < first + t->width; k++)
            fill_cell(t, i, k);
    }
}

static void trace_back(const struct band *t, uint32_t *pair)
{
    uint32_t i = t->na, k = t->nb;

    while (i || k) {
        const uint8_t move =
            t->move[(size_t)i * t->width + (k - first_of(t, i))];

        if (move != SKIP_B)
            pair[--i] = move == PAIR ? k - 1 : UINT32_MAX;
        if (move != SKIP_A)
            k--;
    }
}

/* The bytes of the moves of an alignment are at most this. */
static const uint64_t most_moves = (uint64_t)1 << 32;

enum frag_err align(const struct aligned *a, uint32_t na,
                    const struct aligned *b, uint32_t nb, uint32_t *pair,
                    struct frag_error *e)
{
    const uint32_t apart = na > nb ? na - nb : nb - na;
    const uint64_t width = 2 * ((uint64_t)apart + MARGIN);
    struct band t = {a, b, na, nb, .width = (uint32_t)width};
    enum frag_err err = FRAG_OK;

    if ((na + (uint64_t)1) * width > most_moves)
        return frag_fail(e, FRAG_INVALID,
                         "%" PRIu32 " and %" PRIu32
                         " requests are too many, or too unlike in number, to "
                         "be compared",
                         na, nb);
    t.cost[0] = malloc(t.width * sizeof(float));
    t.cost[1] = malloc(t.width * sizeof(float));
    t.move = malloc(((size_t)na + 1) * t.width);
    if (t.cost[0] && t.cost[1] && t.move) {
        fill(&t);
        trace_back(&t, pair);
    } else {
        err = frag_no_memory(e, "the comparison of two steps");
    }
    free(t.cost[0]);
    free(t.cost[1]);
    free(t.move);
    return err;
}
