/* pool.c - the threads of a sweep. Workers open traces, run cells, and write
 * every finished cell to the journal; the main thread brings the journal to the
 * disk. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "sim/experiments/capacity/spans.h"
#include "sim/experiments/parallel.h"
#include "sim/experiments/sweep/sweep_parts.h"

/* Ends the sweep with the first error of its journal; with the lock held. */
static void fail(struct sweep *s, enum frag_err err, const struct frag_error *e)
{
    s->stop = true;
    if (s->err != FRAG_OK)
        return;
    s->err = err;
    s->e = *e;
}

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
    if (err == FRAG_OK)
        err = frag_capacity_need(&spec, &unlimited, &need, e);
    frag_memo_release(&memo);
    if (err == FRAG_OK && frag_capacity_survives(&need))
        *out = need.from;
    return err;
}

static enum frag_err find_notes(const struct sweep *s,
                                const struct sweep_job *job,
                                const struct frag_run *run,
                                struct cell_notes *out, struct frag_error *e)
{
    const struct frag_trace *t = job->trace->opened;
    const struct cell_result result = {
        .settings = s->spec->settings,
        .policy = &s->spec->grid->policies[job->cell->policy],
        .trace = t,
        .device = &t->devices[job->cell->device],
        .bound = job->cell->bound,
        .summary = &run->summary,
        .params = run->params,
    };

    return cell_notes(&result, out, e);
}

/* Runs the cell, and makes its entry. */
static enum frag_err measure(struct sweep *s, const struct sweep_job *job,
                             struct sweep_entry *entry, uint64_t *events,
                             struct frag_error *e)
{
    const struct sweep_cell *c = job->cell;
    struct frag_run_identity id = sweep_cell_identity(s, job->trace, c);
    struct cell_notes notes;
    struct frag_run run;
    enum frag_err err;

    FRAG_TRY(cell_run(s->spec->settings,
                      &job->trace->opened->devices[c->device], &id, c->params,
                      tick, s, &run, e));
    *events = run.summary.events;
    if (id.bare)
        run.segment_count = 0; /* the results will not contain them */
    err = find_need(s, job, &run.summary.need, e);
    if (err == FRAG_OK)
        err = find_notes(s, job, &run, &notes, e);
    if (err == FRAG_OK) {
        entry->bytes = run_pack(c->key, id.total, &notes, &run, &entry->size);
        err = entry->bytes ? FRAG_OK : frag_no_memory(e, "a journal entry");
    }
    frag_run_free(&run);
    return err;
}

/* Adds the entry to the journal, and frees it. Returns its offset; 0 after an
 * error, which ends the sweep. */
static uint64_t put_entry(struct sweep *s, const struct sweep_entry *entry)
{
    struct frag_error e = {""};
    uint64_t offset = 0;
    enum frag_err err;

    pthread_mutex_lock(&s->putting);
    err = journal_put(s->journal, SWEEP_RUN, entry->bytes, entry->size, &offset,
                      &e);
    pthread_mutex_unlock(&s->putting);
    free(entry->bytes);
    if (err == FRAG_OK)
        return offset;
    pthread_mutex_lock(&s->lock);
    fail(s, err, &e);
    pthread_mutex_unlock(&s->lock);
    return 0;
}

/* -- after a job; with the lock held ------------------------------------- */

/* Replaces the cells of the grid by one for each device of the trace; by none
 * if the trace failed. */
static void count_cells(struct sweep *s, struct sweep_trace *trace, bool good)
{
    s->counts.cells -= trace->end - trace->first;
    for (size_t i = 0; good && i < trace->count; i++) {
        s->counts.cells++;
        s->counts.recalled += trace->cells[i].offset > 0;
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

static void ended(struct sweep *s, const struct sweep_job *job, uint64_t offset,
                  uint64_t events, enum frag_err err,
                  const struct frag_error *e)
{
    if (offset) {
        job->cell->offset = offset;
        s->counts.done++;
        s->counts.events += events;
    }
    if (err == FRAG_OK || err == FRAG_CANCELLED)
        return;
    job->cell->err = err;
    job->cell->words = strdup(e->text);
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
    struct sweep_entry entry = {NULL, 0};
    uint64_t offset = 0, events = 0;
    struct frag_error e = {""};
    enum frag_err err;

    job->trace->next++;
    job->trace->running++;
    pthread_mutex_unlock(&s->lock);
    err = measure(s, job, &entry, &events, &e);
    if (err == FRAG_OK)
        offset = put_entry(s, &entry);
    pthread_mutex_lock(&s->lock);
    job->trace->running--;
    ended(s, job, offset, events, err, &e);
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
    if (--s->threads == 0 || s->stop)
        pthread_cond_signal(&s->finished);
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

/* -- the main thread ----------------------------------------------------- */

/* A sync costs as much as a short cell, so that one serves all entries of
 * SYNC_SECONDS. */
#define SYNC_SECONDS .1

/* Waits for SYNC_SECONDS, or until the threads have ended; with the lock held.
 */
static void wait_a_little(struct sweep *s)
{
    struct timespec until;

    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += (long)(SYNC_SECONDS * 1e9);
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    if (s->threads)
        pthread_cond_timedwait(&s->finished, &s->lock, &until);
}

/* Brings the entries to the disk, and shows the progress. */
static void sync_and_show(struct sweep *s)
{
    const struct sweep_counts counts = s->counts;
    struct frag_error e = {""};
    enum frag_err err;

    pthread_mutex_unlock(&s->lock);
    err = journal_sync(s->journal, &e);
    if (s->spec->show && counts.done)
        s->spec->show(s->spec->user, &counts);
    pthread_mutex_lock(&s->lock);
    if (err != FRAG_OK)
        fail(s, err, &e);
}

/* Syncs entries until the last thread has ended and all its work is on the
 * disk. */
static enum frag_err sync_until_ended(struct sweep *s, struct frag_error *e)
{
    enum frag_err err;
    bool over;

    pthread_mutex_lock(&s->lock);
    do {
        wait_a_little(s);
        over = !s->threads;
        sync_and_show(s);
        if (s->stop || stop_is_asked(&s->spec->on.stop))
            pthread_cond_broadcast(&s->changed);
    } while (!over);
    err = s->err;
    if (err != FRAG_OK && e)
        *e = s->e;
    pthread_mutex_unlock(&s->lock);
    return err;
}

enum frag_err pool_run(struct sweep *s, size_t threads, struct journal *j,
                       struct frag_error *e)
{
    struct workers workers;
    enum frag_err err;

    s->threads = threads;
    s->journal = j;
    workers_start(&workers, threads, work, s);
    pthread_mutex_lock(&s->lock);
    s->threads -=
        threads - workers.count; /* fewer threads still run all cells */
    pthread_mutex_unlock(&s->lock);
    err = sync_until_ended(s, e);
    workers_join(&workers);
    if (!workers.count)
        return frag_fail(e, FRAG_NOMEM, "no thread can be started: %s",
                         strerror(workers.error));
    return err;
}
