/* program.c - what only the program can change: a smaller batch, and blocks of
 * the forward pass that the backward pass computes again.
 *
 * Neither is recorded, so both rest on the lives of blocks. A block that is
 * live where a step begins belongs to the model or its optimizer, and so does,
 * as its gradient, a block that is as large as one of these. The other blocks
 * depend on the batch. Where no step begins, the stacks tell: a block that is
 * allocated in a function named forward depends on the batch.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "sim/answers/explain/parts.h"
#include "sim/answers/sites.h"
#include "traces/steps/blocks.h"
#include "traces/steps/steps.h"

struct program {
    struct trial *trial;
    const struct frag_trace *trace;
    const struct frag_device_trace *device; /* completed */
    struct blocks blocks;
    uint64_t *bounds; /* of steps: events, ascending */
    uint64_t bound_count;
    uint64_t begin;  /* of a step; FRAG_NEVER: not known */
    bool *forward;   /* of each stack: it is that of a forward pass */
    frag_size *kept; /* sizes of the blocks of the model, sorted */
    uint64_t kept_count;
    bool *grows; /* of each ALLOC: its block depends on the batch */
};

/* ---- what depends on the batch ---- */

/* The last mark that ends before the request: one step of an optimizer shows
 * where the next step begins. */
static uint64_t after_mark(const struct frag_device_trace *d, uint64_t event)
{
    uint64_t begin = FRAG_NEVER;

    for (uint64_t i = 0; i < d->mark_count; i++)
        if (d->marks[i].kind == FRAG_MARK_END && d->marks[i].event <= event)
            begin = d->marks[i].event;
    return begin;
}

/* The event of a step before which least is live. Found by their period, steps
 * begin anywhere. */
static uint64_t lowest(const struct blocks *b, const struct frag_step *step)
{
    uint64_t event = step->from;

    for (uint64_t i = step->from; i < step->to; i++)
        if (b->live[i] < b->live[event])
            event = i;
    return event;
}

static enum frag_err find_bounds(struct program *p, struct frag_error *e)
{
    const struct frag_device_trace *d = p->device;
    const uint64_t event = p->trial->x->event;
    struct frag_steps steps;

    FRAG_TRY(frag_steps_find(p->trace, d, d->count, NULL, &steps, e));
    p->bounds = calloc(steps.count + 1, sizeof(*p->bounds));
    for (uint64_t i = 0; p->bounds && i < steps.count; i++)
        p->bounds[p->bound_count++] = lowest(&p->blocks, &steps.items[i]);
    frag_steps_close(&steps);
    if (!p->bounds)
        return frag_no_memory(e, "the steps of the program");
    p->begin = p->bound_count ? p->bounds[0] : after_mark(d, event);
    for (uint64_t i = 0; i < p->bound_count && p->bounds[i] <= event; i++)
        p->begin = p->bounds[i];
    return FRAG_OK;
}

static void find_forward(struct program *p)
{
    const struct frag_trace *t = p->trace;

    for (uint32_t k = 0; p->device->stack && k < t->stack_count; k++)
        for (uint64_t i = t->stack_first[k]; i < t->stack_first[k + 1]; i++)
            if (!strcmp(t->strings[t->frames[i].function], "forward"))
                p->forward[k] = true;
}

static bool is_kept(const struct program *p, uint64_t block)
{
    const struct block_life *life = &p->blocks.lives[block];

    if (p->begin == FRAG_NEVER)
        return !p->forward[p->device->stack[life->alloc]];
    return life->alloc < p->begin && life->free >= p->begin;
}

static int by_size(const void *left, const void *right)
{
    const frag_size *a = left, *b = right;

    return (*a > *b) - (*a < *b);
}

