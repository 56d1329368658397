/* texts.h - a growing list of texts from the command line or a grid's file. The
 * list does not own the texts. */
#ifndef FRAG_SIM_EXPERIMENTS_TEXTS_H
#define FRAG_SIM_EXPERIMENTS_TEXTS_H

#include <stdbool.h>
#include <stddef.h>

struct texts {
    const char **items; /* the caller frees the array; the texts are borrowed */
    size_t count;
};

/* Adds a text. False if the host has no memory; the list is then unchanged. */
bool texts_append(struct texts *list, const char *text);

#endif
