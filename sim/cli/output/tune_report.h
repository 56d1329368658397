/* tune_report.h - prints the answer of `tune`: as text that a shell can source,
 * and as JSON. */
#ifndef FRAG_SIM_CLI_OUTPUT_TUNE_REPORT_H
#define FRAG_SIM_CLI_OUTPUT_TUNE_REPORT_H

#include <stdio.h>

#include "sim/experiments/tune/ladder.h"
#include "sim/experiments/tune/requested_peak.h"
#include "sim/results/json.h"

/* Requests of a case that no allocator can meet at the capacity. */
struct tune_impossible {
    size_t of; /* index of the case */
    struct requested_peak peak;
};

struct tune_answer {
    const struct tune_ladder *ladder; /* not climbed if some cases are
                                         impossible */
    const struct tune_impossible *impossible;
    size_t impossible_count;
    const struct cell_notes *notes; /* of each case with the settings that are
                                       shown; NULL: the ladder was not climbed
                                     */
};

/* Why the shown rung does not tell what is enough for case i, as the end of a
 * sentence. NULL: it does, or the complete run is known. */
const char *tune_unknown(const struct tune_ladder *l, size_t i);

enum { TUNE_NOTE = RELEASE_NOTE + TUNE_TEXT + 32 };

/* Writes note k of case i with its device and the settings, and returns text.
 */
const char *tune_note(const struct tune_answer *a, size_t i, size_t k,
                      char text[TUNE_NOTE]);

/* Prints comment lines and, last, the line that exports the chosen setting. If
 * there is no such setting, every line is a comment. */
void tune_print(const struct tune_answer *a, FILE *out);
/* Adds one object to the list of results. */
void tune_print_json(const struct tune_answer *a, struct frag_json *j);

#endif
