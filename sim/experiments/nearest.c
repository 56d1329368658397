/* nearest.c - finds the nearest name by Levenshtein distance. */
#include "sim/experiments/nearest.h"

#include <stdint.h>
#include <string.h>

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
            size_t best = corner + (a[i - 1] != b[j - 1]);

            corner = row[j];
            best = row[j] + 1 < best ? row[j] + 1 : best;
            row[j] = row[j - 1] + 1 < best ? row[j - 1] + 1 : best;
        }
    }
    return row[n];
}

const char *nearest_name(const char *name, const char *const *names)
{
    const char *nearest = NULL;
    size_t least = strlen(name) / 3 + 2;

    for (; *names; names++) {
        size_t d = distance(name, *names);

        if (d < least) {
            least = d;
            nearest = *names;
        }
    }
    return nearest;
}
