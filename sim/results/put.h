/* put.h - writes the parts of a result file with HDF5: attributes, columns,
 * groups and the summary table. Private to sim/results/.
 *
 * The functions return false, or a negative hid_t, on failure. The only cause
 * is that the host has no memory, because the file is built in memory. No
 * object stores a time, so equal contents make equal bytes.
 */
#ifndef FRAG_SIM_RESULTS_PUT_H
#define FRAG_SIM_RESULTS_PUT_H

#include <hdf5.h>

#include "sim/results/columns.h"

/* Add an attribute to the object `at`: an array of texts, one count, one number
 * that may be NAN. guard.h has those for one text and for a group. */
bool put_texts(hid_t at, const char *name, const char *const *values,
               uint64_t count);
bool put_count(hid_t at, const char *name, uint64_t value);
bool put_real(hid_t at, const char *name, double value);

/* Creates a group with one dataset for each column. If the first column is
 * `event`, it is the dimension scale of the others. */
bool put_table(hid_t at, const char *name, const struct frag_column *columns,
               const void *rows, size_t row_size, size_t count);

/* Creates the compound dataset `summary`. A text column is as wide as its
 * longest text. */
bool put_summary(hid_t at, const struct frag_result_row *rows, size_t count);

#endif
