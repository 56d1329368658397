/* cells.h - text and numbers in the cells of a figure's data files. */
#ifndef FRAG_SIM_CLI_FIGURES_CELLS_H
#define FRAG_SIM_CLI_FIGURES_CELLS_H

#include <stdio.h>

#include "sim/cli/figures/selection.h"

/* Text of a cell: no tab or line end survives, nor what a figure has no room
 * for: of more than 84 letters the middle is left out, or of so many. */
void put_cell(FILE *out, const char *text);
void put_short(FILE *out, const char *text, size_t letters);

/* "8.73 GiB": two decimals are what can be read from a figure. */
void put_size(FILE *out, frag_size size);

/* What tells the run from the others: trace, policy, device, capacity. */
void put_label(FILE *out, const struct selection *s,
               const struct frag_loaded_run *r);

/* The name of the one trace, or how many there are. */
void put_trace(FILE *out, const struct selection *s);

void put_ooms(FILE *out, uint64_t ooms); /* ", 5 OOMs"; nothing if 0 */

#endif
