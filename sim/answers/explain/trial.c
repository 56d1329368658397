/* trial.c - replays one change, judges it, and chooses the advice. */
#include "sim/answers/explain/explain_parts.h"
#include "traces/grow.h"
#include "traces/torch_sizes.h"

const char *const explain_result_words[EXPLAIN_RESULTS] = {
    [EXPLAIN_SURVIVES] = "survives",
    [EXPLAIN_SERVES] = "serves what was recorded",
    [EXPLAIN_FAILS] = "fails",
    [EXPLAIN_OPEN] = "not known",
};

void explain_add_unknown(struct explain *x, const char *text)
{
    for (size_t i = 0; i < x->unknown_count; i++)
        if (x->unknown[i] == text)
            return;
    if (x->unknown_count < EXPLAIN_UNKNOWN)
        x->unknown[x->unknown_count++] = text;
}

struct attempt trial_attempt(const struct trial *t)
{
    struct attempt a = *t->base;

    a.anchored = false;
    a.whole = true;
    a.device = &t->x->future->devices[0];
    return a;
}

/* Whether the requests of the changed program are predicted. */
static bool predicts(const struct explain_change *c)
{
    return c->kind == EXPLAIN_BATCH || c->kind == EXPLAIN_RECOMPUTE;
}

static enum frag_err run_at(const struct trial *t, const struct attempt *a,
                            frag_size limit, struct explain_change *c)
{
    const struct explain *x = t->x;
    struct attempt at = *a;
    struct outcome out;

    at.bound.bytes = limit;
    at.stops = t->ooms == 1; /* no failure is one that the program survived */
    FRAG_TRY(attempt_run(&at, &out, NULL, t->e));
    c->served = out.served && out.ooms < t->ooms;
    c->fails_at = c->served                ? out.later_oom
                  : out.served || at.stops ? out.first_oom
                                           : x->event;
    c->result = c->fails_at != UINT64_MAX            ? EXPLAIN_FAILS
                : x->completion.reach || predicts(c) ? EXPLAIN_SERVES
                                                     : EXPLAIN_SURVIVES;
    c->peak = out.peak;
    c->limit = limit;
    return FRAG_OK;
}

/* Judges an attempt at the limit; of a limit that is known only as an interval,
 * at both ends. */
static enum frag_err judge(const struct trial *t, const struct attempt *a,
                           struct explain_change *c)
{
    const struct explain *x = t->x;
    struct explain_change most = *c;

    FRAG_TRY(run_at(t, a, x->limit_least, c));
    if (c->result != EXPLAIN_FAILS || x->limit_least == x->limit_most)
        return FRAG_OK;
    FRAG_TRY(run_at(t, a, x->limit_most, &most));
    *c = most;
    if (c->result == EXPLAIN_FAILS)
        return FRAG_OK;
    c->result = EXPLAIN_OPEN;
    explain_add_unknown(t->x, "the limit lies in an interval: where the result "
                              "is not known, the change fails at its lower end "
                              "and serves at its upper end");
    return FRAG_OK;
}

enum frag_err trial_fails(const struct trial *t, const struct attempt *a,
                          frag_size limit, bool *fails)
{
    struct explain_change c = {.kind = EXPLAIN_CAPACITY};

    FRAG_TRY(run_at(t, a, limit, &c));
    *fails = c.result == EXPLAIN_FAILS;
    return FRAG_OK;
}

enum frag_err trial_unlimited(const struct trial *t, const struct attempt *a,
                              struct outcome *out)
{
    struct attempt at = *a;

    at.bound = FRAG_NO_BOUND;
    return attempt_run(&at, out, NULL, t->e);
}

enum frag_err trial_add(struct trial *t, const struct attempt *a,
                        const struct explain_change *change)
{
    struct explain_change c = *change;
    struct outcome least = {.requested = t->requested};

    if (change->limit)
        FRAG_TRY(run_at(t, a, change->limit, &c));
    else
        FRAG_TRY(judge(t, a, &c));
    if (a->scales || (a->edit_count && c.kind != EXPLAIN_EMPTY_CACHE))
        FRAG_TRY(trial_unlimited(t, a, &least));
    c.saved =
        least.requested < t->requested ? t->requested - least.requested : 0;
    return trial_know(t, &c);
}

enum frag_err trial_know(struct trial *t, const struct explain_change *change)
{
    struct explain *x = t->x;

    if (!GROW(x->changes, t->room, x->change_count + 1))
        return frag_no_memory(t->e, "the changes");
    x->changes[x->change_count] = *change;
    x->changes[x->change_count++].predicted =
        change->result == EXPLAIN_FAILS && x->completion.reach &&
        change->fails_at > x->completion.event;
    return FRAG_OK;
}

bool trial_serves(const struct explain_change *c)
{
    return c->result == EXPLAIN_SURVIVES || c->result == EXPLAIN_SERVES;
}

/* ---- the advice ---- */

/* Of the changes of the program, the first kind of this order that serves wins:
 * a mistake that is mended, calls, the program. Of memory, fewer bytes win. */
static const unsigned ranks[EXPLAIN_CHANGE_KINDS] = {
    [EXPLAIN_STEP_FREE] = 1, [EXPLAIN_EMPTY_CACHE] = 2,
    [EXPLAIN_ONE_SPACE] = 3, [EXPLAIN_BATCH] = 4,
    [EXPLAIN_RECOMPUTE] = 5, [EXPLAIN_EARLY_FREE] = 6,
    [EXPLAIN_FREE] = 7,
};

/* Against demand the calls come last: what fills the limit to the last percent
 * is no remedy. */
static unsigned rank_of(const struct explain *x, enum explain_change_kind kind)
{
    const bool is_last =
        x->cause == EXPLAIN_DEMAND && kind == EXPLAIN_EMPTY_CACHE;

    return ranks[kind] + (is_last ? EXPLAIN_CHANGE_KINDS : 0);
}

/* What a job that died would have needed is not known: only less of it helps,
 * or the end of a leak. */
static bool is_advice(const struct explain *x, const struct explain_change *c)
{
    return ranks[c->kind] && trial_serves(c) &&
           (!x->completion.reach || c->kind == EXPLAIN_BATCH ||
            c->kind == EXPLAIN_RECOMPUTE || c->kind == EXPLAIN_STEP_FREE);
}

const struct explain_change *explain_program_advice(const struct explain *x)
{
    const struct explain_change *best = NULL;

    for (uint64_t i = 0; i < x->change_count; i++) {
        const struct explain_change *c = &x->changes[i];
        const unsigned rank = rank_of(x, c->kind);

        if (is_advice(x, c) &&
            (!best || rank < rank_of(x, best->kind) ||
             (rank == rank_of(x, best->kind) && c->bytes < best->bytes)))
            best = c;
    }
    return best;
}

const struct explain_change *explain_served_by(const struct explain *x,
                                               enum explain_change_kind kind)
{
    for (uint64_t i = 0; i < x->change_count; i++)
        if (x->changes[i].kind == kind && trial_serves(&x->changes[i]))
            return &x->changes[i];
    return NULL;
}
