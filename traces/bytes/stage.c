/* stage.c - extends and moves the window of a stage. The bytes come from the
 * stage's own fill(). */
#include "traces/bytes/stage.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

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
    FRAG_TRY(s->ops->fill(s, s->buffer + s->count, STAGE_BUFFER - s->count,
                          &made, e));
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
