/* changes.c - replays the changes that might have served the request. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "sim/answers/explain/explain_parts.h"
#include "sim/answers/sites.h"
#include "traces/steps/steps.h"
#include "traces/text.h"
#include "traces/torch_sizes.h"

const char *const explain_change_words[EXPLAIN_CHANGE_KINDS] = {
    [EXPLAIN_SETTING] = "setting",
    [EXPLAIN_EMPTY_CACHE] = "empty_cache",
    [EXPLAIN_FREE] = "free",
    [EXPLAIN_STEP_FREE] = "step_free",
    [EXPLAIN_ONE_SPACE] = "one_space",
    [EXPLAIN_ONE_POOL] = "one_pool",
    [EXPLAIN_BATCH] = "batch",
    [EXPLAIN_RECOMPUTE] = "recompute",
    [EXPLAIN_EARLY_FREE] = "early_free",
    [EXPLAIN_CAPACITY] = "capacity",
};

static struct explain_change *last_change(const struct trial *t)
{
    return &t->x->changes[t->x->change_count - 1];
}

/* ---- settings and bounds, as the decision found them ---- */

/* The result at the bound in force, by the need: of a limit that is known only
 * as an interval, at both ends. */
static enum explain_result result_at(const struct trial *t,
                                     const struct tune_ladder *l,
                                     const struct tune_result *r)
{
    const struct explain *x = t->x;
    /* Below its need a policy may be lucky: nobody should rely on that. */
    const bool is_lucky =
        l->cases[0].bound.bytes == x->limit_least && r->first_oom == FRAG_NEVER;

    if (!r->need ||
        (r->need > x->limit_least && (is_lucky || r->need <= x->limit_most)))
        return EXPLAIN_OPEN;
    if (r->need > x->limit_least)
        return EXPLAIN_FAILS;
    return x->completion.reach ? EXPLAIN_SERVES : EXPLAIN_SURVIVES;
}

static enum frag_err add_setting(struct trial *t, const struct tune_ladder *l,
                                 const struct tune_rung *r)
{
    const struct tune_result *found = &r->results[0];
    struct explain_change change = {
        .kind = EXPLAIN_SETTING,
        .result = result_at(t, l, found),
        .fails_at = UINT64_MAX,
        .peak = found->need,
        .limit = t->x->limit_least,
        .event = UINT64_MAX,
    };

    if (change.result == EXPLAIN_FAILS && found->first_oom != FRAG_NEVER)
        change.fails_at = found->first_oom;
    change.served = trial_serves(&change) || (change.fails_at != UINT64_MAX &&
                                              change.fails_at > t->x->event);
    snprintf(change.text, sizeof(change.text), "%.500s",
             *r->text ? r->text : "PyTorch's default settings");
    return trial_know(t, &change);
}

/* The bound from which on nothing fails with the recorded settings. */
static enum frag_err add_capacity(struct trial *t, const struct tune_result *r)
{
    const struct explain *x = t->x;
    struct explain_change change = {
        .kind = EXPLAIN_CAPACITY,
        .result = x->completion.reach ? EXPLAIN_SERVES : EXPLAIN_SURVIVES,
        .fails_at = UINT64_MAX,
        .served = true,
        .peak = r->need,
        .limit = r->need,
        .event = UINT64_MAX,
        .bytes = r->need - x->limit_least,
    };

    if (r->need <= x->limit_least)
        return FRAG_OK;
    snprintf(change.text, sizeof(change.text), "a %s of %s, %s%s more",
             frag_bound_words[x->bound.kind], FRAG_SHOW_SIZE(r->need),
             x->limit_least < x->limit_most ? "at most " : "",
             FRAG_SHOW_SIZE(change.bytes));
    return trial_know(t, &change);
}

/* The ladder tells of bounds of its own kind. */
static bool has_rungs(const struct trial *t, const struct tune_ladder *l)
{
    return l && l->count && l->cases[0].bound.kind == t->x->bound.kind;
}

static enum frag_err add_settings(struct trial *t, const struct tune_ladder *l)
{
    for (size_t i = 1; has_rungs(t, l) && i < l->count; i++)
        FRAG_TRY(add_setting(t, l, &l->rungs[i]));
    return FRAG_OK;
}

