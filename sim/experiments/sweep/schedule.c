/* schedule.c - chooses the next job of a thread of a sweep: at the end the
 * longest cells first (Graham's rule of the longest processing time), so that
 * the last cells are short and no thread waits long for another; before, the
 * cells in the order of the results, so that rows can be written early. How
 * long a job takes is estimated from the jobs of its kind that have ended. It
 * changes the order of the work only, not the results. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/experiments/sweep/budget.h"
#include "sim/experiments/sweep/parts.h"

/* -- the order of the traces --------------------------------------------- */

static int by_number(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

/* As the results: see frag_results_order. */
static int by_result(const void *a, const void *b)
{
    const struct sweep_trace *x = a, *y = b;
    const int name = strcmp(x->name, y->name), path = strcmp(x->path, y->path);

    return name ? name : path ? path : by_number(x->index, y->index);
}

/* Large files first, the largest of them before; then as the results. */
static int by_opening(const void *a, const void *b)
{
    const struct sweep_trace *x = a, *y = b;

    if (x->is_large != y->is_large)
        return x->is_large ? -1 : 1;
    if (x->is_large && x->file_bytes != y->file_bytes)
        return by_number(y->file_bytes, x->file_bytes);
    return by_number(x->place, y->place);
}

void schedule_order(struct sweep *s)
{
    uint64_t bytes = 0;

    for (size_t i = 0; i < s->trace_count; i++)
        bytes += s->traces[i].file_bytes;
    qsort(s->traces, s->trace_count, sizeof(*s->traces), by_result);
    for (size_t i = 0; i < s->trace_count; i++) {
        s->traces[i].place = i;
        s->traces[i].is_large =
            s->traces[i].file_bytes > bytes / (s->spec->on.threads + 1);
    }
    qsort(s->traces, s->trace_count, sizeof(*s->traces), by_opening);
    for (size_t i = 0; i < s->trace_count; i++)
        s->order[s->traces[i].place] = &s->traces[i];
}

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

enum {
    LONG = 2,      /* a cell is long that takes more than 1/LONG of the mean
                      time that is left to a thread */
    ROWS_PART = 4, /* early rows take at most 1/ROWS_PART of the memory */
};

/* A cell that could start now. */
struct candidate {
    struct job job;   /* JOB_NONE if there is none */
    double seconds;   /* infinite if its policy is not known */
    uint64_t started; /* cells of its policy */
};

/* The jobs that could start now. */
struct view {
    struct candidate longest, first; /* of all traces; of the first trace */
    double ready; /* seconds of all cells of open traces that can start */
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

static bool is_longer(const struct candidate *a, const struct candidate *b)
{
    return b->job.what == JOB_NONE || a->seconds > b->seconds ||
           (a->seconds >= b->seconds && a->started < b->started);
}

static bool is_earlier(const struct candidate *a, const struct candidate *b)
{
    return b->job.what == JOB_NONE ||
           a->job.trace->place < b->job.trace->place ||
           (a->job.trace == b->job.trace && is_longer(a, b));
}

static void look_at_group(const struct sweep *s, struct sweep_trace *trace,
                          struct cell_group *group, struct view *v)
{
    struct sweep_cell *c = next_cell(trace, group);
    const struct frag_device_trace *d;
    const struct pace *pace;
    struct candidate found;
    frag_size cost;

    if (!c)
        return;
    d = &trace->opened->devices[c->device];
    cost = budget_of_cell(d, s->spec->grid->policies[c->policy].policy);
    if (!fits(s, cost, !s->running)) {
        v->busy = true;
        return;
    }
    pace = &s->paces[c->policy];
    found = (struct candidate){
        .job = {JOB_RUN, .trace = trace, .cell = c, .group = group,
                .cost = cost},
        .seconds = pace_expect(pace, (double)d->count, INFINITY),
        .started = pace->started,
    };
    v->ready += found.seconds * (double)(group->end - group->next);
    if (is_longer(&found, &v->longest))
        v->longest = found;
    if (is_earlier(&found, &v->first))
        v->first = found;
}

static struct view look(struct sweep *s)
{
    struct view v = {.longest = {.job = {.what = JOB_NONE}}};

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

    return v->longest.job.what == JOB_NONE ||
           v->ready <
               pace_expect(&s->opening, work, 0) * ((double)s->threads - 1);
}

/* The cell to run; JOB_NONE if none can start. */
static struct job choose_cell(const struct sweep *s, const struct view *v)
{
    const bool is_long =
        v->longest.seconds * LONG * (double)s->threads > v->ready;

    return is_long ? v->longest.job : v->first.job;
}

/* Rows that can be written now; JOB_NONE if there are none. */
static struct job choose_rows(const struct sweep *s)
{
    const struct early_rows *rows = &s->rows;
    const frag_size most = s->spec->memory / ROWS_PART;
    struct job job = {.what = JOB_NONE};
    size_t cells = 0;

    if (!s->spec->early || rows->are_off || rows->are_busy || s->stop ||
        rows->written == rows->ready)
        return job;
    job.end = schedule_unit(s, rows->written);
    for (size_t i = rows->written; i < job.end; i++)
        cells += s->order[i]->count;
    job.cost = cells * BUDGET_ROW;
    if (job.cost <= most - rows->bytes && fits(s, job.cost, false))
        job.what = JOB_WRITE;
    return job;
}

struct job schedule_choose(struct sweep *s)
{
    struct job job = choose_rows(s);
    struct view v;

    if (job.what == JOB_WRITE)
        return job;
    v = look(s);

    if (v.waiting && must_open(s, &v)) {
        if (fits(s, v.waiting->opening, !v.open))
            return (struct job){JOB_OPEN, .trace = v.waiting,
                                .cost = v.waiting->opening};
        v.busy = true;
    }
    job = choose_cell(s, &v);
    if (job.what == JOB_NONE && v.busy)
        job.what = JOB_WAIT;
    return job;
}

/* -- rows ---------------------------------------------------------------- */

size_t schedule_unit(const struct sweep *s, size_t from)
{
    const struct sweep_trace *first = s->order[from];
    size_t end = from + 1;

    while (end < s->trace_count && !strcmp(s->order[end]->path, first->path))
        end++;
    return end;
}

/* Whether all cells of the trace are in the journal. While it is being opened,
 * its cells belong to the thread that opens it. */
static bool is_complete(const struct sweep_trace *trace)
{
    if (trace->state != TRACE_ENDED || trace->err != FRAG_OK)
        return false;
    for (size_t i = 0; i < trace->count; i++)
        if (!trace->cells[i].offset)
            return false;
    return true;
}

void schedule_find_rows(struct sweep *s)
{
    while (s->order && s->rows.ready < s->trace_count) {
        const size_t end = schedule_unit(s, s->rows.ready);

        for (size_t i = s->rows.ready; i < end; i++)
            if (!is_complete(s->order[i]))
                return;
        s->rows.ready = end;
    }
}

/* -- before and after a job ---------------------------------------------- */

void schedule_start(struct sweep *s, const struct job *job)
{
    s->used += job->cost;
    if (job->what == JOB_WRITE) {
        s->rows.are_busy = true;
        s->rows.bytes += job->cost;
    }
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
    if (job->what == JOB_WRITE) {
        s->rows.are_busy = false;
        s->rows.written = job->end;
        return;
    }
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
