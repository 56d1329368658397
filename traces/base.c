/* base.c - writes errors and sizes as text, and reads sizes from text. */
#include "traces/base.h"

#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

const char *frag_err_text(enum frag_err err)
{
    static const char *const texts[] = {
#define X(name, text) [FRAG_##name] = text,
        FRAG_ERRORS(X)
#undef X
    };

    return texts[err];
}

enum frag_err frag_fail(struct frag_error *e, enum frag_err err,
                        const char *format, ...)
{
    va_list args;

    if (!e)
        return err;
    va_start(args, format);
    vsnprintf(e->text, sizeof(e->text), format, args);
    va_end(args);
    return err;
}

enum frag_err frag_no_memory(struct frag_error *e, const char *format, ...)
{
    char words[sizeof(e->text)];
    va_list args;

    va_start(args, format);
    vsnprintf(words, sizeof(words), format, args);
    va_end(args);
    return frag_fail(e, FRAG_NOMEM, "%s for %s", frag_err_text(FRAG_NOMEM),
                     words);
}

static const struct unit {
    const char *name;
    double bytes;
} units[] = {
    {"", 1},         {"b", 1},        {"k", 0x1p10},   {"kib", 0x1p10},
    {"kb", 1e3},     {"m", 0x1p20},   {"mib", 0x1p20}, {"mb", 1e6},
    {"g", 0x1p30},   {"gib", 0x1p30}, {"gb", 1e9},     {"t", 0x1p40},
    {"tib", 0x1p40}, {"tb", 1e12},
};

static const struct unit *find_unit(const char *name)
{
    for (size_t i = 0; i < sizeof(units) / sizeof(*units); i++)
        if (!strcasecmp(name, units[i].name))
            return &units[i];
    return NULL;
}

/* Reads a whole number without a double, which would keep only 53 of its bits.
 * INVALID if the text up to `end` is not a whole number. */
static enum frag_err whole(const char *text, double unit, const char *end,
                           frag_size *size)
{
    char *stop;
    unsigned long long n = strtoull(text, &stop, 10);

    if (stop != end || (double)n * unit > 0x1p63)
        return FRAG_INVALID;
    *size = (frag_size)n * (frag_size)unit;
    return FRAG_OK;
}

enum frag_err frag_size_parse(const char *text, frag_size *size)
{
    const struct unit *unit;
    double number;
    char *end;

    if (!strcasecmp(text, "inf") || !strcasecmp(text, "unlimited")) {
        *size = FRAG_UNLIMITED;
        return FRAG_OK;
    }
    if (!isdigit((unsigned char)*text) && *text != '.')
        return FRAG_INVALID;
    if (text[0] == '0' && (text[1] == 'x' || text[1] == 'X'))
        return FRAG_INVALID;
    number = strtod(text, &end);
    const char *word = end;
    while (*word == ' ')
        word++;
    unit = find_unit(word);
    if (!unit || end == text || !(number * unit->bytes <= 0x1p63))
        return FRAG_INVALID;
    if (whole(text, unit->bytes, end, size) == FRAG_OK)
        return FRAG_OK;
    *size = (frag_size)llround(number * unit->bytes);
    return FRAG_OK;
}

const char *frag_size_format(frag_size size, char text[FRAG_SIZE_TEXT])
{
    static const char *const names[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    double value = (double)size;
    size_t k = 0;

    if (size == FRAG_UNLIMITED) {
        snprintf(text, FRAG_SIZE_TEXT, "unlimited");
        return text;
    }
    for (; value >= 1024 && k + 1 < sizeof(names) / sizeof(*names); k++)
        value /= 1024;
    snprintf(text, FRAG_SIZE_TEXT, "%.*f", k ? 3 : 0, value);
    if (k) {
        char *end = text;
        while (end[1])
            end++;
        while (*end == '0')
            *end-- = '\0';
        if (*end == '.')
            *end = '\0';
    }
    char number[FRAG_SIZE_TEXT];
    snprintf(number, sizeof(number), "%s", text);
    snprintf(text, FRAG_SIZE_TEXT, "%.20s %s", number, names[k]);
    return text;
}

const char *frag_size_argument(frag_size size, char text[FRAG_SIZE_TEXT])
{
    static const char *const names[] = {"B", "KiB", "MiB", "GiB"};
    size_t k = 0;

    for (; size && size % 1024 == 0 && k < 3; k++)
        size /= 1024;
    snprintf(text, FRAG_SIZE_TEXT, "%" PRIu64 "%s", size, names[k]);
    return text;
}

const char *frag_size_exact(frag_size size, char text[FRAG_EXACT_TEXT])
{
    snprintf(text, FRAG_EXACT_TEXT, "%s (%" PRIu64 " bytes)",
             FRAG_SHOW_SIZE(size), size);
    return text;
}

const char *const frag_bound_words[FRAG_BOUND_KINDS] = {
    [FRAG_BOUND_CAPACITY] = "capacity",
    [FRAG_BOUND_LIMIT] = "process limit",
};

int frag_bound_order(struct frag_bound a, struct frag_bound b)
{
    if (a.bytes != b.bytes)
        return a.bytes < b.bytes ? -1 : 1;
    if (a.bytes == FRAG_UNLIMITED)
        return 0;
    return (a.kind > b.kind) - (a.kind < b.kind);
}

/* "4.5 to 5.1 GiB", in the unit of the larger end: the least is rounded down,
 * the most up. */
static void put_interval(struct frag_bound b, char *text, size_t room)
{
    const bool is_large = b.most >= FRAG_GIB;
    const frag_size tenth = (is_large ? FRAG_GIB : FRAG_MIB) / 10;
    const double least = (double)(b.least / tenth) / 10;
    const double most = (double)((b.most + tenth - 1) / tenth) / 10;

    snprintf(text, room, "%.1f to %.1f %s", least, most,
             is_large ? "GiB" : "MiB");
}

const char *frag_bound_format(struct frag_bound b, char text[FRAG_BOUND_TEXT])
{
    const bool is_limit =
        b.kind == FRAG_BOUND_LIMIT && b.bytes != FRAG_UNLIMITED;
    char size[2 * FRAG_SIZE_TEXT];

    if (b.most)
        put_interval(b, size, sizeof(size));
    else
        frag_size_format(b.bytes, size);
    snprintf(text, FRAG_BOUND_TEXT, "%s%s", is_limit ? "process limit " : "",
             size);
    return text;
}
