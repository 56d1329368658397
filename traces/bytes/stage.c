/* stage.c - extends and moves the window of a stage. The bytes come from the
 * stage's own fill(). */
#include "traces/bytes/stage.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "traces/bytes/source.h"

/* Bounds on the contents of a packed file. gzip reaches a ratio of 1032 for
 * zeros; the highest ratio of the bundled recordings is 31. A bound below
 * LEAST_BOUND would refuse small files that harm nobody. */
#define MOST_RATIO  ((uint64_t)1000)
#define MOST_BYTES  ((uint64_t)256 << 30)
#define LEAST_BOUND ((uint64_t)256 << 20)

uint64_t frag_source_most(uint64_t packed)
{
    const char *wish = getenv(SOURCE_MOST_VARIABLE);
    frag_size most;

    if (wish && frag_size_parse(wish, &most) == FRAG_OK)
        return most;
    most = packed < MOST_BYTES / MOST_RATIO ? packed * MOST_RATIO : MOST_BYTES;
    return most > LEAST_BOUND ? most : LEAST_BOUND;
}

/* The bytes of the file that are known to exist. */
static uint64_t packed_bytes(const struct stage *s)
{
    while (s->below)
        s = s->below;
    return s->used + s->count;
}

enum frag_err stage_fill(struct stage *s, unsigned char *to, size_t room,
                         size_t *made, struct frag_error *e)
{
    const enum frag_err err = s->ops->fill(s, to, room, made, e);

    s->made += *made;
    if (err != FRAG_OK || !s->below ||
        s->made <= frag_source_most(packed_bytes(s)))
        return err;
    return frag_fail(e, FRAG_CORRUPT,
                     "%s: expected at most %s in %s of %s data, found more; if "
                     "the file is to be trusted, --" SOURCE_MOST_OPTION
                     " SIZE allows more",
                     s->name, FRAG_SHOW_SIZE(frag_source_most(packed_bytes(s))),
                     FRAG_SHOW_SIZE(packed_bytes(s)), s->ops->name);
}

static enum frag_err grow_window(struct stage *s, struct frag_error *e)
{
    size_t made = 0;

    if (!s->buffer) {
        s->buffer = malloc(STAGE_BUFFER);
        if (!s->buffer)
            return frag_no_memory(e, "%s", s->name);
    }
    if (s->count)
        memmove(s->buffer, s->at, s->count);
    s->at = s->buffer;
    FRAG_TRY(
        stage_fill(s, s->buffer + s->count, STAGE_BUFFER - s->count, &made, e));
    s->count += made;
    return FRAG_OK;
}

enum frag_err stage_peek(struct stage *s, size_t want, struct frag_error *e)
{
    assert(want <= STAGE_BUFFER / 2);
    while (s->count < want && !s->ended)
        FRAG_TRY(grow_window(s, e));
    return FRAG_OK;
}

void stage_skip(struct stage *s, size_t used)
{
    assert(used <= s->count);
    s->at += used;
    s->count -= used;
    s->used += used;
}
