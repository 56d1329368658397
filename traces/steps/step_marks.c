/* step_marks.c - boundaries of steps by the marks of a recording. */
#include <ctype.h>
#include <string.h>

#include "traces/steps/step_parts.h"

/* The length of the name without a trailing number: the names of a profiler's
 * steps are ProfilerStep#0, ProfilerStep#1, ... */
static size_t stem(const char *name)
{
    size_t n = strlen(name);

    while (n && isdigit((unsigned char)name[n - 1]))
        n--;
    return n;
}

static bool is_same(const char *a, const char *b)
{
    size_t n = stem(a);

    return n == stem(b) && memcmp(a, b, n) == 0;
}

static struct bounds *candidate_of(struct search *s, const char *name)
{
    struct bounds *b;

    for (uint64_t i = 0; i < s->found.count; i++)
        if (is_same(s->found.items[i].mark, name))
            return &s->found.items[i];
    b = candidates_add(s);
    if (b) {
        b->source = FRAG_STEPS_MARKS;
        b->mark = name;
    }
    return b;
}

/* A step begins where a marked phase ends: after Optimizer.step the state that
 * an optimizer allocates in its first step is part of what came before. */
enum frag_err marks_candidates(struct search *s, const char *mark)
{
    const struct frag_device_trace *d = s->device;

    for (uint64_t i = 0; i < d->mark_count; i++) {
        const struct frag_mark *m = &d->marks[i];
        const char *name = s->trace->strings[m->name];
        struct bounds *b;

        if (m->kind != FRAG_MARK_END || m->event > s->blocks->events ||
            (mark && !is_same(mark, name)))
            continue;
        b = candidate_of(s, name);
        if (!b)
            return FRAG_NOMEM;
        if ((!b->count || b->at[b->count - 1] < m->event) &&
            !bounds_push(b, m->event))
            return FRAG_NOMEM;
    }
    return FRAG_OK;
}
