/* texts.c - adds texts to a growing list. */
#include "sim/experiments/texts.h"

#include <stdlib.h>

bool texts_append(struct texts *list, const char *text)
{
    const char **items =
        realloc(list->items, (list->count + 1) * sizeof(*items));

    if (!items)
        return false;
    list->items = items;
    items[list->count++] = text;
    return true;
}
