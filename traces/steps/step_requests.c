/* step_requests.c - what the step in which a job died would have requested
 * further.
 *
 * The cut step is the one in which the job died. The chosen step is a complete
 * one, and c->place its request that is like the one of which the job died. The
 * requests of the chosen step before that place are paired with those of the
 * cut step, and all of them with those of other complete steps. From the sizes
 * in these pairs the sizes of the requests after the place are predicted
 * (predict.h).
 */
#include <stdlib.h>

#include "traces/grow.h"
#include "traces/steps/cut.h"

/* Blocks that are live at the end of the compared events have this life. */
static const uint64_t still_live = FRAG_NEVER - 1;

static enum frag_err list_allocs(const struct cut *c, uint64_t from,
                                 uint64_t to, struct block_list *out)
{
    for (uint64_t i = from; i < to; i++) {
        const uint32_t block = c->b->of[i];
        uint64_t life = still_live;

        if (c->d->op[i] != FRAG_ALLOC)
            continue;
        if (c->b->lives[block].free < to)
            life = c->b->lives[block].free - i;
        FRAG_TRY(block_list_add(
            out, (struct aligned){block, c->d->stream[i], c->d->bytes[i], life},
            c->e));
    }
    return FRAG_OK;
}

/* Pairs the requests of the chosen step before the event `end` with those among
 * the events from ... to - 1: pair[i] is the row of `with` for request i of the
 * chosen step, UINT32_MAX if there is none. The caller frees with->items. */
static enum frag_err pair_with(const struct cut *c, uint64_t end, uint64_t from,
                               uint64_t to, struct block_list *with,
                               uint32_t *pair)
{
    struct block_list of = {0};
    enum frag_err err = list_allocs(c, c->place.step->from, end, &of);

    *with = (struct block_list){0};
    if (err == FRAG_OK)
        err = list_allocs(c, from, to, with);
    if (err == FRAG_OK)
        err = align(of.items, (uint32_t)of.count, with->items,
                    (uint32_t)with->count, pair, c->e);
    free(of.items);
    return err;
}

static enum frag_err compare_step(const struct cut *c, struct requests *r,
                                  const struct frag_step *s, uint32_t *pair)
{
    struct block_list with;
    enum frag_err err =
        pair_with(c, c->place.step->to, s->from, s->to, &with, pair);

    for (uint64_t i = 0; err == FRAG_OK && i < r->list.count; i++)
        if (pair[i] != UINT32_MAX)
            r->sizes[i].steps[r->step_count] = with.items[pair[i]].bytes;
    r->step_count++;
    free(with.items);
    return err;
}

/* The sizes in the chosen step, and in the complete steps before the cut one.
 */
static enum frag_err compare_steps(const struct cut *c, struct requests *r,
                                   uint32_t *pair)
{
    for (uint64_t i = 0; i < r->list.count; i++)
        r->sizes[i].steps[0] = r->list.items[i].bytes;
    r->step_count = 1;
    for (uint64_t k = c->steps->count;
         k-- > 0 && r->step_count < PREDICT_STEPS;)
        if (&c->steps->items[k] != c->place.step)
            FRAG_TRY(compare_step(c, r, &c->steps->items[k], pair));
    return FRAG_OK;
}

static enum frag_err compare_cut(const struct cut *c, struct requests *r,
                                 uint32_t *pair)
{
    struct block_list with;
    enum frag_err err = pair_with(c, c->place.at, c->from, c->at, &with, pair);

    for (uint64_t i = 0; err == FRAG_OK && i < r->before; i++) {
        if (pair[i] == UINT32_MAX)
            continue;
        r->sizes[i].now = with.items[pair[i]].bytes;
        c->x->counterpart[r->list.items[i].block] = with.items[pair[i]].block;
    }
    r->sizes[r->before].now = c->d->bytes[c->at];
    free(with.items);
    return err;
}

/* Lists the requests and sets the sizes that are recorded. */
static enum frag_err gather(const struct cut *c, struct requests *r)
{
    enum frag_err err =
        list_allocs(c, c->place.step->from, c->place.at, &r->list);
    uint32_t *pair;

    r->before = r->list.count;
    if (err == FRAG_OK)
        err = list_allocs(c, c->place.at, c->place.step->to, &r->list);
    FRAG_TRY(err);
    r->sizes = calloc((size_t)r->list.count + 1, sizeof(*r->sizes));
    pair = calloc((size_t)r->list.count + 1, sizeof(*pair));
    if (!r->sizes || !pair)
        err = frag_no_memory(c->e, "the sizes of a step");
    if (err == FRAG_OK)
        err = compare_steps(c, r, pair);
    if (err == FRAG_OK)
        err = compare_cut(c, r, pair);
    free(pair);
    return err;
}

/* The sizes of the blocks that are live throughout the chosen step. */
static enum frag_err find_constant(const struct cut *c, struct prediction *p)
{
    const struct frag_step *s = c->place.step;
    uint64_t room = 0;

    for (uint32_t k = 0; k < c->b->count; k++) {
        if (c->b->lives[k].alloc >= s->from || c->b->lives[k].free < s->to)
            continue;
        if (!GROW(p->constant, room, p->constant_count + 1))
            return frag_no_memory(c->e, "the sizes of the blocks");
        p->constant[p->constant_count++] = c->d->bytes[c->b->lives[k].alloc];
    }
    return FRAG_OK;
}

static enum frag_err learn(const struct cut *c, const struct requests *r,
                           struct prediction *p)
{
    struct sizes *pairs;
    uint64_t count = 0;

    FRAG_TRY(find_constant(c, p));
    pairs = malloc(((size_t)r->list.count + 1) * sizeof(*pairs));
    if (!pairs)
        return frag_no_memory(c->e, "the sizes of a step");
    for (uint64_t i = 0; i < r->before + c->place.fits; i++)
        if (r->sizes[i].now)
            pairs[count++] = r->sizes[i];
    p->step_count = r->step_count;
    predict_learn(p, pairs, count);
    return FRAG_OK;
}

enum frag_err requests_open(const struct cut *c, struct requests *r)
{
    struct prediction p = {0};
    enum frag_err err;

    *r = (struct requests){0};
    FRAG_TRY(gather(c, r));
    err = learn(c, r, &p);
    for (uint64_t i = r->before + 1; err == FRAG_OK && i < r->list.count; i++)
        r->sizes[i].now = predict_size(&p, r->sizes[i].steps);
    free(p.known);
    free(p.constant);
    return err;
}

void requests_close(struct requests *r)
{
    free(r->list.items);
    free(r->sizes);
}
