/* table.h - text in aligned columns.
 *
 * Cells are added row by row. Memory that is missing is remembered and told by
 * table_print, so that adding needs no checks.
 */
#ifndef FRAG_SIM_CLI_OUTPUT_TABLE_H
#define FRAG_SIM_CLI_OUTPUT_TABLE_H

#include <stdio.h>

#include "traces/base.h"

struct table {
    size_t columns;
    const char *right; /* one letter a column: 'r' aligns it right */
    size_t optional;   /* so many of the first columns are left out where all
                          their cells are equal */
    bool missing;      /* a cell had no memory */
    size_t count, room;
    struct table_cell {
        char *text;
        bool alarm; /* printed red where there is colour */
    } * cells;
};

void table_cell(struct table *t, bool alarm, const char *format, ...)
    FRAG_PRINTF(3, 4);
void table_size(struct table *t, frag_size size); /* a cell in IEC units */

/* NOMEM if a cell was lost; then nothing is printed. The first row is the
 * head, bold where there is colour. */
enum frag_err table_print(const struct table *t, FILE *out,
                          bool color) FRAG_MUST_CHECK;
void table_free(struct table *t);

#endif
