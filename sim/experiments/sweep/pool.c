/* pool.c - the threads of a sweep, and the main thread's part. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "sim/experiments/parallel.h"
#include "sim/experiments/sweep/budget.h"
#include "sim/experiments/sweep/parts.h"

/* What a thread is to do next. */
struct job {
    enum { JOB_NONE, JOB_WAIT, JOB_OPEN, JOB_RUN } what;
    struct lane *lane;
    struct sweep_cell *cell;
    frag_size cost; /* of the budget, given back when it is done */
};

struct worker {
    struct sweep *sweep;
    size_t threads;
};

/* -- choosing; under the lock -------------------------------------------- */

static bool is_to_do(const struct sweep_cell *c)
{
    return !c->offset && c->err == FRAG_OK;
}

/* The next cell of an open lane, NULL if there is none. */
static struct sweep_cell *next_cell(struct lane *lane)
{
    while (lane->next < lane->count && !is_to_do(&lane->cells[lane->next]))
        lane->next++;
    return lane->next < lane->count ? &lane->cells[lane->next] : NULL;
}

/* What is needed even if it is too much may run alone. */
static bool fits(const struct sweep *s, frag_size cost, bool alone)
{
    return alone ||
           (s->used <= s->spec->memory && cost <= s->spec->memory - s->used);
}

static struct job choose_cell(struct sweep *s, struct lane *lane)
{
    struct sweep_cell *c = next_cell(lane);
    struct job job = {JOB_WAIT, lane, c, 0};

    if (!c)
        return (struct job){JOB_NONE, NULL, NULL, 0};
    job.cost = budget_of_cell(&lane->trace->devices[c->device],
                              s->spec->grid->policies[c->policy].policy);
    if (fits(s, job.cost, !s->running))
        job.what = JOB_RUN;
    return job;
}

/* A cell of a trace that is open comes before another trace; of two open traces
 * the first. JOB_WAIT where what is left has to wait for what others do. */
static struct job choose(struct sweep *s)
{
    struct lane *waiting = NULL;
    bool busy = false, open = false;

    for (size_t i = 0; i < s->lane_count && !s->stop; i++) {
        struct lane *lane = &s->lanes[i];

        if (lane->state == LANE_OPEN) {
            struct job job = choose_cell(s, lane);

            open = true;
            if (job.what == JOB_RUN)
                return job;
            busy = busy || job.what == JOB_WAIT;
        }
        if (lane->state == LANE_OPENING)
            busy = open = true;
        if (lane->state == LANE_WAITING && !waiting)
            waiting = lane;
    }
    if (waiting) {
        frag_size cost = budget_of_file(waiting->path, waiting->file_bytes);

        if (fits(s, cost, !open))
            return (struct job){JOB_OPEN, waiting, NULL, cost};
        busy = true;
    }
    return (struct job){busy ? JOB_WAIT : JOB_NONE, NULL, NULL, 0};
}

static void take(struct sweep *s, const struct job *job)
{
    s->used += job->cost;
    if (job->what == JOB_OPEN)
        job->lane->state = LANE_OPENING;
    if (job->what == JOB_RUN) {
        job->lane->next++;
        job->lane->running++;
        s->running++;
    }
}

/* Nothing of the lane is left to give out or at work. */
static bool is_over(struct lane *lane)
{
    return lane->state == LANE_OPEN && !lane->running && !next_cell(lane);
}

/* -- doing; without the lock --------------------------------------------- */

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

static enum frag_err measure(struct sweep *s, const struct job *job,
                             struct parcel *p, struct frag_error *e)
{
    const struct sweep_cell *c = job->cell;
    struct frag_run_identity id = lane_identity(s, job->lane, c);
    struct frag_run run;

    FRAG_TRY(cell_run(s->spec->settings, &job->lane->trace->devices[c->device],
                      &id, c->params, tick, s, &run, e));
    p->events = run.summary.events;
    if (id.bare)
        run.segment_count = 0; /* nobody will read them */
    p->bytes = run_pack(c->key, id.total, &run, &p->size);
    frag_run_free(&run);
    return p->bytes ? FRAG_OK : frag_no_memory(e, "a record");
}

static void drop_parcel(struct parcel *p)
{
    if (p)
        free(p->bytes);
    free(p);
}

/* -- what was done; under the lock --------------------------------------- */

/* The journal takes its time: who is far ahead of it waits, so that what is
 * finished but not written stays small. */
static void post(struct sweep *s, struct parcel *p, size_t threads)
{
    p->next = NULL;
    *s->last = p;
    s->last = &p->next;
    s->parcel_count++;
    pthread_cond_broadcast(&s->changed);
    while (s->parcel_count > 2 * threads && !s->stop)
        pthread_cond_wait(&s->changed, &s->lock);
}

/* A cell of the grid is one of each device, or of none. */
static void count_cells(struct sweep *s, struct lane *lane, bool good)
{
    s->counts.cells -= lane->end - lane->first;
    lane->counted = true;
    for (size_t i = 0; good && i < lane->count; i++) {
        s->counts.cells++;
        s->counts.recalled += lane->cells[i].offset > 0;
    }
}

