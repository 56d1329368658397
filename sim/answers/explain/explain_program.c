/* explain_program.c - what only the program can change: a smaller batch, and
 * blocks of the forward pass that the backward pass computes again.
 *
 * Neither is recorded, so both rest on the lives of blocks. A block that is
 * live where a step begins belongs to the model or its optimizer, and so does,
 * as its gradient, a block that is as large as one of these. The other blocks
 * depend on the batch. Where no step begins, the stacks tell: a block that is
 * allocated in a function named forward depends on the batch.
 */
#include <stdlib.h>
#include <string.h>

#include "sim/answers/explain/explain_parts.h"
#include "sim/answers/sites.h"
#include "traces/steps/step_blocks.h"
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

/* The stack of an ALLOC; 0: it has none. */
static uint32_t stack_of(const struct frag_device_trace *d, uint64_t alloc)
{
    return d->stack ? d->stack[alloc] : 0;
}

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

/* Adds the event of a step before which least is live: found by their period,
 * steps begin anywhere. A bound that follows another one closely replaces it.
 */
static void add_bound(struct program *p, uint64_t from, uint64_t to)
{
    const frag_size *live = p->blocks.live;
    uint64_t event = from;

    for (uint64_t i = from; i < to; i++)
        if (live[i] < live[event])
            event = i;
    if (p->bound_count &&
        event - p->bounds[p->bound_count - 1] < (to - from) / 2)
        p->bound_count--;
    p->bounds[p->bound_count++] = event;
}

static enum frag_err find_bounds(struct program *p, struct frag_error *e)
{
    const struct frag_device_trace *d = p->device;
    const uint64_t event = p->trial->x->event;
    struct frag_steps steps;

    FRAG_TRY(frag_steps_find(p->trace, d, d->count, NULL, &steps, e));
    p->bounds = calloc(steps.count + 1, sizeof(*p->bounds));
    for (uint64_t i = 0; p->bounds && i < steps.count; i++)
        add_bound(p, steps.items[i].from, steps.items[i].to);
    if (p->bound_count)
        add_bound(p, steps.items[steps.count - 1].to, d->count);
    frag_steps_close(&steps);
    if (!p->bounds)
        return frag_no_memory(e, "the steps of the program");
    p->begin = p->bound_count ? p->bounds[0] : after_mark(d, event);
    for (uint64_t i = 0; i < p->bound_count && p->bounds[i] <= event; i++)
        p->begin = p->bounds[i];
    return FRAG_OK;
}

/* The Python frames, from the outermost one on, up to a function named forward;
 * 0: the stack has none. */
static uint64_t frames_to_forward(const struct frag_trace *t, uint32_t stack)
{
    struct site_walk w = site_walk(t, stack);
    uint64_t n = 1;

    for (const struct frag_frame *f; (f = site_step_in(&w)); n++)
        if (!strcmp(t->strings[f->function], "forward"))
            return n;
    return 0;
}

