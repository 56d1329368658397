/* values.h - reads the list of values of one parameter in a sweep. */
#ifndef FRAG_SIM_EXPERIMENTS_SWEEP_VALUES_H
#define FRAG_SIM_EXPERIMENTS_SWEEP_VALUES_H

#include "traces/base.h"

struct values_of {
    char **items; /* each as in the parameters of a policy */
    size_t count, room;
};

enum { VALUES_MAX = 10000 }; /* of one parameter */

/* Adds the values of "v1,v2,..." to *out, which is zeroed before the first
 * call. A value is a text or a range. The range "a..b:step" contains a,
 * a + step, ... up to b; the range "a..b*factor" multiplies instead. The
 * numbers may have a unit: a and b the same one, step the same one or none, as
 * in "20MiB..100MiB:20MiB". A comma inside brackets does not separate values.
 * INVALID states what was expected; NOMEM. The caller frees *out, on error too.
 */
enum frag_err values_read(const char *text, struct values_of *out,
                          struct frag_error *e) FRAG_MUST_CHECK;
void values_free(struct values_of *values);

#endif
