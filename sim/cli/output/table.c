/* table.c - keeps the cells of a table and prints them in aligned columns. */
#include "sim/cli/output/table.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "traces/grow.h"
#include "traces/printable.h"

void table_cell(struct table *t, bool alarm, const char *format, ...)
{
    char text[768];
    va_list args;

    if (t->missing || !GROW(t->cells, t->room, t->count + 1)) {
        t->missing = true;
        return;
    }
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    t->cells[t->count] = (struct table_cell){printable_copy(text), alarm};
    t->missing = !t->cells[t->count].text;
    t->count += !t->missing;
}

void table_size(struct table *t, frag_size size)
{
    char text[FRAG_SIZE_TEXT];

    table_cell(t, false, "%s", frag_size_format(size, text));
}

static size_t width(const struct table *t, size_t column)
{
    size_t most = 0;

    for (size_t i = column; i < t->count; i += t->columns) {
        size_t n = strlen(t->cells[i].text);

        most = n > most ? n : most;
    }
    return most;
}

static bool is_left_out(const struct table *t, size_t column)
{
    size_t first = column + t->columns;

    for (size_t i = first; i < t->count; i += t->columns)
        if (strcmp(t->cells[i].text, t->cells[first].text) != 0)
            return false;
    return column < t->optional;
}

static void put(const struct table *t, size_t i, FILE *out, bool color)
{
    const struct table_cell *cell = &t->cells[i];
    size_t column = i % t->columns;
    bool last = column + 1 == t->columns;
    int pad = (int)(width(t, column) - strlen(cell->text));
    const char *style = i < t->columns ? "\033[1m" : "\033[31m";
    bool styled = color && (i < t->columns || cell->alarm);

    if (t->right[column] == 'r')
        fprintf(out, "%*s", pad, "");
    fprintf(out, "%s%s%s", styled ? style : "", cell->text,
            styled ? "\033[0m" : "");
    if (t->right[column] != 'r' && !last)
        fprintf(out, "%*s", pad, "");
    fputs(last ? "\n" : "  ", out);
}

enum frag_err table_print(const struct table *t, FILE *out, bool color)
{
    if (t->missing)
        return FRAG_NOMEM;
    for (size_t i = 0; i < t->count; i++)
        if (!is_left_out(t, i % t->columns))
            put(t, i, out, color);
    return FRAG_OK;
}

void table_free(struct table *t)
{
    for (size_t i = 0; i < t->count; i++)
        free(t->cells[i].text);
    free(t->cells);
}
