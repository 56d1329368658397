/* complete.c - decides whether a job died, finishes its last step and repeats
 * its complete steps. */
#include "traces/steps/complete.h"

#include <math.h>
#include <stdlib.h>

#include "traces/steps/extend.h"
#include "traces/steps/step_notes.h"
#include "traces/storage.h"

/* The share of the peak by which the live bytes at two boundaries may differ.
 */
static const double same_live = 0.01;

/* ---- death ---- */

uint64_t frag_fatal_request(const struct frag_device_trace *d)
{
    const struct frag_recorded *r = &d->recorded;
    uint64_t event = FRAG_NEVER;

    for (uint64_t i = 0; i < r->action_count; i++)
        if (r->actions[i].action == FRAG_OOM_REPORTED)
            event = r->actions[i].event;
    if (event >= d->count || d->op[event] != FRAG_ALLOC)
        return FRAG_NEVER;
    for (uint64_t i = event + 1; i < d->count; i++)
        if (d->op[i] == FRAG_ALLOC)
            return FRAG_NEVER; /* the job went on */
    return event;
}

/* ---- repetition ---- */

/* Makes counterparts for the blocks that are live where a step begins: a block
 * that the step leaves live is its own counterpart; the others are paired with
 * live blocks that no later step will free otherwise. */
static enum frag_err match_start(struct extension *x, const struct frag_step *s,
                                 bool *own, struct block_list *of)
{
    const struct blocks *b = x->blocks;

    for (uint32_t k = 0; k < b->count; k++) {
        x->counterpart[k] = UINT32_MAX;
        if (!block_is_live(b, k, s->from))
            continue;
        own[k] = b->lives[k].free >= s->to && x->made[k].state != BLOCK_GONE;
        if (own[k])
            x->counterpart[k] = k;
        else if (b->lives[k].free < s->to)
            FRAG_TRY(block_list_add(of, extension_block(x, k), x->error));
    }
    return FRAG_OK;
}

static enum frag_err list_live(struct extension *x, const bool *own,
                               struct block_list *with)
{
    for (uint32_t k = 0; k < x->made_count; k++) {
        const struct extension_block *m = &x->made[k];

        if (m->state == BLOCK_GONE || (k < x->blocks->count && own[k]))
            continue;
        FRAG_TRY(block_list_add(with, extension_block(x, k), x->error));
    }
    return FRAG_OK;
}

/* Frees the blocks that were added and that no block of this step corresponds
 * to: what one step leaves behind is not known to recur. */
static enum frag_err free_lone(struct extension *x,
                               const struct block_list *with, const bool *lone)
{
    for (uint64_t k = 0; k < with->count; k++)
        if (lone[k] && with->items[k].block >= x->blocks->count)
            FRAG_TRY(extension_free(x, with->items[k].block));
    return FRAG_OK;
}

static enum frag_err match(struct extension *x, const struct frag_step *s,
                           bool grows)
{
    bool *own = calloc((size_t)x->blocks->count + 1, sizeof(*own));
    bool *lone = NULL;
    struct block_list of = {0}, with = {0};
    enum frag_err err = own ? match_start(x, s, own, &of)
                            : frag_no_memory(x->error, "the live blocks");

    if (err == FRAG_OK)
        err = list_live(x, own, &with);
    if (err == FRAG_OK) {
        lone = calloc((size_t)with.count + 1, sizeof(*lone));
        err = lone ? extension_pair(x, &of, &with, lone)
                   : frag_no_memory(x->error, "the live blocks");
    }
    if (err == FRAG_OK && !grows)
        err = free_lone(x, &with, lone);
    free(own);
    free(lone);
    free(of.items);
    free(with.items);
    return err;
}

static enum frag_err repeat_step(struct extension *x, const struct frag_step *s,
                                 bool grows)
{
    FRAG_TRY(match(x, s, grows));
    for (uint64_t i = s->from; i < s->to; i++)
        FRAG_TRY(extension_play(x, i, x->from->bytes[i]));
    return FRAG_OK;
}

/* ---- figures ---- */

/* The first of the complete steps that are repeated: they are as many of the
 * last steps as possible, after which the live bytes have grown by no more than
 * the growth of that many steps. Repeating the steps in which a program sets
 * itself up would set it up again. */
static uint64_t first_repeated(const struct frag_steps *s,
                               const struct frag_completion *c)
{
    uint64_t first = 0;

    while (first + 1 < s->count &&
           fabs(frag_steps_live(s, s->count) - frag_steps_live(s, first) -
                (double)(s->count - first) * (double)c->growth) >
               same_live * (double)c->most_peak)
        first++;
    return first;
}

static enum frag_err describe(const struct frag_steps *s,
                              struct frag_completion *c, struct frag_error *e)
{
    c->source = s->source;
    c->mark = s->mark;
    c->likeness = s->likeness;
    c->steps = s->count;
    if (!s->count)
        return FRAG_OK;
    c->least_peak = s->items[0].peak;
    for (uint64_t i = 0; i < s->count; i++) {
        if (s->items[i].peak < c->least_peak)
            c->least_peak = s->items[i].peak;
        if (s->items[i].peak > c->most_peak)
            c->most_peak = s->items[i].peak;
    }
    return frag_steps_growth(s, &c->growth, e);
}

/* The most bytes that live blocks request in the extension. */
static enum frag_err find_peak(const struct extension *x, frag_size *peak)
{
    const struct columns *c = &x->out.events;
    frag_size *held = calloc((size_t)x->out.slots + 1, sizeof(*held));
    frag_size live = 0;

