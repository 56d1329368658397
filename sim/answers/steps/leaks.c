/* leaks.c - groups the blocks that live at places of the recording's windows,
 * and judges the growth of each group. */
#include "sim/answers/steps/leaks.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/answers/sites.h"
#include "sim/answers/steps/step_calls.h"
#include "traces/grow.h"

const char *const leaks_verdict_names[] = {"none", "leak", "unknown"};

const struct leaks_reason_row leaks_reasons[] = {
#define X(name, word, text, clause) {word, text, clause},
    LEAKS_REASONS(X)
#undef X
};

/* The four constants below were chosen by reason and fitted to nothing. The
 * verdicts on 154 of the made-up programs and on the 149 recordings of
 * check_leaks.py, all of which are right, do not hang on them: they were the
 * same with least_freed 1, 2 and 3 (with 16, four are wrong), least_shown 0.1
 * and 0.9, most_freed 0.05 and 0.75, and most_work 1 and 5. */

/* Memory piles up if less than this, relative to the rise of the live bytes, is
 * freed meanwhile. */
static const double least_freed = 4;

/* The share of the growth of the leaks that the whole program shows. */
static const double least_shown = 0.5;

/* The share of the kept blocks that is freed again if a larger one replaces
 * each. */
static const double most_freed = 0.25;

/* The growth of the work, relative to that of a block that is replaced, from
 * which on the block grows with the work. Less is the copy of the block. */
static const double most_work = 2;

/* So many rounds of a loop are no pass over the layers of a model. */
enum { LEAST_ROUNDS = 64 };

/* A block that is live at one place or more. */
struct crossing {
    uint64_t key[3];      /* of its group */
    uint64_t first, last; /* places at which it is live */
    uint64_t alloc;       /* event */
    frag_size bytes;
    bool found; /* its group grows */
};

struct hunt {
    const struct frag_trace *t;
    const struct frag_device_trace *d;
    struct leaks *out;
    const struct windows *w;
    uint64_t end; /* events */
    struct crossing *items;
    uint64_t count, room;
    struct frag_error *e;
};

/* ---- the blocks ---- */

/* A block that the program has freed is not its any more, although a stream may
 * still use it. */
static void end_pending(const struct frag_device_trace *d, struct blocks *b)
{
    for (uint64_t i = 0; i < b->events; i++)
        if (d->op[i] == FRAG_FREE_REQUESTED && b->lives[b->of[i]].free > i)
            b->lives[b->of[i]].free = i;
}

/* The number of places before the event or at it. */
static uint64_t places_until(const struct windows *w, uint64_t event)
{
    uint64_t n = 0;

    while (n < w->count && w->at[n].event <= event)
        n++;
    return n;
}

static void set_key(const struct hunt *h, struct crossing *c)
{
    const struct frag_device_trace *d = h->d;
    const struct frag_frame *site =
        d->stack ? site_of(h->t, d->stack[c->alloc]) : NULL;

    if (site) {
        c->key[0] = (uint64_t)site->file + 1;
        c->key[1] = site->function;
        c->key[2] = site->line;
    } else {
        c->key[1] = c->bytes;
        c->key[2] = d->stream[c->alloc];
    }
}

static enum frag_err list_crossings(struct hunt *h, const struct blocks *b)
{
    for (uint64_t k = 0; k < b->count; k++) {
        struct crossing c = {
            .first = places_until(h->w, b->lives[k].alloc),
            .last = places_until(h->w, b->lives[k].free) - 1,
            .alloc = b->lives[k].alloc,
            .bytes = h->d->bytes[b->lives[k].alloc],
        };

        if (c.first > c.last || c.last == UINT64_MAX)
            continue;
        set_key(h, &c);
        if (!GROW(h->items, h->room, h->count + 1))
            return frag_no_memory(h->e, "the blocks that outlive a step");
        h->items[h->count++] = c;
    }
    return FRAG_OK;
}

/* ---- a group ---- */

static int by_key(const void *a, const void *b)
{
    const struct crossing *x = a, *y = b;
    const int order = memcmp(x->key, y->key, sizeof(x->key));

    return order ? order : x->alloc < y->alloc ? -1 : x->alloc > y->alloc;
}

/* Whether the block is one of those that grow: one that is replaced is live at
 * one place, one that is kept at two or more. */
static bool counts(const struct crossing *c, bool replaced)
{
    return replaced || c->last > c->first;
}

