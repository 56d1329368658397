/* changes.c - replays the changes that might have served the request. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "sim/answers/explain/parts.h"
#include "sim/answers/sites.h"
#include "traces/grow.h"
#include "traces/steps/steps.h"
#include "traces/text.h"
#include "traces/torch_sizes.h"

const char *const explain_change_words[EXPLAIN_CHANGE_KINDS] = {
    [EXPLAIN_SETTING] = "setting",     [EXPLAIN_EMPTY_CACHE] = "empty_cache",
    [EXPLAIN_FREE] = "free",           [EXPLAIN_STEP_FREE] = "step_free",
    [EXPLAIN_ONE_SPACE] = "one_space", [EXPLAIN_CAPACITY] = "capacity",
};

struct trial {
    struct explain *x;
    const struct attempt *base;
    uint64_t ooms; /* of the base */
    uint64_t room; /* of x->changes */
    struct frag_error *e;
};

/* Replays a changed attempt and adds it to the answer. */
static enum frag_err try_change(struct trial *t, const struct attempt *a,
                                const struct explain_change *change)
{
    struct explain *x = t->x;
    struct explain_change c = *change;
    struct outcome out;

    FRAG_TRY(attempt_run(a, &out, NULL, t->e));
    c.served = out.served && out.ooms < t->ooms;
    c.peak = out.peak;
    c.limit = a->limit;
    if (!GROW(x->changes, t->room, x->change_count + 1))
        return frag_no_memory(t->e, "the changes");
    x->changes[x->change_count++] = c;
    return FRAG_OK;
}

static bool last_served(const struct trial *t)
{
    return t->x->change_count && t->x->changes[t->x->change_count - 1].served;
}

/* The base with its segments at the addresses that the driver would choose. */
static struct attempt again(const struct trial *t)
{
    struct attempt a = *t->base;

    a.anchored = false;
    return a;
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

/* The recorded start was laid out under the recorded settings, so a replay with
 * other settings allocates its blocks afresh. */
static enum frag_err try_setting(struct trial *t,
                                 const struct setting_change *row)
{
    struct explain_change change = {.kind = EXPLAIN_SETTING,
                                    .event = UINT64_MAX};
    struct attempt a = again(t);
    char *text = with_value(t->base->settings, row->key, row->value);
    char *shown = text ? with_value(text, TORCH_PADDING_KEY, NULL) : NULL;
    enum frag_err err = FRAG_OK;

    a.settings = text;
    a.starts_there = false;
    if (!shown)
        err = frag_no_memory(t->e, "the settings");
    else if (!same_settings(t->base->settings, text)) {
        snprintf(change.text, sizeof(change.text), "%.240s%s",
                 *shown ? shown : "PyTorch's default settings",
                 strlen(shown) > 240 ? "..." : "");
        err = try_change(t, &a, &change);
    }
    free(shown);
    free(text);
    return err;
}

static enum frag_err try_settings(struct trial *t)
{
    for (size_t i = 0; i < sizeof(setting_changes) / sizeof(*setting_changes);
         i++)
        FRAG_TRY(try_setting(t, &setting_changes[i]));
    return FRAG_OK;
}

/* ---- empty_cache ---- */

static enum frag_err try_empty(struct trial *t, const struct edit *edits,
                               size_t count, const char *where)
{
    struct explain_change change = {.kind = EXPLAIN_EMPTY_CACHE,
                                    .event = UINT64_MAX};
    struct attempt a = again(t);

    a.edits = edits;
    a.edit_count = count;
    snprintf(change.text, sizeof(change.text), "torch.cuda.empty_cache() %s",
             where);
    return try_change(t, &a, &change);
}

static enum frag_err try_empty_before(struct trial *t)
{
    const struct edit edit = {.before = t->x->event, .op = FRAG_EMPTY_CACHE};

