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

/* ---- settings ---- */

/* Copies the settings, of which a value may be a list in brackets, without a
 * key; if `value` is not NULL, the key follows with that value. The caller
 * frees the result; NULL if the host has no memory. */
static char *with_value(const char *settings, const char *key,
                        const char *value)
{
    const size_t length = strlen(key), room = strlen(settings) + 96;
    char *text = calloc(1, room);

    while (text && *settings) {
        size_t n = 0;
        bool inside = false;

        for (; settings[n] && (inside || settings[n] != ','); n++)
            inside = settings[n] == '[' || (inside && settings[n] != ']');
        if (strncmp(settings, key, length) != 0 || settings[length] != ':')
            text_add(text, room, ",", "%.*s", (int)n, settings);
        settings += n + (settings[n] == ',');
    }
    if (text && value)
        text_add(text, room, ",", "%s:%s", key, value);
    return text;
}

/* A change of one setting: the key is dropped, and set again if it has a value.
 * The first that serves the request is the smallest. */
static const struct setting_change {
    const char *key, *value; /* NULL: back to PyTorch's default */
} setting_changes[] = {
    {"expandable_segments", "True"},    {"max_split_size_mb", NULL},
    {"roundup_power2_divisions", NULL}, {"garbage_collection_threshold", "0.8"},
    {"max_split_size_mb", "512"},       {"max_split_size_mb", "128"},
    {"max_split_size_mb", "32"},        {"roundup_power2_divisions", "8"},
};

/* Returns whether the two texts mean the same, or the second is invalid. */
static bool same_settings(const char *a, const char *b)
{
    struct frag_params *left = NULL, *right = NULL;
    const bool same =
        frag_params_read(&frag_policy_torch, a, &left, NULL) != FRAG_OK ||
        frag_params_read(&frag_policy_torch, b, &right, NULL) != FRAG_OK ||
        !strcmp(left->text, right->text);

    free(left);
    free(right);
    return same;
}

/* By how much the limit could be lower with the first setting that serves. */
static enum frag_err find_spare(const struct trial *t, const struct attempt *a)
{
    struct explain *x = t->x;
    frag_size high = x->limit_least;
    bool fails = true;

    if (x->spare || !trial_serves(last_change(t)) || t->requested > high)
        return FRAG_OK;
    if (last_change(t)->peak < high)
        FRAG_TRY(trial_fails(t, a, last_change(t)->peak, &fails));
    if (!fails)
        high = last_change(t)->peak;
    FRAG_TRY(trial_bisect(t, a, t->requested, &high));
    x->spare = x->limit_least - high;
    return FRAG_OK;
}

/* If the blocks of the start, placed afresh, alone serve the request, a setting
 * has shown nothing. */
static enum frag_err try_text(struct trial *t, const struct attempt *a,
                              bool is_fresh_enough,
                              const struct explain_change *change)
{
    FRAG_TRY(trial_add(t, a, change));
    if (is_fresh_enough && trial_serves(last_change(t)))
        last_change(t)->result = EXPLAIN_OPEN;
    return find_spare(t, a);
}

/* The recorded start was laid out under the recorded settings, so a replay with
 * other settings allocates its blocks afresh. */
static enum frag_err try_setting(struct trial *t, bool is_fresh_enough,
                                 const struct setting_change *row)
{
    struct explain_change change = {.kind = EXPLAIN_SETTING,
                                    .event = UINT64_MAX};
    struct attempt a = trial_attempt(t);
    char *text = with_value(t->base->settings, row->key, row->value);
    char *plain = with_value(t->x->settings, row->key, row->value);
    char *shown = plain ? with_value(plain, TORCH_PADDING_KEY, NULL) : NULL;
    enum frag_err err = FRAG_OK;

    a.settings = text;
    a.starts_there = false;
    if (!shown || !text)
        err = frag_no_memory(t->e, "the settings");
    else if (!same_settings(t->base->settings, text)) {
        snprintf(change.text, sizeof(change.text), "%.240s%s",
                 *shown ? shown : "PyTorch's default settings",
                 strlen(shown) > 240 ? "..." : "");
        err = try_text(t, &a, is_fresh_enough, &change);
    }
    free(shown);
    free(plain);
    free(text);
    return err;
}

