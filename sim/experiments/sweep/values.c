/* values.c - reads the values of one parameter: lists and ranges. */
#include "sim/experiments/sweep/values.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "traces/grow.h"

/* A number and its unit, such as "20MiB". */
struct quantity {
    double number;
    char unit[16];
};

struct range {
    struct quantity from, to, step;
    bool multiplies;
};

static enum frag_err add(struct values_of *out, const char *text, size_t length,
                         struct frag_error *e)
{
    if (out->count == VALUES_MAX)
        return frag_fail(e, FRAG_INVALID,
                         "a parameter has at most %d values, found more",
                         VALUES_MAX);
    if (!GROW(out->items, out->room, out->count + 1) ||
        !(out->items[out->count] = strndup(text, length)))
        return frag_no_memory(e, "values");
    out->count++;
    return FRAG_OK;
}

/* Reads a number and a unit of letters; false if there is no number. */
static bool read_quantity(const char **at, struct quantity *q)
{
    size_t n = strspn(*at, "0123456789");
    char *end;

    if (!n)
        return false;
    /* strtod would read the first dot of ".." too. */
    if ((*at)[n] == '.' && (*at)[n + 1] != '.')
        n += 1 + strspn(*at + n + 1, "0123456789");
    q->number = strtod(*at, &end);
    *at += n;
    n = strspn(*at, "KMGTiBkmgtb");
    if (n >= sizeof(q->unit))
        return false;
    memcpy(q->unit, *at, n);
    q->unit[n] = '\0';
    *at += n;
    return true;
}

/* Reads a range. Returns what was expected, NULL if the range is valid. */
static const char *read_range(const char *text, struct range *r)
{
    if (!read_quantity(&text, &r->from) || strncmp(text, "..", 2) != 0)
        return "a number before ..";
    text += 2;
    if (!read_quantity(&text, &r->to) || (*text != ':' && *text != '*'))
        return "a number after .. and then :STEP or *FACTOR";
    r->multiplies = *text++ == '*';
    if (!read_quantity(&text, &r->step) || *text)
        return "a number as the step or factor, and nothing after it";
    if (strcmp(r->from.unit, r->to.unit) != 0)
        return "one unit on both sides of ..";
    if (*r->step.unit &&
        (r->multiplies || strcmp(r->step.unit, r->from.unit) != 0))
        return "a step in that unit, or a factor without one";
    if (r->from.number > r->to.number)
        return "the smaller number first";
    if (r->multiplies ? r->step.number <= 1 || r->from.number <= 0
                      : r->step.number <= 0)
        return "a step above 0, or a factor above 1 from a number above 0";
    return NULL;
}

/* Computes each number from the first one, so that rounding errors do not add
 * up. */
static enum frag_err add_range(struct values_of *out, const struct range *r,
                               struct frag_error *e)
{
    const double slack = 1e-9 * r->to.number;
    char text[64];

    for (unsigned i = 0;; i++) {
        double x = r->multiplies ? r->from.number * pow(r->step.number, i)
                                 : r->from.number + i * r->step.number;

        if (x > r->to.number + slack)
            return FRAG_OK;
        snprintf(text, sizeof(text), "%.12g%s", x, r->from.unit);
        FRAG_TRY(add(out, text, strlen(text), e));
    }
}

static enum frag_err add_value(struct values_of *out, const char *text,
                               size_t length, struct frag_error *e)
{
    struct range range = {.multiplies = false};
    const char *expected;
    char one[128];

    if (!length)
        return frag_fail(e, FRAG_INVALID, "expected a value, found nothing");
    snprintf(one, sizeof(one), "%.*s", (int)(length < 127 ? length : 127),
             text);
    if (!strstr(one, ".."))
        return add(out, text, length, e);
    expected = read_range(one, &range);
    if (expected)
        return frag_fail(e, FRAG_INVALID, "range \"%s\": expected %s", one,
                         expected);
    return add_range(out, &range, e);
}

/* The number of characters before the next comma outside of brackets. */
static size_t one_length(const char *text)
{
    int depth = 0;
    size_t n = 0;

    for (; text[n] && (text[n] != ',' || depth > 0); n++)
        depth += (text[n] == '[') - (text[n] == ']');
    return n;
}

enum frag_err values_read(const char *text, struct values_of *out,
                          struct frag_error *e)
{
    for (;;) {
        size_t n = one_length(text);

        FRAG_TRY(add_value(out, text, n, e));
        if (!text[n])
            return FRAG_OK;
        text += n + 1;
    }
}

void values_free(struct values_of *values)
{
    for (size_t i = 0; i < values->count; i++)
        free(values->items[i]);
    free(values->items);
    *values = (struct values_of){0};
}
