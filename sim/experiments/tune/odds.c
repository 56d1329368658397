/* odds.c - the states of a job, and the jobs that were counted in them. */
#include "sim/experiments/tune/odds.h"

const char *const odds_words[ODDS_VERDICTS] = {
    [ODDS_NOT] = "not enough",
    [ODDS_TRY] = "worth trying",
    [ODDS_ENOUGH] = "enough",
};

/* What is known of a job that died, with some settings. */
struct known {
    const struct frag_completion *completion;
    bool serves;
    double room; /* the bound / the need; 0: the need is not known */
};

static bool fails(const struct known *k)
{
    return !k->serves;
}

static bool needs_more(const struct known *k)
{
    return k->room > 0 && k->room < 1;
}

/* Its steps tell how much further ones need, and the bound is that much. */
static bool has_spread(const struct known *k)
{
    return k->completion->spread > 0 && k->room >= k->completion->spread;
}

static bool is_likely(const struct known *k)
{
    return k->completion->spread > 0 ||
           k->room >= (k->completion->steps ? 1.05 : 1.1);
}

static bool is_any(const struct known *k)
{
    (void)k;
    return true;
}

/* The first row that holds is the state. The counts are those of
 * paper/pages/dead.md: recorded jobs that died, and recordings that were cut
 * where they would have died, each death once; the setting is the one with most
 * room, and the complete run is known. */
static const struct state {
    bool (*holds)(const struct known *k);
    enum odds_verdict verdict;
    unsigned lived, of;
} states[] = {
    {fails, ODDS_NOT, 1, 200},       {needs_more, ODDS_NOT, 17, 78},
    {has_spread, ODDS_ENOUGH, 5, 5}, {is_likely, ODDS_TRY, 52, 72},
    {is_any, ODDS_TRY, 34, 111},
};

struct odds odds_of(const struct frag_completion *c, bool serves,
                    frag_size need, frag_size bound)
{
    const struct known known = {
        .completion = c,
        .serves = serves,
        .room = need ? (double)bound / (double)need : 0,
    };
    const struct state *s = states;

    if (!c->reach || bound == FRAG_UNLIMITED)
        return (struct odds){.verdict = serves ? ODDS_ENOUGH : ODDS_NOT};
    while (!s->holds(&known))
        s++;
    return (struct odds){s->verdict, s->lived, s->of};
}

bool odds_less(const struct odds *a, const struct odds *b)
{
    return a->verdict != b->verdict ? a->verdict < b->verdict
                                    : a->lived * b->of < b->lived * a->of;
}
