/* cells.h - writes text and numbers as fields of a figure's data files. A field
 * here is one value between tabs. */
#ifndef FRAG_SIM_CLI_FIGURES_CELLS_H
#define FRAG_SIM_CLI_FIGURES_CELLS_H

#include <stdio.h>

#include "sim/cli/figures/selection.h"

/* The printable form of a text as a field, written so that gnuplot shows it.
 * Double quotes, and the last letter of "]]>", turn into spaces. If the form
 * has more than 84 (put_short: `letters`) characters, an ellipsis replaces its
 * middle. */
void put_cell(FILE *out, const char *text);
void put_short(FILE *out, const char *text, size_t letters);

/* "8.73 GiB": two decimals, the precision at which a figure is read. */
void put_size(FILE *out, frag_size size);

/* The properties that distinguish the run in the selection: trace (if there are
 * several), policy, device, capacity. */
void put_label(FILE *out, const struct selection *s,
               const struct frag_loaded_run *r);

/* The same without the trace. */
void put_setting(FILE *out, const struct selection *s,
                 const struct frag_loaded_run *r);

/* The name of the trace, or "several traces". */
void put_trace(FILE *out, const struct selection *s);

void put_ooms(FILE *out, uint64_t ooms); /* ", 5 OOMs"; nothing if 0 */

#endif
