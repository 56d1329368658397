/* growth.c - the three conditions. */
#include "sim/answers/steps/growth.h"

#include <math.h>

static const double most_fallen = 0.25; /* of what the rises add */
static const double stopped_level = 0.05;
static const double slow = 1.0 / 3; /* of what the earlier half adds */

/* The gains and losses of a quantity in some steps. */
struct change {
    double risen, fallen, most; /* most: of one step */
    uint64_t rises, at_rest;    /* steps without a rise at the end */
};

static struct change change_of(const frag_size *values, uint64_t count)
{
    struct change c = {0};

    for (uint64_t i = 1; i < count; i++) {
        const double step = (double)values[i] - (double)values[i - 1];

        *(step > 0 ? &c.risen : &c.fallen) += fabs(step);
        c.most = step > c.most ? step : c.most;
        c.rises += step > 0;
        c.at_rest = step > 0 ? 0 : c.at_rest + 1;
    }
    return c;
}

/* Whether so many steps at the end without a rise are too many for a quantity
 * that rises in this share of the steps. The share is estimated by Laplace's
 * rule, since it is never quite 1. */
static bool has_stopped(const struct change *c, uint64_t steps)
{
    const double share = ((double)c->rises + 1) / ((double)steps + 2);

    return pow(1 - share, (double)c->at_rest) < stopped_level;
}

static bool comes_back(const struct change *c)
{
    return c->fallen > most_fallen * c->risen;
}

/* Whether the later half of the steps adds little, with the largest rise of
 * each half and without: one large rise is no trend. */
static bool slows_down(const frag_size *values, uint64_t steps)
{
    const uint64_t half = steps / 2;
    const struct change a = change_of(values, half + 1),
                        b = change_of(values + steps - half, half + 1);

    return b.risen < slow * a.risen &&
           b.risen - b.most < slow * (a.risen - a.most);
}

static bool rises_throughout(const frag_size *values, uint64_t steps)
{
    for (uint64_t q = 0; q < 4; q++) {
        const uint64_t from = q * steps / 4, to = (q + 1) * steps / 4;

        if (!change_of(values + from, to - from + 1).rises)
            return false;
    }
    return true;
}

struct growth growth_judge(const frag_size *values, uint64_t count,
                           uint64_t from)
{
    const uint64_t setup = from < GROWTH_SETUP ? from : GROWTH_SETUP;
    const struct change all = change_of(values + setup, count - setup);
    const struct change examined = change_of(values + from, count - from);
    struct growth g = {.rises = examined.rises, .steps = count - from - 1};

    if (g.steps < GROWTH_LEAST_STEPS)
        return g;
    g.slope = (examined.risen - examined.fallen) / (double)g.steps;
    g.grows = rises_throughout(values + from, g.steps) && !comes_back(&all) &&
              !comes_back(&examined) && !has_stopped(&examined, g.steps);
    g.slows = slows_down(values + from, g.steps);
    return g;
}
