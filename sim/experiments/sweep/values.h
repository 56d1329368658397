/* values.h - the values that one parameter takes in a sweep. */
#ifndef FRAG_SIM_EXPERIMENTS_SWEEP_VALUES_H
#define FRAG_SIM_EXPERIMENTS_SWEEP_VALUES_H

#include "traces/base.h"

struct values_of {
    char **items; /* each as a policy's parameter would be given */
    size_t count, room;
};

enum { VALUES_MAX = 10000 }; /* of one parameter */

/* Adds what "v1,v2,..." says to *out, which is zeroed before the first call.
 * A value is a text, or a range: "a..b:step" goes from a to at most b by adding
 * step, "a..b*factor" by multiplying. The numbers of a range may have a unit, a
 * and b the same, step the same or none: "20MiB..100MiB:20MiB". A comma inside
 * brackets does not part values. INVALID with what was expected, NOMEM; *out is
 * to be freed either way. */
enum frag_err values_read(const char *text, struct values_of *out,
                          struct frag_error *e) FRAG_MUST_CHECK;
void values_free(struct values_of *values);

#endif
