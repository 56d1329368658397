/* grow.h - arrays that grow by doubling. Every growing array of the project
 * uses GROW, so that all checks for overflow are here. */
#ifndef FRAG_TRACES_GROW_H
#define FRAG_TRACES_GROW_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Reads the unsigned variable at `room`, which has `width` bytes: 4 or 8. */
static inline uint64_t grow_room(const void *room, size_t width)
{
    uint32_t narrow;
    uint64_t wide;

    if (width == sizeof(narrow)) {
        memcpy(&narrow, room, sizeof(narrow));
        return narrow;
    }
    memcpy(&wide, room, sizeof(wide));
    return wide;
}

static inline void grow_set_room(void *room, size_t width, uint64_t items)
{
    const uint32_t narrow = (uint32_t)items;

    if (width == sizeof(narrow))
        memcpy(room, &narrow, sizeof(narrow));
    else
        memcpy(room, &items, sizeof(items));
}

/* `at` points to the array's pointer, `room` to its variable of `width` bytes;
 * `item` is the size of one item in bytes. Use GROW instead. */
static inline bool grow_array(void *at, void *room, size_t width, uint64_t want,
                              size_t item)
{
    const uint64_t most = width == sizeof(uint32_t) ? UINT32_MAX : UINT64_MAX;
    uint64_t next = grow_room(room, width);
    void *array;

    if (want <= next)
        return true;
    next = next ? next : 16;
    while (next < want && next <= most / 2)
        next *= 2;
    if (next < want || next > SIZE_MAX / 2 / item)
        return false;
    memcpy(&array, at, sizeof(array));
    array = realloc(array, (size_t)next * item);
    if (!array)
        return false;
    memcpy(at, &array, sizeof(array));
    grow_set_room(room, width, next);
    return true;
}

/* Reallocates `array`, if needed, so that it has room for `want` items. `room`
 * is the number of items that there is room for; it must be an unsigned
 * variable of 32 or 64 bits, and GROW updates it. New items are not
 * initialized. Returns false if the host has no memory or if `room` cannot hold
 * the number; then the array and `room` are unchanged. */
#define GROW(array, room, want) \
    grow_array(&(array), &(room), sizeof(room), (want), sizeof(*(array)))

#endif
