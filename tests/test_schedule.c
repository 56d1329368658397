/* test_schedule.c - tests the order of a sweep's work: a naive judge plays the
 * jobs that the schedule chooses on n workers with a clock of its own, and
 * compares the end with what no schedule can beat. The rows that are left when
 * the last worker ends, and the end of the result file, take one thread. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/experiments/sweep/parts.h"

enum {
    MOST_TRACES = 32,
    MOST_POLICIES = 16,
    CAPACITIES = 5,
    MOST_WORKERS = 64
};

/* A made-up sweep. Cells of a policy take ns[policy] for an event. */
struct made {
    size_t traces, policies;
    uint64_t events[MOST_TRACES]; /* the largest first */
    double opening[MOST_TRACES];  /* seconds */
    double ns[MOST_POLICIES];
    frag_size memory;
    double row, last; /* seconds of a row, and of the end of the result file */
    bool is_late;     /* all rows are written at the end */
    bool first_is_last; /* in the order of the results */
};

/* A worker with a job has an end; one that waits has none. */
struct player {
    struct job job;
    double end;
};

struct game {
    struct sweep s;
    struct sweep_spec spec;
    struct grid grid;
    struct policy_choice policies[MOST_POLICIES];
    struct sweep_trace traces[MOST_TRACES], *order[MOST_TRACES];
    char names[MOST_TRACES][24];
    struct frag_device_trace devices[MOST_TRACES];
    struct frag_trace opened[MOST_TRACES];
    struct pace paces[MOST_POLICIES];
    struct player players[MOST_WORKERS];
    const struct made *made;
    size_t workers;
    double now;
    size_t opens, runs, rows;
    frag_size most_used;
};

static double seconds_of_cell(const struct made *m, size_t trace, size_t policy)
{
    return (double)m->events[trace] * m->ns[policy] / 1e9;
}

/* Seconds of the rows of n traces. */
static double seconds_of_rows(const struct made *m, size_t n)
{
    return (double)(n * m->policies * CAPACITIES) * m->row;
}

/* Seconds of the job, as the judge knows them and the schedule does not. */
static double seconds_of(const struct game *g, const struct job *job)
{
    switch (job->what) {
    case JOB_OPEN:
        return g->made->opening[job->trace->index];
    case JOB_RUN:
        return seconds_of_cell(g->made, job->trace->index, job->cell->policy);
    default:
        return seconds_of_rows(g->made, job->end - g->rows);
    }
}

static enum frag_err no_row(void *user, const struct frag_run_identity *id,
                            const struct cell_notes *notes,
                            const struct frag_run *run, struct frag_error *e)
{
    (void)user;
    (void)id;
    (void)notes;
    (void)run;
    (void)e;
    return FRAG_OK;
}

static void setup(struct game *g, const struct made *m, size_t workers)
{
    *g = (struct game){.made = m, .workers = workers};
    g->spec = (struct sweep_spec){.grid = &g->grid,
                                  .memory = m->memory,
                                  .on = {.threads = workers},
                                  .early = m->is_late ? NULL : no_row};
    g->grid =
        (struct grid){.policies = g->policies, .policy_count = m->policies};
    g->s = (struct sweep){.spec = &g->spec,
                          .traces = g->traces,
                          .order = g->order,
                          .trace_count = m->traces,
                          .paces = g->paces,
                          .threads = workers};
    for (size_t p = 0; p < m->policies; p++)
        g->policies[p].policy = &frag_policy_best_fit;
    for (size_t t = 0; t < m->traces; t++) {
        struct sweep_trace *trace = &g->traces[t];

        g->devices[t].count = m->events[t];
        g->opened[t] =
            (struct frag_trace){.device_count = 1, .devices = &g->devices[t]};
        /* The order of the names is not that of the sizes. */
        snprintf(g->names[t], sizeof(g->names[t]), "%02zu",
                 m->first_is_last && !t ? 99 : (t * 13 + 7) % 32);
        trace->path = trace->name = g->names[t];
        trace->index = t;
        trace->file_bytes = m->events[t];
        trace->opening = (frag_size)(m->opening[t] * 1e9);
        trace->count = m->policies * CAPACITIES;
        trace->cells = calloc(trace->count, sizeof(*trace->cells));
        assert_non_null(trace->cells);
        for (size_t i = 0; i < trace->count; i++)
            trace->cells[i].policy = (uint32_t)(i / CAPACITIES);
    }
    schedule_order(&g->s);
}

static void teardown(struct game *g)
{
    for (size_t t = 0; t < g->made->traces; t++) {
        free(g->traces[t].cells);
        free(g->traces[t].groups);
    }
}

