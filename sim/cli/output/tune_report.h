/* tune_report.h - prints the answer of `tune`: as text that a shell can source,
 * and as JSON. */
#ifndef FRAG_SIM_CLI_OUTPUT_TUNE_REPORT_H
#define FRAG_SIM_CLI_OUTPUT_TUNE_REPORT_H

#include <stdio.h>

#include "sim/experiments/question.h"
#include "sim/experiments/tune/ladder.h"
#include "sim/results/json.h"

struct tune_answer {
    const struct tune_ladder *ladder;
    const struct question *about;   /* of each case; NULL: said elsewhere */
    const struct cell_notes *notes; /* of each case with the settings of the
                                       decision; NULL: said elsewhere */
};

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