    return try_empty(t, &edit, 1, "directly before the request");
}

static enum frag_err try_empty_steps(struct trial *t,
                                     const struct frag_steps *steps)
{
    struct edit *edits = calloc(steps->count + 1, sizeof(*edits));
    enum frag_err err;
    char where[64];
    size_t count = 0;

    if (!edits)
        return frag_no_memory(t->e, "the steps");
    for (uint64_t i = 0; i < steps->count; i++)
        if (steps->items[i].from > t->x->device->initial)
            edits[count++] = (struct edit){.before = steps->items[i].from,
                                           .op = FRAG_EMPTY_CACHE};
    edits[count++] = (struct edit){.before = steps->items[steps->count - 1].to,
                                   .op = FRAG_EMPTY_CACHE};
    snprintf(where, sizeof(where), "at the start of each step (%zu calls)",
             count);
    err = try_empty(t, edits, count, where);
    free(edits);
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
                    x->reserved + x->segment <= x->limit + hole);
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
    const struct edit edit = {
        .before = x->event, .op = FRAG_FREE, .slot = b->slot};
    struct explain_change change = {
        .kind = EXPLAIN_FREE, .event = b->event, .bytes = b->size};
    struct attempt a = again(t);
    char size[FRAG_SIZE_TEXT], site[SITE_TEXT] = "";
    const uint32_t stack = x->device->stack ? x->device->stack[b->event] : 0;

    a.edits = &edit;
    a.edit_count = 1;
    snprintf(change.text, sizeof(change.text),
             "free the block of %s that event %" PRIu64 " allocated%s%.120s",
             frag_size_format(b->size, size), b->event, stack ? ", " : "",
             stack ? site_text(x->trace, stack, site) : "");
    return try_change(t, &a, &change);
}

