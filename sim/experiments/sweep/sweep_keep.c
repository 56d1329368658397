/* sweep_keep.c - writes the finished cells of a sweep to chunks (chunks.h). */
#include <pthread.h>
#include <stdlib.h>

#include "sim/experiments/sweep/chunks.h"
#include "sim/experiments/sweep/sweep_parts.h"

/* Writes `count` cells, of which this is the first, to a chunk. */
static enum frag_err write_chunk(struct sweep *s, const struct sweep_cell *c,
                                 size_t count, struct frag_error *e)
{
    char *path = chunks_next(s->spec->chunks);
    struct frag_results *out = NULL;
    enum frag_err err = frag_no_memory(e, "a chunk");

    if (path)
        err = frag_results_open(path, s->spec->chunks->by, &out, e);
    while (err == FRAG_OK && count) {
        struct frag_run_identity id = sweep_cell_identity(s, c->trace, c);
        const char *const notes[] = {c->key, c->result->notes};

        id.trace.notes = notes;
        id.trace.note_count = 2;
        err = frag_results_add(out, &id, &c->result->run, e);
        if (--count) /* a thread may add a cell behind the last one */
            c = c->later;
    }
    if (err == FRAG_OK)
        err = frag_results_commit(out, FRAG_NO_TIME, e);
    else
        frag_results_abort(out);
    free(path);
    return err;
}

enum frag_err sweep_keep_chunk(struct sweep *s, struct frag_error *e)
{
    const struct sweep_cell *first = s->fresh;
    const size_t count =
        s->fresh_count < CHUNK_CELLS ? s->fresh_count : CHUNK_CELLS;
    enum frag_err err;

    pthread_mutex_unlock(&s->lock);
    pthread_mutex_lock(&s->hdf5);
    err = write_chunk(s, first, count, e);
    pthread_mutex_unlock(&s->hdf5);
    pthread_mutex_lock(&s->lock);
    if (err != FRAG_OK)
        return err;
    s->counts.kept += count;
    s->fresh_count -= count;
    for (size_t i = 0; i < count; i++)
        s->fresh = s->fresh->later;
    if (!s->fresh)
        s->fresh_end = &s->fresh;
    return FRAG_OK;
}

enum frag_err sweep_keep(struct sweep *s, struct frag_error *e)
{
    enum frag_err err = FRAG_OK;

    pthread_mutex_lock(&s->lock);
    while (err == FRAG_OK && s->fresh_count)
        err = sweep_keep_chunk(s, e);
    pthread_mutex_unlock(&s->lock);
    return err;
}
