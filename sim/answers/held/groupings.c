/* groupings.c - the table of groupings. */
#include "sim/answers/held/groupings.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#define BEFORE_RECORDING UINT64_MAX
#define BEFORE_STEPS     (UINT64_MAX - 1)

const char *const holders_by_names[HOLDERS_BY_COUNT] = {
#define X(name, text) text,
    HOLDERS_BY(X)
#undef X
};

/* -- stacks -------------------------------------------------------------- */

static uint64_t stack_number(const struct grouped *g)
{
    return g->b->stack;
}

static void site_name(const struct grouped *g, char text[SITE_TEXT])
{
    site_text(g->h->trace, g->b->stack, text);
}

static void function_name(const struct grouped *g, char text[SITE_TEXT])
{
    site_function_text(g->h->trace, g->b->stack, text);
}

static void function_key(const struct grouped *g, FILE *out)
{
    const struct frag_frame *f = site_of(g->h->trace, g->b->stack);

    if (f)
        fprintf(out, "%s (%s", g->h->trace->strings[f->function],
                g->h->trace->strings[f->file]);
}

static void site_key(const struct grouped *g, FILE *out)
{
    const struct frag_frame *f = site_of(g->h->trace, g->b->stack);

    function_key(g, out);
    if (f)
        fprintf(out, ":%" PRIu32 ")", f->line);
}

static void caller_name(const struct grouped *g, char text[SITE_TEXT])
{
    site_caller_text(g->h->trace, g->b->stack, text);
}

static void stack_key(const struct grouped *g, FILE *out)
{
    site_put_folded(g->h->trace, g->b->stack, out);
}

/* -- sizes --------------------------------------------------------------- */

static uint64_t size_number(const struct grouped *g)
{
    return g->b->bytes;
}

static void size_name(const struct grouped *g, char text[SITE_TEXT])
{
    char size[FRAG_SIZE_TEXT];

    frag_size_format(g->b->bytes, size);
    if (g->b->bytes < FRAG_KIB)
        snprintf(text, SITE_TEXT, "%s", size);
    else
        snprintf(text, SITE_TEXT, "%" PRIu64 " B (%s)", g->b->bytes, size);
}

/* -- classes ------------------------------------------------------------- */

static uint64_t class_number(const struct grouped *g)
{
    return g->h->classes[g->b->event];
}

static void class_name(const struct grouped *g, char text[SITE_TEXT])
{
    snprintf(text, SITE_TEXT, "%s", memory_class_names[class_number(g)]);
}

/* -- ages ---------------------------------------------------------------- */

static uint64_t log2_of(uint64_t n)
{
    uint64_t log = 0;

    while (n >>= 1)
        log++;
    return log;
}

static bool is_initial(const struct grouped *g)
{
    return g->b->event < g->h->device->initial;
}

/* The number of boundaries of steps up to the event. */
static uint64_t boundaries(const struct frag_steps *s, uint64_t event)
{
    uint64_t low = 0, high = s->count;

    while (low < high) {
        const uint64_t middle = low + (high - low) / 2;

        if (s->items[middle].from <= event)
            low = middle + 1;
        else
            high = middle;
    }
    return low && low == s->count && event >= s->items[low - 1].to ? low + 1
                                                                   : low;
}

uint64_t holders_age_steps(const struct holders *h, uint64_t event)
{
    const uint64_t born = boundaries(&h->steps, event);

    return born ? boundaries(&h->steps, h->event) - born : UINT64_MAX;
}

double holders_age_seconds(const struct holders *h, uint64_t event)
{
    const struct frag_device_trace *d = h->device;

    if (!d->time || event < d->initial || d->time[h->event] < d->time[event])
        return NAN;
    return (double)(d->time[h->event] - d->time[event]) / 1e9;
}

/* Ages of 0, 1, 2 to 3, 4 to 7 steps, and so on; if no steps were found, of 0
 * to 9, 10 to 99 events, and so on. */