static void opened(struct sweep *s, const struct job *job, enum frag_err err,
                   const struct frag_error *e)
{
    struct lane *lane = job->lane;

    s->used -= job->cost;
    lane->state = LANE_ENDED;
    if (!lane->counted)
        count_cells(s, lane, err == FRAG_OK);
    if (err != FRAG_OK) {
        lane->err = err;
        lane->words = strdup(e->text);
    }
    if (!lane->trace)
        return;
    if (err != FRAG_OK) {
        lane_close(s, lane);
        return;
    }
    lane->state = LANE_OPEN;
    s->used += budget_of_trace(lane->trace);
}

static void ended(struct sweep *s, const struct job *job, enum frag_err err,
                  const struct frag_error *e)
{
    s->used -= job->cost;
    s->running--;
    job->lane->running--;
    if (err == FRAG_OK || err == FRAG_CANCELLED)
        return;
    job->cell->err = err;
    job->cell->words = strdup(e->text);
}

static void end_lane(struct sweep *s, struct lane *lane)
{
    if (!is_over(lane))
        return;
    lane->state = LANE_ENDED;
    s->used -= budget_of_trace(lane->trace);
    lane_close(s, lane);
}

static void do_open(struct sweep *s, const struct job *job, size_t threads)
{
    struct parcel *p = NULL;
    struct frag_error e = {""};
    enum frag_err err;

    pthread_mutex_unlock(&s->lock);
    err = lane_open(s, job->lane, &p, &e);
    pthread_mutex_lock(&s->lock);
    opened(s, job, err, &e);
    end_lane(s, job->lane);
    if (err == FRAG_OK && p)
        post(s, p, threads);
    else
        drop_parcel(p);
}

static void do_run(struct sweep *s, const struct job *job, size_t threads)
{
    struct parcel *p = calloc(1, sizeof(*p));
    struct frag_error e = {""};
    enum frag_err err = FRAG_NOMEM;

    pthread_mutex_unlock(&s->lock);
    if (p)
        err = measure(s, job, p, &e);
    pthread_mutex_lock(&s->lock);
    ended(s, job, err, &e);
    end_lane(s, job->lane);
    if (err != FRAG_OK) {
        drop_parcel(p);
        return;
    }
    p->cell = job->cell;
    post(s, p, threads);
}

static void *work(void *user)
{
    const struct worker *w = user;
    struct sweep *s = w->sweep;

    pthread_mutex_lock(&s->lock);
    for (;;) {
        struct job job = choose(s);

        if (job.what == JOB_NONE || s->stop || stop_is_asked(&s->spec->on.stop))
            break;
        if (job.what == JOB_WAIT) {
            pthread_cond_wait(&s->changed, &s->lock);
            continue;
        }
        take(s, &job);
        if (job.what == JOB_OPEN)
            do_open(s, &job, w->threads);
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

/* Adds them to the journal and to the disk; each gets its place. */
static enum frag_err write_parcels(struct journal *j, struct parcel *list,
                                   uint64_t *offsets, struct frag_error *e)
{
    for (size_t i = 0; list; list = list->next, i++)
        FRAG_TRY(journal_put(j, list->cell ? SWEEP_RUN : SWEEP_TRACE,
                             list->bytes, list->size, &offsets[i], e));
    return journal_sync(j, e);
}

/* Everything that waits for the journal; called with the lock held. */
static enum frag_err deliver(struct sweep *s, struct journal *j,
                             struct frag_error *e)
{
    struct parcel *list = s->parcels, *next;
    uint64_t *offsets = calloc(s->parcel_count, sizeof(*offsets));
    enum frag_err err = offsets ? FRAG_OK : FRAG_NOMEM;

    s->parcels = NULL;
    s->last = &s->parcels;
    s->parcel_count = 0;
    pthread_mutex_unlock(&s->lock);
    if (err == FRAG_OK)
        err = write_parcels(j, list, offsets, e);
    pthread_mutex_lock(&s->lock);
    for (size_t i = 0; list; list = next, i++) {
        next = list->next;
        if (err == FRAG_OK && list->cell) {
            list->cell->offset = offsets[i];
            s->counts.done++;
            s->counts.events += list->events;
        }
        drop_parcel(list);
    }
    free(offsets);
    if (err != FRAG_OK)
        s->stop = true;
    pthread_cond_broadcast(&s->changed);
    return err;
}

static void show(const struct sweep *s)
{
    if (s->spec->show && s->counts.done)
        s->spec->show(s->spec->user, &s->counts);
}

static void wait_a_little(struct sweep *s)
{
    struct timespec until;

    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += 100000000;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_cond_timedwait(&s->changed, &s->lock, &until);
}

/* Until the last thread has ended and all it did is on the disk. */
static enum frag_err attend(struct sweep *s, struct journal *j,
                            struct frag_error *e)
{
    enum frag_err err = FRAG_OK;

    pthread_mutex_lock(&s->lock);
    while (s->threads || s->parcels) {
        if (s->parcels) {
            enum frag_err now = deliver(s, j, e);

            err = err == FRAG_OK ? now : err;
        } else {
            wait_a_little(s);
        }
        if (stop_is_asked(&s->spec->on.stop))
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
    struct crew crew;
    enum frag_err err;

    s->threads = threads;
    crew_start(&crew, threads, work, &worker);
    pthread_mutex_lock(&s->lock);
    s->threads -= threads - crew.count; /* fewer do it too */
    pthread_mutex_unlock(&s->lock);
    err = attend(s, j, e);
    crew_join(&crew);
    if (!crew.count)
        return frag_fail(e, FRAG_NOMEM, "no thread can be started: %s",
                         strerror(crew.why));
    return err;
}