static void find_growing(struct program *p)
{
    const uint64_t *bytes = p->device->bytes;

    for (uint64_t k = 0; k < p->blocks.count; k++)
        if (is_kept(p, k))
            p->kept[p->kept_count++] = bytes[p->blocks.lives[k].alloc];
    if (p->kept_count)
        qsort(p->kept, p->kept_count, sizeof(*p->kept), by_size);
    for (uint64_t k = 0; k < p->blocks.count; k++) {
        const uint64_t alloc = p->blocks.lives[k].alloc;

        p->grows[alloc] =
            !is_kept(p, k) && !bsearch(&bytes[alloc], p->kept, p->kept_count,
                                       sizeof(*p->kept), by_size);
    }
}

static enum frag_err program_open(struct program *p, struct frag_error *e)
{
    const struct frag_device_trace *d = p->device;

    FRAG_TRY(blocks_open(d, d->count, &p->blocks, e));
    FRAG_TRY(find_bounds(p, e));
    p->forward = calloc((size_t)p->trace->stack_count + 1, sizeof(*p->forward));
    p->kept = calloc(p->blocks.count + 1, sizeof(*p->kept));
    p->grows = calloc(d->count + 1, sizeof(*p->grows));
    if (!p->forward || !p->kept || !p->grows)
        return frag_no_memory(e, "the blocks of the program");
    find_forward(p);
    return FRAG_OK;
}

static void program_close(struct program *p)
{
    if (p->blocks.lives)
        blocks_close(&p->blocks);
    free(p->bounds);
    free(p->forward);
    free(p->kept);
    free(p->grows);
}

/* ---- a smaller batch ---- */

static enum frag_err try_batch(struct program *p)
{
    struct explain_change change = {.kind = EXPLAIN_BATCH, .event = UINT64_MAX};
    struct trial *t = p->trial;
    struct attempt a = trial_attempt(t);
    unsigned low = 0, high = 100; /* percent */

    a.scales = p->grows;
    while (high - low > 1) {
        const unsigned middle = (low + high) / 2;
        bool fails;

        a.scale = middle / 100.0;
        FRAG_TRY(trial_fails(t, &a, t->x->limit_least, &fails));
        *(fails ? &high : &low) = middle;
    }
    explain_add_unknown(
        t->x, low ? "for the batch, the blocks of a step are taken to grow in "
                    "proportion to it, apart from those as large as a block "
                    "that the model keeps; `fragsim batch' learns their sizes "
                    "from two recordings"
                  : "not even a batch of 1 % of this one is served: what "
                    "does not depend on the batch is too large");
    if (!low)
        return FRAG_OK;
    a.scale = low / 100.0;
    snprintf(change.text, sizeof(change.text),
             "a batch of at most %u %% of this one", low);
    return trial_add(t, &a, &change);
}

static int edits_by_event(const void *left, const void *right)
{
    const struct edit *a = left, *b = right;

    if (a->before != b->before)
        return a->before < b->before ? -1 : 1;
    return (a->block > b->block) - (a->block < b->block);
}

/* ---- blocks that outlive their step ---- */

/* Where a block that outlives its step could be freed, of which the next bounds
 * are next[0] and, if there is one, next[1]; else FRAG_NEVER. A leak: where the
 * next step ends, if the block lives on then. */
static uint64_t end_of_leak(const uint64_t *next, uint64_t count, uint64_t free)
{
    return count > 1 && free > next[1] ? next[1] : FRAG_NEVER;
}

/* A block that the next step frees: where its own step ends. */
static uint64_t end_of_step(const uint64_t *next, uint64_t count, uint64_t free)
{
    return free != FRAG_NEVER && (count == 1 || free <= next[1]) ? next[0]
                                                                 : FRAG_NEVER;
}

static const struct habit {
    enum explain_change_kind kind;
    uint64_t (*end)(const uint64_t *next, uint64_t count, uint64_t free);
    const char *text;
} leak = {EXPLAIN_STEP_FREE, end_of_leak,
          "free the blocks that steps leave behind, one step later"},
  passing_on = {EXPLAIN_EARLY_FREE, end_of_step,
                "free at the end of each step what the next step frees, if it "
                "does not use it"};

/* Fills in where each block of that kind could be freed; returns their number.
 * What is allocated before the second bound may be there to stay. */
