/* filter.c - matches runs with names, patterns and capacities. */
#include "sim/cli/figures/filter.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "sim/cli/figures/ranking.h"
#include "sim/experiments/choices.h"
#include "traces/nearest.h"

/* -- names --------------------------------------------------------------- */

static const char *trace_of(const struct frag_loaded_run *r)
{
    return r->id.trace.name;
}

static const char *policy_of(const struct frag_loaded_run *r)
{
    return r->id.policy;
}

/* An option with names. */
struct names {
    const char *option;
    const struct texts *texts;
    const char *(*of)(const struct frag_loaded_run *r);
};

/* A name may contain the signs of a pattern: "[256:1,512:2]". Without its
 * folders it means the traces of all folders. */
static bool is_named(const struct names *n, const char *text,
                     const struct frag_loaded_run *r)
{
    const char *name = n->of(r), *slash = strrchr(name, '/');

    return !strcmp(text, name) || fnmatch(text, name, 0) == 0 ||
           (slash && !strcmp(text, slash + 1));
}

static bool matches(const struct names *n, const struct frag_loaded_run *r)
{
    for (size_t i = 0; i < n->texts->count; i++)
        if (is_named(n, n->texts->items[i], r))
            return true;
    return !n->texts->count;
}

static enum frag_err no_such_name(const struct selection *s,
                                  const struct names *n, const char *text,
                                  struct frag_error *e)
{
    struct nearest near = nearest_to(text);
    char hint[NEAREST_HINT];

    for (size_t i = 0; i < s->count; i++)
        nearest_try(&near, n->of(s->runs[i]));
    if (near.found)
        return frag_fail(e, FRAG_INVALID,
                         "%s: no run of the results has \"%s\"%s", n->option,
                         text, nearest_hint(&near, hint));
    return frag_fail(e, FRAG_INVALID,
                     "%s: no run of the results has \"%s\"; they have \"%s\", "
                     "for example",
                     n->option, text, n->of(s->runs[0]));
}

static enum frag_err check_names(const struct selection *s,
                                 const struct names *n, struct frag_error *e)
{
    for (size_t i = 0; i < n->texts->count; i++) {
        bool found = false;

        for (size_t k = 0; k < s->count && !found; k++)
            found = is_named(n, n->texts->items[i], s->runs[k]);
        if (!found)
            return no_such_name(s, n, n->texts->items[i], e);
    }
    return FRAG_OK;
}

/* -- bounds -------------------------------------------------------------- */

/* The runs in the order of the selection with their subjects, and the wanted
 * bounds. */
struct bounds {
    struct ranking ranking;
    struct bound_choice *list;
    size_t count;
};

static uint64_t thousandths(double x)
{
    return (uint64_t)(1000 * x + 0.5);
}

static bool has_bound(const struct bounds *c, const struct ranked_entry *entry)
{
    frag_size asked = c->ranking.subjects[entry->subject].asked;
    const struct frag_bound bound = entry->run->id.bound;

    for (size_t i = 0; i < c->count; i++) {
        const struct bound_choice *k = &c->list[i];
        bool is_share = k->kind == BOUND_SHARE && bound.kind == k->fixed.kind &&
                        bound.bytes != FRAG_UNLIMITED && asked;

        if (is_share
                ? thousandths((double)bound.bytes / (double)asked) ==
                      thousandths(k->share)
                : k->kind == BOUND_FIXED && !frag_bound_order(k->fixed, bound))
            return true;
    }
    return !c->count;
}

/* -- all ----------------------------------------------------------------- */

static int by_order(const void *left, const void *right)
{
    const struct ranked_entry *a = left, *b = right;

    return a->order < b->order ? -1 : 1;
}

static enum frag_err keep(const struct selection *s, const struct names *names,
                          const struct bounds *c, struct selection *out)
{
    for (size_t i = 0; i < s->count; i++)
        if (matches(&names[0], s->runs[i]) && matches(&names[1], s->runs[i]) &&
            has_bound(c, &c->ranking.entries[i]))
            FRAG_TRY(selection_add(out, s->runs[i]));
    return FRAG_OK;
}

static enum frag_err nothing_left(const struct selection *s,
                                  struct frag_error *e)
{
    const struct frag_loaded_run *r = s->runs[0];

    return frag_fail(e, FRAG_INVALID,
                     "no run has the wanted trace, policy and bound "
                     "together; the first of the %zu runs is %s with %s on %s",
                     s->count, r->id.trace.name, r->id.policy,
                     FRAG_SHOW_BOUND(r->id.bound));
}

static enum frag_err filter(const struct selection *s,
                            const struct names *names, const struct wanted *w,
                            struct selection *out, struct frag_error *e)
{
    struct bounds c = {.list = NULL};
    enum frag_err err;

    FRAG_TRY(ranking_make(s, &c.ranking));
    qsort(c.ranking.entries, c.ranking.run_count, sizeof(*c.ranking.entries),
          by_order);
    err = w->bounds[FRAG_BOUND_CAPACITY].count ||
                  w->bounds[FRAG_BOUND_LIMIT].count
              ? bound_choices_read(w->bounds, &c.list, &c.count, e)
              : FRAG_OK;
    FRAG_THEN(err, keep(s, names, &c, out));
    if (err == FRAG_OK && !out->count)
        err = nothing_left(s, e);
    free(c.list);
    ranking_free(&c.ranking);
    return err;
}

enum frag_err selection_filter(struct selection *s, const struct wanted *w,
                               struct frag_error *e)
{
    const struct names names[] = {{"--trace", &w->traces, trace_of},
                                  {"--policy", &w->policies, policy_of}};
    struct selection out = {0};
    enum frag_err err;

    FRAG_TRY(check_names(s, &names[0], e));
    FRAG_TRY(check_names(s, &names[1], e));
    err = filter(s, names, w, &out, e);
    if (err != FRAG_OK) {
        selection_free(&out);
        return err;
    }
    selection_free(s);
    *s = out;
    return FRAG_OK;
}
