/* windows.c - places of marks, and places where least is live. */
#include "sim/answers/steps/windows.h"

#include <math.h>
#include <string.h>

/* The names, without what follows, of marks that end a step. Others may lie
 * inside a step: one for each layer, say. */
static const char *const step_marks[] = {"Optimizer.", "ProfilerStep"};

static const double high = 0.25, low = 0.1; /* of the range of the live bytes */

/* ---- places ---- */

static bool are_steps(const struct frag_steps *s, const char *mark)
{
    if (s->source != FRAG_STEPS_MARKS)
        return false;
    for (size_t i = 0; i < sizeof(step_marks) / sizeof(*step_marks); i++)
        if (!strncmp(s->mark, step_marks[i], strlen(step_marks[i])))
            return true;
    return mark != NULL;
}

static void place_steps(struct windows *w)
{
    const struct frag_steps *s = &w->steps;
    const uint64_t n = s->count < WINDOWS_MOST ? s->count : WINDOWS_MOST;

    for (; w->count <= n; w->count++) {
        const uint64_t k = w->count * s->count / n;

        w->at[w->count].event =
            k < s->count ? s->items[k].from : s->items[k - 1].to;
        w->at[w->count].units = (double)k;
    }
}

/* The end of a program that frees all that it has is no window. */
static uint64_t last_alloc(const struct blocks *b)
{
    return b->count ? b->lives[b->count - 1].alloc + 1 : 0;
}

static void place_floors(const struct frag_device_trace *d,
                         const struct blocks *b, struct windows *w)
{
    const uint64_t end = last_alloc(b);
    const uint64_t from = d->initial < end ? d->initial : end;
    const uint64_t events = end - from;

    if (events < WINDOWS_LEAST_EVENTS)
        return;
    for (; w->count < WINDOWS_MOST; w->count++) {
        uint64_t i = from + w->count * events / WINDOWS_MOST, least = i;

        for (; i < from + (w->count + 1) * events / WINDOWS_MOST; i++)
            if (b->live[i] < b->live[least])
                least = i;
        w->at[w->count].event = least;
        w->at[w->count].units = (double)least / 1000;
    }
}

/* ---- what is live ---- */

static void measure(const struct blocks *b, struct windows *w)
{
    for (uint64_t k = 0; k < w->count; k++) {
        uint64_t i = w->at[k].event;
        const uint64_t end = k + 1 < w->count ? w->at[k + 1].event : i;

        w->at[k].live = b->live[i];
        for (; i <= end; i++)
            if (b->live[i] > w->at[k].peak)
                w->at[k].peak = b->live[i];
    }
}

static void count_returns(const struct blocks *b, struct windows *w)
{
    const uint64_t from = w->at[w->from].event, end = last_alloc(b);
    frag_size least = UINT64_MAX, most = 0;
    bool is_up = false;

    for (uint64_t i = from; i < end; i++) {
        least = b->live[i] < least ? b->live[i] : least;
        most = b->live[i] > most ? b->live[i] : most;
    }
    for (uint64_t i = from; i < end; i++) {
        const double above = (double)(b->live[i] - least);

        if (above > high * (double)(most - least))
            is_up = true;
        else if (is_up && above <= low * (double)(most - least)) {
            is_up = false;
            w->returns++;
        }
    }
}

enum frag_err windows_open(const struct frag_trace *t,
                           const struct frag_device_trace *d,
                           const struct blocks *blocks, const char *mark,
                           struct windows *out, struct frag_error *e)
{
    const uint64_t least = WINDOWS_LEAST_STEPS - 2;
    struct windows w = {.count = 0};
    bool marked;

    FRAG_TRY(frag_steps_find(t, d, blocks->events, mark, &w.steps, e));
    marked = are_steps(&w.steps, mark);
    if (!marked) {
        frag_steps_close(&w.steps);
        w.steps.likeness = NAN;
    }
    w.by_steps = marked && w.steps.count >= WINDOWS_LEAST_STEPS;
    if (w.by_steps)
        place_steps(&w);
    else
        place_floors(d, blocks, &w);
    if (w.count) {
        const uint64_t known = windows_known(&w), half = known / 2;

        w.from = known - half < least ? known - least : half;
        measure(blocks, &w);
        count_returns(blocks, &w);
        w.repeats = marked ? w.by_steps : w.returns >= WINDOWS_LEAST_RETURNS;
    }
    *out = w;
    return FRAG_OK;
}

void windows_close(struct windows *w)
{
    frag_steps_close(&w->steps);
}
