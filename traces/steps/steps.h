/* steps.h - finds the steps of a trace: the iterations of a training or serving
 * loop, which ask for memory in nearly the same way again and again.
 *
 * Two sources name the boundaries of steps. Marks of the recording
 * (Optimizer.step, ProfilerStep) are one. The other is the period of the events
 * themselves: a sequence of allocations and frees, written as the ages of the
 * freed blocks, does not depend on the shape of the input, so it recurs in each
 * step even if no size does. All candidates are scored by how alike consecutive
 * steps are and by the share of the trace that they cover; the best one wins,
 * and marks win against a period that is not clearly better.
 *
 * Measured on the 20 default recordings with the marks ignored: the period
 * alone finds the number of steps of the program, or one more or less, on 18;
 * on the other two (generate, rlhf) it finds the generated tokens.
 */
#ifndef FRAG_TRACES_STEPS_STEPS_H
#define FRAG_TRACES_STEPS_STEPS_H

#include "traces/trace.h"

FRAG_BEGIN_DECLS

enum frag_steps_source {
    FRAG_STEPS_NONE,   /* no boundaries were found */
    FRAG_STEPS_MARKS,  /* marks of the recording */
    FRAG_STEPS_PERIOD, /* the period of the events */
};

/* One complete step: the events from ... to - 1. */
struct frag_step {
    uint64_t from, to;
    frag_size live; /* bytes requested by the blocks that are live at `from` */
    frag_size peak; /* most bytes requested by live blocks within the step */
};

struct frag_steps {
    enum frag_steps_source source;
    const char *mark; /* name of the marks, borrowed from the trace; NULL */
    double likeness;  /* 0 to 1: the share of events that consecutive steps have
                         in common; NAN if there is nothing to compare */
    uint64_t end;     /* only events before this one were searched */
    uint64_t count;   /* of complete steps */
    struct frag_step *items; /* NULL if count is 0 */
    frag_size live_after;    /* live bytes after the last complete step */
};

/* Finds the steps among the events before `end`, which is at most the number of
 * events. `mark` is the name of the marks to use, without a trailing number;
 * NULL selects the best source. The events before the first boundary and after
 * the last one belong to no complete step. The caller closes *out.
 * INVALID if `mark` is given and the device has no such mark; NOMEM; on error
 * *out need not be closed. */
enum frag_err frag_steps_find(const struct frag_trace *t,
                              const struct frag_device_trace *d, uint64_t end,
                              const char *mark, struct frag_steps *out,
                              struct frag_error *e) FRAG_MUST_CHECK;
void frag_steps_close(struct frag_steps *s);

/* Live bytes at the beginning of step i, or after the last step if i is the
 * number of steps. */
static inline double frag_steps_live(const struct frag_steps *s, uint64_t i)
{
    return (double)(i < s->count ? s->items[i].live : s->live_after);
}

/* The growth of the live bytes a step: the median of the slopes between all
 * pairs of boundaries (Theil and Sen), which neither the first step, in which a
 * program sets itself up, nor a step that ends elsewhere can spoil. 0 if there
 * are fewer than two steps. NOMEM. */
enum frag_err frag_steps_growth(const struct frag_steps *s, int64_t *growth,
                                struct frag_error *e) FRAG_MUST_CHECK;

FRAG_END_DECLS

#endif