static enum frag_err
try_blocks(struct trial *t, const struct explain_block **list, uint64_t count)
{
    for (uint64_t i = 0; i < count && i < FREE_TRIES; i++) {
        FRAG_TRY(try_free(t, list[i]));
        if (last_served(t))
            break;
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

/* ---- what steps leave behind ---- */

static int edits_by_event(const void *left, const void *right)
{
    const struct edit *a = left, *b = right;

    if (a->before != b->before)
        return a->before < b->before ? -1 : 1;
    return a->slot < b->slot ? -1 : a->slot > b->slot;
}

/* Frees each block that a step left behind at the end of the next step. */
static enum frag_err try_step_frees(struct trial *t, const struct state *s,
                                    const struct frag_steps *steps)
{
    struct explain_change change = {.kind = EXPLAIN_STEP_FREE,
                                    .event = UINT64_MAX};
    struct edit *edits = calloc(s->count + 1, sizeof(*edits));
    struct attempt a = again(t);
    enum frag_err err;

    if (!edits)
        return frag_no_memory(t->e, "the steps");
    for (uint64_t i = 0; i < s->count; i++) {
        const struct explain_block *b = &s->blocks[i];
        uint64_t step;

        if (cause_is_left(steps, b, &step))
            edits[a.edit_count++] =
                (struct edit){.before = steps->items[step + 1].to,
                              .op = FRAG_FREE,
                              .slot = b->slot};
    }
    qsort(edits, a.edit_count, sizeof(*edits), edits_by_event);
    a.edits = edits;
    snprintf(change.text, sizeof(change.text),
             "free the %zu blocks that steps leave behind, one step later",
             a.edit_count);
    err = a.edit_count ? try_change(t, &a, &change) : FRAG_OK;
    free(edits);
    return err;
}

static enum frag_err try_steps(struct trial *t, const struct state *s)
{
    struct frag_steps steps;
    enum frag_err err = FRAG_OK;

    FRAG_TRY(frag_steps_find(t->x->trace, t->x->device, t->x->event, NULL,
                             &steps, t->e));
    if (steps.count)
        err = try_empty_steps(t, &steps);
    if (err == FRAG_OK && t->x->cause == EXPLAIN_GROWTH)
        err = try_step_frees(t, s, &steps);
    frag_steps_close(&steps);
    return err;
}

/* ---- one stream and pool ---- */

static enum frag_err try_one_space(struct trial *t)
{
    static const struct explain_change change = {
        .kind = EXPLAIN_ONE_SPACE,
        .text = "make all requests on the stream and in the pool of this one",
        .event = UINT64_MAX,
    };
    struct attempt a = again(t);

    if (t->x->cause != EXPLAIN_CACHE)
        return FRAG_OK;
    a.one_space = true;
    a.starts_there = false;
    return try_change(t, &a, &change);
}

/* ---- capacity ---- */

enum { DOUBLINGS = 12 };

static enum frag_err serves_at(struct trial *t, frag_size limit, bool *served)
{
    struct attempt a = again(t);
    struct outcome out;

    a.limit = limit;
    FRAG_TRY(attempt_run(&a, &out, NULL, t->e));
    *served = out.served && out.ooms < t->ooms;
    return FRAG_OK;
}

/* Finds a limit that serves the request, by doubling what is added. */
static enum frag_err find_high(struct trial *t, frag_size *low, frag_size *high)
{
    frag_size more = t->x->segment;
    bool served = false;

    for (unsigned i = 0; i < DOUBLINGS && !served; i++, more *= 2) {
        *high = t->x->limit + more;
        FRAG_TRY(serves_at(t, *high, &served));
        if (!served)
            *low = *high;
    }
    if (!served)
        *high = FRAG_UNLIMITED;
    return FRAG_OK;
}

/* Bisects to TORCH_ROUND_LARGE, the unit of segments. */
static enum frag_err try_capacity(struct trial *t)
{
    struct explain_change change = {.kind = EXPLAIN_CAPACITY,
                                    .event = UINT64_MAX};
    struct attempt a = again(t);
    frag_size low = t->x->limit, high;
    char limit[FRAG_SIZE_TEXT], more[FRAG_SIZE_TEXT];

    FRAG_TRY(find_high(t, &low, &high));
    if (high == FRAG_UNLIMITED)
        return FRAG_OK;
    while (high - low > 2 * FRAG_MIB) {
        const frag_size middle = low + (high - low) / 2;
        bool served;

        FRAG_TRY(serves_at(t, middle, &served));
        *(served ? &high : &low) = middle;
    }
    a.limit = high;
    change.bytes = high - t->x->limit;
    snprintf(change.text, sizeof(change.text), "a limit of %s, %s more",
             frag_size_format(high, limit),
             frag_size_format(high - t->x->limit, more));
    return try_change(t, &a, &change);
}

/* ---- all ---- */

/* The smallest change is of the first kind of this order that serves the
 * request: a mistake of the program that is mended, a setting, calls, memory.
 * Of memory, fewer bytes win, whether they are freed or added. */
static const unsigned ranks[EXPLAIN_CHANGE_KINDS] = {
    [EXPLAIN_STEP_FREE] = 0, [EXPLAIN_SETTING] = 1, [EXPLAIN_EMPTY_CACHE] = 2,
    [EXPLAIN_ONE_SPACE] = 3, [EXPLAIN_FREE] = 4,    [EXPLAIN_CAPACITY] = 4,
};

static bool is_smaller(const struct explain_change *a,
                       const struct explain_change *b)
{
    if (ranks[a->kind] != ranks[b->kind])
        return ranks[a->kind] < ranks[b->kind];
    return a->bytes < b->bytes;
}

static const struct explain_change *find_smallest(const struct explain *x)
{
    const struct explain_change *best = NULL;

    for (uint64_t i = 0; i < x->change_count; i++)
        if (x->changes[i].served && (!best || is_smaller(&x->changes[i], best)))
            best = &x->changes[i];
    return best;
}

enum frag_err changes_try(struct explain *x, const struct attempt *base,
                          uint64_t base_ooms, const struct state *s,
                          struct frag_error *e)
{
    struct trial t = {.x = x, .base = base, .ooms = base_ooms, .e = e};

    FRAG_TRY(try_settings(&t));
    FRAG_TRY(try_empty_before(&t));
    FRAG_TRY(try_steps(&t, s));
    FRAG_TRY(try_frees(&t, s));
    FRAG_TRY(try_one_space(&t));
    FRAG_TRY(try_capacity(&t));
    x->smallest = find_smallest(x);
    return FRAG_OK;
}
