/* step_notes.c - the sentences about how far a recording reaches. */
#include "traces/steps/step_notes.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Peaks of steps are equal if they differ by less: relative. */
static const double same_peak = 0.01;

struct notes {
    struct frag_trace *trace;
    uint32_t device;
    struct frag_error *error;
};

static enum frag_err add(const struct notes *n, const char *format, ...)
    FRAG_PRINTF(2, 3);

/* Adds a sentence, after "device N: ". */
static enum frag_err add(const struct notes *n, const char *format, ...)
{
    char text[512];
    size_t used = (size_t)snprintf(text, sizeof(text),
                                   "%s: ", FRAG_DEVICE_NAME(n->device));
    va_list args;

    va_start(args, format);
    vsnprintf(text + used, sizeof(text) - used, format, args);
    va_end(args);
    return frag_trace_note(n->trace, text, n->error);
}

static enum frag_err note_death(const struct notes *n,
                                const struct frag_completion *c)
{
    char size[FRAG_SIZE_TEXT];

    frag_size_format(c->request, size);
    if (!c->steps)
        return add(n,
                   "the job died at event %" PRIu64
                   ", when it asked for %s, before a step was complete: what a "
                   "step needs is not known, so nothing that is said about "
                   "this recording is a promise for the job",
                   c->event, size);
    return add(n,
               "the job died at event %" PRIu64
               ", when it asked for %s, in the "
               "step after %" PRIu64 " complete step%s (found by %s%s)",
               c->event, size, c->steps, c->steps == 1 ? "" : "s",
               c->mark ? "the marks " : "the period of the events",
               c->mark ? c->mark : "");
}

static enum frag_err note_added(const struct notes *n,
                                const struct frag_completion *c)
{
    if (c->reach == FRAG_REACH_CUT)
        return add(n, "the trace ends where the job died: a setting that "
                      "survives it may fail in the next moment");
    return add(
        n,
        "the trace was completed: the step in which the job died %s, and "
        "%" PRIu64 " steps like the complete ones follow",
        c->finished ? "was finished like a complete one"
                    : "is unlike the complete ones and ends where the job died",
        c->added_steps);
}

static enum frag_err note_peaks(const struct notes *n,
                                const struct frag_completion *c)
{
    const frag_size most =
        c->finished_peak > c->most_peak ? c->finished_peak : c->most_peak;
    char low[FRAG_SIZE_TEXT], high[FRAG_SIZE_TEXT];

    frag_size_format(c->least_peak, low);
    frag_size_format(most, high);
    if (c->steps == 1)
        return add(n, "only one step was complete: whether steps differ, and "
                      "whether their memory grows, is not known");
    if ((double)(most - c->least_peak) < same_peak * (double)most)
        return add(n, "every step asks for %s at its peak", high);
    return add(n, "steps ask for %s to %s at their peaks", low, high);
}

/* The requests that further steps may make. */
static enum frag_err note_spread(const struct notes *n,
                                 const struct frag_completion *c)
{
    char size[FRAG_SIZE_TEXT];

    if (c->reach != FRAG_REACH_COMPLETED || c->steps == 1)
        return FRAG_OK;
    if (c->untold)
        return add(n, "what the steps that follow ask for is not known: %s",
                   frag_untold_words[c->untold]);
    frag_size_format((frag_size)(c->spread * (double)c->peak), size);
    return add(n,
               "with a probability of %.0f %% the steps that follow ask for "
               "at most %s",
               100 * FRAG_SPREAD_LEVEL, size);
}

static enum frag_err note_growth(const struct notes *n,
                                 const struct frag_completion *c)
{
    char size[FRAG_SIZE_TEXT];

    if (!c->mark || !spread_grows(c))
        return FRAG_OK; /* a period of the events may be the layers of a pass */
    frag_size_format((frag_size)c->growth, size);
    return add(n,
               "live memory grows by %s a step, over %" PRIu64
               " steps: `fragsim leaks' says whether that is a leak",
               size, c->steps);
}

enum frag_err completion_note(struct frag_trace *t,
                              const struct frag_device_trace *d,
                              const struct frag_completion *c,
                              struct frag_error *e)
{
    const struct notes n = {t, d->device, e};

    FRAG_TRY(note_death(&n, c));
    if (!c->steps)
        return FRAG_OK;
    FRAG_TRY(note_added(&n, c));
    FRAG_TRY(note_peaks(&n, c));
    FRAG_TRY(note_spread(&n, c));
    return note_growth(&n, c);
}
