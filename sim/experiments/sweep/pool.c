/* pool.c - the threads of a sweep. Workers open traces and run cells within the
 * memory budget; the main thread writes the finished cells to the journal. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "sim/experiments/parallel.h"
#include "sim/experiments/sweep/budget.h"
#include "sim/experiments/sweep/parts.h"

struct worker {
    struct sweep *sweep;
    size_t threads;
};

static double seconds_of(clockid_t clock)
{
    struct timespec t;

    clock_gettime(clock, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Seconds of processor time that this thread has used. */
static double thread_seconds(void)
{
    return seconds_of(CLOCK_THREAD_CPUTIME_ID);
}

/* -- doing a job; without the lock --------------------------------------- */

static bool tick(void *user, uint64_t done, uint64_t total)
{
    struct sweep *s = user;
    bool stop;

    (void)done;
    (void)total;
    pthread_mutex_lock(&s->lock);
    stop = s->stop;
    pthread_mutex_unlock(&s->lock);
    return stop || stop_is_asked(&s->spec->on.stop);
}

static enum frag_err find_notes(const struct sweep *s, const struct job *job,
                                const struct frag_run *run,
                                struct cell_notes *out, struct frag_error *e)
{
    const struct frag_trace *t = job->trace->opened;
    const struct cell_result result = {
        .settings = s->spec->settings,
        .policy = &s->spec->grid->policies[job->cell->policy],
        .trace = t,
        .device = &t->devices[job->cell->device],
        .capacity = job->cell->capacity,
        .summary = &run->summary,
        .params = run->params,
    };

    return cell_notes(&result, out, e);
}

static enum frag_err measure(struct sweep *s, const struct job *job,
                             struct pending_entry *p, struct frag_error *e)
{
    const struct sweep_cell *c = job->cell;
    struct frag_run_identity id = sweep_cell_identity(s, job->trace, c);
    struct cell_notes notes;
    struct frag_run run;
    enum frag_err err;

    FRAG_TRY(cell_run(s->spec->settings,
                      &job->trace->opened->devices[c->device], &id, c->params,
                      tick, s, &run, e));
    p->events = run.summary.events;
    if (id.bare)
        run.segment_count = 0; /* the results will not contain them */
    err = find_notes(s, job, &run, &notes, e);
    if (err == FRAG_OK) {
        p->bytes = run_pack(c->key, id.total, &notes, &run, &p->size);
        err = p->bytes ? FRAG_OK : frag_no_memory(e, "a journal entry");
    }
    frag_run_free(&run);
    return err;
}

static void drop_entry(struct pending_entry *p)
{
    if (p)
        free(p->bytes);
    free(p);
}

/* -- after a job; with the lock held ------------------------------------- */

/* Adds an entry to the queue. If many entries wait for the journal, this thread
 * waits too, so that little finished work is not yet on the disk. */
static void queue_entry(struct sweep *s, struct pending_entry *p,
                        size_t threads)
{
    p->next = NULL;
    *s->last = p;
    s->last = &p->next;
    s->pending_count++;
    pthread_cond_broadcast(&s->changed);
    while (s->pending_count > 2 * threads && !s->stop)
        pthread_cond_wait(&s->changed, &s->lock);
}

/* Replaces the cells of the grid by one for each device of the trace; by none
 * if the trace failed. */
static void count_cells(struct sweep *s, struct sweep_trace *trace, bool good)
{
    s->counts.cells -= trace->end - trace->first;
    trace->counted = true;
    for (size_t i = 0; good && i < trace->count; i++) {
        s->counts.cells++;
        s->counts.recalled += trace->cells[i].offset > 0;
    }
}

static void opened(struct sweep *s, const struct job *job, enum frag_err err,
                   const struct frag_error *e)
{
    struct sweep_trace *trace = job->trace;

    trace->state = TRACE_ENDED;
    if (!trace->counted)
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
    s->used += budget_of_trace(trace->opened);
}

