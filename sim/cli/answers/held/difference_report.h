/* difference_report.h - writes what changed between two moments, and between
 * the runs of two result files, as text and as JSON. */
#ifndef FRAG_SIM_CLI_ANSWERS_HELD_DIFFERENCE_REPORT_H
#define FRAG_SIM_CLI_ANSWERS_HELD_DIFFERENCE_REPORT_H

#include <stdio.h>

#include "sim/answers/held/difference.h"
#include "sim/answers/held/run_changes.h"
#include "sim/results/json.h"

/* A moment, the name of its trace, and --at as the user wrote it. */
struct difference_side {
    const struct holders *holders;
    const char *name, *at;
};

struct difference_view {
    uint64_t limit; /* groups to print; 0: all. Runs are always printed */
    double most;    /* growth that --fail-over allows; NAN: any */
    bool color;
};

/* Writes both moments, the growth and the table of changes. NOMEM. */
enum frag_err difference_print(const struct difference *d,
                               const struct difference_side sides[2],
                               const struct difference_view *v,
                               FILE *out) FRAG_MUST_CHECK;
void difference_json(const struct difference *d,
                     const struct difference_side sides[2],
                     const struct difference_view *v, struct frag_json *j);

/* Writes the table of runs. NOMEM. */
enum frag_err run_changes_print(const struct run_changes *r,
                                const struct difference_view *v,
                                FILE *out) FRAG_MUST_CHECK;
void run_changes_json(const struct run_changes *r,
                      const struct difference_view *v, struct frag_json *j);

#endif
