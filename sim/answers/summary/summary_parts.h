/* summary_parts.h - the tables that the text and the JSON of a summary share.
 * Private to sim/answers/summary/.
 *
 *   summary_make.c  runs the trace and fills struct summary
 *   summary_text.c  prints it as text
 *   summary_json.c  writes it as JSON
 *   tables.c        the tables below
 */
#ifndef FRAG_SIM_ANSWERS_SUMMARY_SUMMARY_PARTS_H
#define FRAG_SIM_ANSWERS_SUMMARY_SUMMARY_PARTS_H

#include "sim/answers/summary/summary.h"
#include "sim/results/columns.h"

/* Of struct summary_fragmentation: the label, the unit and the formula of each
 * measure; a column without a name is the title above a group. */
extern const struct frag_column summary_measures[];

#endif
