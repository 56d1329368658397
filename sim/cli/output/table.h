/* table.h - prints text in aligned columns.
 *
 * Cells are added row by row. A failed allocation is remembered and reported by
 * table_print, so that the calls that add cells need no checks.
 */
#ifndef FRAG_SIM_CLI_OUTPUT_TABLE_H
#define FRAG_SIM_CLI_OUTPUT_TABLE_H

#include <stdio.h>

#include "traces/base.h"

struct table {
    size_t columns;
    const char *right; /* one letter for each column: 'r' aligns it right; 'n'
                          and 'p' are names of traces and policies, which are
                          shortened to 32 and 60 letters and stay distinct;
                          'o' leaves the column out if all its cells below the
                          heading are empty (not the last column) */
    size_t optional;   /* number of leading columns that are left out if all
                          their cells below the heading are equal */
    bool missing;      /* an allocation failed */
    size_t count, room;
    struct table_cell {
        char *text;
        char *brief; /* of a long name, made by table_print; else NULL */
        bool alarm;  /* printed red if the table is coloured */
    } * cells;
};

/* Adds the next cell: the printable form of the text, of which at most 767
 * bytes are kept. */
void table_cell(struct table *t, bool alarm, const char *format, ...)
    FRAG_PRINTF(3, 4);
/* A table with a column for each letter of `right`. The headings of the first
 * columns stand between bars; the caller adds those that are missing. */
struct table table_of(const char *right, const char *heads);
/* As a percentage; - if the share is not finite. */
void table_share(struct table *t, double share);
void table_size(struct table *t, frag_size size); /* in IEC units */
/* The same, but an alarm with the text `none' for UINT64_MAX. */
void table_size_or(struct table *t, frag_size size, const char *none);
/* A number; - for UINT64_MAX. */
void table_count(struct table *t, uint64_t n);
/* "event N"; - for UINT64_MAX. */
void table_event(struct table *t, bool alarm, uint64_t event);
void table_bound(struct table *t, struct frag_bound bound);
void table_device(struct table *t, uint32_t device); /* or "host" */

/* Shortens the names and prints the table; the first row is the heading, bold
 * if coloured. The table is freed, on error too. NOMEM if a cell could not be
 * added; then nothing is printed. */
enum frag_err table_print(struct table *t, FILE *out,
                          bool color) FRAG_MUST_CHECK;
/* Frees a table that is not printed; a table that was is empty. */
void table_free(struct table *t);

#endif
