/* leaks_text.h - prints what a trace leaks. */
#ifndef FRAG_SIM_CLI_ANSWERS_TEXT_LEAKS_TEXT_H
#define FRAG_SIM_CLI_ANSWERS_TEXT_LEAKS_TEXT_H

#include "sim/answers/steps/leaks.h"
#include "sim/experiments/devices.h"
#include "sim/results/json.h"

/* When the leaks will have filled a device; for leaks_units_left. */
struct leaks_reach {
    const char *policy; /* NULL: no capacity was given */
    frag_size capacity;
    uint64_t least, most; /* units; see leaks_reach_find */
};

/* Fills the units that are left. They are least if every leaked block needs new
 * memory beyond what the policy holds, `reserved`, and most if the policy
 * wastes none. Nothing happens if reach->policy is NULL. */
void leaks_reach_find(const struct leaks *l, frag_size reserved,
                      struct leaks_reach *reach);

/* Prints the verdict and the table of the leaks. NOMEM. */
enum frag_err leaks_text_put(const struct input *in, const struct leaks *l,
                             const struct leaks_reach *reach, FILE *out,
                             bool color) FRAG_MUST_CHECK;
/* Writes the same as one object of an open array. */
void leaks_json_put(const struct input *in, const struct leaks *l,
                    const struct leaks_reach *reach, struct frag_json *j);

#endif
