/* pickle_text.c - the distinct texts of a pickle, found by their hash. */
#include "traces/pickle/pickle_text.h"

#include <stdlib.h>
#include <string.h>

#include "traces/grow.h"

/* A chunk of memory that stores texts and never moves. A text longer than
 * BLOCK_BYTES has a chunk of its own. */
struct text_block {
    struct text_block *next;
    size_t used;
    char bytes[];
};

enum { BLOCK_BYTES = 1 << 16, FIRST_SLOTS = 1 << 10 };

/* FNV-1a, changed to read eight bytes at a time. Speed matters: a pickle of C++
 * stacks has names of kilobytes, and a pickle of plain entries repeats the text
 * "N/A" a million times. */
static uint32_t hash_of(const unsigned char *bytes, size_t length)
{
    const uint64_t prime = 0x100000001b3;
    uint64_t hash = 0xcbf29ce484222325 ^ length, word;

    for (; length >= 8; bytes += 8, length -= 8) {
        memcpy(&word, bytes, 8);
        hash = (hash ^ word) * prime;
        hash ^= hash >> 29;
    }
    for (; length; bytes++, length--)
        hash = (hash ^ *bytes) * prime;
    return (uint32_t)(hash ^ hash >> 32);
}

static bool grow_slots(struct pickle_texts *t)
{
    const uint32_t count = t->slot_count ? 2 * t->slot_count : FIRST_SLOTS;
    uint32_t *slots = calloc(count, sizeof(*slots));

    if (!slots)
        return false;
    for (uint32_t i = 0; i < t->count; i++) {
        uint32_t k = t->rows[i].hash & (count - 1);

        while (slots[k])
            k = (k + 1) & (count - 1);
        slots[k] = i + 1;
    }
    free(t->slots);
    t->slots = slots;
    t->slot_count = count;
    return true;
}

/* Copies a text into the chunks. NULL if the host has no memory. */
static char *store(struct pickle_texts *t, const void *bytes, size_t length)
{
    char *to;

    if (!t->blocks || t->block_left < length) {
        const size_t room = length > BLOCK_BYTES ? length : BLOCK_BYTES;
        struct text_block *block = malloc(sizeof(*block) + room);

        if (!block)
            return NULL;
        block->next = t->blocks;
        block->used = 0;
        t->blocks = block;
        t->block_left = room;
    }
    to = t->blocks->bytes + t->blocks->used;
    if (length)
        memcpy(to, bytes, length);
    t->blocks->used += length;
    t->block_left -= length;
    return to;
}

static uint32_t add_new(struct pickle_texts *t, const void *bytes,
                        size_t length, uint32_t hash)
{
    char *at;
    uint32_t k;

    if (t->count == UINT32_MAX >> 3)
        return TEXT_NONE;
    if (!GROW(t->rows, t->room, t->count + 1))
        return TEXT_NONE;
    if (2 * (t->count + 1) > t->slot_count && !grow_slots(t))
        return TEXT_NONE;
    at = store(t, bytes, length);
    if (!at)
        return TEXT_NONE;
    for (k = hash & (t->slot_count - 1); t->slots[k];)
        k = (k + 1) & (t->slot_count - 1);
    t->rows[t->count] = (struct text){at, (uint32_t)length, hash};
    t->slots[k] = ++t->count;
    return t->count - 1;
}

uint32_t texts_add(struct pickle_texts *t, const void *bytes, size_t length)
{
    const uint32_t hash = hash_of(bytes, length);

    if (t->slot_count) {
        const uint32_t mask = t->slot_count - 1;

        for (uint32_t k = hash & mask; t->slots[k]; k = (k + 1) & mask) {
            const struct text *row = &t->rows[t->slots[k] - 1];

            if (row->hash == hash && row->length == length &&
                !memcmp(row->at, bytes, length))
                return t->slots[k] - 1;
        }
    }
    return add_new(t, bytes, length, hash);
}

void texts_fini(struct pickle_texts *t)
{
    while (t->blocks) {
        struct text_block *next = t->blocks->next;

        free(t->blocks);
        t->blocks = next;
    }
    free(t->rows);
    free(t->slots);
}
