/* pickle.c - the reader: its window, and one opcode after the other. */
#include "traces/pickle/pickle.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "traces/pickle/reader.h"

enum {
    STEP = 1 << 20, /* bytes between two ticks */
};

/* Words */

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
    return frag_fail(p->e, FRAG_NOMEM, "%s:%" PRIu64 ": no memory to read on",
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
        [PICKLE_SEEN] = "a reference to something that was read before",
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

/* Moves the window on to where the reader is. */
static enum frag_err refill(struct pickle *p)
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

static enum frag_err cut_short(const struct pickle *p)
{
    return pickle_bad(p, "the file ends inside the pickle");
}

/* The next `size` bytes, more than fit a window, in a buffer that grows as they
 * come: their number is only what the file claims. */
static enum frag_err take_long(struct pickle *p, size_t size,
                               const unsigned char **bytes)
{
    size_t have = 0;

    while (have < size) {
        size_t step = bytes_left(p) < size - have ? bytes_left(p) : size - have;

        if (!step) {
            FRAG_TRY(refill(p));
            if (!bytes_left(p))
                return cut_short(p);
            continue;
        }
        if (have + step > p->long_room) {
            unsigned char *more = realloc(p->long_bytes, 2 * (have + step));

            if (!more)
                return pickle_no_memory(p);
            p->long_bytes = more;
            p->long_room = 2 * (have + step);
        }
        memcpy(p->long_bytes + have, p->at, step);
        p->at += step;
        have += step;
    }
    *bytes = p->long_bytes;
    return FRAG_OK;
}

enum frag_err bytes_take(struct pickle *p, size_t size,
                         const unsigned char **bytes)
{
    if (size > bytes_left(p) && size <= FRAG_SOURCE_WINDOW)
        FRAG_TRY(refill(p));
    if (size > bytes_left(p))
        return size <= FRAG_SOURCE_WINDOW ? cut_short(p)
                                          : take_long(p, size, bytes);
    *bytes = p->at;
    p->at += size;
    return FRAG_OK;
}

enum frag_err bytes_skip(struct pickle *p, uint64_t size)
{
    while (size > bytes_left(p)) {
        size -= bytes_left(p);
        p->at = p->end;
        FRAG_TRY(refill(p));
        if (!bytes_left(p))
            return cut_short(p);
    }
    p->at += size;
    return FRAG_OK;
}

static enum frag_err step(struct pickle *p)
{
    const struct opcode *op;
    const unsigned char *arg;

    if (bytes_left(p) < OPCODE_MAX && !p->last)
        FRAG_TRY(refill(p));
    p->where = p->base + (uint64_t)(p->at - p->start);
    if (!bytes_left(p))
        return cut_short(p);
    op = &opcodes[*p->at];
    if (!op->name)
        return pickle_bad(p, "0x%02x is no opcode of a pickle", *p->at);
    arg = p->at + 1;
    if (bytes_left(p) < 1u + op->size)
        return cut_short(p);
    p->at = arg + op->size;
    return op->run(p, arg);
}

/* The reader */

static bool add_words(struct pickle *p)
{
    const struct pickle_schema *s = p->schema;

    for (size_t i = 0; i < s->word_count; i++)
        if (texts_add(&p->texts, s->words[i], strlen(s->words[i])) != i)
            return false;
    return true;
}

struct pickle *pickle_open(struct frag_source *source,
                           const struct pickle_schema *schema, void *user)
{
    struct pickle *p = calloc(1, sizeof(*p));

    if (!p)
        return NULL;
    p->source = source;
    p->schema = schema;
    p->user = user;
    p->base = frag_source_offset(source);
    if (!add_words(p)) {
        pickle_close(p);
        return NULL;
    }
    return p;
}

void pickle_close(struct pickle *p)
{
    if (!p)
        return;
    free(p->stack);
    free(p->marks);
    free(p->long_bytes);
    memo_fini(&p->memo);
    texts_fini(&p->texts);
    free(p);
}

enum frag_err pickle_read(struct pickle *p, struct frag_error *e)
{
    p->e = e;
    FRAG_TRY(refill(p));
    if (!bytes_left(p) || *p->at != OPCODE_PROTO)
        return pickle_bad(p, "expected a pickle (PROTO)");
    while (!p->stopped)
        FRAG_TRY(step(p));
    frag_source_skip(p->source, (size_t)(p->at - p->start));
    p->start = p->at;
    return FRAG_OK;
}

const char *pickle_text(const struct pickle *p, uint64_t number, size_t *length)
{
    *length = p->texts.rows[number].length;
    return p->texts.rows[number].at;
}

void pickle_pair(const struct pickle *p, uint64_t number, uint64_t pair[2])
{
    memcpy(pair, p->texts.rows[number].at, 2 * sizeof(*pair));
}

uint64_t pickle_text_count(const struct pickle *p)
{
    return p->texts.count;
}

uint64_t pickle_where(const struct pickle *p)
{
    return p->where;
}
