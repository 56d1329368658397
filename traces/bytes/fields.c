/* fields.c - splits a line of a text format into fields and reads numbers. */
#include "traces/bytes/fields.h"

#include <inttypes.h>
#include <string.h>

#include "traces/bytes/source.h"

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

struct field field_trimmed(struct field f)
{
    while (f.length && is_blank(f.text[f.length - 1]))
        f.length--;
    while (f.length && is_blank(*f.text)) {
        f.text++;
        f.length--;
    }
    if (f.length >= 2 && f.text[0] == '"' && f.text[f.length - 1] == '"')
        return (struct field){f.text + 1, f.length - 2};
    return f;
}

struct field field_unmarked(struct field f)
{
    if (field_begins(f, "\xef\xbb\xbf"))
        return (struct field){f.text + 3, f.length - 3};
    return f;
}

struct field field_first_line(const unsigned char *bytes, size_t count)
{
    const unsigned char *end = memchr(bytes, '\n', count);

    return (struct field){(const char *)bytes,
                          end ? (size_t)(end - bytes) : count};
}

bool fields_next(struct fields *f, char separator, struct field *out)
{
    const char *stop;

    if (!f->at)
        return false;
    stop = memchr(f->at, separator, (size_t)(f->end - f->at));
    *out = field_trimmed(
        (struct field){f->at, (size_t)((stop ? stop : f->end) - f->at)});
    f->at = stop ? stop + 1 : NULL;
    return true;
}

bool field_is(struct field f, const char *word)
{
    return f.length == strlen(word) && !memcmp(f.text, word, f.length);
}

int field_among(struct field f, const char *const words[], int count)
{
    while (count-- && !field_is(f, words[count]))
        continue;
    return count;
}

bool field_begins(struct field f, const char *start)
{
    const size_t length = strlen(start);

    return f.length >= length && !memcmp(f.text, start, length);
}

bool field_contains(struct field f, const char *text)
{
    const size_t length = strlen(text);

    while (f.length >= length) {
        const char *at = memchr(f.text, *text, f.length - length + 1);

        if (!at)
            return false;
        if (!memcmp(at, text, length))
            return true;
        f.length -= (size_t)(at + 1 - f.text);
        f.text = at + 1;
    }
    return false;
}

int fields_columns(struct field header, const char *const names[], int column[])
{
    struct fields rest = fields_of(header.text, header.length);
    struct field f;
    int count = 0;

    for (int k = 0; names[k]; k++)
        column[k] = -1;
    for (; fields_next(&rest, ',', &f); count++)
        for (int k = 0; names[k]; k++)
            if (column[k] < 0 && field_is(f, names[k]))
                column[k] = count;
    return count;
}

int fields_pick(struct field line, const int column[], int names,
                struct field found[])
{
    struct fields rest = fields_of(line.text, line.length);
    struct field f;
    int count = 0;

    for (int k = 0; k < names; k++)
        found[k] = (struct field){"", 0};
    for (; fields_next(&rest, ',', &f); count++)
        for (int k = 0; k < names; k++)
            if (column[k] == count)
                found[k] = f;
    return count;
}

/* The value of a digit, 16 for any other character. */
static unsigned digit_of(char c)
{
    if (c >= '0' && c <= '9')
        return (unsigned)(c - '0');
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? (unsigned)(c - 'a') + 10 : 16;
}

static bool read_digits(struct field f, unsigned base, uint64_t *value)
{
    uint64_t n = 0;

    for (size_t i = 0; i < f.length; i++) {
        const unsigned digit = digit_of(f.text[i]);

        if (digit >= base || n > (UINT64_MAX - digit) / base)
            return false;
        n = n * base + digit;
    }
    *value = n;
    return f.length > 0;
}

bool field_decimal(struct field f, uint64_t *value)
{
    return read_digits(f, 10, value);
}

bool field_number(struct field f, uint64_t *value)
{
    if (field_begins(f, "0x"))
        return read_digits((struct field){f.text + 2, f.length - 2}, 16, value);
    return field_decimal(f, value);
}

bool field_pointer(struct field f, uint64_t *value)
{
    *value = 0;
    return field_is(f, "(nil)") ||
           (field_begins(f, "0x") && field_number(f, value));
}

enum frag_err field_wrong(const struct frag_source *source, uint64_t line,
                          const char *expected, struct field found,
                          struct frag_error *e)
{
    return frag_fail(e, FRAG_CORRUPT,
                     "%s:%" PRIu64 ": expected %s, found \"%.*s\"",
                     frag_source_name(source), line, expected,
                     found.length < 60 ? (int)found.length : 60, found.text);
}
