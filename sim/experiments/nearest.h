/* nearest.h - the known name that a misspelt name most likely stands for. */
#ifndef FRAG_SIM_EXPERIMENTS_NEAREST_H
#define FRAG_SIM_EXPERIMENTS_NEAREST_H

/* The name of a list (ended by NULL) with the fewest letters to change; NULL if
 * that is more than a third of `name` and one letter. */
const char *nearest_name(const char *name, const char *const *names);

#endif
