/* tune_report.h - prints the answer of `tune`: as text that a shell can source,
 * and as JSON. */
#ifndef FRAG_SIM_CLI_OUTPUT_TUNE_REPORT_H
#define FRAG_SIM_CLI_OUTPUT_TUNE_REPORT_H

#include <stdio.h>

#include "sim/experiments/tune/search.h"
#include "sim/results/json.h"

/* A setting that a search without one part of the traces found, with its
 * results on that part. */
struct tune_held_out {
    char *name;               /* of the part; owned */
    char *text;               /* the setting; owned */
    struct tune_result base;  /* PyTorch's default on that part */
    struct tune_result found; /* the setting on that part */
};

struct tune_answer {
    const struct tune_search *search; /* finished */
    const struct tune_held_out *held_out;
    size_t held_out_count;
};

/* Prints comment lines and, last, the line to export. */
void tune_print(const struct tune_answer *a, FILE *out);
/* Adds one object to the list of results. */
void tune_print_json(const struct tune_answer *a, struct frag_json *j);

#endif
