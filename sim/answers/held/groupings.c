/* groupings.c - the table of groupings. */
#include "sim/answers/held/groupings.h"

#include <inttypes.h>
#include <string.h>

#define BEFORE_RECORDING UINT64_MAX
#define BEFORE_STEPS     (UINT64_MAX - 1)

const char *const holders_by_names[HOLDERS_BY_COUNT] = {
#define X(name, text) text,
    HOLDERS_BY(X)
#undef X
};

/* -- stacks -------------------------------------------------------------- */

static uint64_t stack_number(const struct holders *h,
                             const struct moment_block *b)
{
    (void)h;
    return b->stack;
}

static void site_name(const struct holders *h, const struct moment_block *b,
                      char text[SITE_TEXT])
{
    site_text(h->trace, b->stack, text);
}

static void site_key(const struct holders *h, const struct moment_block *b,
                     FILE *out)
{
    const struct frag_frame *f = site_of(h->trace, b->stack);

    if (f)
        fprintf(out, "%s (%s:%" PRIu32 ")", h->trace->strings[f->function],
                h->trace->strings[f->file], f->line);
}

static void function_name(const struct holders *h, const struct moment_block *b,
                          char text[SITE_TEXT])
{
    site_function_text(h->trace, b->stack, text);
}

static void function_key(const struct holders *h, const struct moment_block *b,
                         FILE *out)
{
    const struct frag_frame *f = site_of(h->trace, b->stack);

    if (f)
        fprintf(out, "%s (%s)", h->trace->strings[f->function],
                h->trace->strings[f->file]);
}

static void stack_key(const struct holders *h, const struct moment_block *b,
                      FILE *out)
{
    site_put_folded(h->trace, b->stack, out);
}

/* -- sizes --------------------------------------------------------------- */

static uint64_t size_number(const struct holders *h,
                            const struct moment_block *b)
{
    (void)h;
    return b->bytes;
}

static void size_name(const struct holders *h, const struct moment_block *b,
                      char text[SITE_TEXT])
{
    char size[FRAG_SIZE_TEXT];

    (void)h;
    frag_size_format(b->bytes, size);
    if (b->bytes < FRAG_KIB)
        snprintf(text, SITE_TEXT, "%s", size);
    else
        snprintf(text, SITE_TEXT, "%" PRIu64 " B (%s)", b->bytes, size);
}

static uint64_t log2_of(uint64_t n)
{
    uint64_t log = 0;

    while (n >>= 1)
        log++;
    return log;
}

static uint64_t class_number(const struct holders *h,
                             const struct moment_block *b)
{
    (void)h;
    return log2_of(b->bytes);
}

static void class_name(const struct holders *h, const struct moment_block *b,
                       char text[SITE_TEXT])
{
    const frag_size from = (frag_size)1 << log2_of(b->bytes);

    (void)h;
    snprintf(text, SITE_TEXT, "%s to below %s", FRAG_SHOW_SIZE(from),
             FRAG_SHOW_SIZE(2 * from));
}

/* -- ages ---------------------------------------------------------------- */

static bool is_initial(const struct holders *h, const struct moment_block *b)
{
    return b->event < h->device->initial;
}

/* Ages 0, 1, 2 to 3, 4 to 7, and so on. */
static uint64_t age_number(const struct holders *h,
                           const struct moment_block *b)
{
    const uint64_t steps = holders_age_steps(h, b->event);

    if (is_initial(h, b))
        return BEFORE_RECORDING;
    if (steps == UINT64_MAX)
        return BEFORE_STEPS;
    return steps ? 1 + log2_of(steps) : 0;
}

static void age_name(const struct holders *h, const struct moment_block *b,
                     char text[SITE_TEXT])
{
    const uint64_t number = age_number(h, b);

    if (number == BEFORE_RECORDING)
        snprintf(text, SITE_TEXT, "before the recording");
    else if (number == BEFORE_STEPS)
        snprintf(text, SITE_TEXT, "before the first step");
    else if (number == 0)
        snprintf(text, SITE_TEXT, "this step");
    else if (number == 1)
        snprintf(text, SITE_TEXT, "1 step");
    else
        snprintf(text, SITE_TEXT, "%" PRIu64 " to %" PRIu64 " steps",
                 (uint64_t)1 << (number - 1), ((uint64_t)1 << number) - 1);
}

static const struct {
    double below; /* seconds */
    const char *name;
} spans[] = {{1e-3, "less than 1 ms"}, {1e-2, "1 to 10 ms"},
             {1e-1, "10 to 100 ms"},   {1, "100 ms to 1 s"},
             {10, "1 to 10 s"},        {100, "10 to 100 s"},
             {1000, "100 to 1000 s"},  {1e30, "1000 s or more"}};

