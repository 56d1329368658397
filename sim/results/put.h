/* put.h - the parts of a result file: attributes, columns, groups and
 * the summary table. Private to sim/results/.
 *
 * All answer whether it was done; the one reason why not is the host's memory,
 * for the file is built there. No object carries a time, so that equal contents
 * are equal bytes.
 */
#ifndef FRAG_SIM_RESULTS_PUT_H
#define FRAG_SIM_RESULTS_PUT_H

#include <hdf5.h>

#include "sim/results/columns.h"

/* What the objects of a file share. Negative members are not open. */
struct put {
    hid_t text;  /* type: UTF-8 of any length */
    hid_t plain; /* creation of a group */
};

bool put_open(struct put *p); /* close it either way */
void put_close(struct put *p);

bool put_text(const struct put *p, hid_t at, const char *name,
              const char *value);
bool put_texts(const struct put *p, hid_t at, const char *name,
               const char *const *values, uint64_t count);
bool put_count(hid_t at, const char *name, uint64_t value);

/* A new group, to be closed; negative if it cannot be made. */
hid_t put_group(const struct put *p, hid_t at, const char *name);

/* A group with one dataset a column. Where the first column is `event`, it is
 * the dimension scale of the others. */
bool put_table(const struct put *p, hid_t at, const char *name,
               const struct frag_column *columns, const void *rows,
               size_t row_size, size_t count);

/* The compound dataset `summary`; a text column is as wide as its longest
 * text. */
bool put_summary(const struct put *p, hid_t at,
                 const struct frag_result_row *rows, size_t count);

/* The HDF5 type of a number in the file. */
hid_t put_type(enum frag_column_kind kind);

#endif
