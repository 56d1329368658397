/* holders_report.h - writes what holds memory at a moment
 * (sim/answers/held/holders.h) as text and as JSON. */
#ifndef FRAG_SIM_CLI_ANSWERS_HELD_HOLDERS_REPORT_H
#define FRAG_SIM_CLI_ANSWERS_HELD_HOLDERS_REPORT_H

#include <stdio.h>

#include "sim/answers/held/holders.h"
#include "sim/results/json.h"

struct holders_view {
    const char *name;   /* of the trace */
    const char *at;     /* the moment as the user wrote it */
    const char *filter; /* NULL: none */
    uint64_t limit;     /* groups to print; 0: all */
    bool color;
};

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

#endif