static uint64_t age_number(const struct grouped *g)
{
    const uint64_t steps = holders_age_steps(g->h, g->b->event);
    uint64_t digits = 0;

    if (is_initial(g))
        return BEFORE_RECORDING;
    if (g->h->steps.count)
        return steps == UINT64_MAX ? BEFORE_STEPS
               : steps             ? 1 + log2_of(steps)
                                   : 0;
    for (uint64_t age = g->h->event - g->b->event; age >= 10; age /= 10)
        digits++;
    return digits;
}

static void age_name(const struct grouped *g, char text[SITE_TEXT])
{
    const uint64_t number = age_number(g);
    uint64_t from = 1;

    for (uint64_t i = 0; !g->h->steps.count && i < number && i < 19; i++)
        from *= 10;
    if (number >= BEFORE_STEPS)
        snprintf(text, SITE_TEXT, "before the %s",
                 number == BEFORE_STEPS ? "first step" : "recording");
    else if (!g->h->steps.count)
        snprintf(text, SITE_TEXT, "%" PRIu64 " to %" PRIu64 " events",
                 from == 1 ? 0 : from, 10 * from - 1);
    else if (number < 2)
        snprintf(text, SITE_TEXT, number ? "1 step" : "this step");
    else
        snprintf(text, SITE_TEXT, "%" PRIu64 " to %" PRIu64 " steps",
                 (uint64_t)1 << (number - 1), ((uint64_t)1 << number) - 1);
}

/* -- pools and streams --------------------------------------------------- */

static uint64_t pool_number(const struct grouped *g)
{
    return g->b->pool;
}

static void pool_name(const struct grouped *g, char text[SITE_TEXT])
{
    char name[FRAG_POOL_NAME];

    snprintf(text, SITE_TEXT, "%s",
             frag_pool_name(g->h->trace, g->h->device, g->b->pool, name));
}

static uint64_t stream_number(const struct grouped *g)
{
    return g->b->stream;
}

static void stream_name(const struct grouped *g, char text[SITE_TEXT])
{
    snprintf(text, SITE_TEXT, "stream %" PRIu64,
             g->h->device->streams[g->b->stream]);
}

/* -- metadata ------------------------------------------------------------ */

/* The whole text; NULL: the request has none. */
static const char *metadata_of(const struct grouped *g)
{
    const struct frag_trace *t = g->h->trace;
    const struct frag_frame *last;

    if (t->stack_first[g->b->stack] == t->stack_first[g->b->stack + 1])
        return NULL;
    last = &t->frames[t->stack_first[g->b->stack + 1] - 1];
    return strcmp(t->strings[last->file], FRAG_METADATA_FILE) == 0
               ? t->strings[last->function]
               : NULL;
}

static void metadata_key(const struct grouped *g, FILE *out)
{
    const char *text = metadata_of(g);

    fputs(text ? text : "", out);
}

static void metadata_name(const struct grouped *g, char text[SITE_TEXT])
{
    const char *whole = metadata_of(g);

    snprintf(text, SITE_TEXT, "%s", whole ? whole : "no metadata");
}

const struct grouping groupings[HOLDERS_BY_COUNT] = {
    [HOLDERS_BY_SITE] = {true, stack_number, site_name, site_key},
    [HOLDERS_BY_FUNCTION] = {true, stack_number, function_name, function_key},
    [HOLDERS_BY_CALLER] = {true, stack_number, caller_name, NULL},
    [HOLDERS_BY_STACK] = {true, stack_number, site_name, stack_key},
    [HOLDERS_BY_SIZE] = {false, size_number, size_name, NULL},
    [HOLDERS_BY_CLASS] = {true, class_number, class_name, NULL},
    [HOLDERS_BY_AGE] = {false, age_number, age_name, NULL},
    [HOLDERS_BY_POOL] = {false, pool_number, pool_name, NULL},
    [HOLDERS_BY_STREAM] = {false, stream_number, stream_name, NULL},
    [HOLDERS_BY_METADATA] = {true, stack_number, metadata_name, metadata_key},
};
