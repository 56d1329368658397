/* space.c - the space of settings that tune searches: the values of each
 * setting, and the PYTORCH_CUDA_ALLOC_CONF text of a point in that space. */
#include "sim/experiments/tune/space.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "policies/torch/versions.h"

const char *const tune_knob_names[TUNE_KNOB_COUNT] = {
#define X(upper, name, weight, caveat) name,
    TUNE_KNOBS(X)
#undef X
};

const char *const tune_knob_caveats[TUNE_KNOB_COUNT] = {
#define X(upper, name, weight, caveat) caveat,
    TUNE_KNOBS(X)
#undef X
};

static const unsigned weights[TUNE_KNOB_COUNT] = {
#define X(upper, name, weight, caveat) weight,
    TUNE_KNOBS(X)
#undef X
};

/* The axes are in the order of the settings; those of roundup_power2_divisions
 * are neighbours. */
enum {
    AT_DIVISIONS = TUNE_DIVISIONS,
    AT_GC = TUNE_DIVISIONS + TUNE_CLASSES,
    AT_LIMIT,
};

/* The values of the places; the first is the default. Sizes are in MiB:
 * segments are whole multiples of the granularity, as expandable segments
 * require. Divisions are exponents of two, thresholds and limits are per cent.
 */
static const uint16_t switches[] = {0, 1};
static const uint16_t segments[] = {20, 12, 14,  16,  18,  22,  24,
                                    26, 28, 32,  36,  40,  48,  64,
                                    80, 96, 128, 192, 256, 384, 512};
static const uint16_t splits[] = {0,   20,  24,  28,   32,   40,   48,  64,
                                  80,  96,  128, 160,  192,  256,  320, 384,
                                  512, 640, 768, 1024, 1536, 2048, 4096};
static const uint16_t roundings[] = {0, 24, 32, 48, 64, 128, 256, 512, 1024};
static const uint16_t divisions[] = {0, 1, 2, 3, 4, 5, 6};
static const uint16_t thresholds[] = {0, 95, 90, 80, 70, 60, 50};
static const uint16_t limits[] = {0,  100, 99, 98, 97, 96, 95, 94, 93,
                                  92, 91,  90, 88, 86, 84, 82, 80, 78,
                                  76, 74,  72, 70, 65, 60, 55, 50};

#define PLACES(a)                   \
    {                               \
        a, sizeof(a) / sizeof(*(a)) \
    }

static const struct places {
    const uint16_t *values;
    size_t count;
} places[TUNE_KNOB_COUNT] = {
    [TUNE_EXPANDABLE] = PLACES(switches), [TUNE_LARGE] = PLACES(segments),
    [TUNE_SPLIT] = PLACES(splits),        [TUNE_ROUNDING] = PLACES(roundings),
    [TUNE_DIVISIONS] = PLACES(divisions), [TUNE_GC] = PLACES(thresholds),
    [TUNE_LIMIT] = PLACES(limits),
};

unsigned tune_classes(frag_size largest)
{
    unsigned k = 1;

    while (k < TUNE_CLASSES && largest >> 21 >= (frag_size)1 << (k - 1))
        k++;
    return k;
}

enum tune_knob tune_axis_knob(size_t axis)
{
    if (axis < AT_DIVISIONS)
        return (enum tune_knob)axis;
    if (axis < AT_GC)
        return TUNE_DIVISIONS;
    return axis == AT_GC ? TUNE_GC : TUNE_LIMIT;
}

size_t tune_axis_places(size_t axis)
{
    return places[tune_axis_knob(axis)].count;
}

void tune_restrict(struct tune_space *space, unsigned version)
{
    space->version = torch_modelled_as(version);
    for (int k = 0; k < TUNE_KNOB_COUNT; k++) {
        const struct torch_setting *s = torch_setting_find(tune_knob_names[k]);

        if (s->since > version)
            space->allowed[k] = false;
        space->least[k] = torch_setting_least(s, version);
    }
}

static uint16_t value_of(const struct tune_point *p, size_t axis)
{
    return places[tune_axis_knob(axis)].values[p->at[axis]];
}

