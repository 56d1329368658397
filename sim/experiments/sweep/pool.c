/* pool.c - the threads of a sweep. Workers open traces and run cells; the main
 * thread writes the finished cells to chunks. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "sim/experiments/capacity/spans.h"
#include "sim/experiments/parallel.h"
#include "sim/experiments/sweep/sweep_parts.h"
#include "traces/text.h"

/* -- doing a job; without the lock --------------------------------------- */

static bool tick(void *user, uint64_t done, uint64_t total)
{
    const struct sweep *s = user;

    (void)done;
    (void)total;
    return s->stop || stop_is_asked(&s->spec->on.stop);
}

/* Seeks the need of a run without a bound, if it is asked for. */
static enum frag_err find_need(struct sweep *s, const struct sweep_job *job,
                               frag_size *out, struct frag_error *e)
{
    const struct cell_settings *settings = s->spec->settings;
    const struct sweep_cell *c = job->cell;
    struct frag_memo memo = {0};
    struct frag_capacity_span unlimited, need;
    struct frag_capacity_spec spec;
    enum frag_err err;

    if (!settings->need || c->bound.bytes != FRAG_UNLIMITED)
        return FRAG_OK;
    spec = frag_capacity_of_cell(
        settings, &job->trace->opened->devices[c->device], c->params,
        (enum frag_bound_kind)(settings->need - 1));
    spec.progress = tick;
    spec.user = s;
    spec.memo = &memo;
    err = frag_capacity_at(&spec, FRAG_UNLIMITED, &unlimited, e);
    FRAG_THEN(err, frag_capacity_need(&spec, &unlimited, &need, e));
    frag_memo_release(&memo);
    if (err == FRAG_OK && frag_capacity_survives(&need))
        *out = need.from;
    return err;
}

/* Sets the notes of the result, one a line. */
static enum frag_err find_notes(const struct sweep *s,
                                const struct sweep_job *job,
                                struct sweep_result *out, struct frag_error *e)
{
    char text[CELL_NOTES * RELEASE_NOTE] = "";
    struct cell_notes notes;
    const struct frag_trace *t = job->trace->opened;
    const struct cell_result result = {
        .settings = s->spec->settings,
        .policy = &s->spec->grid->policies[job->cell->policy],
        .trace = t,
        .device = &t->devices[job->cell->device],
        .bound = job->cell->bound,
        .summary = &out->run.summary,
        .params = out->run.params,
    };

    FRAG_TRY(cell_notes(&result, &notes, e));
    for (size_t i = 0; i < notes.count; i++)
        text_add(text, sizeof(text), "\n", "%s", notes.texts[i]);
    out->notes = strdup(text);
    return out->notes ? FRAG_OK : frag_no_memory(e, "the notes of a cell");
}

/* Runs the cell. The caller frees the result, on error too. */
static enum frag_err measure(struct sweep *s, const struct sweep_job *job,
                             struct sweep_result **out, struct frag_error *e)
{
    const struct sweep_cell *c = job->cell;
    struct frag_run_identity id = sweep_cell_identity(s, job->trace, c);
    struct sweep_result *r = *out = calloc(1, sizeof(*r));

    if (!r)
        return frag_no_memory(e, "the result of a cell");
    FRAG_TRY(cell_run(s->spec->settings,
                      &job->trace->opened->devices[c->device], &id, c->params,
                      tick, s, &r->run, e));
    r->total = id.total;
    if (id.bare)
        r->run.segment_count = 0; /* the results will not contain them */
    FRAG_TRY(find_need(s, job, &r->run.summary.need, e));
    return find_notes(s, job, r, e);
}

/* -- after a job; with the lock held ------------------------------------- */

/* Replaces the cells of the grid by one for each device of the trace; by none
 * if the trace failed. */
static void count_cells(struct sweep *s, struct sweep_trace *trace, bool good)
{
    s->counts.cells -= trace->end - trace->first;
    for (size_t i = 0; good && i < trace->count; i++) {
        s->counts.cells++;
        s->counts.recalled += trace->cells[i].result != NULL;
    }
}

static void opened(struct sweep *s, const struct sweep_job *job,
                   enum frag_err err, const struct frag_error *e)
{
    struct sweep_trace *trace = job->trace;

    trace->state = TRACE_ENDED;
    s->used -= trace->cost;
    count_cells(s, trace, err == FRAG_OK);
    if (err != FRAG_OK) {
        trace->err = err;
        trace->words = strdup(e->text);
    }
    if (!trace->opened)
        return;
    if (err != FRAG_OK) {
        sweep_trace_close(trace);
        return;
    }
    trace->state = TRACE_OPEN;
    s->used += trace->cost;
}

static void ended(struct sweep *s, struct sweep_cell *c,
                  struct sweep_result *result, enum frag_err err,
                  const struct frag_error *e)
{
    if (err == FRAG_OK) {
        c->result = c->own = result;
        *s->fresh_end = c;
        s->fresh_end = &c->later;
        s->fresh_count++;
        s->counts.done++;
        s->counts.events += result->run.summary.events;
        return;
    }
    sweep_result_free(result);
    if (err == FRAG_CANCELLED)
        return;
    c->err = err;
    c->words = strdup(e->text);
}

