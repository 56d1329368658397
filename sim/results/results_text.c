/* results_text.c - writes rows of results as JSON and CSV. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "sim/results/columns.h"
#include "traces/printable.h"
#include "traces/text.h"

static bool is_text(const struct frag_column *c)
{
    return c->kind == FRAG_COLUMN_TEXT || c->kind == FRAG_COLUMN_CHARS ||
           c->kind == FRAG_COLUMN_FILLED || c->words;
}

/* ---- JSON ---- */

static void put_json(struct frag_json *j, const struct frag_column *c,
                     const void *row)
{
    if (is_text(c))
        frag_json_text(j, c->name, frag_column_text(c, row));
    else if (c->kind == FRAG_COLUMN_REAL)
        frag_json_real(j, c->name, frag_column_real(c, row));
    else if (c->kind == FRAG_COLUMN_BOOL || c->kind == FRAG_COLUMN_NOT)
        frag_json_bool(j, c->name, frag_column_number(c, row));
    else if (c->kind == FRAG_COLUMN_NS)
        frag_json_seconds(j, c->name, (double)frag_column_number(c, row) / 1e9);
    else if (c->kind == FRAG_COLUMN_LINE)
        frag_json_line(j, (int)c->offset);
    else
        frag_json_count(j, c->name, frag_column_number(c, row));
}

void frag_row_json(struct frag_json *j, const struct frag_column *columns,
                   const void *row)
{
    for (const struct frag_column *c = columns; c->kind != FRAG_COLUMN_END; c++)
        put_json(j, c, row);
}

void frag_object_json(struct frag_json *j, const char *key,
                      const struct frag_column *columns, const void *row)
{
    if (!row) {
        frag_json_null(j, key);
        return;
    }
    frag_json_object(j, key);
    frag_row_json(j, columns, row);
    frag_json_end(j);
}

void frag_rows_json(struct frag_json *j, const char *key, int indent,
                    const struct frag_column *columns, const void *rows,
                    size_t count, size_t size)
{
    if (indent)
        frag_json_line(j, indent);
    frag_json_array(j, key);
    for (size_t i = 0; i < count; i++) {
        if (indent)
            frag_json_line(j, indent + 1);
        frag_object_json(j, NULL, columns, (const char *)rows + i * size);
    }
    frag_json_end(j);
}

void frag_results_json_open(struct frag_json *j, FILE *out,
                            const struct frag_provenance *p)
{
    char tool[128];

    *j = (struct frag_json){.out = out};
    snprintf(tool, sizeof(tool), "fragsim %s (%s)", p->version, p->commit);
    frag_json_object(j, NULL);
    frag_json_text(j, "schema_version", FRAG_JSON_SCHEMA);
    frag_json_line(j, 1);
    frag_json_text(j, "tool", tool);
    frag_json_line(j, 1);
    frag_json_text(j, "command", p->command);
    frag_json_new_array(j, 1, "results");
}

/* ---- CSV ---- */

/* Writes the printable form of a text, because people look at CSV, and because
 * readers of CSV expect UTF-8. As in RFC 4180, it is quoted if it contains a
 * comma or a quote; it contains no line break. */
static void put_csv_text(FILE *out, const char *text)
{
    char form[PRINTABLE_ROOM];

    if (!strpbrk(text, ",\"")) {
        printable_put(out, text);
        return;
    }
    fputc('"', out);
    while (*text) {
        if (*text == '"')
            fputc('"', out);
        text += printable_character(text, form);
        fputs(form, out);
    }
    fputc('"', out);
}

/* Writes one field. What is none is an empty field. */
static void put_csv(FILE *out, const struct frag_column *c, const void *row)
{
    char text[FRAG_NUMBER_TEXT];

    if (is_text(c) && frag_column_text(c, row))
        put_csv_text(out, frag_column_text(c, row));
    else if (is_text(c))
        return;
    else if (c->kind == FRAG_COLUMN_REAL)
        fputs(isfinite(frag_column_real(c, row))
                  ? frag_number_format(frag_column_real(c, row), text)
                  : "",
              out);
    else if (frag_column_number(c, row) != UINT64_MAX)
        fprintf(out, "%" PRIu64, frag_column_number(c, row));
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
        put_csv(out, c, row);
    }
    fputc('\n', out);
}
