/* json.c - the JSON writer. Every value writes its own separator from the value
 * before it, so that no caller writes a comma. */
#include "sim/results/json.h"

#include <inttypes.h>
#include <math.h>

#include "traces/printable.h"
#include "traces/text.h"

/* Writes a quoted string. File names may contain any bytes; a byte that is not
 * part of a UTF-8 character is written as U+FFFD. */
static void quote(FILE *out, const char *text)
{
    uint32_t code;

    fputc('"', out);
    while (*text) {
        const size_t n = utf8_read(text, &code);

        if (!n)
            fputs("\\ufffd", out);
        else if (!printable_code(code))
            fprintf(out, "\\u%04x", (unsigned)code);
        else
            fprintf(out, code == '"' || code == '\\' ? "\\%.*s" : "%.*s",
                    (int)n, text);
        text += n ? n : 1;
    }
    fputc('"', out);
}

static void start_line(struct frag_json *j)
{
    fprintf(j->out, "\n%*s", j->indent, "");
    j->starts_line = false;
}

/* Writes the separator, the line break and the key before a value. */
static void begin(struct frag_json *j, const char *key)
{
    if (j->has_items)
        fputc(',', j->out);
    if (j->starts_line)
        start_line(j);
    else if (j->has_items)
        fputc(' ', j->out);
    j->has_items = true;
    if (!key)
        return;
    quote(j->out, key);
    fputs(": ", j->out);
}

static void open(struct frag_json *j, const char *key, bool is_object)
{
    begin(j, key);
    fputc(is_object ? '{' : '[', j->out);
    j->objects = j->objects << 1 | is_object;
    j->has_items = false;
}

void frag_json_object(struct frag_json *j, const char *key)
{
    open(j, key, true);
}

void frag_json_array(struct frag_json *j, const char *key)
{
    open(j, key, false);
}

void frag_json_end(struct frag_json *j)
{
    if (j->starts_line)
        start_line(j);
    fputc(j->objects & 1 ? '}' : ']', j->out);
    j->objects >>= 1;
    j->has_items = true;
}

void frag_json_text(struct frag_json *j, const char *key, const char *text)
{
    if (!text) {
        frag_json_null(j, key);
        return;
    }
    begin(j, key);
    quote(j->out, text);
}

void frag_json_texts(struct frag_json *j, const char *key,
                     const char *const *texts, size_t count)
{
    frag_json_array(j, key);
    for (size_t i = 0; i < count; i++)
        frag_json_text(j, NULL, texts[i]);
    frag_json_end(j);
}

void frag_json_number(struct frag_json *j, const char *key, uint64_t n)
{
    begin(j, key);
    fprintf(j->out, "%" PRIu64, n);
}

void frag_json_count(struct frag_json *j, const char *key, uint64_t n)
{
    if (n == UINT64_MAX)
        frag_json_null(j, key);
    else
        frag_json_number(j, key, n);
}

void frag_json_real(struct frag_json *j, const char *key, double x)
{
    char text[FRAG_NUMBER_TEXT];

    begin(j, key);
    fputs(isfinite(x) ? frag_number_format(x, text) : "null", j->out);
}

void frag_json_seconds(struct frag_json *j, const char *key, double x)
{
    begin(j, key);
    fprintf(j->out, "%.9f", x);
}

void frag_json_bool(struct frag_json *j, const char *key, bool is_true)
{
    begin(j, key);
    fputs(is_true ? "true" : "false", j->out);
}

void frag_json_null(struct frag_json *j, const char *key)
{
    begin(j, key);
    fputs("null", j->out);
}

void frag_json_line(struct frag_json *j, int indent)
{
    j->starts_line = true;
    j->indent = indent;
}

void frag_json_new_object(struct frag_json *j, int indent, const char *key)
{
    frag_json_line(j, indent);
    frag_json_object(j, key);
}

void frag_json_new_array(struct frag_json *j, int indent, const char *key)
{
    frag_json_line(j, indent);
    frag_json_array(j, key);
}
