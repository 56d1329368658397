/* step_finish.c - plays the rest of a complete step after the cut step. */
#include "traces/steps/cut.h"

#include <stdlib.h>

enum { IMPLAUSIBLE = 2 }; /* times the recorded peak: more is not believed */

/* ---- counterparts ---- */

/* Whether the block has a counterpart that is still live. */
static bool has_counterpart(const struct cut *c, uint32_t block)
{
    const uint32_t other = c->x->counterpart[block];

    return other != UINT32_MAX && c->x->made[other].state != BLOCK_GONE;
}

/* Blocks that are live at the place and that the rest of the chosen step frees
 * have a counterpart in the cut step; those that the whole step leaves live are
 * their own. `before`: of the blocks from before the steps, or of those from
 * within. */
static enum frag_err list_pending(const struct cut *c, bool before,
                                  struct block_list *out)
{
    const struct frag_step *s = c->place.step;

    for (uint32_t k = 0; k < c->b->count; k++) {
        const struct block_life *life = &c->b->lives[k];

        if (!block_is_live(c->b, k, c->place.at) ||
            (life->alloc < s->from) != before)
            continue;
        if (before && life->free >= s->to)
            c->x->counterpart[k] = k;
        else if (!has_counterpart(c, k))
            FRAG_TRY(block_list_add(out, extension_block(c->x, k), c->e));
    }
    return FRAG_OK;
}

/* The live blocks of the cut step, or from before it, that are nobody's
 * counterpart. */
static enum frag_err list_live(const struct cut *c, bool before,
                               struct block_list *out)
{
    bool *taken = calloc((size_t)c->x->made_count + 1, sizeof(*taken));
    enum frag_err err = FRAG_OK;

    if (!taken)
        return frag_no_memory(c->e, "the live blocks");
    for (uint32_t k = 0; k < c->b->count; k++)
        if (c->x->counterpart[k] != UINT32_MAX)
            taken[c->x->counterpart[k]] = true;
    for (uint32_t k = 0; err == FRAG_OK && k < c->x->made_count; k++) {
        const struct extension_block *m = &c->x->made[k];

        if (m->state != BLOCK_GONE && !taken[k] && m->alloc < c->at &&
            (m->alloc < c->from) == before &&
            (!before || m->alloc >= c->place.step->from))
            err = block_list_add(out, extension_block(c->x, k), c->e);
    }
    free(taken);
    return err;
}

/* Sets the counterparts of the blocks from before or within; the blocks of the
 * cut step without one are added to `left`. */
static enum frag_err match(const struct cut *c, bool before,
                           struct block_list *left)
{
    struct block_list of = {0}, with = {0};
    enum frag_err err = list_pending(c, before, &of);
    bool *lone = NULL;

    if (err == FRAG_OK)
        err = list_live(c, before, &with);
    if (err == FRAG_OK) {
        lone = calloc((size_t)with.count + 1, sizeof(*lone));
        err = lone ? extension_pair(c->x, &of, &with, lone)
                   : frag_no_memory(c->e, "the live blocks");
    }
    for (uint64_t k = 0; err == FRAG_OK && !before && k < with.count; k++)
        if (lone[k])
            err = block_list_add(left, with.items[k], c->e);
    free(lone);
    free(of.items);
    free(with.items);
    return err;
}

/* ---- the rest ---- */

/* The bytes that the FREE of event i, in the rest, returns. The blocks of a
 * step are numbered in the order of its requests. */
static frag_size returned(const struct cut *c, const struct requests *r,
                          uint64_t i)
{
    const uint32_t block = c->b->of[i], first = r->list.items[0].block;

    if (block < first)
        return 0; /* it counts as live until the end */
    if (block - first >= r->before)
        return r->sizes[block - first].now;
    return has_counterpart(c, block)
               ? c->x->made[c->x->counterpart[block]].bytes
               : 0;
}

/* The most bytes that are live in the rest. */
static frag_size peak_of_rest(const struct cut *c, const struct requests *r)
{
    frag_size live = c->b->live[c->b->events], peak = live;
    uint64_t request = r->before + 1;

    for (uint64_t i = c->place.at + 1; i < c->place.step->to; i++) {
        if (c->d->op[i] == FRAG_ALLOC)
            live += r->sizes[request++].now;
        else if (c->d->op[i] == FRAG_FREE)
            live -= returned(c, r, i);
        peak = live > peak ? live : peak;
    }
    return peak;
}

/* Whether the predicted rest needs at most IMPLAUSIBLE times what the recording
 * needed until the failed request. A wrong place in the complete step, or a
 * shape far from all recorded ones, makes sizes that no step of the job has. */
static bool is_plausible(const struct cut *c, const struct requests *r)
{
    frag_size most = 0;

    for (uint64_t i = 0; i <= c->b->events; i++)
        most = c->b->live[i] > most ? c->b->live[i] : most;
    return peak_of_rest(c, r) / IMPLAUSIBLE <= most;
}

static enum frag_err play_rest(const struct cut *c, const struct requests *r)
{
    uint64_t request = r->before + 1;

    for (uint64_t i = c->place.at + 1; i < c->place.step->to; i++)
        FRAG_TRY(extension_play(
            c->x, i, c->d->op[i] == FRAG_ALLOC ? r->sizes[request++].now : 0));
    return FRAG_OK;
}

static enum frag_err free_all(struct extension *x,
                              const struct block_list *left)
{
    for (uint64_t k = 0; k < left->count; k++)
        FRAG_TRY(extension_free(x, left->items[k].block));
    return FRAG_OK;
}

static enum frag_err play(const struct cut *c, const struct requests *r,
                          struct block_list *left)
{
    FRAG_TRY(match(c, true, left));
    FRAG_TRY(match(c, false, left));
    c->x->counterpart[c->b->of[c->place.at]] = c->b->of[c->at];
    FRAG_TRY(play_rest(c, r));
    return free_all(c->x, left);
}

/* Ends the step without finishing it: what it allocated is freed. */
static enum frag_err abandon(const struct cut *c)
{
    struct block_list left = {0};
    enum frag_err err = FRAG_OK;

    for (uint64_t k = 0; k < c->b->count; k++)
        c->x->counterpart[k] = UINT32_MAX;
    for (uint32_t k = 0; err == FRAG_OK && k < c->b->count; k++)
        if (c->b->lives[k].alloc >= c->from)
            err = block_list_add(&left, extension_block(c->x, k), c->e);
    if (err == FRAG_OK)
        err = free_all(c->x, &left);
    free(left.items);
    return err;
}

static enum frag_err finish(const struct cut *c, bool *finished)
{
    struct requests r;
    struct block_list left = {0};
    enum frag_err err = requests_open(c, &r);

    if (err == FRAG_OK)
        *finished = is_plausible(c, &r);
    if (err == FRAG_OK && *finished)
        err = play(c, &r, &left);
    free(left.items);
    requests_close(&r);
    return err;
}

enum frag_err finish_step(struct extension *x, const struct frag_steps *steps,
                          bool *finished)
{
    struct cut c = {
        .x = x,
        .d = x->from,
        .b = x->blocks,
        .steps = steps,
        .from = steps->items[steps->count - 1].to,
        .at = x->blocks->events - 1,
        .e = x->error,
    };

    *finished = false;
    if (c.from <= c.at && cut_find_place(&c))
        FRAG_TRY(finish(&c, finished));
    return *finished ? FRAG_OK : abandon(&c);
}