/* The live bytes at each place. */
static void sum_up(const struct crossing *c, uint64_t n, bool replaced,
                   frag_size *values)
{
    memset(values, 0, (WINDOWS_MOST + 1) * sizeof(*values));
    for (uint64_t i = 0; i < n; i++)
        for (uint64_t k = c[i].first; counts(&c[i], replaced) && k <= c[i].last;
             k++)
            values[k] += c[i].bytes;
}

/* Whether larger blocks replace the kept ones. */
static bool are_freed(const struct hunt *h, const struct crossing *c,
                      uint64_t n)
{
    const uint64_t known = windows_known(h->w);
    double made = 0, freed = 0;

    for (uint64_t i = 0; i < n; i++)
        if (c[i].first >= GROWTH_SETUP && counts(&c[i], false)) {
            made += (double)c[i].bytes;
            freed += c[i].last + 1 < known ? (double)c[i].bytes : 0;
        }
    return freed > most_freed * made;
}

/* Whether the work itself needs more and more, and a block that each step hands
 * over to the next one grows with it. */
static bool grows_with_work(const struct hunt *h, const struct leak *leak)
{
    frag_size work[WINDOWS_MOST + 1];
    const uint64_t from = h->w->from, n = windows_known(h->w) - from;
    struct growth growth;

    for (uint64_t k = 0; k < n; k++)
        work[k] = h->w->at[from + k].peak - h->w->at[from + k].live;
    growth = growth_judge(work, n, 0);
    return growth.grows && growth.slope > most_work * leak->growth.slope;
}

/* Judges what is kept, or else all that the group holds, from a place on. */
static bool grows_from(const struct hunt *h, const struct crossing *c,
                       uint64_t n, uint64_t from, struct leak *leak)
{
    leak->from = from;
    leak->replaced = false;
    leak->value_count = windows_known(h->w);
    sum_up(c, n, false, leak->values);
    leak->growth = growth_judge(leak->values, leak->value_count, from);
    if (leak->growth.grows && !are_freed(h, c, n))
        return true;
    leak->replaced = true;
    leak->value_count += h->w->by_steps;
    sum_up(c, n, true, leak->values);
    leak->growth = growth_judge(leak->values, leak->value_count, from);
    return leak->growth.grows && !grows_with_work(h, leak);
}

static bool grows(const struct hunt *h, const struct crossing *c, uint64_t n,
                  struct leak *leak)
{
    return grows_from(h, c, n, h->w->from, leak) ||
           (h->w->count >= WINDOWS_MOST &&
            grows_from(h, c, n, 3 * windows_known(h->w) / 4, leak));
}

/* Sets the sizes and the site, by the examined blocks, and counts those that
 * are live at the last place. The blocks of the setup are none of the leak. */
static void describe(const struct hunt *h, const struct crossing *c, uint64_t n,
                     struct leak *leak)
{
    leak->first = c->alloc;
    leak->least = UINT64_MAX;
    for (uint64_t i = 0; i < n; i++) {
        if (!c[i].first || !counts(&c[i], leak->replaced))
            continue;
        if (c[i].last + 1 == h->w->count) {
            leak->blocks++;
            leak->held += c[i].bytes;
        }
        if (c[i].first < leak->from)
            continue;
        leak->stack = h->d->stack ? h->d->stack[c[i].alloc] : 0;
        leak->stream = h->d->stream[c[i].alloc];
        leak->least = c[i].bytes < leak->least ? c[i].bytes : leak->least;
        leak->most = c[i].bytes > leak->most ? c[i].bytes : leak->most;
    }
}

/* ---- what stands against a leak ---- */

/* Whether memory piles up, rather than come and go, in the examined windows. */
static bool piles_up(const struct hunt *h, uint64_t from)
{
    const uint64_t last = windows_known(h->w) - 1;
    const double live = (double)h->w->at[last].live,
                 before = (double)h->w->at[from].live;
    double freed = before - live;

    for (uint64_t i = h->w->at[from].event; i < h->w->at[last].event; i++)
        freed += (double)h->d->bytes[i]; /* of an ALLOC */
    return freed < least_freed * (live - before);
}

/* How the program comes back to the line of the group: for a block that is
 * replaced, each of its ALLOCs; else each block that is kept. */
static struct step_calls calls_of(const struct hunt *h,
                                  const struct crossing *c, uint64_t n,
                                  const struct leak *leak, uint64_t from)
{
    const struct frag_device_trace *d = h->d;
    struct step_calls calls = {.trace = h->t, .device = d};

    for (uint64_t i = 0; !leak->replaced && i < n; i++)
        if (c[i].first > from && counts(&c[i], false))
            calls_next(&calls, c[i].alloc);
    for (uint64_t i = leak->first; leak->replaced && i < h->end; i++)
        if (d->op[i] == FRAG_ALLOC && leak->stack && d->stack[i] == leak->stack)
            calls_next(&calls, i);
    return calls;
}

