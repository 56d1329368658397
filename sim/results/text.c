/* text.c - rows of results as JSON and CSV. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/results/columns.h"

/* The next field of a row, by its column. */
static const void *field(const struct frag_result_row *row,
                         const struct frag_column *c)
{
    return (const char *)row + c->offset;
}

static uint64_t count_of(const void *at, enum frag_column_kind kind)
{
    uint64_t value;
    uint32_t narrow;

    if (kind == FRAG_COLUMN_COUNT32) {
        memcpy(&narrow, at, sizeof(narrow));
        return narrow;
    }
    memcpy(&value, at, sizeof(value));
    return value;
}

static void put_count(FILE *out, uint64_t n, const char *none)
{
    if (n == UINT64_MAX)
        fputs(none, out);
    else
        fprintf(out, "%" PRIu64, n);
}

/* The shortest of the decimals that read back as the same number. */
static void put_real(FILE *out, double x, const char *none)
{
    char text[32];

    if (!isfinite(x)) {
        fputs(none, out);
        return;
    }
    for (int digits = 6; digits <= 17; digits++) {
        snprintf(text, sizeof(text), "%.*g", digits, x);
        if (strtod(text, NULL) == x)
            break;
    }
    fputs(text, out);
}

/* Bytes of the UTF-8 character at text, 0 if it is none. */
static size_t utf8_length(const unsigned char *text)
{
    static const struct {
        unsigned char mask, lead;
        size_t length;
    } forms[] = {
        {0x80, 0x00, 1}, {0xe0, 0xc0, 2}, {0xf0, 0xe0, 3}, {0xf8, 0xf0, 4}};

    for (size_t i = 0; i < sizeof(forms) / sizeof(*forms); i++) {
        size_t n = 1;

        if ((text[0] & forms[i].mask) != forms[i].lead)
            continue;
        while (n < forms[i].length && (text[n] & 0xc0) == 0x80)
            n++;
        return n == forms[i].length ? n : 0;
    }
    return 0;
}

/* File names may hold any bytes; what is not UTF-8 becomes U+FFFD. */
void frag_json_text(FILE *out, const char *text)
{
    const unsigned char *at = (const unsigned char *)text;

    fputc('"', out);
    while (*at) {
        size_t n = utf8_length(at);

        if (*at == '"' || *at == '\\')
            fprintf(out, "\\%c", *at);
        else if (*at < 0x20 || *at == 0x7f)
            fprintf(out, "\\u%04x", *at);
        else if (n)
            fwrite(at, 1, n, out);
        else
            fputs("\\ufffd", out);
        at += n ? n : 1;
    }
    fputc('"', out);
}

void frag_json_real(FILE *out, double x)
{
    put_real(out, x, "null");
}

static void put_json(FILE *out, const void *at, enum frag_column_kind kind)
{
    const char *text;
    double x;

    switch (kind) {
    case FRAG_COLUMN_TEXT:
        memcpy(&text, at, sizeof(text));
        frag_json_text(out, text);
        break;
    case FRAG_COLUMN_REAL:
        memcpy(&x, at, sizeof(x));
        put_real(out, x, "null");
        break;
    default:
        put_count(out, count_of(at, kind), "null");
    }
}

void frag_results_json_open(FILE *out, const struct frag_provenance *p)
{
    fprintf(out,
            "{\"schema_version\": \"%s\",\n \"tool\": \"fragsim %s (%s)\",\n"
            " \"command\": ",
            FRAG_RESULTS_SCHEMA, p->version, p->commit);
    frag_json_text(out, p->command);
    fputs(",\n \"results\": [", out);
}

void frag_row_json(FILE *out, const struct frag_column *columns,
                   const void *row)
{
    for (const struct frag_column *c = columns; c->kind != FRAG_COLUMN_END;
         c++) {
        fprintf(out, "%s\"%s\": ", c == columns ? "" : ", ", c->name);
        put_json(out, field(row, c), c->kind);
    }
}

void frag_results_json_row(FILE *out, bool first,
                           const struct frag_run_identity *id,
                           const struct frag_run *run)
{
    const struct frag_result_row row = frag_result_row(id, run);

    fputs(first ? "\n  {" : ",\n  {", out);
    frag_row_json(out, frag_summary_columns, &row);
    fputc('}', out);
}

void frag_results_json_close(FILE *out)
{
    fputs("\n ]}\n", out);
}

/* RFC 4180: quoted where a comma, a quote or a line end makes it necessary. */
static void put_csv_text(FILE *out, const char *text)
{
    if (!strpbrk(text, ",\"\r\n")) {
        fputs(text, out);
        return;
    }
    fputc('"', out);
    for (; *text; text++) {
        if (*text == '"')
            fputc('"', out);
        fputc(*text, out);
    }
    fputc('"', out);
}

static void put_csv(FILE *out, const void *at, enum frag_column_kind kind)
{
    const char *text;
    double x;

    switch (kind) {
    case FRAG_COLUMN_TEXT:
        memcpy(&text, at, sizeof(text));
        put_csv_text(out, text);
        break;
    case FRAG_COLUMN_REAL:
        memcpy(&x, at, sizeof(x));
        put_real(out, x, "");
        break;
    default:
        put_count(out, count_of(at, kind), "");
    }
}

void frag_header_csv(FILE *out, const struct frag_column *columns)
{
    for (const struct frag_column *c = columns; c->kind != FRAG_COLUMN_END; c++)
        fprintf(out, "%s%s", c == columns ? "" : ",", c->name);
    fputc('\n', out);
}

void frag_row_csv(FILE *out, const struct frag_column *columns, const void *row)
{
    for (const struct frag_column *c = columns; c->kind != FRAG_COLUMN_END;
         c++) {
        if (c != columns)
            fputc(',', out);
        put_csv(out, field(row, c), c->kind);
    }
    fputc('\n', out);
}

void frag_results_csv_header(FILE *out)
{
    frag_header_csv(out, frag_summary_columns);
}

void frag_results_csv_row(FILE *out, const struct frag_run_identity *id,
                          const struct frag_run *run)
{
    const struct frag_result_row row = frag_result_row(id, run);

    frag_row_csv(out, frag_summary_columns, &row);
}
