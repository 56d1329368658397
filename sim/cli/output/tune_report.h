/* tune_report.h - what `tune` found, as lines that a shell can source and as
 * JSON. */
#ifndef FRAG_SIM_CLI_OUTPUT_TUNE_REPORT_H
#define FRAG_SIM_CLI_OUTPUT_TUNE_REPORT_H

#include <stdio.h>

#include "sim/experiments/tune/search.h"
#include "sim/results/json.h"

/* A setting found without a part of the traces, on that part. */
struct tune_held_out {
    char *name; /* of the part; owned */
    char *text; /* the setting; owned */
    struct tune_result base, found;
};

struct tune_answer {
    const struct tune_search *search; /* done */
    const struct tune_held_out *held_out;
    size_t held_out_count;
};

/* Comments and, last, the export line. */
void tune_print(const struct tune_answer *a, FILE *out);
/* One object of the list of results. */
void tune_print_json(const struct tune_answer *a, struct frag_json *j);

#endif
