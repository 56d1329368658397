/* nearest.h - suggests a known name for a misspelt or removed one. */
#ifndef FRAG_TRACES_NEAREST_H
#define FRAG_TRACES_NEAREST_H

#include <stddef.h>

enum { NEAREST_KNOWN = 400 };

/* A search: nearest_to starts it, and nearest_try offers it one known name. */
struct nearest {
    const char *what;  /* what is named, as nearest_removed takes it; NULL: no
                          such name was ever removed */
    const char *name;  /* as the user wrote it; borrowed */
    const char *found; /* the nearest name so far; NULL: none is near; borrowed
                        */
    size_t least;      /* number of changed letters that no longer counts */
    char known[NEAREST_KNOWN]; /* all names that were tried, as text_add lists
                                  them */
};

/* Starts a search for the known name that needs the fewest changed letters. A
 * name is near if it needs at most a third of the letters of `name`, rounded
 * up, or if it begins with `name`, which then has at least 4 letters. Upper and
 * lower case are the same letter, and so are - and _. */
struct nearest nearest_to(const char *name);
/* The same among names of which earlier versions had more. */
struct nearest nearest_among(const char *what, const char *name);
void nearest_try(struct nearest *n, const char *known);

/* What takes the place of a name that an earlier version had, as a phrase such
 * as "use `fragsim steps'"; NULL if there was never such a name. `what` is
 * "command", "edit", "figure", "output format" or "input format"; for an option
 * it is the name of the command, for a parameter the name of the policy. */
const char *nearest_removed(const char *what, const char *name);

enum { NEAREST_HINT = 240 }; /* bytes for the text of nearest_hint */

/* Writes "; fragsim 0.2 removed it: PHRASE" to `hint` if an earlier version had
 * the name, else "; did you mean "NAME"?", or "" if no name is near, and
 * returns `hint`. */
const char *nearest_hint(const struct nearest *n, char hint[NEAREST_HINT]);

enum { NEAREST_NAMES = NEAREST_KNOWN + 2 * NEAREST_HINT };

/* Writes the hint and all names that were tried to `text`, and returns `text`:
 * "; the WHAT are A, B" or "; did you mean "A"? The WHAT are A, B". */
const char *nearest_names(const struct nearest *n, const char *what,
                          char text[NEAREST_NAMES]);

#endif