static size_t plan_frees(const struct program *p, const struct habit *h,
                         struct edit *edits)
{
    uint64_t next = 1;
    size_t count = 0;

    for (uint64_t k = 0; k < p->blocks.count; k++) {
        const struct block_life *life = &p->blocks.lives[k];
        uint64_t end = FRAG_NEVER;

        while (next < p->bound_count && life->alloc >= p->bounds[next])
            next++;
        if (next > 1 && next < p->bound_count && life->free > p->bounds[next])
            end = h->end(&p->bounds[next], p->bound_count - next, life->free);
        if (end != FRAG_NEVER)
            edits[count++] = (struct edit){end, life->alloc, FRAG_FREE};
    }
    qsort(edits, count, sizeof(*edits), edits_by_event);
    return count;
}

/* What these blocks hold at the request, and where most of it is allocated. */
static void say_held(const struct program *p, const struct edit *edits,
                     size_t count, struct explain_change *change)
{
    const struct frag_device_trace *d = p->device;
    const uint64_t event = p->trial->x->event;
    char size[FRAG_SIZE_TEXT], site[SITE_TEXT];
    uint64_t blocks = 0, largest = 0;

    for (size_t i = 0; i < count; i++) {
        const uint64_t alloc = edits[i].block;

        if (!block_is_live(&p->blocks, p->blocks.of[alloc], event))
            continue;
        change->bytes += d->bytes[alloc];
        if (!blocks++ || d->bytes[alloc] > d->bytes[largest])
            largest = alloc;
    }
    snprintf(change->text + strlen(change->text), 256,
             ": %" PRIu64 " block%s of %s at the request%s%.120s", blocks,
             blocks == 1 ? "" : "s", frag_size_format(change->bytes, size),
             d->stack ? ", the largest allocated by " : "",
             d->stack ? site_text(p->trace, d->stack[largest], site) : "");
}

static enum frag_err try_habit(struct program *p, const struct habit *h,
                               struct frag_error *e)
{
    struct explain_change change = {.kind = h->kind, .event = UINT64_MAX};
    struct attempt a = trial_attempt(p->trial);
    struct edit *edits = calloc(p->blocks.count + 1, sizeof(*edits));
    struct explain *x = p->trial->x;
    enum frag_err err = FRAG_OK;

    if (!edits)
        return frag_no_memory(e, "the blocks of the program");
    a.edit_count = plan_frees(p, h, edits);
    a.edits = edits;
    snprintf(change.text, sizeof(change.text), "%s", h->text);
    say_held(p, edits, a.edit_count, &change);
    if (change.bytes)
        err = trial_add(p->trial, &a, &change);
    if (err == FRAG_OK && change.bytes &&
        !x->changes[x->change_count - 1].saved)
        x->change_count--;
    free(edits);
    return err;
}

/* ---- recomputing ---- */

/* The blocks that one call of a layer allocates, in the order of the trace. */
struct call {
    uint64_t from; /* the first ALLOC */
    uint64_t last; /* the last block that lives on: what the call returns */
    uint64_t back; /* the first FREE of a block that lives on */
};

/* What is allocated with one stack. */
struct op {
    frag_size bytes; /* that live at the request; 0 if it is no part of a layer
                      */
    uint32_t times;  /* blocks that live then */
    bool within;     /* the layer */
    uint64_t call;   /* 1 + the last call with it */
};

struct layers {
    struct op *ops; /* of each stack */
    uint32_t *of;   /* of each block: 1 + its call; 0: none */
    struct call *calls;
    uint64_t count;
    struct edit *edits;
    size_t edit_count;
};

/* Whether the block is one that may be computed again. */
static bool is_candidate(const struct program *p, uint64_t block)
{
    const uint64_t alloc = p->blocks.lives[block].alloc;

    return p->grows[alloc] && p->forward[p->device->stack[alloc]];
}

