/* recipes.h - how to make a CSV, which fragsim reads, from files that no
 * importer reads. */
#ifndef FRAG_SIM_CLI_RECIPES_H
#define FRAG_SIM_CLI_RECIPES_H

/* A recipe. The first four members are as in struct frag_importer. */
struct recipe {
    const char *name, *summary, *made, *lacks;
    const char *script; /* lines for a shell; tests/commands/check_recipes.py
                           runs them as they stand here */
};

extern const struct recipe recipes[]; /* ended by a NULL name */

/* Sentences that say what a program of the user must print. */
extern const char recipes_text[];

#endif
