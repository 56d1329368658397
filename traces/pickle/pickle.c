/* pickle.c - the public calls of the pickle reader, and its loop over the
 * opcodes. ops.c holds the opcodes themselves. */
#include "traces/pickle/pickle.h"

#include <stdlib.h>
#include <string.h>

#include "traces/pickle/reader.h"

/* Runs the opcode at p->at, whose fixed argument is in the window. */
static inline enum frag_err run(struct pickle *p)
{
    const struct opcode *op = &opcodes[*p->at];
    const unsigned char *arg = p->at + 1;

    p->where = p->base + (uint64_t)(p->at - p->start);
    if (!op->run)
        return pickle_bad(p, "expected an opcode of a pickle, found 0x%02x",
                          *p->at);
    p->at = arg + op->size;
    return op->run(p, arg);
}

/* Runs the last opcodes of the input, which may end within an argument. */
static enum frag_err run_last(struct pickle *p)
{
    const size_t left = bytes_left(p);

    if (left && left >= 1u + opcodes[*p->at].size)
        return run(p);
    p->where = p->base + (uint64_t)(p->at - p->start);
    return bytes_cut_short(p);
}

/* Runs opcodes until one fails, the pickle stops, or the window needs more
 * bytes. */
static enum frag_err run_window(struct pickle *p)
{
    enum frag_err err = FRAG_OK;

    while (err == FRAG_OK && !p->stopped && bytes_left(p) >= OPCODE_MAX)
        err = run(p);
    return err;
}

static enum frag_err run_all(struct pickle *p)
{
    while (!p->stopped) {
        FRAG_TRY(run_window(p));
        if (p->stopped)
            break;
        FRAG_TRY(p->last ? run_last(p) : bytes_refill(p));
    }
    return FRAG_OK;
}

/* The reader */

/* Adds the words of the schema as the first texts, so that word k has number k.
 */
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
    free(p->memo.codes);
    texts_fini(&p->texts);
    free(p);
}

enum frag_err pickle_read(struct pickle *p, struct frag_error *e)
{
    p->e = e;
    FRAG_TRY(bytes_refill(p));
    if (!bytes_left(p) || *p->at != OPCODE_PROTO)
        return pickle_bad(p, "expected a pickle, which begins with the opcode "
                             "PROTO (0x80), found other bytes or none");
    FRAG_TRY(run_all(p));
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

uint64_t pickle_where(const struct pickle *p)
{
    return p->where;
}
