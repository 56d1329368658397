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

/* Ages of 0, 1, 2 to 3, 4 to 7 steps, and so on; if no steps were found, of 0
 * to 9, 10 to 99 events, and so on. */
static uint64_t age_number(const struct holders *h,
                           const struct moment_block *b)
{
    const uint64_t steps = holders_age_steps(h, b->event);
    uint64_t digits = 0;

    if (is_initial(h, b))
        return BEFORE_RECORDING;
    if (h->steps.count)
        return steps == UINT64_MAX ? BEFORE_STEPS
               : steps             ? 1 + log2_of(steps)
                                   : 0;
    for (uint64_t age = h->event - b->event; age >= 10; age /= 10)
        digits++;
    return digits;
}

static void age_name(const struct holders *h, const struct moment_block *b,
                     char text[SITE_TEXT])
{
    const uint64_t number = age_number(h, b);
    uint64_t from = 1;

    for (uint64_t i = 0; !h->steps.count && i < number && i < 19; i++)
        from *= 10;
    if (number >= BEFORE_STEPS)
        snprintf(text, SITE_TEXT, "before the %s",
                 number == BEFORE_STEPS ? "first step" : "recording");
    else if (!h->steps.count)
        snprintf(text, SITE_TEXT, "%" PRIu64 " to %" PRIu64 " events",
                 from == 1 ? 0 : from, 10 * from - 1);
    else if (number < 2)
        snprintf(text, SITE_TEXT, number ? "1 step" : "this step");
    else
        snprintf(text, SITE_TEXT, "%" PRIu64 " to %" PRIu64 " steps",
                 (uint64_t)1 << (number - 1), ((uint64_t)1 << number) - 1);
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
    [HOLDERS_BY_SITE] = {true, stack_number, site_name, site_key},
    [HOLDERS_BY_FUNCTION] = {true, stack_number, function_name, function_key},
    [HOLDERS_BY_STACK] = {true, stack_number, site_name, stack_key},
    [HOLDERS_BY_SIZE] = {false, size_number, size_name, NULL},
    [HOLDERS_BY_CLASS] = {false, class_number, class_name, NULL},
    [HOLDERS_BY_AGE] = {false, age_number, age_name, NULL},
    [HOLDERS_BY_POOL] = {false, pool_number, pool_name, NULL},
    [HOLDERS_BY_STREAM] = {false, stream_number, stream_name, NULL},
    [HOLDERS_BY_METADATA] = {true, stack_number, metadata_name, metadata_key},
};