/* The rounds of the program's own loop, after each of which the group has grown
 * by the like: a leak if nothing else grows. The blocks of one line that loads
 * a model differ, and what is replaced by a module is the cache of a
 * generation.
 */
static uint64_t rounds_of(const struct step_calls *all, const struct leak *leak)
{
    const bool alike = leak->replaced ? !all->inside && leak->held >= FRAG_MIB
                                      : leak->least == leak->most;

    return alike ? all->rounds : 0;
}

static enum leaks_reason reason_of(const struct hunt *h,
                                   const struct crossing *c, uint64_t n,
                                   struct leak *leak)
{
    struct step_calls all, calls;
    bool piles;

    if (leak->growth.slows)
        return LEAKS_SLOWS;
    if (h->w->by_steps)
        return LEAKS_SURE;
    if (leak->from != h->w->from)
        return leak->replaced ? LEAKS_REPLACED : LEAKS_LATE;
    all = calls_of(h, c, n, leak, 0);
    leak->rounds = rounds_of(&all, leak);
    if (leak->replaced)
        return LEAKS_REPLACED;
    piles = piles_up(h, leak->from);
    if (all.trained >= LEAST_ROUNDS || (piles && all.worked >= LEAST_ROUNDS))
        return LEAKS_SURE;
    calls = calls_of(h, c, n, leak, leak->from);
    return piles                   ? LEAKS_PILES_UP
           : calls.passed < 2      ? LEAKS_NO_STACKS
           : calls_are_one(&calls) ? LEAKS_ONE_CALL
                                   : LEAKS_SURE;
}

/* ---- all groups ---- */

static enum frag_err judge_group(struct hunt *h, struct crossing *c, uint64_t n)
{
    struct leaks *out = h->out;
    struct leak leak = {.reason = LEAKS_SURE};

    if (!grows(h, c, n, &leak))
        return FRAG_OK;
    for (uint64_t i = 0; i < n; i++)
        c[i].found = true;
    describe(h, c, n, &leak);
    leak.reason = reason_of(h, c, n, &leak);
    if (!GROW(out->items, out->room, out->count + 1))
        return frag_no_memory(h->e, "the leaks");
    out->items[out->count++] = leak;
    return FRAG_OK;
}

static enum frag_err judge_groups(struct hunt *h)
{
    if (h->count)
        qsort(h->items, h->count, sizeof(*h->items), by_key);
    for (uint64_t i = 0, n; i < h->count; i += n) {
        n = 1;
        while (i + n < h->count && !memcmp(h->items[i].key, h->items[i + n].key,
                                           sizeof(h->items->key)))
            n++;
        FRAG_TRY(judge_group(h, &h->items[i], n));
    }
    return FRAG_OK;
}

/* Joins the blocks without stacks whose groups do not grow: their sizes may
 * vary. The blocks with stacks have been judged. */
static void join_sizes(struct hunt *h)
{
    uint64_t left = 0;

    for (uint64_t i = 0; i < h->count; i++)
        if (!h->items[i].found && !h->items[i].key[0]) {
            h->items[left] = h->items[i];
            h->items[left++].key[1] = 0;
        }
    h->count = left;
}

/* ---- the verdict ---- */

static uint64_t least_of(const frag_size *values, uint64_t from, uint64_t to)
{
    uint64_t least = from;

    for (uint64_t k = from; k < to; k++)
        least = values[k] < values[least] ? k : least;
    return least;
}

/* Whether what the program keeps rises as the leaks do, from where it keeps
 * least in the first third of the examined windows to where it does in the last
 * third. Blocks that move from one site to another are no leak. */
static bool is_shown(const struct leaks *l, const frag_size *kept)
{
    const uint64_t known = windows_known(&l->windows);
    const uint64_t third = (known - l->from) / 3;
    const uint64_t a = least_of(kept, l->from, l->from + third);
    const uint64_t b = least_of(kept, known - third, known);
    double shown = (double)kept[b] - (double)kept[a], grown = 0;

    for (uint64_t i = 0; i < l->count; i++) {
        const frag_size *values = l->items[i].values;
        const double more = (double)values[b] - (double)values[a];

        grown += more;
        shown += l->items[i].replaced ? more : 0;
    }
    return shown >= least_shown * grown;
}

/* Drops the groups that may be innocent if one surely leaks, and all if what
 * the program keeps does not rise. */
