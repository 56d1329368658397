/* tune_report.h - prints the answer of `tune`: as text that a shell can source,
 * and as JSON. */
#ifndef FRAG_SIM_CLI_OUTPUT_TUNE_REPORT_H
#define FRAG_SIM_CLI_OUTPUT_TUNE_REPORT_H

#include <stdio.h>

#include "sim/experiments/tune/hold_out.h"
#include "sim/experiments/tune/need.h"
#include "sim/results/json.h"

/* Requests of a case that no allocator can meet at the capacity. */
struct tune_impossible {
    size_t of; /* index of the case */
    struct tune_need need;
};

struct tune_answer {
    const struct tune_search *search; /* finished; not run if some cases are
                                         impossible */
    const struct tune_trial *chosen;  /* NULL: nothing is within the bounds */
    struct tune_held_outs held_out;   /* borrowed */
    const struct tune_impossible *impossible;
    size_t impossible_count;
    const struct cell_notes *notes; /* of each case with the settings that are
                                       shown; NULL: the search did not run */
};

/* The setting whose results are shown: the chosen one, or the nearest if none
 * is within the bounds. The search has run. */
const struct tune_trial *tune_shown(const struct tune_answer *a);

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

/* Whether trial i survives every case and no other surviving trial is at least
 * as good in both memory and seconds. Of equal trials the first is on the
 * front. */
bool tune_is_front(const struct tune_search *s, size_t i);

#endif