static void ended(const struct job *job, enum frag_err err,
                  const struct frag_error *e)
{
    if (err == FRAG_OK || err == FRAG_CANCELLED)
        return;
    job->cell->err = err;
    job->cell->words = strdup(e->text);
}

static void end_trace(struct sweep *s, struct sweep_trace *trace)
{
    if (!schedule_is_over(trace))
        return;
    trace->state = TRACE_ENDED;
    s->used -= budget_of_trace(trace->opened);
    sweep_trace_close(trace);
}

static void do_open(struct sweep *s, const struct job *job, size_t threads)
{
    struct pending_entry *p = NULL;
    const double start = thread_seconds();
    struct frag_error e = {""};
    enum frag_err err;

    pthread_mutex_unlock(&s->lock);
    err = sweep_trace_open(s, job->trace, &p, &e);
    pthread_mutex_lock(&s->lock);
    schedule_end(s, job, thread_seconds() - start);
    opened(s, job, err, &e);
    end_trace(s, job->trace);
    if (err == FRAG_OK && p)
        queue_entry(s, p, threads);
    else
        drop_entry(p);
}

static void do_run(struct sweep *s, const struct job *job, size_t threads)
{
    struct pending_entry *p = calloc(1, sizeof(*p));
    const double start = thread_seconds();
    struct frag_error e = {""};
    enum frag_err err = FRAG_NOMEM;

    pthread_mutex_unlock(&s->lock);
    if (p)
        err = measure(s, job, p, &e);
    pthread_mutex_lock(&s->lock);
    schedule_end(s, job, thread_seconds() - start);
    ended(job, err, &e);
    end_trace(s, job->trace);
    if (err != FRAG_OK) {
        drop_entry(p);
        return;
    }
    p->cell = job->cell;
    queue_entry(s, p, threads);
}

/* Writes rows. After an error, all rows are written at the end, which reports
 * an error that lasts. */
static void do_write(struct sweep *s, const struct job *job)
{
    const size_t from = s->rows.written;
    struct frag_error ignored;
    enum frag_err err;

    pthread_mutex_unlock(&s->lock);
    pthread_mutex_lock(&s->hdf5);
    err = sweep_write_rows(s, s->journal, from, job->end, s->spec->early,
                           s->spec->rows, &ignored);
    pthread_mutex_unlock(&s->hdf5);
    pthread_mutex_lock(&s->lock);
    schedule_end(s, job, 0);
    s->rows.are_off = err != FRAG_OK;
}

