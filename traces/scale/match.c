/* match.c - an alignment whose costs know that a size is constant or grows with
 * the batch. */
#include "traces/scale/match.h"

#include <math.h>
#include <stdlib.h>

#include "traces/steps/align.h"

/* Costs. A pair is free if its sizes are equal or in proportion to the batch,
 * and its lives and streams are equal. Other sizes between these two cost a
 * little; sizes outside of them, which no line through a constant part of at
 * least 0 has, cost `outside` for each doubling. Lives are counted in events,
 * and some kernels need more events than others, so lives are compared on a
 * logarithmic scale too. */
static const float alone = 0.4f, between = 0.05f, outside = 0.1f,
                   most_outside = 0.5f, other_life = 0.1f, most_life = 0.2f,
                   other_stream = 0.3f;

struct side {
    frag_size *bytes;
    float *size, *life; /* logarithms to base 2 */
    frag_stream *stream;
    uint32_t count;
};

struct match {
    uint64_t batch[2];
    float growth; /* log2 of the ratio of the batch sizes, of b to a */
    struct side a, b;
};

static float size_cost(const struct match *m, uint32_t i, uint32_t k)
{
    const frag_size a = m->a.bytes[i], b = m->b.bytes[k];
    const float ratio = m->b.size[k] - m->a.size[i];
    const float low = fminf(0, m->growth), high = fmaxf(0, m->growth);
    const float out = fmaxf(low - ratio, ratio - high);

    if (a == b ||
        (double)a * (double)m->batch[1] == (double)b * (double)m->batch[0])
        return 0;
    return between + fminf(fmaxf(out, 0) * outside, most_outside);
}

static float pair_cost(const void *user, uint32_t i, uint32_t k)
{
    const struct match *m = user;
    const float lives = fabsf(m->a.life[i] - m->b.life[k]);

    return size_cost(m, i, k) + fminf(lives * other_life, most_life) +
           (m->a.stream[i] != m->b.stream[k] ? other_stream : 0);
}

static void side_close(struct side *s)
{
    free(s->bytes);
    free(s->size);
    free(s->life);
    free(s->stream);
}

/* A block that is live at the end is as old as the trace. */
static void fill(struct side *s, const struct frag_device_trace *d,
                 const struct blocks *b)
{
    for (uint32_t k = 0; k < s->count; k++) {
        const struct block_life *life = &b->lives[k];
        const uint64_t free = life->free == FRAG_NEVER ? b->events : life->free;

        s->bytes[k] = d->bytes[life->alloc];
        s->size[k] = log2f((float)s->bytes[k]);
        s->life[k] = log2f((float)(free - life->alloc + 1));
        s->stream[k] = d->stream[life->alloc];
    }
}

static enum frag_err side_open(struct side *s,
                               const struct frag_device_trace *d,
                               const struct blocks *b, struct frag_error *e)
{
    const size_t n = (size_t)b->count + 1;

    *s = (struct side){malloc(n * sizeof(*s->bytes)),
                       malloc(n * sizeof(*s->size)),
                       malloc(n * sizeof(*s->life)),
                       malloc(n * sizeof(*s->stream)), (uint32_t)b->count};
    if (!s->bytes || !s->size || !s->life || !s->stream)
        return frag_no_memory(e, "the requests of a recording");
    fill(s, d, b);
    return FRAG_OK;
}

static enum frag_err align_sides(const struct match *m, frag_size *sizes,
                                 struct frag_error *e)
{
    const struct align_costs costs = {pair_cost, m, alone};
    uint32_t *pair = malloc(((size_t)m->a.count + 1) * sizeof(*pair));
    enum frag_err err;

    if (!pair)
        return frag_no_memory(e, "the requests of a recording");
    err = align_by(&costs, m->a.count, m->b.count, pair, e);
    for (uint32_t i = 0; err == FRAG_OK && i < m->a.count; i++)
        sizes[i] = pair[i] == UINT32_MAX ? 0 : m->b.bytes[pair[i]];
    free(pair);
    return err;
}

enum frag_err scale_match(const struct scale_recording *template,
                          const struct blocks *blocks,
                          const struct scale_recording *other, frag_size *sizes,
                          struct frag_error *e)
{
    struct match m = {.batch = {template->batch, other->batch},
                      .growth =
                          log2f((float)other->batch / (float)template->batch)};
    struct blocks others;
    enum frag_err err;

    FRAG_TRY(blocks_open(other->device, other->device->count, &others, e));
    err = side_open(&m.a, template->device, blocks, e);
    if (err == FRAG_OK)
        err = side_open(&m.b, other->device, &others, e);
    if (err == FRAG_OK)
        err = align_sides(&m, sizes, e);
    side_close(&m.a);
    side_close(&m.b);
    blocks_close(&others);
    return err;
}