/* ---- empty_cache ---- */

static enum frag_err try_empty(struct trial *t,
                               const struct explain_edit *edits, size_t count,
                               const char *where)
{
    struct explain_change change = {.kind = EXPLAIN_EMPTY_CACHE,
                                    .event = UINT64_MAX};
    struct attempt a = trial_attempt(t);

    a.edits = edits;
    a.edit_count = count;
    snprintf(change.text, sizeof(change.text), "torch.cuda.empty_cache() %s",
             where);
    return trial_add(t, &a, &change);
}

static enum frag_err try_empty_before(struct trial *t)
{
    const struct explain_edit edit = {.before = t->x->event,
                                      .op = FRAG_EMPTY_CACHE};

    return try_empty(t, &edit, 1, "directly before the request");
}

static enum frag_err empty_at(struct trial *t, const struct frag_steps *steps)
{
    struct explain_edit *edits = calloc(steps->count + 1, sizeof(*edits));
    enum frag_err err;
    char where[64];
    size_t count = 0;

    if (!edits)
        return frag_no_memory(t->e, "the steps");
    for (uint64_t i = 0; i < steps->count; i++)
        if (steps->items[i].from > t->x->device->initial)
            edits[count++] = (struct explain_edit){
                .before = steps->items[i].from, .op = FRAG_EMPTY_CACHE};
    edits[count++] = (struct explain_edit){
        .before = steps->items[steps->count - 1].to, .op = FRAG_EMPTY_CACHE};
    snprintf(where, sizeof(where), "at the start of each step (%zu calls)",
             count);
    err = try_empty(t, edits, count, where);
    free(edits);
    return err;
}

static enum frag_err try_empty_steps(struct trial *t)
{
    struct frag_steps steps;
    enum frag_err err = FRAG_OK;

    FRAG_TRY(frag_steps_find(t->x->trace, t->x->device, t->x->event, NULL,
                             &steps, t->e));
    if (steps.count)
        err = empty_at(t, &steps);
    frag_steps_close(&steps);
    return err;
}

/* ---- frees ---- */

enum { FREE_TRIES = 6 }; /* blocks that are tried, the smallest first */

/* The free bytes around a block, if it were free, within its segment. */
static frag_size hole_around(const struct state *s, uint64_t i)
{
    const struct explain_block *b = &s->blocks[i];
    frag_size size = b->size;

    if (i && b[-1].segment == b->segment && !b[-1].live && !b[-1].pending)
        size += b[-1].size;
    if (i + 1 < s->count && b[1].segment == b->segment && !b[1].live &&
        !b[1].pending)
        size += b[1].size;
    return size;
}

static frag_size segment_size(const struct state *s, uint64_t i)
{
    const frag_addr segment = s->blocks[i].segment;
    frag_size size = 0;

    while (i && s->blocks[i - 1].segment == segment)
        i--;
    for (; i < s->count && s->blocks[i].segment == segment; i++)
        size += s->blocks[i].size;
    return size;
}

/* Whether the request might be served without this block: its hole is large
 * enough, or memory for a new segment is returned to the device. */
static bool may_serve(const struct explain *x, const struct state *s,
                      uint64_t i)
{
    const struct explain_block *b = &s->blocks[i];
    const frag_size hole = hole_around(s, i);
    const bool fits = hole >= x->rounded && b->stream == x->stream &&
                      b->pool == x->pool &&
                      b->is_small == (x->rounded <= FRAG_MIB);
    const bool returned = b->is_expandable || hole == segment_size(s, i);

    return fits || (returned && b->pool == 0 &&
                    x->reserved + x->segment <= x->bound.bytes + hole);
}

static int blocks_by_size(const void *left, const void *right)
{
    const struct explain_block *a = *(const struct explain_block *const *)left;
    const struct explain_block *b = *(const struct explain_block *const *)right;

    if (a->size != b->size)
        return a->size < b->size ? -1 : 1;
    return a->addr < b->addr ? -1 : a->addr > b->addr;
}