static void begin(struct game *g, struct player *p, const struct job *job)
{
    schedule_start(&g->s, job);
    if (g->s.used > g->most_used)
        g->most_used = g->s.used;
    if (job->what == JOB_RUN) {
        assert_int_equal(job->trace->state, TRACE_OPEN);
        g->runs++;
    }
    g->opens += job->what == JOB_OPEN;
    p->job = *job;
    p->end = g->now + seconds_of(g, job);
    if (job->what == JOB_WRITE)
        g->rows = job->end;
}

static void end(struct game *g, struct player *p)
{
    struct sweep_trace *trace = p->job.trace;

    schedule_end(&g->s, &p->job, seconds_of(g, &p->job));
    if (p->job.what == JOB_OPEN) {
        trace->opened = &g->opened[trace->index];
        trace->state = TRACE_OPEN;
        assert_true(schedule_prepare(trace));
    }
    if (p->job.what == JOB_RUN) {
        assert_int_equal(p->job.cell->offset, 0);
        p->job.cell->offset = 1;
    }
    if (p->job.what != JOB_WRITE && schedule_is_over(trace))
        trace->state = TRACE_ENDED;
    schedule_find_rows(&g->s);
    p->job.what = JOB_NONE;
}

/* Every worker without a job asks for one. */
static void ask(struct game *g)
{
    for (size_t i = 0; i < g->workers; i++) {
        struct player *p = &g->players[i];
        struct job job;

        if (p->job.what != JOB_NONE)
            continue;
        job = schedule_choose(&g->s);
        if (job.what != JOB_NONE && job.what != JOB_WAIT)
            begin(g, p, &job);
    }
}

/* The worker whose job ends first; NULL if none has a job. */
static struct player *first_to_end(struct game *g)
{
    struct player *first = NULL;

    for (size_t i = 0; i < g->workers; i++)
        if (g->players[i].job.what != JOB_NONE &&
            (!first || g->players[i].end < first->end))
            first = &g->players[i];
    return first;
}

/* Plays all jobs; returns the time at which the result file is complete. */
static double play(struct game *g, const struct made *m, size_t workers)
{
    struct player *p;

    setup(g, m, workers);
    for (ask(g); (p = first_to_end(g)) != NULL; ask(g)) {
        g->now = p->end;
        end(g, p);
    }
    for (size_t t = 0; t < m->traces; t++)
        assert_int_equal(g->traces[t].state, TRACE_ENDED);
    assert_int_equal(g->opens, m->traces);
    assert_int_equal(g->runs, m->traces * m->policies * CAPACITIES);
    assert_int_equal(g->s.used, g->s.rows.bytes);
    assert_int_equal(g->s.running, 0);
    assert_int_equal(g->s.rows.ready, m->traces);
    assert_int_equal(g->s.rows.written, g->rows);
    teardown(g);
    return g->now + seconds_of_rows(m, m->traces - g->rows) + m->last;
}

/* -- bounds --------------------------------------------------------------- */

struct bounds {
    double sum;      /* of all jobs, with the rows */
    double chain;    /* the longest opening and cell of a trace */
    double shortest; /* no schedule on n workers is shorter */
};

static struct bounds bounds_of(const struct made *m, size_t workers)
{
    const double n = (double)workers;
    struct bounds b = {0, 0, 0};

    for (size_t t = 0; t < m->traces; t++) {
        double longest = 0, cells = 0, chain;

        for (size_t p = 0; p < m->policies; p++) {
            const double seconds = seconds_of_cell(m, t, p);

            cells += CAPACITIES * seconds;
            longest = seconds > longest ? seconds : longest;
        }
        b.sum += m->opening[t] + cells;
        chain = m->opening[t] + longest;
        b.chain = chain > b.chain ? chain : b.chain;
        chain = m->opening[t] + (cells / n > longest ? cells / n : longest);
        b.shortest = chain > b.shortest ? chain : b.shortest;
    }
    b.sum += seconds_of_rows(m, m->traces) + m->last;
    b.shortest = b.sum / n > b.shortest ? b.sum / n : b.shortest;
    return b;
}

/* -- tests ---------------------------------------------------------------- */

/* xorshift: the same numbers on every host. */
static uint64_t next_random(uint64_t *x)
{
    *x ^= *x << 13;
    *x ^= *x >> 7;
    *x ^= *x << 17;
    return *x;
}

static double between(uint64_t *x, double least, double most)
{
    return least + (most - least) * (double)(next_random(x) % 4096) / 4096;
}

