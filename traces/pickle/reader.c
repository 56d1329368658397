/* reader.c - the lowest layer of a pickle reader: its window on the input
 * bytes, and its error messages. */
#include "traces/pickle/reader.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "traces/grow.h"

enum {
    STEP = 1 << 20, /* bytes between two ticks */
};

/* Messages */

enum frag_err pickle_bad(const struct pickle *p, const char *format, ...)
{
    char words[400];
    va_list args;

    va_start(args, format);
    vsnprintf(words, sizeof(words), format, args);
    va_end(args);
    return frag_fail(p->e, FRAG_CORRUPT, "%s:%" PRIu64 ": %s",
                     frag_source_name(p->source), p->where, words);
}

enum frag_err pickle_no_memory(const struct pickle *p)
{
    return frag_no_memory(p->e, "%s from byte %" PRIu64,
                          frag_source_name(p->source), p->where);
}

const char *pickle_describe(const struct pickle *p,
                            const struct pickle_value *v)
{
    static const char *const words[] = {
        [PICKLE_OTHER] = "a value of another type",
        [PICKLE_NONE] = "None",
        [PICKLE_BOOL] = "a bool",
        [PICKLE_INT] = "an integer",
        [PICKLE_UINT] = "an integer",
        [PICKLE_HUGE] = "an integer of more than 64 bits",
        [PICKLE_FLOAT] = "a float",
        [PICKLE_TEXT] = "a text",
        [PICKLE_PAIR] = "a tuple of two integers",
        [PICKLE_SEEN] = "a reference to an object that was read before",
        [PICKLE_LIST] = "a list",
        [PICKLE_DICT] = "a dict",
        [PICKLE_MARK] = "a MARK",
    };

    if (v->tag == PICKLE_DONE || v->tag == PICKLE_RESULT)
        return p->schema->kinds[v->kind]->name;
    return words[v->tag];
}

/* Bytes */

uint64_t bytes_little(const unsigned char *bytes, size_t count)
{
    uint64_t n = 0;

    while (count--)
        n = n << 8 | bytes[count];
    return n;
}

enum frag_err bytes_refill(struct pickle *p)
{
    const size_t used = (size_t)(p->at - p->start);
    enum frag_err err = FRAG_OK;
    size_t count;

    if (p->schema->tick)
        FRAG_TRY(p->schema->tick(p->user, p->e));
    frag_source_skip(p->source, used);
    p->base += used;
    count =
        frag_source_peek(p->source, FRAG_SOURCE_WINDOW, &p->start, &err, p->e);
    p->at = p->end = p->start;
    FRAG_TRY(err);
    p->last = count < FRAG_SOURCE_WINDOW;
    p->end = p->start + (count < STEP ? count : STEP);
    return FRAG_OK;
}

enum frag_err bytes_cut_short(const struct pickle *p)
{
    return pickle_bad(p,
                      "the input ends at byte %" PRIu64 ", inside the pickle: "
                      "it is incomplete; copy it again or record it again",
                      p->base + (uint64_t)(p->end - p->start));
}

/* Reads `size` bytes, more than the window holds, into a buffer. The buffer
 * grows with the bytes that are really there, because a damaged file may claim
 * any size. */
static enum frag_err read_long(struct pickle *p, size_t size,
                               const unsigned char **bytes)
{
    size_t have = 0;

    while (have < size) {
        size_t step = bytes_left(p) < size - have ? bytes_left(p) : size - have;

        if (!step) {
            FRAG_TRY(bytes_refill(p));
            if (!bytes_left(p))
                return bytes_cut_short(p);
            continue;
        }
        if (!GROW(p->long_bytes, p->long_room, have + step))
            return pickle_no_memory(p);
        memcpy(p->long_bytes + have, p->at, step);
        p->at += step;
        have += step;
    }
    *bytes = p->long_bytes;
    return FRAG_OK;
}

enum frag_err bytes_read(struct pickle *p, size_t size,
                         const unsigned char **bytes)
{
    if (size > bytes_left(p) && size <= FRAG_SOURCE_WINDOW)
        FRAG_TRY(bytes_refill(p));
    if (size > bytes_left(p))
        return size <= FRAG_SOURCE_WINDOW ? bytes_cut_short(p)
                                          : read_long(p, size, bytes);
    *bytes = p->at;
    p->at += size;
    return FRAG_OK;
}

enum frag_err bytes_skip(struct pickle *p, uint64_t size)
{
    while (size > bytes_left(p)) {
        size -= bytes_left(p);
        p->at = p->end;
        FRAG_TRY(bytes_refill(p));
        if (!bytes_left(p))
            return bytes_cut_short(p);
    }
    p->at += size;
    return FRAG_OK;
}