static void weigh(struct leaks *l, const frag_size *kept)
{
    uint64_t sure = 0;

    if (l->count == 1 && l->items[0].rounds >= LEAST_ROUNDS)
        l->items[0].reason = LEAKS_SURE;
    for (uint64_t i = 0; i < l->count; i++)
        if (l->items[i].reason == LEAKS_SURE)
            l->items[sure++] = l->items[i];
    l->count = sure ? sure : l->count;
    for (uint64_t i = 0; i < l->count; i++)
        l->from = !i || l->items[i].from < l->from ? l->items[i].from : l->from;
    if (l->count && !is_shown(l, kept))
        l->count = 0;
    l->verdict = !l->count ? LEAKS_NONE : sure ? LEAKS_FOUND : LEAKS_UNKNOWN;
}

static int by_slope(const void *a, const void *b)
{
    const struct leak *x = a, *y = b;

    if (x->growth.slope != y->growth.slope)
        return x->growth.slope > y->growth.slope ? -1 : 1;
    return x->first > y->first ? -1 : x->first < y->first;
}

/* A rate that a size can state, whatever sizes a damaged trace has. */
static double stated(double rate)
{
    return fmin(rate, 0x1p62);
}

static void add_up(struct leaks *l)
{
    const struct windows *w = &l->windows;

    if (l->count)
        qsort(l->items, l->count, sizeof(*l->items), by_slope);
    for (uint64_t i = 0; i < l->count; i++) {
        struct leak *leak = &l->items[i];

        leak->rate = stated(
            leak->growth.slope * (double)leak->growth.steps /
            (w->at[leak->value_count - 1].units - w->at[leak->from].units));
        l->rate = stated(l->rate + leak->rate);
        l->held += leak->held;
    }
    for (uint64_t k = l->from; k < w->count; k++)
        l->peak = w->at[k].peak > l->peak ? w->at[k].peak : l->peak;
    l->reason = l->verdict != LEAKS_UNKNOWN ? LEAKS_SURE
                : l->count                  ? l->items[0].reason
                : w->steps.mark             ? LEAKS_FEW
                                            : LEAKS_UNMARKED;
}

static void time_units(const struct frag_device_trace *d, struct leaks *l)
{
    const struct windows *w = &l->windows;
    const uint64_t last = w->count - 1;

    if (d->time)
        l->seconds_per_unit = (double)(d->time[w->at[last].event - 1] -
                                       d->time[w->at[l->from].event]) *
                              1e-9 / (w->at[last].units - w->at[l->from].units);
}

static enum frag_err examine(struct hunt *h, struct blocks *b)
{
    frag_size kept[WINDOWS_MOST + 1];
    struct leaks *l = h->out;

    end_pending(h->d, b);
    FRAG_TRY(list_crossings(h, b));
    sum_up(h->items, h->count, false, kept);
    FRAG_TRY(judge_groups(h));
    join_sizes(h);
    FRAG_TRY(judge_groups(h));
    l->from = h->w->from;
    weigh(l, kept);
    if (!l->count && !h->w->repeats)
        l->verdict = LEAKS_UNKNOWN;
    add_up(l);
    time_units(h->d, l);
    return FRAG_OK;
}

enum frag_err leaks_find(const struct frag_trace *t,
                         const struct frag_device_trace *d, uint64_t end,
                         const char *mark, struct leaks *out,
                         struct frag_error *e)
{
    struct leaks l = {.verdict = LEAKS_UNKNOWN,
                      .reason = LEAKS_SHORT,
                      .seconds_per_unit = NAN};
    struct hunt h = {
        .t = t, .d = d, .out = &l, .w = &l.windows, .end = end, .e = e};
    struct blocks blocks;
    enum frag_err err;

    FRAG_TRY(blocks_open(d, end, &blocks, e));
    err = windows_open(t, d, &blocks, mark, &l.windows, e);
    if (err == FRAG_OK && l.windows.count)
        err = examine(&h, &blocks);
    blocks_close(&blocks);
    free(h.items);
    if (err == FRAG_OK)
        *out = l;
    else
        leaks_close(&l);
    return err;
}

void leaks_close(struct leaks *l)
{
    windows_close(&l->windows);
    free(l->items);
    *l = (struct leaks){0};
}

uint64_t leaks_units_left(const struct leaks *l, frag_size used,
                          frag_size capacity)
{
    if (l->verdict != LEAKS_FOUND)
        return UINT64_MAX;
    if (used >= capacity)
        return 0;
    return (uint64_t)fmin((double)(capacity - used) / l->rate, 0x1p63);
}