static int larger_first(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return (x < y) - (x > y);
}

static struct made random_sweep(uint64_t *x)
{
    struct made m = {.traces = 1 + next_random(x) % MOST_TRACES,
                     .policies = 1 + next_random(x) % MOST_POLICIES,
                     .memory = FRAG_UNLIMITED};

    for (size_t t = 0; t < m.traces; t++)
        m.events[t] =
            1 + (uint64_t)between(x, 0, 100) * next_random(x) % 1000000;
    qsort(m.events, m.traces, sizeof(m.events[0]), larger_first);
    for (size_t t = 0; t < m.traces; t++)
        m.opening[t] = (double)m.events[t] * between(x, 50, 1500) / 1e9;
    for (size_t p = 0; p < m.policies; p++)
        m.ns[p] = between(x, 5, 400);
    return m;
}

/* Graham: if no worker waits while a job can start, the end is at most the mean
 * plus the longest chain times 1 - 1/n. */
static void no_worker_waits(void **state)
{
    static struct game g;
    uint64_t x = 88172645463325252u;

    (void)state;
    for (int i = 0; i < 300; i++) {
        const struct made m = random_sweep(&x);
        const size_t workers = 1 + next_random(&x) % MOST_WORKERS;
        const double n = (double)workers, now = play(&g, &m, workers);
        const struct bounds b = bounds_of(&m, workers);

        if (now > (b.sum / n + b.chain * (1 - 1 / n)) * (1 + 1e-9) ||
            now < b.shortest * (1 - 1e-9))
            fail_msg(
                "sweep %d, %zu workers: %g s, the mean is %g s, a chain %g s",
                i, workers, now, b.sum / n, b.chain);
    }
}

/* The policies of tests/bench/sweep.sh, and three slow ones at the end. */
static const struct made uneven = {
    .traces = 1,
    .policies = 15,
    .events = {1818255},
    .opening = {.01},
    .ns = {28, 31, 55, 26, 19, 17, 12, 21, 25, 28, 28, 31, 73, 75, 277},
    .memory = FRAG_UNLIMITED,
};

static void the_last_cells_are_short(void **state)
{
    static struct game g;

    (void)state;
    for (size_t n = 2; n <= 8; n *= 2) {
        const double now = play(&g, &uneven, n);
        const struct bounds b = bounds_of(&uneven, n);

        if (now > 1.05 * b.shortest)
            fail_msg("%zu workers: %.0f %% of the mean", n,
                     100 * now / b.shortest);
    }
}

/* 20 recordings, and before them a long one in a trace file, or none. The row
 * and the end of the result file are those of tests/bench/README.md. */
static struct made recordings(bool with_long)
{
    struct made m = uneven;
    uint64_t x = 1;

    m.traces = with_long ? 21 : 20;
    m.policies = 12;
    m.row = 1e-4;
    m.last = .02;
    m.opening[0] = .15;
    for (size_t t = with_long; t < m.traces; t++)
        m.events[t] = (uint64_t)between(&x, 5000, 100000);
    qsort(m.events, m.traces, sizeof(m.events[0]), larger_first);
    for (size_t t = with_long; t < m.traces; t++)
        m.opening[t] = (double)m.events[t] * 600 / 1e9;
    return m;
}

/* The part of the workers' time that is used. */
static double used(const struct made *m, size_t workers)
{
    static struct game g;
    const double now = play(&g, m, workers);

    return bounds_of(m, workers).sum / (double)workers / now;
}

static void recordings_use_all_workers(void **state)
{
    static const struct {
        size_t workers;
        double some, more; /* parts that are used at least */
    } rows[] = {{1, .999, .999},
                {2, .98, .99},
                {4, .96, .98},
                {8, .90, .95},
                {16, .70, .72}};
    const struct made some = recordings(false), more = recordings(true);

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        const size_t n = rows[i].workers;

        if (used(&some, n) < rows[i].some || used(&more, n) < rows[i].more)
            fail_msg("%zu workers: %.1f %% of their time is used, with a long "
                     "recording %.1f %%",
                     n, 100 * used(&some, n), 100 * used(&more, n));
    }
}

/* The longest cells do not wait for those whose rows come first. */
static void long_cells_start_in_time(void **state)
{
    struct made m = recordings(true);

    (void)state;
    m.policies = uneven.policies;
    m.first_is_last = true;
    if (used(&m, 16) < .95)
        fail_msg("%.1f %% of the workers' time is used", 100 * used(&m, 16));
}