static void *work(void *user)
{
    const struct worker *w = user;
    struct sweep *s = w->sweep;

    pthread_mutex_lock(&s->lock);
    for (;;) {
        struct job job = schedule_choose(s);

        if (job.what == JOB_NONE || s->stop || stop_is_asked(&s->spec->on.stop))
            break;
        if (job.what == JOB_WAIT) {
            pthread_cond_wait(&s->changed, &s->lock);
            continue;
        }
        schedule_start(s, &job);
        if (job.what == JOB_OPEN)
            do_open(s, &job, w->threads);
        else if (job.what == JOB_WRITE)
            do_write(s, &job);
        else
            do_run(s, &job, w->threads);
        pthread_cond_broadcast(&s->changed);
    }
    s->threads--;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

/* -- the main thread ----------------------------------------------------- */

/* The journal and its next sync. A sync costs as much as a short cell, so that
 * one serves all entries of SYNC_SECONDS. */
#define SYNC_SECONDS .1

struct keeper {
    struct journal *journal;
    bool is_behind; /* entries were added after the last sync */
    double due;     /* time of the next sync */
};

static double now(void)
{
    return seconds_of(CLOCK_MONOTONIC);
}

/* Adds the entries to the journal, and stores their offsets. */
static enum frag_err put_entries(struct keeper *k, struct pending_entry *list,
                                 uint64_t *offsets, struct frag_error *e)
{
    if (!k->is_behind)
        k->due = now() + SYNC_SECONDS;
    k->is_behind = true;
    for (size_t i = 0; list; list = list->next, i++)
        FRAG_TRY(journal_put(k->journal, list->cell ? SWEEP_RUN : SWEEP_TRACE,
                             list->bytes, list->size, &offsets[i], e));
    return FRAG_OK;
}

/* Writes all pending entries; called with the lock held. */
static enum frag_err write_pending(struct sweep *s, struct keeper *k,
                                   struct frag_error *e)
{
    struct pending_entry *list = s->pending, *next;
    uint64_t *offsets = calloc(s->pending_count, sizeof(*offsets));
    enum frag_err err =
        offsets ? FRAG_OK : frag_no_memory(e, "the entries of the journal");

    s->pending = NULL;
    s->last = &s->pending;
    s->pending_count = 0;
    pthread_mutex_unlock(&s->lock);
    if (err == FRAG_OK)
        err = put_entries(k, list, offsets, e);
    pthread_mutex_lock(&s->lock);
    for (size_t i = 0; list; list = next, i++) {
        next = list->next;
        if (err == FRAG_OK && list->cell) {
            list->cell->offset = offsets[i];
            s->counts.done++;
            s->counts.events += list->events;
        }
        drop_entry(list);
    }
    free(offsets);
    schedule_find_rows(s);
    pthread_cond_broadcast(&s->changed);
    return err;
}

/* Brings the entries to the disk if it is time, or if no thread can add more;
 * called with the lock held. */
static enum frag_err sync_if_due(struct sweep *s, struct keeper *k,
                                 struct frag_error *e)
{
    enum frag_err err;

    if (!k->is_behind || (s->threads && now() < k->due))
        return FRAG_OK;
    k->is_behind = false;
    pthread_mutex_unlock(&s->lock);
    err = journal_sync(k->journal, e);
    pthread_mutex_lock(&s->lock);
    return err;
}

static void show(const struct sweep *s)
{
    if (s->spec->show && s->counts.done)
        s->spec->show(s->spec->user, &s->counts);
}

/* Waits for a change, for at most .1 s. */
static void wait_a_little(struct sweep *s, const struct keeper *k)
{
    const double most = k->is_behind ? k->due - now() : SYNC_SECONDS;
    struct timespec until;

    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += most > 0 ? (long)(most * 1e9) : 0;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_cond_timedwait(&s->changed, &s->lock, &until);
}

/* Writes entries until the last thread has ended and all its work is on the
 * disk. */
static enum frag_err write_until_ended(struct sweep *s, struct journal *j,
                                       struct frag_error *e)
{
    struct keeper k = {.journal = j};
    enum frag_err err = FRAG_OK;

    pthread_mutex_lock(&s->lock);
    while (s->threads || s->pending || k.is_behind) {
        enum frag_err step;

        if (s->threads && !s->pending)
            wait_a_little(s, &k);
        step = s->pending ? write_pending(s, &k, e) : FRAG_OK;
        if (step == FRAG_OK)
            step = sync_if_due(s, &k, e);
        s->stop = s->stop || step != FRAG_OK;
        err = err == FRAG_OK ? step : err;
        if (s->stop || stop_is_asked(&s->spec->on.stop))
            pthread_cond_broadcast(&s->changed);
        show(s);
    }
    pthread_mutex_unlock(&s->lock);
    return err;
}

enum frag_err pool_run(struct sweep *s, size_t threads, struct journal *j,
                       struct frag_error *e)
{
    struct worker worker = {s, threads};
    struct workers workers;
    enum frag_err err;

    s->threads = threads;
    s->journal = j;
    workers_start(&workers, threads, work, &worker);
    pthread_mutex_lock(&s->lock);
    s->threads -=
        threads - workers.count; /* fewer threads still run all cells */
    pthread_mutex_unlock(&s->lock);
    err = write_until_ended(s, j, e);
    workers_join(&workers);
    if (!workers.count)
        return frag_fail(e, FRAG_NOMEM, "no thread can be started: %s",
                         strerror(workers.error));
    return err;
}