/* A stack that occurs once only is no part of a layer that is repeated. */
static void weigh(const struct program *p, struct op *ops)
{
    const uint64_t event = p->trial->x->event;

    for (uint32_t k = 0; k < p->blocks.count; k++) {
        const uint64_t alloc = p->blocks.lives[k].alloc;
        struct op *op = &ops[p->device->stack[alloc]];

        if (!is_candidate(p, k) || !block_is_live(&p->blocks, k, event))
            continue;
        op->bytes += p->device->bytes[alloc];
        op->times++;
    }
    for (uint32_t k = 0; k < p->trace->stack_count; k++)
        if (ops[k].times < 2)
            ops[k].bytes = 0;
}

/* A frame of a stack, counted from the outermost one. */
static const struct frag_frame *frame_at(const struct frag_trace *t,
                                         uint32_t stack, uint64_t depth)
{
    return &t->frames[t->stack_first[stack + 1] - 1 - depth];
}

/* Modules are called through _call_impl and others of that kind. */
static bool is_wrapper(const struct frag_trace *t, uint32_t stack,
                       uint64_t depth)
{
    const struct frag_frame *f = frame_at(t, stack, depth);

    return strstr(t->strings[f->function], "_call_") != NULL;
}

/* Whether both stacks have the same frames from the outermost on to frame
 * `depth`, counted from there. */
static bool is_within(const struct frag_trace *t, uint32_t a, uint32_t b,
                      uint64_t depth)
{
    if (t->stack_first[b + 1] - t->stack_first[b] <= depth)
        return false;
    for (uint64_t i = 0; i <= depth; i++)
        if (memcmp(frame_at(t, a, i), frame_at(t, b, i),
                   sizeof(struct frag_frame)) != 0)
            return false;
    return true;
}

/* Finds the innermost frame below which three quarters of these bytes are
 * allocated, and marks the stacks below it. NULL: none. */
static const struct frag_frame *find_layer(const struct program *p,
                                           struct op *ops)
{
    const struct frag_trace *t = p->trace;
    uint32_t heaviest = 0;
    frag_size sum = 0, part = 0;
    uint64_t depth;

    for (uint32_t k = 0; k < t->stack_count; k++) {
        sum += ops[k].bytes;
        if (ops[k].bytes > ops[heaviest].bytes)
            heaviest = k;
    }
    if (!sum)
        return NULL;
    depth = t->stack_first[heaviest + 1] - t->stack_first[heaviest];
    while (part < sum - sum / 4 && depth--) {
        part = 0;
        for (uint32_t k = 0; k < t->stack_count; k++) {
            ops[k].within = ops[k].bytes && is_within(t, heaviest, k, depth);
            part += ops[k].within ? ops[k].bytes : 0;
        }
    }
    while (depth && is_wrapper(t, heaviest, depth))
        depth--;
    return frame_at(t, heaviest, depth);
}

/* Numbers the calls: a new one begins where a stack occurs again. */
static void number_calls(const struct program *p, struct layers *l)
{
    for (uint64_t k = 0; k < p->blocks.count; k++) {
        const uint64_t alloc = p->blocks.lives[k].alloc;
        struct op *op = &l->ops[p->device->stack[alloc]];

        if (!is_candidate(p, k) || !op->within)
            continue;
        if (!l->count || op->call == l->count)
            l->calls[l->count++] =
                (struct call){.from = alloc, .back = FRAG_NEVER};
        op->call = l->count;
        l->of[k] = (uint32_t)l->count;
    }
}

/* Whether the block outlives its call. */
static bool lives_on(const struct program *p, const struct layers *l,
                     uint64_t block)
{
    return l->of[block] && l->of[block] < l->count &&
           p->blocks.lives[block].free > l->calls[l->of[block]].from;
}

static void describe_calls(const struct program *p, struct layers *l)
{
    for (uint64_t k = 0; k < p->blocks.count; k++) {
        const uint64_t end = p->blocks.lives[k].free;
        struct call *call;

        if (!l->of[k])
            continue;
        call = &l->calls[l->of[k] - 1];
        if (!lives_on(p, l, k) && l->of[k] < l->count)
            continue;
        call->last = k;
        if (end < call->back)
            call->back = end;
    }
}