void tune_settle(const struct tune_space *space, struct tune_point *p)
{
    for (size_t i = 0; i < TUNE_AXES; i++)
        if (!space->allowed[tune_axis_knob(i)])
            p->at[i] = 0;
    for (size_t i = 0; i < TUNE_AXES; i++)
        while (p->at[i] && value_of(p, i) < space->least[tune_axis_knob(i)])
            p->at[i]++;
    /* PyTorch users report failed assertions and lost data with both settings
     * on. */
    if (p->at[TUNE_EXPANDABLE])
        p->at[TUNE_SPLIT] = 0;
    if (!p->at[TUNE_SPLIT])
        p->at[TUNE_ROUNDING] = 0;
    if (!p->at[AT_LIMIT])
        p->at[AT_GC] = 0;
    for (size_t k = space->classes; k < TUNE_CLASSES; k++)
        p->at[AT_DIVISIONS + k] = p->at[AT_DIVISIONS + space->classes - 1];
}

/* ---- text ---- */

static void FRAG_PRINTF(2, 3) put(char *text, const char *format, ...)
{
    size_t used = strlen(text);
    va_list args;

    if (used)
        text[used++] = ',';
    va_start(args, format);
    vsnprintf(text + used, TUNE_TEXT - used, format, args);
    va_end(args);
}

/* Writes one number if all classes are equal, else a list. The first entry of a
 * list also sets the classes below it. The last entry, ">", sets those above
 * the entry before it; older versions of PyTorch let it set that entry too, so
 * both have the same value. */
static void put_divisions(char *text, const struct tune_point *p)
{
    const uint8_t *at = p->at + AT_DIVISIONS;
    char list[TUNE_TEXT] = "";
    unsigned first = 0, last = TUNE_CLASSES - 1;

    while (first < last && at[first + 1] == at[0])
        first++;
    if (first == last) {
        if (at[0])
            put(text, "%s:%u", tune_knob_names[TUNE_DIVISIONS], 1u << at[0]);
        return;
    }
    while (at[last - 1] == at[TUNE_CLASSES - 1])
        last--;
    for (unsigned k = first; k <= last; k++)
        put(list, "%u:%u", 1u << k, 1u << at[k]);
    put(text, "%s:[%s,>:%u]", tune_knob_names[TUNE_DIVISIONS], list,
        1u << at[last]);
}

/* The fraction of the total that equals so many per cent of the reference. */
static double fraction(const struct tune_space *space, unsigned percent)
{
    double share = (double)space->reference * percent / 100;

    return share < (double)space->total ? share / (double)space->total : 1;
}

const char *tune_text(const struct tune_space *space,
                      const struct tune_point *p, char text[TUNE_TEXT])
{
    const unsigned large = value_of(p, TUNE_LARGE);
    const unsigned split = value_of(p, TUNE_SPLIT);
    const unsigned rounding = value_of(p, TUNE_ROUNDING);

    *text = '\0';
    if (p->at[TUNE_EXPANDABLE])
        put(text, "%s:True", tune_knob_names[TUNE_EXPANDABLE]);
    if (p->at[TUNE_LARGE])
        put(text, "%s:%u", tune_knob_names[TUNE_LARGE], large);
    if (split) /* PyTorch rejects a size below that of a segment */
        put(text, "%s:%u", tune_knob_names[TUNE_SPLIT],
            split > large ? split : large);
    if (rounding)
        put(text, "%s:%u", tune_knob_names[TUNE_ROUNDING],
            rounding > large ? rounding : large);
    put_divisions(text, p);
    if (p->at[AT_LIMIT])
        put(text, "%s:%.6f", tune_knob_names[TUNE_LIMIT],
            fraction(space, value_of(p, AT_LIMIT)));
    if (p->at[AT_GC])
        put(text, "%s:%.2f", tune_knob_names[TUNE_GC],
            value_of(p, AT_GC) / 100.0);
    return text;
}

bool tune_changes(const struct tune_point *p, enum tune_knob knob)
{
    for (size_t i = 0; i < TUNE_AXES; i++)
        if (tune_axis_knob(i) == knob && p->at[i])
            return true;
    return false;
}

static unsigned intervals(const struct tune_point *p)
{
    unsigned count = 1;

    for (unsigned k = 1; k < TUNE_CLASSES; k++)
        count += p->at[AT_DIVISIONS + k] != p->at[AT_DIVISIONS + k - 1];
    return count;
}

struct tune_size tune_size(const struct tune_point *p)
{
    struct tune_size size = {0, 0};

    for (int k = 0; k < TUNE_KNOB_COUNT; k++) {
        const unsigned count = !tune_changes(p, (enum tune_knob)k) ? 0
                               : k == TUNE_DIVISIONS ? intervals(p)
                                                     : 1;

        size.knobs += count;
        size.weight += count * weights[k];
    }
    return size;
}