static void find_forward(struct program *p)
{
    for (uint32_t k = 0; p->device->stack && k < p->trace->stack_count; k++)
        p->forward[k] = frames_to_forward(p->trace, k) != 0;
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

enum { BATCH_LEAST = 10 }; /* percent: nobody runs with less */

static enum frag_err try_batch(struct program *p)
{
    struct explain_change change = {.kind = EXPLAIN_BATCH, .event = UINT64_MAX};
    struct trial *t = p->trial;
    struct attempt a = trial_attempt(t);
    unsigned low, high = 100; /* percent */
    bool fails;

    a.scales = p->grows;
    a.scale = BATCH_LEAST / 100.0;
    FRAG_TRY(trial_fails(t, &a, t->x->limit_least, &fails));
    low = fails ? 0 : BATCH_LEAST;
    while (low && high - low > 1) {
        const unsigned middle = (low + high) / 2;

        a.scale = middle / 100.0;
        FRAG_TRY(trial_fails(t, &a, t->x->limit_least, &fails));
        *(fails ? &high : &low) = middle;
    }
    explain_add_unknown(
        t->x,
        low ? "for the batch, the blocks of a step are taken to grow in "
              "proportion to it, apart from those as large as a block that the "
              "model keeps; `fragsim dry --try' runs the program at each size"
            : "not even a batch of a tenth of this one is served: what does "
              "not depend on the batch is too large");
    if (!low)
        return FRAG_OK;
    a.scale = low / 100.0;
    snprintf(change.text, sizeof(change.text),
             t->x->completion.reach
                 ? "a batch of less than %u %% of this one, how much less is "
                   "not known"
                 : "a batch of at most %u %% of this one",
             low);
    return trial_add(t, &a, &change);
}

static int edits_by_event(const void *left, const void *right)
{
    const struct explain_edit *a = left, *b = right;

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
    uint64_t from; /* the bound after which its blocks are allocated: the first
                      step also allocates what stays */
    uint64_t (*end)(const uint64_t *next, uint64_t count, uint64_t free);
    const char *text;
} leak = {EXPLAIN_STEP_FREE, 2, end_of_leak,
          "free the blocks that steps leave behind, one step later"},
  passing_on = {EXPLAIN_EARLY_FREE, 0, end_of_step,
                "free at the end of each step what the next step frees, if it "
                "does not use it"};

/* Fills in where each block of that kind could be freed; returns their number.
 */
static size_t plan_frees(const struct program *p, const struct habit *h,
                         struct explain_edit *edits)
{
    uint64_t next = 0;
    size_t count = 0;

    for (uint64_t k = 0; k < p->blocks.count; k++) {
        const struct block_life *life = &p->blocks.lives[k];
        uint64_t end = FRAG_NEVER;

        while (next < p->bound_count && life->alloc >= p->bounds[next])
            next++;
        if (next >= h->from && next < p->bound_count &&
            life->free > p->bounds[next])
            end = h->end(&p->bounds[next], p->bound_count - next, life->free);
        if (end != FRAG_NEVER &&
            !site_is_optimizer(p->trace, stack_of(p->device, life->alloc)))
            edits[count++] = (struct explain_edit){end, life->alloc, FRAG_FREE};
    }
    qsort(edits, count, sizeof(*edits), edits_by_event);
    return count;
}

/* Adds how many blocks they are, and where the largest is allocated. */
static void say_blocks(const struct program *p, const struct attempt *a,
                       struct explain_change *change)
{
    const struct frag_device_trace *d = p->device;
    uint64_t largest = a->edits[0].block;
    char site[SITE_TEXT];

    for (size_t i = 1; i < a->edit_count; i++)
        if (d->bytes[a->edits[i].block] > d->bytes[largest])
            largest = a->edits[i].block;
    snprintf(change->text + strlen(change->text), 256,
             ": %zu blocks, the largest of %s%s", a->edit_count,
             FRAG_SHOW_SIZE(d->bytes[largest]),
             site_place_text(p->trace, stack_of(d, largest), ", allocated by ",
                             site));
}

static enum frag_err try_habit(struct program *p, const struct habit *h,
                               struct frag_error *e)
{
    struct explain_change change = {.kind = h->kind, .event = UINT64_MAX};
    struct attempt a = trial_attempt(p->trial);
    struct explain_edit *edits = calloc(p->blocks.count + 1, sizeof(*edits));
    struct explain *x = p->trial->x;
    enum frag_err err = FRAG_OK;

    if (!edits)
        return frag_no_memory(e, "the blocks of the program");
    a.edit_count = plan_frees(p, h, edits);
    a.edits = edits;
    snprintf(change.text, sizeof(change.text), "%s", h->text);
    if (a.edit_count) {
        say_blocks(p, &a, &change);
        err = trial_add(p->trial, &a, &change);
        if (err == FRAG_OK && x->changes[x->change_count - 1].saved < FRAG_MIB)
            x->change_count--;
    }
    free(edits);
    return err;
}

/* ---- recomputing ---- */

/* The blocks that one call of a layer allocates. If any live when the next call
 * begins, they are saved for the backward pass. */
struct call {
    uint64_t from; /* the first ALLOC */
    bool saves;
    uint64_t last;     /* 1 + the last saved block: what the call returns */
    frag_size largest; /* saved block, or block if none is saved */
    uint64_t back;     /* its FREE, in the backward pass */
};

/* The blocks allocated with one stack: an op of the forward pass. */
struct op {
    frag_size bytes; /* that live at the peak; 0 if it is no part of a layer */
    uint32_t times;  /* it was called for them: blocks in a row are one call */
    uint64_t shared; /* Python frames that it has in common with the op that
                        holds most */
};

struct layers {
    struct op *ops;  /* of each stack */
    uint64_t *times; /* for each number of frames: see count_repeats */
    uint32_t *of;    /* of each block: 1 + its call; 0: none */
    struct call *calls;
    uint64_t count;
    struct explain_edit *edits;
    size_t edit_count;
};

/* Whether the block is one that may be computed again. */
static bool is_candidate(const struct program *p, uint64_t block)
{
    const uint32_t stack = p->device->stack[p->blocks.lives[block].alloc];

    return p->forward[stack] && !is_kept(p, block);
}

/* The event before which most is live. */
static uint64_t peak_of(const struct blocks *b)
{
    uint64_t event = 0;

    for (uint64_t i = 0; i <= b->events; i++)
        if (b->live[i] > b->live[event])
            event = i;
    return event;
}

/* Fills in the ops, at the peak; one that is called once only is no part of a
 * layer that is repeated. Returns the one that holds most. */
static uint32_t weigh(const struct program *p, struct op *ops)
{
    const uint64_t event = peak_of(&p->blocks);
    const struct op *last = NULL;
    uint32_t most = 0;

    for (uint32_t k = 0; k < p->blocks.count; k++) {
        const uint64_t alloc = p->blocks.lives[k].alloc;
        struct op *op = &ops[p->device->stack[alloc]];

        if (!is_candidate(p, k) || !block_is_live(&p->blocks, k, event))
            continue;
        op->bytes += p->device->bytes[alloc];
        op->times += op != last;
        last = op;
    }
    for (uint32_t k = 0; k < p->trace->stack_count; k++) {
        if (ops[k].times < 2)
            ops[k].bytes = 0;
        most = ops[k].bytes > ops[most].bytes ? k : most;
    }
    return most;
}

/* The Python frames that two stacks have in common, from the outermost one on;
 * UINT64_MAX if the second has none. */
static uint64_t shared_frames(const struct frag_trace *t, uint32_t a,
                              uint32_t b)
{
    struct site_walk x = site_walk(t, a), y = site_walk(t, b);
    const struct frag_frame *f = site_step_in(&y);
    uint64_t n = 0;

    if (!f)
        return UINT64_MAX;
    for (; site_same(site_step_in(&x), f); f = site_step_in(&y))
        n++;
    return n;
}

/* For each pair of calls of the op in a row, counts in times[n] that the
 * program did not leave its n outermost frames from the one to the other. */
static void count_repeats(const struct program *p, const struct op *ops,
                          uint32_t most, uint64_t *times)
{
    const struct frag_device_trace *d = p->device;
    uint64_t passed = UINT64_MAX;
    bool called = false;

    for (uint64_t i = 0; i < d->count; i++) {
        const uint32_t stack = d->op[i] == FRAG_ALLOC ? d->stack[i] : 0;

        if (stack && stack != most && ops[stack].shared < passed)
            passed = ops[stack].shared;
        if (stack != most)
            continue;
        if (called && passed != UINT64_MAX)
            times[passed]++;
        called = true;
        passed = UINT64_MAX;
    }
}

/* The frames of the op from the outermost one on to that which calls the
 * layers: the outermost one in the forward pass that calls often what calls the
 * op. One line within a layer may call it more often. */
static uint64_t frames_to_layers(const struct program *p, uint32_t most,
                                 uint64_t length, const uint64_t *times)
{
    uint64_t often = 0;

    for (uint64_t n = 0; n <= length; n++)
        often = times[n] && times[n] >= times[often] ? n : often;
    if (!times[often])
        return length;
    for (uint64_t n = frames_to_forward(p->trace, most); n && n < often; n++)
        if (times[n] >= 2 && times[n] > times[often] / 8)
            return n;
    return often;
}

/* The line of the user that calls the layers, which are called by the last of
 * so many frames; NULL: a library calls them, or code outside of all functions.
 */
static const struct frag_frame *caller_of_layers(const struct program *p,
                                                 uint32_t most, uint64_t frames)
{
    const struct frag_trace *t = p->trace;
    struct site_walk w = site_walk(t, most);
    const struct frag_frame *caller = NULL;

    while (frames--) {
        const struct frag_frame *f = site_step_in(&w);
        const char *name = t->strings[f->function];

        if (site_is_place(t, f))
            caller = strcmp(name, "<module>") != 0 ? f : NULL;
        else if (!strcmp(name, "forward"))
            caller = NULL;
    }
    return caller;
}

/* Keeps the ops that lie below the frame which calls the layers. Returns the
 * line to name. */
static const struct frag_frame *find_layers(const struct program *p,
                                            struct layers *l, uint32_t most)
{
    uint64_t frames;

    for (uint32_t k = 0; k < p->trace->stack_count; k++)
        l->ops[k].shared = shared_frames(p->trace, most, k);
    count_repeats(p, l->ops, most, l->times);
    frames = frames_to_layers(p, most, l->ops[most].shared, l->times);
    for (uint32_t k = 0; k < p->trace->stack_count; k++)
        if (l->ops[k].shared < frames)
            l->ops[k].bytes = 0;
    return caller_of_layers(p, most, frames);
}

/* Numbers the calls: each begins with the op that is the first. */
static void number_calls(const struct program *p, struct layers *l)
{
    const struct op *first = NULL, *last = NULL;

    for (uint64_t k = 0; k < p->blocks.count; k++) {
        const uint64_t alloc = p->blocks.lives[k].alloc;
        const struct op *op = &l->ops[p->device->stack[alloc]];

        if (!is_candidate(p, k) || !op->bytes)
            continue;
        if (!first)
            first = op;
        if (op == first && op != last)
            l->calls[l->count++].from = alloc;
        l->of[k] = (uint32_t)l->count;
        last = op;
    }
}

static bool is_saved(const struct program *p, const struct layers *l,
                     uint64_t block)
{
    return l->of[block] && l->of[block] < l->count &&
           p->blocks.lives[block].free > l->calls[l->of[block]].from;
}

static void describe_calls(const struct program *p, struct layers *l)
{
    for (uint64_t k = 0; k < p->blocks.count; k++) {
        const struct block_life *life = &p->blocks.lives[k];
        const frag_size bytes = p->device->bytes[life->alloc];
        const bool saved = is_saved(p, l, k);
        struct call *call = l->calls + (l->of[k] ? l->of[k] - 1 : 0);

        if (!l->of[k] || (call->saves && !saved))
            continue;
        if (saved && !call->saves)
            *call = (struct call){.from = call->from, .saves = true};
        call->last = k + 1;
        if (bytes < call->largest ||
            (bytes == call->largest && life->free < call->back))
            continue;
        call->largest = bytes;
        call->back = life->free;
    }
}

/* Frees a saved block where the next call begins, and allocates it again where
 * the backward pass frees the largest block of that call. */
static void plan_edits(const struct program *p, struct layers *l)
{
    for (uint64_t k = 0; k < p->blocks.count; k++) {
        const struct block_life *life = &p->blocks.lives[k];
        const struct call *next;

        if (!is_saved(p, l, k) || l->calls[l->of[k] - 1].last == k + 1)
            continue;
        next = &l->calls[l->of[k]];
        l->edits[l->edit_count++] =
            (struct explain_edit){next->from, life->alloc, FRAG_FREE};
        if (next->back < life->free)
            l->edits[l->edit_count++] =
                (struct explain_edit){next->back, life->alloc, FRAG_ALLOC};
    }
    if (l->edit_count)
        qsort(l->edits, l->edit_count, sizeof(*l->edits), edits_by_event);
}

static enum frag_err try_layers(struct program *p, struct layers *l)
{
    struct explain_change change = {.kind = EXPLAIN_RECOMPUTE,
                                    .event = UINT64_MAX};
    struct attempt a = trial_attempt(p->trial);
    const uint32_t most = weigh(p, l->ops);
    const struct frag_frame *caller;
    char frame[SITE_TEXT];

    if (!l->ops[most].bytes)
        return FRAG_OK;
    caller = find_layers(p, l, most);
    number_calls(p, l);
    describe_calls(p, l);
    plan_edits(p, l);
    if (!l->edit_count)
        return FRAG_OK;
    a.edits = l->edits;
    a.edit_count = l->edit_count;
    snprintf(change.text, sizeof(change.text),
             "recompute in the backward pass what each layer %s%.200s "
             "allocates, but for its last block (torch.utils.checkpoint)",
             caller ? "under " : "of the forward pass",
             caller ? site_frame_text(p->trace, caller, frame) : "");
    return trial_add(p->trial, &a, &change);
}

static enum frag_err try_recompute(struct program *p, struct frag_error *e)
{
    const struct frag_trace *t = p->trace;
    const size_t blocks = p->blocks.count + 1, stacks = t->stack_count;
    struct layers l = {
        .ops = calloc(stacks + 1, sizeof(*l.ops)),
        .times = calloc(t->stack_first[stacks] + 1, sizeof(*l.times)),
        .of = calloc(blocks, sizeof(*l.of)),
        .calls = calloc(blocks, sizeof(*l.calls)),
        .edits = calloc(2 * blocks, sizeof(*l.edits)),
    };
    const enum frag_err err =
        l.ops && l.times && l.of && l.calls && l.edits
            ? try_layers(p, &l)
            : frag_no_memory(e, "the layers of the program");

    free(l.ops);
    free(l.times);
    free(l.of);
    free(l.calls);
    free(l.edits);
    return err;
}

/* Whether no request of a run that is known to its end fails with a setting. */
static bool has_sure_setting(const struct explain *x)
{
    const struct explain_change *c = explain_served_by(x, EXPLAIN_SETTING);

    return c && c->result == EXPLAIN_SURVIVES;
}

static enum frag_err try_all(struct program *p, struct frag_error *e)
{
    struct explain *x = p->trial->x;
    const bool has_stacks = p->device->stack && p->trace->stack_count > 1;

    if (x->cause == EXPLAIN_GROWTH)
        FRAG_TRY(try_habit(p, &leak, e));
    if (x->cause != EXPLAIN_DEMAND && has_sure_setting(x))
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

static struct program program_of(struct trial *t)
{
    return (struct program){
        .trial = t, .trace = t->x->trace, .device = &t->x->future->devices[0]};
}

static bool is_freed_later(const struct program *p, uint64_t alloc)
{
    const struct block_life *life = &p->blocks.lives[p->blocks.of[alloc]];
    const uint64_t last = p->bound_count ? p->bounds[p->bound_count - 1] : 0;
    const uint32_t stack = stack_of(p->device, alloc);

    return life->free != FRAG_NEVER &&
           (p->trial->x->event >= last || life->free < last) &&
           !site_is_optimizer(p->trace, stack) &&
           (!p->device->stack || site_place(p->trace, stack));
}

enum frag_err program_keep_freed(struct trial *t,
                                 const struct explain_block **list,
                                 uint64_t *count)
{
    struct program p = program_of(t);
    const enum frag_err err = *count ? program_open(&p, t->e) : FRAG_OK;
    uint64_t kept = 0;

    for (uint64_t i = 0; err == FRAG_OK && i < *count; i++)
        if (is_freed_later(&p, list[i]->event))
            list[kept++] = list[i];
    *count = kept;
    program_close(&p);
    return err;
}

enum frag_err program_try(struct trial *t)
{
    struct program p = program_of(t);
    enum frag_err err = program_open(&p, t->e);

    FRAG_THEN(err, try_all(&p, t->e));
    program_close(&p);
    return err;
}
