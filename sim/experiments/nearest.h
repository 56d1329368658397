/* nearest.h - suggests a known name for a misspelt one. */
#ifndef FRAG_SIM_EXPERIMENTS_NEAREST_H
#define FRAG_SIM_EXPERIMENTS_NEAREST_H

/* The name in a list (ended by NULL) that needs the fewest changed letters.
 * NULL if every name needs more changes than a third of the letters of `name`
 * plus one. */
const char *nearest_name(const char *name, const char *const *names);

#endif