void tune_reset(struct tune_point *p, enum tune_knob knob)
{
    for (size_t i = 0; i < TUNE_AXES; i++)
        if (tune_axis_knob(i) == knob)
            p->at[i] = 0;
}

/* ---- steps ---- */

void tune_set_divisions(struct tune_point *p, uint8_t place)
{
    memset(p->at + AT_DIVISIONS, place, TUNE_CLASSES);
}

static uint8_t any_place(enum tune_knob knob, gsl_rng *rng)
{
    return (uint8_t)gsl_rng_uniform_int(rng, places[knob].count);
}

/* Moves a range of classes to one place; the range is often one class, or all.
 */
static void step_divisions(const struct tune_space *space, struct tune_point *p,
                           gsl_rng *rng)
{
    unsigned from = (unsigned)gsl_rng_uniform_int(rng, space->classes);
    unsigned to = from + 1;
    uint8_t place = any_place(TUNE_DIVISIONS, rng);

    switch (gsl_rng_uniform_int(rng, 3)) {
    case 0:
        from = 0;
        to = space->classes;
        break;
    case 1:
        to += (unsigned)gsl_rng_uniform_int(rng, space->classes - from);
        break;
    default:
        break;
    }
    memset(p->at + AT_DIVISIONS + from, place, to - from);
}

/* A neighbour of the place, or any place. */
static uint8_t step_axis(enum tune_knob knob, uint8_t at, gsl_rng *rng)
{
    const unsigned long last = places[knob].count - 1;

    switch (gsl_rng_uniform_int(rng, 3)) {
    case 0:
        return at < last ? (uint8_t)(at + 1) : (uint8_t)(last - 1);
    case 1:
        return at > 0 ? (uint8_t)(at - 1) : 1;
    default:
        return any_place(knob, rng);
    }
}

struct tune_point tune_step(const struct tune_space *space,
                            const struct tune_point *p, gsl_rng *rng)
{
    struct tune_point next = *p;
    enum tune_knob knob;

    do
        knob = (enum tune_knob)gsl_rng_uniform_int(rng, TUNE_KNOB_COUNT);
    while (!space->allowed[knob]);
    if (knob == TUNE_DIVISIONS)
        step_divisions(space, &next, rng);
    else if (knob == TUNE_GC || knob == TUNE_LIMIT)
        next.at[knob == TUNE_GC ? AT_GC : AT_LIMIT] =
            step_axis(knob, next.at[knob == TUNE_GC ? AT_GC : AT_LIMIT], rng);
    else
        next.at[knob] = step_axis(knob, next.at[knob], rng);
    tune_settle(space, &next);
    return next;
}

/* ---- the grid ---- */

/* The place of a value on the axis of a knob; the axis must have the value. */
static uint8_t place_of(enum tune_knob knob, uint16_t value)
{
    uint8_t i = 0;

    while (places[knob].values[i] != value)
        i++;
    return i;
}

bool tune_grid(const struct tune_space *space, size_t i, struct tune_point *p)
{
    static const uint16_t large[] = {20, 12, 32, 64, 128, 256},
                          split[] = {0, 20, 64, 128, 256, 512},
                          limit[] = {0, 100, 95, 90, 80}, gc[] = {0, 80};
    enum { DIVISIONS = 5, PLAIN = 2 * 6 * 6 * DIVISIONS, LIMITED = 2 * 5 * 2 };

    *p = (struct tune_point){{0}};
    if (i < PLAIN) {
        p->at[TUNE_EXPANDABLE] = i % 2;
        p->at[TUNE_LARGE] = place_of(TUNE_LARGE, large[i / 2 % 6]);
        p->at[TUNE_SPLIT] = place_of(TUNE_SPLIT, split[i / 12 % 6]);
        tune_set_divisions(p, (uint8_t)(i / 72 % DIVISIONS));
    } else if (i < PLAIN + LIMITED) {
        i -= PLAIN;
        p->at[TUNE_EXPANDABLE] = i % 2;
        p->at[AT_LIMIT] = place_of(TUNE_LIMIT, limit[i / 2 % 5]);
        p->at[AT_GC] = place_of(TUNE_GC, gc[i / 10 % 2]);
    } else {
        return false;
    }
    tune_settle(space, p);
    return true;
}
