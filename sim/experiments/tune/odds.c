/* odds.c - the states of a job, and the jobs that were counted in them. */
#include "sim/experiments/tune/odds.h"

const char *const odds_words[ODDS_VERDICTS] = {
    [ODDS_NOT] = "not enough",
    [ODDS_TRY] = "worth trying",
    [ODDS_ENOUGH] = "enough",
};

/* How many times the need the bound is; 0: the need is not known. */
static double room_of(const struct odds_question *q)
{
    return q->need ? (double)q->bound / (double)q->need : 0;
}

/* A request fails, as others did after which the job went on. */
static bool may_go_on(const struct odds_question *q)
{
    return !q->serves && q->went_on;
}

static bool fails(const struct odds_question *q)
{
    return !q->serves;
}

static bool needs_more(const struct odds_question *q)
{
    return room_of(q) > 0 && room_of(q) < 1;
}

/* Its steps tell how much further ones need, and the bound is that much. */
static bool has_spread(const struct odds_question *q)
{
    return q->completion->spread > 0 && room_of(q) >= q->completion->spread;
}

static bool is_likely(const struct odds_question *q)
{
    return q->completion->spread > 0 ||
           room_of(q) >= (q->completion->steps ? 1.05 : 1.1);
}

static bool is_any(const struct odds_question *q)
{
    (void)q;
    return true;
}

/* The first row that holds is the state. The counts are those of
 * paper/pages/dead.md: recorded jobs that died, and recordings that were cut
 * where they would have died, each death once; the setting is the one with most
 * room, and the complete run is known. The first row's are from jobs that were
 * recorded after the others were counted. */
static const struct state {
    bool (*holds)(const struct odds_question *q);
    enum odds_verdict verdict;
    unsigned lived, of;
} states[] = {
    {may_go_on, ODDS_TRY, 8, 17},   {fails, ODDS_NOT, 1, 200},
    {needs_more, ODDS_NOT, 17, 78}, {has_spread, ODDS_ENOUGH, 5, 5},
    {is_likely, ODDS_TRY, 52, 72},  {is_any, ODDS_TRY, 34, 111},
};

struct odds odds_of(const struct odds_question *q)
{
    const struct state *s = states;

    if (!q->completion->reach || q->bound == FRAG_UNLIMITED)
        return (struct odds){.verdict = q->serves ? ODDS_ENOUGH : ODDS_NOT};
    while (!s->holds(q))
        s++;
    return (struct odds){s->verdict, s->lived, s->of};
}

bool odds_less(const struct odds *a, const struct odds *b)
{
    return a->verdict != b->verdict ? a->verdict < b->verdict
                                    : a->lived * b->of < b->lived * a->of;
}
