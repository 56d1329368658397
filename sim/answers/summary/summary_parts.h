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

/* A measure of fragmentation. */
enum measure_kind { MEASURE_SHARE, MEASURE_RATIO, MEASURE_BYTES };

struct measure {
    const char *label, *key, *formula;
    size_t offset; /* in struct summary_fragmentation: of a frag_size for
                      MEASURE_BYTES, else of a double */
    enum measure_kind kind;
    const char *group; /* title above this measure; NULL: none */
};
extern const struct measure summary_measures[]; /* ended by a NULL label */

double summary_real(const struct summary *s, const struct measure *m);
frag_size summary_bytes(const struct summary *s, const struct measure *m);

#endif