    if (!held)
        return frag_no_memory(x->error, "the peak of the trace");
    *peak = 0;
    for (uint64_t i = 0; i < c->count; i++) {
        if (c->op[i] == FRAG_ALLOC)
            live += held[c->id[i]] = c->bytes[i];
        else if (c->op[i] == FRAG_FREE)
            live -= held[c->id[i]];
        *peak = live > *peak ? live : *peak;
    }
    free(held);
    return FRAG_OK;
}

/* ---- one device ---- */

static uint64_t further_steps(const struct frag_completion_options *options,
                              uint64_t steps)
{
    if (options && options->further)
        return options->further;
    return steps < FRAG_FURTHER_LEAST  ? FRAG_FURTHER_LEAST
           : steps > FRAG_FURTHER_MOST ? FRAG_FURTHER_MOST
                                       : steps;
}

static enum frag_err extend(struct extension *x, const struct frag_steps *s,
                            const struct frag_completion_options *options,
                            struct frag_completion *c)
{
    const uint64_t further = further_steps(options, s->count);
    const uint64_t first = first_repeated(s, c);

    FRAG_TRY(finish_step(x, s, &c->finished));
    FRAG_TRY(find_peak(x, &c->finished_peak));
    for (; c->added_steps < further; c->added_steps++)
        FRAG_TRY(repeat_step(
            x, &s->items[first + c->added_steps % (s->count - first)],
            first + 1 < s->count));
    c->added_events = x->out.events.count - x->blocks->events;
    FRAG_TRY(find_peak(x, &c->peak));
    spread_find(s, c);
    return FRAG_OK;
}

/* Moves the columns of the extension to the trace. NOMEM: those that were not
 * moved are still the extension's. */
static enum frag_err hand_over(struct extension *x, struct frag_trace *t,
                               struct frag_device_trace *d)
{
    struct frag_device_trace out = *d;
    enum frag_err err = FRAG_NOMEM;

    x->out.has_time = d->time != NULL;
    x->out.has_stack = d->stack != NULL;
    if (build_keep_events(t, &out, &x->out)) {
        *d = out;
        d->added = d->count - x->blocks->events;
        d->recorded = (struct frag_recorded){.start = d->recorded.start,
                                             .settings = d->recorded.settings};
        while (d->mark_count &&
               d->marks[d->mark_count - 1].event > x->blocks->events)
            d->mark_count--;
        while (d->change_count &&
               d->changes[d->change_count - 1].event > x->blocks->events)
            d->change_count--;
        err = frag_trace_check(d, t->path, x->error);
    }
    return err == FRAG_NOMEM ? frag_no_memory(x->error, "the completed trace")
                             : err;
}

static enum frag_err complete(struct frag_trace *t, struct frag_device_trace *d,
                              const struct frag_completion_options *options,
                              const struct frag_steps *steps,
                              struct frag_completion *c, struct frag_error *e)
{
    struct extension x;
    struct blocks blocks;
    enum frag_err err;

    FRAG_TRY(blocks_open(d, c->event + 1, &blocks, e));
    err = extension_open(&x, d, &blocks, e);
    if (err == FRAG_OK)
        err = extend(&x, steps, options, c);
    if (err == FRAG_OK)
        err = hand_over(&x, t, d);
    extension_close(&x);
    blocks_close(&blocks);
    return err;
}

/* Describes the device; completes it if it can be. */
static enum frag_err treat_device(struct frag_trace *t,
                                  struct frag_device_trace *d,
                                  const struct frag_completion_options *o,
                                  struct frag_completion *c,
                                  struct frag_error *e)
{
    struct frag_steps steps;
    enum frag_err err;

    *c = (struct frag_completion){.reach = FRAG_REACH_WHOLE,
                                  .event = frag_fatal_request(d)};
    if (c->event == FRAG_NEVER) {
        c->event = 0;
        return FRAG_OK;
    }
    c->request = d->bytes[c->event];
    FRAG_TRY(frag_steps_find(t, d, c->event, o->mark, &steps, e));
    err = describe(&steps, c, e);
    c->untold = steps.count ? FRAG_UNTOLD_CUT : FRAG_UNTOLD_NO_STEP;
    c->reach = !steps.count    ? FRAG_REACH_NO_STEP
               : o->only_reach ? FRAG_REACH_CUT
                               : FRAG_REACH_COMPLETED;
    if (err == FRAG_OK && c->reach == FRAG_REACH_COMPLETED)
        err = complete(t, d, o, &steps, c, e);
    if (err == FRAG_OK)
        err = completion_note(t, d, c, e);
    frag_steps_close(&steps);
    return err;
}

enum frag_err frag_trace_complete(struct frag_trace *t,
                                  const struct frag_completion_options *options,
                                  struct frag_completion *out,
                                  struct frag_error *e)
{
    static const struct frag_completion_options defaults = {0};
    const struct frag_completion_options *o = options ? options : &defaults;

    for (uint32_t i = 0; i < t->device_count; i++)
        FRAG_TRY(treat_device(t, &t->devices[i], o, &out[i], e));
    return FRAG_OK;
}

enum frag_err frag_device_complete(const struct frag_trace *t,
                                   const struct frag_device_trace *d,
                                   struct frag_trace **out,
                                   struct frag_completion *c,
                                   struct frag_error *e)
{
    struct frag_trace *own = storage_trace(t->path, t->format);
    struct frag_trace copy = *t;
    enum frag_err err;

    if (!own)
        return frag_no_memory(e, "the completed trace");
    copy.path = own->path;
    copy.owner = own->owner;
    *own = copy;
    own->note_count = 0;
    own->device_count = 1;
    own->devices = storage_array(own, 1, sizeof(*d));
    if (own->devices)
        own->devices[0] = *d;
    err = own->devices ? frag_trace_complete(own, NULL, c, e)
                       : frag_no_memory(e, "the completed trace");
    if (err == FRAG_OK)
        *out = own;
    else
        frag_trace_close(own);
    return err;
}
