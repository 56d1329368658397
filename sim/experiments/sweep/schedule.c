/* schedule.c - chooses the next job of a thread of a sweep: the longest cells
 * first (Graham's rule of the longest processing time), so that the last cells
 * are short and no thread waits long for another. How long a job takes is
 * estimated from the jobs of its kind that have ended. It changes the order of
 * the work only, not the results. */
#include <math.h>
#include <stdlib.h>

#include "sim/experiments/sweep/budget.h"
#include "sim/experiments/sweep/parts.h"

/* -- paces --------------------------------------------------------------- */

static void pace_add(struct pace *pace, double seconds, double work)
{
    pace->seconds += seconds;
    pace->work += work;
}

/* The expected seconds of the work; `unknown` if no such job has ended. */
static double pace_expect(const struct pace *pace, double work, double unknown)
{
    return pace->work > 0 ? pace->seconds / pace->work * work : unknown;
}

/* -- the cells of a trace ------------------------------------------------ */

static bool is_to_do(const struct sweep_cell *c)
{
    return !c->offset && c->err == FRAG_OK;
}

bool schedule_prepare(struct sweep_trace *trace)
{
    const struct sweep_cell *cells = trace->cells;

    free(trace->groups);
    trace->group_count = 0;
    trace->groups = calloc(trace->count + 1, sizeof(*trace->groups));
    for (size_t i = 0; trace->groups && i < trace->count; i++) {
        if (!i || cells[i].policy != cells[i - 1].policy ||
            cells[i].device != cells[i - 1].device)
            trace->groups[trace->group_count++].next = i;
        trace->groups[trace->group_count - 1].end = i + 1;
    }
    return trace->groups != NULL;
}

/* The next cell of a group; NULL if there is none. */
static struct sweep_cell *next_cell(const struct sweep_trace *trace,
                                    struct cell_group *group)
{
    while (group->next < group->end && !is_to_do(&trace->cells[group->next]))
        group->next++;
    return group->next < group->end ? &trace->cells[group->next] : NULL;
}

bool schedule_is_over(struct sweep_trace *trace)
{
    if (trace->state != TRACE_OPEN || trace->running)
        return false;
    for (size_t i = 0; i < trace->group_count; i++)
        if (next_cell(trace, &trace->groups[i]))
            return false;
    return true;
}

/* -- choosing a job ------------------------------------------------------ */

/* The jobs that could start now. */
struct view {
    struct job job;   /* the longest cell; JOB_NONE if none can start */
    double seconds;   /* of this cell; infinite if its policy is not known */
    uint64_t started; /* cells of its policy */
    double ready;     /* seconds of all cells of open traces that can start */
    struct sweep_trace *waiting; /* the first trace to be opened */
    bool open;                   /* a trace is open or is being opened */
    bool busy;                   /* some jobs must wait for running jobs */
};

/* Whether the budget has room for the cost. A job that runs alone always has
 * room, so that the sweep does not stop. */
static bool fits(const struct sweep *s, frag_size cost, bool alone)
{
    return alone ||
           (s->used <= s->spec->memory && cost <= s->spec->memory - s->used);
}

static void look_at_group(const struct sweep *s, struct sweep_trace *trace,
                          struct cell_group *group, struct view *v)
{
    struct sweep_cell *c = next_cell(trace, group);
    const struct frag_device_trace *d;
    const struct pace *pace;
    frag_size cost;
    double seconds;

    if (!c)
        return;
    d = &trace->opened->devices[c->device];
    cost = budget_of_cell(d, s->spec->grid->policies[c->policy].policy);
    if (!fits(s, cost, !s->running)) {
        v->busy = true;
        return;
    }
    pace = &s->paces[c->policy];
    seconds = pace_expect(pace, (double)d->count, INFINITY);
    v->ready += seconds * (double)(group->end - group->next);
    if (v->job.what == JOB_NONE || seconds > v->seconds ||
        (seconds >= v->seconds && pace->started < v->started)) {
        v->job = (struct job){JOB_RUN, trace, c, group, cost};
        v->seconds = seconds;
        v->started = pace->started;
    }
}

static struct view look(struct sweep *s)
{
    struct view v = {.job = {.what = JOB_NONE}};

    for (size_t i = 0; i < s->trace_count && !s->stop; i++) {
        struct sweep_trace *trace = &s->traces[i];

        v.open = v.open || trace->state == TRACE_OPEN ||
                 trace->state == TRACE_OPENING;
        v.busy = v.busy || trace->state == TRACE_OPENING;
        if (trace->state == TRACE_WAITING && !v.waiting)
            v.waiting = trace;
        for (size_t k = 0; trace->state == TRACE_OPEN && k < trace->group_count;
             k++)
            look_at_group(s, trace, &trace->groups[k], &v);
    }
    return v;
}

/* Whether the other threads would run out of cells while one opens the trace.
 */
static bool must_open(const struct sweep *s, const struct view *v)
{
    const double work = (double)v->waiting->opening;

    return v->job.what == JOB_NONE ||
           v->ready <
               pace_expect(&s->opening, work, 0) * ((double)s->threads - 1);
}

struct job schedule_choose(struct sweep *s)
{
    struct view v = look(s);

    if (v.waiting && must_open(s, &v)) {
        if (fits(s, v.waiting->opening, !v.open))
            return (struct job){JOB_OPEN, v.waiting, NULL, NULL,
                                v.waiting->opening};
        v.busy = true;
    }
    if (v.job.what == JOB_NONE && v.busy)
        v.job.what = JOB_WAIT;
    return v.job;
}

/* -- before and after a job ---------------------------------------------- */

void schedule_start(struct sweep *s, const struct job *job)
{
    s->used += job->cost;
    if (job->what == JOB_OPEN)
        job->trace->state = TRACE_OPENING;
    if (job->what == JOB_RUN) {
        s->paces[job->cell->policy].started++;
        job->group->next++;
        job->trace->running++;
        s->running++;
    }
}

void schedule_end(struct sweep *s, const struct job *job, double seconds)
{
    s->used -= job->cost;
    if (job->what == JOB_OPEN) {
        pace_add(&s->opening, seconds, (double)job->cost);
        return;
    }
    s->running--;
    job->trace->running--;
    pace_add(&s->paces[job->cell->policy], seconds,
             (double)job->trace->opened->devices[job->cell->device].count);
}