/* Rows that are written while cells run are not left for the end. */
static void early_rows_save_time(void **state)
{
    struct made m = recordings(false);
    double early;

    (void)state;
    for (size_t n = 2; n <= 16; n *= 2) {
        m.is_late = false;
        early = used(&m, n);
        m.is_late = true;
        if (early < used(&m, n) * (1 + .02 * (double)n))
            fail_msg("%zu workers: %.1f %%, with late rows %.1f %%", n,
                     100 * early, 100 * used(&m, n));
    }
}

/* A trace with more than the share of a worker is opened first; the others
 * follow in the order of the results. */
static void large_traces_are_opened_first(void **state)
{
    static struct game g;
    const struct made m = recordings(true);

    (void)state;
    setup(&g, &m, 4);
    assert_int_equal(g.traces[0].index, 0);
    assert_int_not_equal(g.order[0]->index, 0);
    for (size_t t = 2; t < m.traces; t++)
        assert_true(strcmp(g.traces[t - 1].path, g.traces[t].path) < 0);
    teardown(&g);
}

/* Rows of traces with one path may alternate: they wait for both. */
static void traces_of_one_path_are_one_unit(void **state)
{
    static struct game g;
    const struct made m = recordings(false);

    (void)state;
    setup(&g, &m, 1);
    g.order[1]->path = g.order[0]->path;
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(g.s.rows.ready, i < 2 ? 0 : 2);
        for (size_t k = 0; k < g.order[i]->count; k++)
            g.order[i]->cells[k].offset = 1;
        schedule_find_rows(&g.s);
        g.order[i]->state = TRACE_ENDED;
        schedule_find_rows(&g.s);
    }
    assert_int_equal(g.s.rows.ready, 3);
    teardown(&g);
}

/* The cells of two devices are of two lengths. */
static void devices_have_groups(void **state)
{
    struct sweep_cell cells[] = {{.device = 0},
                                 {.device = 0},
                                 {.device = 1},
                                 {.device = 1, .policy = 1}};
    struct sweep_trace trace = {.cells = cells, .count = 4};

    (void)state;
    assert_true(schedule_prepare(&trace));
    assert_int_equal(trace.group_count, 3);
    assert_int_equal(trace.groups[1].next, 2);
    assert_int_equal(trace.groups[1].end, 3);
    free(trace.groups);
}

/* With room for one trace only, one is opened at a time. */
static void the_budget_holds(void **state)
{
    static struct game g;
    struct made m = recordings(true);
    frag_size most = 0;

    (void)state;
    m.memory = 1;
    play(&g, &m, 16);
    for (size_t t = 0; t < m.traces; t++) {
        const frag_size opening = (frag_size)(m.opening[t] * 1e9);

        most = opening > most ? opening : most;
    }
    assert_true(g.most_used <= most);
    assert_true(g.most_used > 1);
    assert_int_equal(g.rows, 0);
}

/* Early rows take a quarter of the memory at most. */
static void rows_leave_room_for_cells(void **state)
{
    static struct game g;
    struct made m = recordings(false);

    (void)state;
    m.memory = 20 * FRAG_MIB;
    for (size_t t = 0; t < m.traces; t++)
        m.opening[t] = 1e-6;
    play(&g, &m, 4);
    assert_true(g.rows > 0);
    assert_true(g.s.rows.bytes <= m.memory / 4);
}

/* On one worker, a trace is opened after the last cell of the one before. */
static void one_worker_has_one_open_trace(void **state)
{
    static struct game g;
    struct made m = recordings(true);
    struct job job;
    bool open = false;

    (void)state;
    setup(&g, &m, 1);
    while ((job = schedule_choose(&g.s)).what != JOB_NONE) {
        assert_int_not_equal(job.what, JOB_WAIT);
        assert_true(job.what != JOB_OPEN || !open);
        begin(&g, &g.players[0], &job);
        end(&g, &g.players[0]);
        open = job.trace ? job.trace->state == TRACE_OPEN : open;
    }
    assert_int_equal(g.opens, m.traces);
    teardown(&g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_worker_waits),
        cmocka_unit_test(the_last_cells_are_short),
        cmocka_unit_test(recordings_use_all_workers),
        cmocka_unit_test(long_cells_start_in_time),
        cmocka_unit_test(early_rows_save_time),
        cmocka_unit_test(large_traces_are_opened_first),
        cmocka_unit_test(traces_of_one_path_are_one_unit),
        cmocka_unit_test(devices_have_groups),
        cmocka_unit_test(the_budget_holds),
        cmocka_unit_test(rows_leave_room_for_cells),
        cmocka_unit_test(one_worker_has_one_open_trace),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
