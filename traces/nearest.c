/* nearest.c - finds the nearest name by Levenshtein distance. */
#include "traces/nearest.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "traces/text.h"

enum { PREFIX_LETTERS = 4 }; /* the shortest text that is taken as a prefix */

static int folded(char c)
{
    return c == '-' ? '_' : tolower((unsigned char)c);
}

/* The Levenshtein distance; SIZE_MAX if a word has 64 letters or more. */
static size_t distance(const char *a, const char *b)
{
    enum { LETTERS = 64 };
    size_t row[LETTERS], n = strlen(b);

    if (strlen(a) >= LETTERS || n >= LETTERS)
        return SIZE_MAX;
    for (size_t j = 0; j <= n; j++)
        row[j] = j;
    for (size_t i = 1; a[i - 1]; i++) {
        size_t corner = row[0];

        row[0] = i;
        for (size_t j = 1; j <= n; j++) {
            size_t best = corner + (folded(a[i - 1]) != folded(b[j - 1]));

            corner = row[j];
            best = row[j] + 1 < best ? row[j] + 1 : best;
            row[j] = row[j - 1] + 1 < best ? row[j - 1] + 1 : best;
        }
    }
    return row[n];
}

static bool begins_with(const char *known, const char *name)
{
    const size_t length = strlen(name);

    return length >= PREFIX_LETTERS && !strncasecmp(known, name, length);
}

struct nearest nearest_to(const char *name)
{
    return (struct nearest){.name = name, .least = (strlen(name) + 2) / 3 + 1};
}

struct nearest nearest_among(const char *what, const char *name)
{
    struct nearest near = nearest_to(name);

    near.what = what;
    return near;
}

void nearest_try(struct nearest *n, const char *known)
{
    text_add(n->known, sizeof(n->known), ", ", "%s", known);
    const size_t d = begins_with(known, n->name) ? 0 : distance(n->name, known);

    if (d >= n->least)
        return;
    n->least = d;
    n->found = known;
}

const char *nearest_hint(const struct nearest *n, char hint[NEAREST_HINT])
{
    const char *instead = n->what ? nearest_removed(n->what, n->name) : NULL;

    *hint = '\0';
    if (instead)
        snprintf(hint, NEAREST_HINT, "; fragsim 0.2 removed it: %s", instead);
    else if (n->found)
        snprintf(hint, NEAREST_HINT, "; did you mean \"%s\"?", n->found);
    return hint;
}

const char *nearest_names(const struct nearest *n, const char *what,
                          char text[NEAREST_NAMES])
{
    char hint[NEAREST_HINT];

    nearest_hint(n, hint);
    if (*hint && hint[strlen(hint) - 1] != '?')
        snprintf(text, NEAREST_NAMES, "%s", hint);
    else
        snprintf(text, NEAREST_NAMES, "%s %s %s are %s", *hint ? hint : ";",
                 *hint ? "The" : "the", what, n->known);
    return text;
}