static enum frag_err try_settings(struct trial *t)
{
    struct attempt fresh = trial_attempt(t);
    bool fails = true;

    fresh.starts_there = false;
    if (t->base->starts_there && fresh.device->recorded.start.segment_count)
        FRAG_TRY(trial_fails(t, &fresh, t->x->limit_least, &fails));
    if (!fails)
        explain_add_unknown(
            t->x, "the recording began late: under another setting its first "
                  "blocks are placed afresh, which alone serves the request");
    for (size_t i = 0; i < sizeof(setting_changes) / sizeof(*setting_changes);
         i++)
        FRAG_TRY(try_setting(t, !fails, &setting_changes[i]));
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
    char size[FRAG_SIZE_TEXT], site[SITE_TEXT] = "";
    const uint32_t stack = x->device->stack ? x->device->stack[b->event] : 0;

    a.edits = &edit;
    a.edit_count = 1;
    snprintf(change.text, sizeof(change.text),
             "free the block of %s that event %" PRIu64 " allocated%s%.120s",
             frag_size_format(b->size, size), b->event, stack ? ", " : "",
             stack ? site_text(x->trace, stack, site) : "");
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
    if (count)
        qsort(list, count, sizeof(*list), blocks_by_size);
    err = try_blocks(t, list, count);
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

/* ---- capacity ---- */

enum { DOUBLINGS = 12 };

/* Finds a limit that is enough: what is reserved if nothing fails, or else by
 * doubling what is added. */
static enum frag_err find_high(struct trial *t, const struct attempt *a,
                               frag_size *low, frag_size *high)
{
    frag_size more = t->x->segment;
    bool fails = true;

    *high = t->reserved;
    if (*high > *low)
        FRAG_TRY(trial_fails(t, a, *high, &fails));
    for (unsigned i = 0; i < DOUBLINGS && fails; i++, more *= 2) {
        *high = t->x->limit_least + more;
        FRAG_TRY(trial_fails(t, a, *high, &fails));
        if (fails)
            *low = *high;
    }
    if (fails)
        *high = FRAG_UNLIMITED;
    return FRAG_OK;
}

static enum frag_err try_capacity(struct trial *t)
{
    const struct explain *x = t->x;
    struct explain_change change = {.kind = EXPLAIN_CAPACITY,
                                    .event = UINT64_MAX};
    const struct attempt a = trial_attempt(t);
    frag_size low = x->limit_least, high;

    FRAG_TRY(find_high(t, &a, &low, &high));
    if (high == FRAG_UNLIMITED)
        return FRAG_OK;
    FRAG_TRY(trial_bisect(t, &a, low, &high));
    change.limit = high;
    change.bytes = high - x->limit_least;
    snprintf(change.text, sizeof(change.text), "a %s of %s, %s%s more",
             x->bound.kind == FRAG_BOUND_LIMIT ? "limit" : "capacity",
             FRAG_SHOW_SIZE(high),
             x->limit_least < x->limit_most ? "at most " : "",
             FRAG_SHOW_SIZE(change.bytes));
    return trial_add(t, &a, &change);
}

/* ---- all ---- */

enum frag_err changes_try(struct explain *x, const struct attempt *base,
                          uint64_t base_ooms, const struct state *s,
                          struct frag_error *e)
{
    struct trial t = {.x = x, .base = base, .ooms = base_ooms, .e = e};
    const struct attempt unchanged = trial_attempt(&t);
    struct outcome whole;

    FRAG_TRY(trial_unlimited(&t, &unchanged, &whole));
    t.requested = whole.requested;
    t.reserved = whole.peak;
    x->need = x->requested + x->request;
    if (x->completion.reach == FRAG_REACH_WHOLE && t.requested > x->need)
        x->need = t.requested;
    FRAG_TRY(try_settings(&t));
    cause_decide(x);
    FRAG_TRY(program_try(&t));
    FRAG_TRY(try_empty_before(&t));
    FRAG_TRY(try_empty_steps(&t));
    if (x->cause != EXPLAIN_DEMAND)
        FRAG_TRY(try_frees(&t, s));
    FRAG_TRY(try_one_space(&t));
    FRAG_TRY(try_one_pool(&t));
    FRAG_TRY(try_capacity(&t));
    x->advice = trial_advice(x);
    return FRAG_OK;
}
