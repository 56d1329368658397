/* grow.h - arrays that grow: the one place where room is doubled. */
#ifndef FRAG_TRACES_GROW_H
#define FRAG_TRACES_GROW_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Makes room for `want` items in the array whose pointer lies at `at`; false
 * if the host has no memory, and then the array is as it was. */
static inline bool grow_array(void *at, uint64_t *room, uint64_t want,
                              size_t item)
{
    uint64_t next = *room ? *room : 16;
    void *array;

    if (want <= *room)
        return true;
    while (next < want)
        next *= 2;
    if (next > SIZE_MAX / 2 / item)
        return false;
    memcpy(&array, at, sizeof(array));
    array = realloc(array, (size_t)next * item);
    if (!array)
        return false;
    memcpy(at, &array, sizeof(array));
    *room = next;
    return true;
}

#define GROW(array, room, want) \
    grow_array(&(array), &(room), (want), sizeof(*(array)))

#endif
