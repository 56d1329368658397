/* brief.h - short forms of long names, which differ wherever the names differ.
 *
 * A letter is a character of UTF-8. A long name keeps its ends: names of one
 * experiment begin alike and differ at their ends at least as often. An
 * ellipsis replaces the middle. If two names of a list would look equal, the
 * part in which they differ is kept instead of the end, and if that does not
 * help, a number is added.
 */
#ifndef FRAG_SIM_CLI_OUTPUT_BRIEF_H
#define FRAG_SIM_CLI_OUTPUT_BRIEF_H

#include "traces/base.h"

enum { BRIEF_LETTERS = 84, BRIEF_BYTES = 4 * BRIEF_LETTERS + 32 };

size_t brief_letters(const char *text); /* number of letters */

/* Writes the text with at most `letters` (up to BRIEF_LETTERS) letters and an
 * ellipsis to out; returns out. Two thirds are from the beginning. */
const char *brief_cut(const char *text, size_t letters, char out[BRIEF_BYTES]);

/* Names and their short forms. */
struct briefs {
    struct brief {
        const char *name;  /* borrowed */
        const char *owner; /* what distinguishes equal names; borrowed */
        char text[BRIEF_BYTES];
    } * items;
    size_t count;
    uint64_t room;
};

/* Adds a name; an equal pair of name and owner is added once. NOMEM; then the
 * list is unchanged. */
enum frag_err briefs_add(struct briefs *b, const char *name,
                         const char *owner) FRAG_MUST_CHECK;
/* Computes the text of every item, to be called after the last briefs_add. No
 * two texts are equal. A text has at most `letters` letters, an ellipsis or
 * two, and a number such as " #2". */
void briefs_make(struct briefs *b, size_t letters);
/* The text of a pair that was added. */
const char *briefs_text(const struct briefs *b, const char *name,
                        const char *owner);
void briefs_free(struct briefs *b);

#endif
