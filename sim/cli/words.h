/* words.h - the glossary: the words that the tables of all commands print, with
 * their meanings. `fragsim help words` and the man page print it. */
#ifndef FRAG_SIM_CLI_WORDS_H
#define FRAG_SIM_CLI_WORDS_H

struct word {
    const char *name;    /* as the tables print it */
    const char *meaning; /* one sentence, without a period */
    const char *group;   /* title above this word; NULL: none */
};
extern const struct word words[]; /* ended by a NULL name */

#endif