static uint64_t seconds_number(const struct holders *h,
                               const struct moment_block *b)
{
    const double age = holders_age_seconds(h, b->event);
    uint64_t i = 0;

    if (is_initial(h, b))
        return BEFORE_RECORDING;
    while (age >= spans[i].below)
        i++;
    return i;
}

static void seconds_name(const struct holders *h, const struct moment_block *b,
                         char text[SITE_TEXT])
{
    const uint64_t number = seconds_number(h, b);

    snprintf(text, SITE_TEXT, "%s",
             number == BEFORE_RECORDING ? "before the recording"
                                        : spans[number].name);
}

static uint64_t events_number(const struct holders *h,
                              const struct moment_block *b)
{
    uint64_t digits = 0;

    if (is_initial(h, b))
        return BEFORE_RECORDING;
    for (uint64_t age = h->event - b->event; age >= 10; age /= 10)
        digits++;
    return digits;
}

static void events_name(const struct holders *h, const struct moment_block *b,
                        char text[SITE_TEXT])
{
    uint64_t number = events_number(h, b), from = 1;

    if (number == BEFORE_RECORDING) {
        snprintf(text, SITE_TEXT, "before the recording");
        return;
    }
    while (number--)
        from *= 10;
    snprintf(text, SITE_TEXT, "%" PRIu64 " to %" PRIu64 " events",
             from == 1 ? 0 : from, 10 * from - 1);
}

/* -- pools and streams --------------------------------------------------- */

static uint64_t pool_number(const struct holders *h,
                            const struct moment_block *b)
{
    (void)h;
    return b->pool;
}

static void pool_name(const struct holders *h, const struct moment_block *b,
                      char text[SITE_TEXT])
{
    char name[FRAG_POOL_NAME];

    snprintf(text, SITE_TEXT, "%s",
             frag_pool_name(h->trace, h->device, b->pool, name));
}

static uint64_t stream_number(const struct holders *h,
                              const struct moment_block *b)
{
    (void)h;
    return b->stream;
}

static void stream_name(const struct holders *h, const struct moment_block *b,
                        char text[SITE_TEXT])
{
    snprintf(text, SITE_TEXT, "stream %" PRIu64, h->device->streams[b->stream]);
}

/* -- metadata ------------------------------------------------------------ */

/* The whole text; NULL: the request has none. */
static const char *metadata_of(const struct holders *h,
                               const struct moment_block *b)
{
    const struct frag_trace *t = h->trace;
    const struct frag_frame *last;

    if (t->stack_first[b->stack] == t->stack_first[b->stack + 1])
        return NULL;
    last = &t->frames[t->stack_first[b->stack + 1] - 1];
    return strcmp(t->strings[last->file], FRAG_METADATA_FILE) == 0
               ? t->strings[last->function]
               : NULL;
}

static void metadata_key(const struct holders *h, const struct moment_block *b,
                         FILE *out)
{
    const char *text = metadata_of(h, b);

    fputs(text ? text : "", out);
}

static void metadata_name(const struct holders *h, const struct moment_block *b,
                          char text[SITE_TEXT])
{
    const char *whole = metadata_of(h, b);

    snprintf(text, SITE_TEXT, "%s", whole ? whole : "no metadata");
}

const struct grouping groupings[HOLDERS_BY_COUNT] = {
    [HOLDERS_BY_SITE] = {NEEDS_STACKS, stack_number, site_name, site_key},
    [HOLDERS_BY_FUNCTION] = {NEEDS_STACKS, stack_number, function_name,
                             function_key},
    [HOLDERS_BY_STACK] = {NEEDS_STACKS, stack_number, site_name, stack_key},
    [HOLDERS_BY_SIZE] = {NEEDS_NOTHING, size_number, size_name, NULL},
    [HOLDERS_BY_CLASS] = {NEEDS_NOTHING, class_number, class_name, NULL},
    [HOLDERS_BY_AGE] = {NEEDS_STEPS, age_number, age_name, NULL},
    [HOLDERS_BY_SECONDS] = {NEEDS_TIMES, seconds_number, seconds_name, NULL},
    [HOLDERS_BY_EVENTS] = {NEEDS_NOTHING, events_number, events_name, NULL},
    [HOLDERS_BY_POOL] = {NEEDS_NOTHING, pool_number, pool_name, NULL},
    [HOLDERS_BY_STREAM] = {NEEDS_NOTHING, stream_number, stream_name, NULL},
    [HOLDERS_BY_METADATA] = {NEEDS_STACKS, stack_number, metadata_name,
                             metadata_key},
};
