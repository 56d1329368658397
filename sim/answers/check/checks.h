/* checks.h - checks devices by rules. */
#ifndef FRAG_SIM_ANSWERS_CHECK_CHECKS_H
#define FRAG_SIM_ANSWERS_CHECK_CHECKS_H

#include "sim/answers/check/gates.h"

/* The question; borrowed. */
struct check_question {
    const struct gates *gates;
    frag_size capacity; /* FRAG_UNLIMITED: none */
};

/* A device. */
struct check_case {
    struct subject on;
    struct gate_facts facts;
};

struct checks {
    const struct check_question *question;
    struct check_case *items;
    size_t count, room;
};

/* Adds a device. The trace may be closed afterwards. Errors of gates_measure;
 * on error the checks are unchanged. */
enum frag_err checks_add(struct checks *c, const struct replay_settings *s,
                         const struct input *in,
                         struct frag_error *e) FRAG_MUST_CHECK;
void checks_free(struct checks *c); /* zeroed is fine */

/* The number of rules that do not hold, over all devices. */
size_t checks_failed(const struct checks *c);

/* Writes a row for each device and rule as the items of the array that is
 * open. */
void checks_json(const struct checks *c, struct frag_json *j);
/* Writes the members `passed` and `traces` of the object that is open: the
 * traces have the notes of each device. */
void checks_json_answers(const struct checks *c, struct frag_json *j);

#endif
