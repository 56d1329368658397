/* texts.h - a list of texts that somebody else owns, as a command or a grid's
 * file names them. */
#ifndef FRAG_SIM_EXPERIMENTS_TEXTS_H
#define FRAG_SIM_EXPERIMENTS_TEXTS_H

#include <stdbool.h>
#include <stddef.h>

struct texts {
    const char **items; /* to be freed; the texts are borrowed */
    size_t count;
};

/* Adds a text; false if the host has no memory, then the list is as it was. */
bool texts_append(struct texts *list, const char *text);

#endif
