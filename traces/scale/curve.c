/* curve.c - what the sizes of one request say, and the sizes that follow from
 * it. */
#include "traces/scale/curve.h"

#include <math.h>

/* ---- what the sizes say ---- */

/* Points of sizes may lie this far beside a line, as a share of the size:
 * libraries align the parts of a workspace. */
static const double tolerance = 0.01;

/* a and b are of different batch sizes. */
static bool is_proportional(struct point a, struct point b)
{
    return fabs(b.bytes / b.batch * a.batch / a.bytes - 1) < tolerance / 10;
}

/* The line through the sizes of two batches, the first of which is smaller. */
static enum scale_kind kind_of_two(struct point a, struct point b)
{
    const double growth = b.batch / a.batch, ratio = b.bytes / a.bytes;

    if (a.bytes >= b.bytes && a.bytes <= b.bytes)
        return SCALE_CONSTANT;
    if (fabs(ratio / (growth * growth) - 1) < tolerance / 10)
        return SCALE_SQUARE;
    if (ratio < 1 || ratio > growth * (1 + tolerance))
        return SCALE_CHANGED;
    return SCALE_GROWING;
}

static double on_line(struct point a, struct point b, double batch)
{
    return a.bytes +
           (b.bytes - a.bytes) * (batch - a.batch) / (b.batch - a.batch);
}

static bool all_on_line(const struct point *p, size_t n)
{
    for (size_t i = 1; i + 1 < n; i++)
        if (fabs(on_line(p[0], p[n - 1], p[i].batch) - p[i].bytes) >
            tolerance * p[i].bytes)
            return false;
    return true;
}

/* The first of the two neighbours whose line has the size at `batch`. */
static size_t neighbour(const struct point *p, size_t n, double batch)
{
    size_t i = 0;

    while (i + 2 < n && p[i + 1].batch < batch)
        i++;
    return i;
}

/* Chooses the two points that determine the size at `batch`: both ends if all
 * points lie on one line, else the two nearest. */
static enum scale_kind choose(const struct point *p, size_t n, double batch,
                              struct point two[2])
{
    const size_t i = neighbour(p, n, batch);
    const bool straight = all_on_line(p, n);

    two[0] = straight ? p[0] : p[i];
    two[1] = straight ? p[n - 1] : p[i + 1];
    return kind_of_two(two[0], two[1]);
}

/* Whether the sizes of a workspace are those of one algorithm cannot be told
 * from two of them, and a line through those of two algorithms is far off. */
static bool is_doubtful(enum scale_kind kind, const struct point *p, size_t n)
{
    return kind == SCALE_GROWING && p[n - 1].bytes >= least_guess &&
           !is_proportional(p[0], p[n - 1]) && (n < 3 || !all_on_line(p, n));
}

/* Chooses the points for the size at `batch`, and says what they tell. */
static enum scale_kind judge(const struct point *p, size_t n, double batch,
                             bool is_workspace, struct point two[2])
{
    enum scale_kind kind;

    if (n < 2) {
        two[0] = two[1] = p[0];
        return SCALE_ALONE;
    }
    kind = choose(p, n, batch, two);
    return is_workspace && is_doubtful(kind, p, n) ? SCALE_CHANGED : kind;
}

/* In proportion to the batch. */
static struct curve share_of(struct point p, double batch)
{
    const double share = p.bytes / p.batch;

    return (struct curve){SCALE_CHANGED, share * batch, share};
}

static struct curve line_of(struct point a, struct point b, double batch)
{
    return (struct curve){SCALE_GROWING, on_line(a, b, batch),
                          (b.bytes - a.bytes) / (b.batch - a.batch)};
}

static struct curve flat_of(struct point p)
{
    return (struct curve){SCALE_CONSTANT, p.bytes, 0};
}

static struct curve square_of(struct point p, double batch)
{
    const double share = p.bytes / p.batch / p.batch;

    return (struct curve){SCALE_SQUARE, share * batch * batch,
                          2 * share * batch};
}

struct curve curve_at(const struct point *p, size_t n, double batch,
                      bool is_workspace)
{
    struct point two[2];
    const enum scale_kind kind = judge(p, n, batch, is_workspace, two);
    struct curve c;

    switch (kind) {
    case SCALE_GROWING:
        c = line_of(two[0], two[1], batch);
        break;
    case SCALE_SQUARE:
        c = square_of(two[1], batch);
        break;
    case SCALE_CONSTANT:
        c = flat_of(two[1]);
        break;
    default:
        c = two[1].bytes < least_guess ? flat_of(two[1])
                                       : share_of(two[1], batch);
    }
    c.kind = kind;
    return c;
}

/* ---- guesses ---- */

/* ---- guesses ---- */

/* The last point at or below the batch; the first if there is none. */
static size_t point_below(const struct point *p, size_t n, double batch)
{
    size_t i = n - 1;

    while (i > 0 && p[i].batch > batch)
        i--;
    return i;
}

static struct curve guess_share(const struct point *p, size_t n, double batch)
{
    return share_of(p[n - 1], batch);
}

static struct curve guess_absent(const struct point *p, size_t n, double batch)
{
    (void)n, (void)batch;
    return flat_of((struct point){p[0].batch, 1});
}

static struct curve guess_same(const struct point *p, size_t n, double batch)
{
    return flat_of(p[point_below(p, n, batch)]);
}

static struct curve guess_first(const struct point *p, size_t n, double batch)
{
    (void)n;
    return share_of(p[0], batch);
}

/* A size that falls as the batch grows belongs to two algorithms. */
static struct curve guess_line(const struct point *p, size_t n, double batch)
{
    return n < 2 || p[0].bytes >= p[n - 1].bytes
               ? share_of(p[n - 1], batch)
               : line_of(p[0], p[n - 1], batch);
}

struct curve curve_guess(const struct scale_guess *guess, const struct point *p,
                         size_t n, double batch)
{
    static struct curve (*const laws[SCALE_LAW_COUNT])(const struct point *,
                                                       size_t, double) = {
        [SCALE_LAW_SHARE] = guess_share, [SCALE_LAW_ABSENT] = guess_absent,
        [SCALE_LAW_SAME] = guess_same,   [SCALE_LAW_FIRST] = guess_first,
        [SCALE_LAW_LINE] = guess_line,
    };
    struct curve c = laws[guess->law](p, n, batch);

    c.bytes = fmax(c.bytes * guess->factor, 1);
    c.per_sample *= guess->factor;
    return c;
}
