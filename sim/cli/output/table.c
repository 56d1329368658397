/* table.c - keeps the cells of a table and prints them in aligned columns. */
#include "sim/cli/output/table.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "sim/cli/output/brief.h"
#include "traces/grow.h"
#include "traces/printable.h"
#include "traces/trace.h"

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
    t->cells[t->count] = (struct table_cell){printable_copy(text), NULL, alarm};
    t->missing = !t->cells[t->count].text;
    t->count += !t->missing;
}

struct table table_of(const char *right, const char *heads)
{
    struct table t = {.columns = strlen(right), .right = right};

    for (size_t i = 0; i < t.columns && *heads; i++) {
        const size_t length = strcspn(heads, "|");

        table_cell(&t, false, "%.*s", (int)length, heads);
        heads += length + (heads[length] == '|');
    }
    return t;
}

void table_share(struct table *t, double share)
{
    if (isfinite(share))
        table_cell(t, false, "%.1f %%", 100 * share);
    else
        table_cell(t, false, "-");
}

void table_size(struct table *t, frag_size size)
{
    table_cell(t, false, "%s", FRAG_SHOW_SIZE(size));
}

void table_size_or(struct table *t, frag_size size, const char *none)
{
    if (size == UINT64_MAX)
        table_cell(t, true, "%s", none);
    else
        table_size(t, size);
}

void table_count(struct table *t, uint64_t n)
{
    if (n == UINT64_MAX)
        table_cell(t, false, "-");
    else
        table_cell(t, false, "%" PRIu64, n);
}

void table_event(struct table *t, bool alarm, uint64_t event)
{
    if (event == UINT64_MAX)
        table_cell(t, false, "-");
    else
        table_cell(t, alarm, "event %" PRIu64, event);
}

void table_device(struct table *t, uint32_t device)
{
    if (device == FRAG_HOST_DEVICE)
        table_cell(t, false, "host");
    else
        table_cell(t, false, "%" PRIu32, device);
}

void table_bound(struct table *t, struct frag_bound bound)
{
    table_cell(t, false, "%s", FRAG_SHOW_BOUND(bound));
}

static const char *shown(const struct table_cell *cell)
{
    return cell->brief ? cell->brief : cell->text;
}

static size_t width(const struct table *t, size_t column)
{
    size_t most = 0;

    for (size_t i = column; i < t->count; i += t->columns) {
        size_t n = brief_letters(shown(&t->cells[i]));

        most = n > most ? n : most;
    }
    return most;
}

/* Whether all cells of the column below the heading are empty. */
static bool is_blank(const struct table *t, size_t column)
{
    for (size_t i = column + t->columns; i < t->count; i += t->columns)
        if (*t->cells[i].text)
            return false;
    return true;
}

static bool is_left_out(const struct table *t, size_t column)
{
    size_t first = column + t->columns;

    if (t->right[column] == 'o')
        return is_blank(t, column);
    for (size_t i = first; i < t->count; i += t->columns)
        if (strcmp(t->cells[i].text, t->cells[first].text) != 0)
            return false;
    return column < t->optional;
}

static void put(const struct table *t, size_t i, size_t wide, FILE *out,
                bool color)
{
    const struct table_cell *cell = &t->cells[i];
    size_t column = i % t->columns;
    bool last = column + 1 == t->columns;
    int pad = (int)(wide - brief_letters(shown(cell)));
    const char *style = i < t->columns ? "\033[1m" : "\033[31m";
    bool styled = color && (i < t->columns || cell->alarm);

    if (t->right[column] == 'r')
        fprintf(out, "%*s", pad, "");
    fprintf(out, "%s%s%s", styled ? style : "", shown(cell),
            styled ? "\033[0m" : "");
    if (t->right[column] != 'r' && !last)
        fprintf(out, "%*s", pad, "");
    fputs(last ? "\n" : "  ", out);
}

/* Letters that the names of a column may have; 0: it has no names. */
static size_t letters_of(char kind)
{
    return kind == 'n' ? 32 : kind == 'p' ? 60 : 0;
}

static enum frag_err add_names(const struct table *t, size_t column,
                               struct briefs *names)
{
    for (size_t i = column + t->columns; i < t->count; i += t->columns)
        FRAG_TRY(briefs_add(names, t->cells[i].text, ""));
    return FRAG_OK;
}

/* Sets the short forms of the names of a column. */
static enum frag_err shorten(struct table *t, size_t column)
{
    struct briefs names = {0};
    enum frag_err err = add_names(t, column, &names);

    if (err == FRAG_OK)
        briefs_make(&names, letters_of(t->right[column]));
    for (size_t i = column + t->columns; err == FRAG_OK && i < t->count;
         i += t->columns) {
        struct table_cell *cell = &t->cells[i];

        cell->brief = strdup(briefs_text(&names, cell->text, ""));
        err = cell->brief ? FRAG_OK : FRAG_NOMEM;
    }
    briefs_free(&names);
    return err;
}

#define LEFT_OUT SIZE_MAX

static enum frag_err print(struct table *t, FILE *out, bool color)
{
    size_t *wide;

    if (t->missing)
        return FRAG_NOMEM;
    for (size_t i = 0; i < t->columns; i++)
        if (letters_of(t->right[i]))
            FRAG_TRY(shorten(t, i));
    wide = calloc(t->columns, sizeof(*wide));
    if (!wide)
        return FRAG_NOMEM;
    for (size_t i = 0; i < t->columns; i++)
        wide[i] = is_left_out(t, i) ? LEFT_OUT : width(t, i);
    for (size_t i = 0; i < t->count; i++)
        if (wide[i % t->columns] != LEFT_OUT)
            put(t, i, wide[i % t->columns], out, color);
    free(wide);
    return FRAG_OK;
}

void table_free(struct table *t)
{
    for (size_t i = 0; i < t->count; i++) {
        free(t->cells[i].text);
        free(t->cells[i].brief);
    }
    free(t->cells);
    t->cells = NULL;
    t->count = t->room = 0;
}

enum frag_err table_print(struct table *t, FILE *out, bool color)
{
    const enum frag_err err = print(t, out, color);

    table_free(t);
    return err;
}