/* Frees a block where the next call begins, and allocates it again where the
 * backward pass frees the first block of that call. */
static void plan_edits(const struct program *p, struct layers *l)
{
    for (uint64_t k = 0; k < p->blocks.count; k++) {
        const struct block_life *life = &p->blocks.lives[k];
        const struct call *next;

        if (!lives_on(p, l, k) || l->calls[l->of[k] - 1].last == k)
            continue;
        next = &l->calls[l->of[k]];
        if (next->back >= life->free && life->free != FRAG_NEVER)
            continue;
        l->edits[l->edit_count++] =
            (struct edit){next->from, life->alloc, FRAG_FREE};
        if (next->back != FRAG_NEVER)
            l->edits[l->edit_count++] =
                (struct edit){next->back, life->alloc, FRAG_ALLOC};
    }
    if (l->edit_count)
        qsort(l->edits, l->edit_count, sizeof(*l->edits), edits_by_event);
}

static enum frag_err try_layer(struct program *p, struct layers *l,
                               const struct frag_frame *layer)
{
    struct explain_change change = {.kind = EXPLAIN_RECOMPUTE,
                                    .event = UINT64_MAX};
    struct attempt a = trial_attempt(p->trial);
    char frame[SITE_TEXT];

    number_calls(p, l);
    describe_calls(p, l);
    plan_edits(p, l);
    if (!l->edit_count)
        return FRAG_OK;
    a.edits = l->edits;
    a.edit_count = l->edit_count;
    snprintf(change.text, sizeof(change.text),
             "recompute in the backward pass what each call at %.200s "
             "allocates, but for its last block (torch.utils.checkpoint)",
             site_frame_text(p->trace, layer, frame));
    return trial_add(p->trial, &a, &change);
}

static enum frag_err try_recompute(struct program *p, struct frag_error *e)
{
    const uint64_t blocks = p->blocks.count;
    struct layers l = {
        .ops = calloc((size_t)p->trace->stack_count + 1, sizeof(*l.ops)),
        .of = calloc(blocks + 1, sizeof(*l.of)),
        .calls = calloc(blocks + 1, sizeof(*l.calls)),
        .edits = calloc(2 * blocks + 1, sizeof(*l.edits)),
    };
    const bool has_memory = l.ops && l.of && l.calls && l.edits;
    const struct frag_frame *layer = NULL;
    enum frag_err err =
        has_memory ? FRAG_OK : frag_no_memory(e, "the layers of the program");

    if (has_memory) {
        weigh(p, l.ops);
        layer = find_layer(p, l.ops);
    }
    if (layer)
        err = try_layer(p, &l, layer);
    free(l.ops);
    free(l.of);
    free(l.calls);
    free(l.edits);
    return err;
}

static enum frag_err try_all(struct program *p, struct frag_error *e)
{
    struct explain *x = p->trial->x;
    const bool has_stacks = p->device->stack && p->trace->stack_count > 1;

    if (x->cause == EXPLAIN_GROWTH)
        FRAG_TRY(try_habit(p, &leak, e));
    if (x->cause != EXPLAIN_DEMAND && trial_advice(x))
        return FRAG_OK;
    if (!has_stacks)
        explain_add_unknown(x, "no stacks were recorded, so the layers that "
                               "could be computed again are not known");
    if (!has_stacks && p->begin == FRAG_NEVER) {
        explain_add_unknown(x, "no step was complete, so what a smaller batch "
                               "would save is not known");
        return FRAG_OK;
    }
    find_growing(p);
    FRAG_TRY(try_batch(p));
    if (has_stacks)
        FRAG_TRY(try_recompute(p, e));
    return try_habit(p, &passing_on, e);
}

enum frag_err program_try(struct trial *t)
{
    struct program p = {
        .trial = t,
        .trace = t->x->trace,
        .device = &t->x->future->devices[0],
    };
    enum frag_err err = program_open(&p, t->e);

    if (err == FRAG_OK)
        err = try_all(&p, t->e);
    program_close(&p);
    return err;
}