static enum frag_err try_free(struct trial *t, const struct explain_block *b)
{
    const struct explain *x = t->x;
    const struct explain_edit edit = {
        .before = x->event, .op = FRAG_FREE, .block = b->event};
    struct explain_change change = {
        .kind = EXPLAIN_FREE, .event = b->event, .bytes = b->size};
    struct attempt a = trial_attempt(t);
    char size[FRAG_SIZE_TEXT], site[SITE_TEXT];
    const uint32_t stack = x->device->stack ? x->device->stack[b->event] : 0;

    a.edits = &edit;
    a.edit_count = 1;
    snprintf(change.text, sizeof(change.text),
             "free the block of %s that event %" PRIu64 " allocated%.200s",
             frag_size_format(b->size, size), b->event,
             site_place_text(x->trace, stack, ", ", site));
    return trial_add(t, &a, &change);
}

/* Keeps the first that is enough: that a block is not says nothing. */
static enum frag_err
try_blocks(struct trial *t, const struct explain_block **list, uint64_t count)
{
    for (uint64_t i = 0; i < count && i < FREE_TRIES; i++) {
        FRAG_TRY(try_free(t, list[i]));
        if (trial_serves(last_change(t)))
            break;
        t->x->change_count--;
    }
    return FRAG_OK;
}

static enum frag_err try_frees(struct trial *t, const struct state *s)
{
    const struct explain_block **list = calloc(s->count + 1, sizeof(*list));
    uint64_t count = 0;
    enum frag_err err;

    if (!list)
        return frag_no_memory(t->e, "the blocks");
    for (uint64_t i = 0; i < s->count; i++)
        if ((s->blocks[i].live || s->blocks[i].pending) &&
            s->blocks[i].event != UINT64_MAX && may_serve(t->x, s, i))
            list[count++] = &s->blocks[i];
    err = program_keep_freed(t, list, &count);
    if (count)
        qsort(list, count, sizeof(*list), blocks_by_size);
    FRAG_THEN(err, try_blocks(t, list, count));
    free(list);
    return err;
}

/* ---- one stream, one pool ---- */

static enum frag_err try_one_space(struct trial *t)
{
    static const struct explain_change change = {
        .kind = EXPLAIN_ONE_SPACE,
        .text = "make all requests on the stream of this one",
        .event = UINT64_MAX,
    };
    struct attempt a = trial_attempt(t);

    if (t->x->cause != EXPLAIN_CACHE)
        return FRAG_OK;
    a.one_space = true;
    a.starts_there = false;
    return trial_add(t, &a, &change);
}

/* A captured graph keeps its addresses, so it cannot share its pool with
 * everybody: this is a bound, and no advice. */
static enum frag_err try_one_pool(struct trial *t)
{
    static const struct explain_change change = {
        .kind = EXPLAIN_ONE_POOL,
        .text = "no private pools; a bound and no advice, for a captured graph "
                "keeps its addresses",
        .event = UINT64_MAX,
    };
    struct attempt a = trial_attempt(t);

    if (t->x->device->pool_count < 2)
        return FRAG_OK;
    a.one_pool = true;
    a.starts_there = false;
    return trial_add(t, &a, &change);
}

/* ---- all ---- */

enum frag_err changes_try(struct explain *x, const struct attempt *base,
                          const struct tune_ladder *ladder, uint64_t base_ooms,
                          const struct state *s, struct frag_error *e)
{
    struct trial t = {.x = x, .base = base, .ooms = base_ooms, .e = e};
    const struct attempt unchanged = trial_attempt(&t);
    struct outcome whole;

    FRAG_TRY(trial_unlimited(&t, &unchanged, &whole));
    t.requested = whole.requested;
    x->need = x->requested + x->request;
    if (x->completion.reach == FRAG_REACH_WHOLE && t.requested > x->need)
        x->need = t.requested;
    FRAG_TRY(add_settings(&t, ladder));
    cause_decide(x);
    FRAG_TRY(program_try(&t));
    FRAG_TRY(try_empty_before(&t));
    FRAG_TRY(try_empty_steps(&t));
    if (x->cause != EXPLAIN_DEMAND)
        FRAG_TRY(try_frees(&t, s));
    FRAG_TRY(try_one_space(&t));
    FRAG_TRY(try_one_pool(&t));
    return has_rungs(&t, ladder)
               ? add_capacity(&t, &ladder->rungs[0].results[0])
               : FRAG_OK;
}