/* Closes the trace after its last cell, without the lock: that takes long. */
static void end_trace(struct sweep *s, struct sweep_trace *trace)
{
    if (trace->state != TRACE_OPEN || trace->running || sweep_trace_next(trace))
        return;
    trace->state = TRACE_ENDED;
    pthread_mutex_unlock(&s->lock);
    sweep_trace_close(trace);
    pthread_mutex_lock(&s->lock);
    s->used -= trace->cost;
}

static void do_open(struct sweep *s, const struct sweep_job *job)
{
    struct frag_error e = {""};
    enum frag_err err;

    job->trace->state = TRACE_OPENING;
    s->used += job->trace->cost;
    pthread_mutex_unlock(&s->lock);
    err = sweep_trace_open(s, job->trace, &e);
    pthread_mutex_lock(&s->lock);
    opened(s, job, err, &e);
    end_trace(s, job->trace);
}

static void do_run(struct sweep *s, const struct sweep_job *job)
{
    struct sweep_result *result = NULL;
    struct frag_error e = {""};
    enum frag_err err;

    job->trace->next++;
    job->trace->running++;
    pthread_mutex_unlock(&s->lock);
    err = measure(s, job, &result, &e);
    pthread_mutex_lock(&s->lock);
    job->trace->running--;
    ended(s, job->cell, result, err, &e);
    end_trace(s, job->trace);
}

/* -- the threads --------------------------------------------------------- */

/* Whether there is memory to open another trace. One alone is always opened, so
 * that the sweep does not stop. */
static bool fits(const struct sweep *s, const struct sweep_trace *trace)
{
    return !s->used ||
           (s->used <= s->memory && trace->cost <= s->memory - s->used);
}

/* The next job for a thread. JOB_WAIT if a trace is being opened or has no
 * memory yet; JOB_NONE if nothing is left. */
static struct sweep_job choose(struct sweep *s)
{
    struct sweep_job next = {.what = JOB_NONE};

    for (size_t i = 0; i < s->trace_count; i++) {
        struct sweep_trace *trace = &s->traces[i];
        struct sweep_cell *c =
            trace->state == TRACE_OPEN ? sweep_trace_next(trace) : NULL;

        if (c)
            return (struct sweep_job){JOB_RUN, trace, c};
        if (trace->state == TRACE_WAITING && next.what != JOB_OPEN)
            next = (struct sweep_job){fits(s, trace) ? JOB_OPEN : JOB_WAIT,
                                      trace, NULL};
        if (trace->state == TRACE_OPENING && next.what == JOB_NONE)
            next.what = JOB_WAIT;
    }
    return next;
}

static void *work(void *user)
{
    struct sweep *s = user;

    pthread_mutex_lock(&s->lock);
    for (;;) {
        struct sweep_job job = choose(s);

        if (job.what == JOB_NONE || s->stop || stop_is_asked(&s->spec->on.stop))
            break;
        if (job.what == JOB_WAIT) {
            pthread_cond_wait(&s->changed, &s->lock);
            continue;
        }
        if (job.what == JOB_OPEN)
            do_open(s, &job);
        else
            do_run(s, &job);
        pthread_cond_broadcast(&s->changed);
    }
    if (--s->threads == 0)
        pthread_cond_signal(&s->finished);
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

/* -- the main thread ----------------------------------------------------- */

#define LOOK_SECONDS .1

/* Waits for LOOK_SECONDS, or until the threads have ended; with the lock held.
 */
static void wait_a_little(struct sweep *s)
{
    struct timespec until;

    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += (long)(LOOK_SECONDS * 1e9);
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    if (s->threads)
        pthread_cond_timedwait(&s->finished, &s->lock, &until);
}

static void show(struct sweep *s)
{
    const struct sweep_counts counts = s->counts;

    if (!s->spec->show || !counts.done)
        return;
    pthread_mutex_unlock(&s->lock);
    s->spec->show(s->spec->user, &counts);
    pthread_mutex_lock(&s->lock);
}

/* Writes chunks until the last thread has ended. An error of a chunk ends the
 * sweep. */
static enum frag_err keep_until_ended(struct sweep *s, struct frag_error *e)
{
    enum frag_err err = FRAG_OK;
    time_t last = time(NULL);

    pthread_mutex_lock(&s->lock);
    while (s->threads) {
        wait_a_little(s);
        if (s->threads && err == FRAG_OK && s->fresh_count &&
            (s->fresh_count >= CHUNK_CELLS ||
             time(NULL) - last >= CHUNK_SECONDS)) {
            err = sweep_keep_chunk(s, e);
            last = time(NULL);
        }
        show(s);
        s->stop = err != FRAG_OK;
        if (s->stop || stop_is_asked(&s->spec->on.stop))
            pthread_cond_broadcast(&s->changed);
    }
    pthread_mutex_unlock(&s->lock);
    return err;
}

enum frag_err pool_run(struct sweep *s, size_t threads, struct frag_error *e)
{
    struct workers workers;
    enum frag_err err;

    s->threads = threads;
    workers_start(&workers, threads, work, s);
    pthread_mutex_lock(&s->lock);
    s->threads -=
        threads - workers.count; /* fewer threads still run all cells */
    pthread_mutex_unlock(&s->lock);
    err = keep_until_ended(s, e);
    workers_join(&workers);
    if (!workers.count)
        return frag_fail(e, FRAG_NOMEM, "no thread can be started: %s",
                         strerror(workers.error));
    return err;
}
