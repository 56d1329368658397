/* held_report.h - writes what holds memory at a moment, what changed between
 * two moments, and between the runs of two result files, as text and as JSON.
 */
#ifndef FRAG_SIM_CLI_ANSWERS_HELD_HELD_REPORT_H
#define FRAG_SIM_CLI_ANSWERS_HELD_HELD_REPORT_H

#include <stdio.h>

#include "sim/answers/held/difference.h"
#include "sim/answers/held/run_changes.h"
#include "sim/results/json.h"

struct holders_view {
    const char *name;   /* of the trace */
    const char *at;     /* the moment as the user wrote it */
    const char *filter; /* NULL: none */
    uint64_t limit;     /* groups to print; 0: all */
    bool color;
};

/* How many of `count' rows are printed. */
static inline uint64_t held_shown(uint64_t count, uint64_t limit)
{
    return limit && limit < count ? limit : count;
}

/* Writes the sentence about the moment: the event and the held bytes. */
void holders_say_moment(const struct holders *h, const char *at, FILE *out);

/* If the recording has no stacks, says so, and how to record them. */
void holders_say_stacks(const struct holders *h, FILE *out);

/* Writes the moment and the table of groups. NOMEM; then the table is missing.
 */
enum frag_err holders_print(const struct holders *h,
                            const struct holders_view *v,
                            FILE *out) FRAG_MUST_CHECK;

/* Writes an object with the moment, the groups and the notes of the trace. */
void holders_json(const struct holders *h, const struct holders_view *v,
                  struct frag_json *j);

/* Writes the members of the moment to the object that is open. */
void holders_json_moment(const struct holders *h, const char *name,
                         const char *at, struct frag_json *j);

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
