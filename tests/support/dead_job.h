/* dead_job.h - a training loop whose needs are known in closed form, recorded
 * until it ends or until a request fails. Its shape varies from step to step,
 * so tests can compare what a dead job's trace is completed to with the run
 * that did not die. */
#ifndef FRAG_TESTS_SUPPORT_DEAD_JOB_H
#define FRAG_TESTS_SUPPORT_DEAD_JOB_H

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "traces/build/build.h"

enum { JOB_LAYERS = 6, JOB_BLOCKS = 4 * JOB_LAYERS + 8 };

struct job {
    uint64_t steps;
    bool varies, leaks, marks;
    uint64_t dies_in; /* step; UINT64_MAX: it does not die */
    unsigned dies_at; /* request of that step, from 0 */
    frag_size giant;  /* bytes of that request, if not 0 */
    frag_size jump;   /* shape of that step, if not 0 */
    bool goes_on;     /* the program survives the failed request */
};

struct job_run {
    const struct job *job;
    struct frag_build *build;
    frag_addr next;
    frag_time time;
    uint64_t requests; /* of the step */
    uint64_t step;
    bool dead;
    frag_addr left[JOB_BLOCKS]; /* live temporary blocks of the step */
    frag_size sizes[JOB_BLOCKS];
    unsigned left_count;
};

/* The size of the input of a step. */
static inline frag_size job_shape(const struct job *j, uint64_t step)
{
    if (j->jump && step == j->dies_in)
        return j->jump;
    return j->varies ? 1 + step * 7 % 5 : 3;
}

static inline enum frag_err job_put(struct job_run *r, enum frag_entry_kind k,
                                    frag_addr addr, frag_size size)
{
    const struct frag_entry entry = {
        .kind = k, .addr = addr, .size = size, .time = r->time += 1000};

    return frag_build_entry(r->build, 0, &entry, r->time / 1000, NULL);
}

/* Allocates; in the step and at the request where the job dies, the request
 * fails. */
static inline frag_addr job_alloc(struct job_run *r, frag_size size)
{
    const frag_addr addr = r->next += (frag_addr)1 << 32;

    if (r->dead)
        return 0;
    if (r->step == r->job->dies_in && r->requests++ == r->job->dies_at) {
        r->dead = true;
        (void)!job_put(r, FRAG_ENTRY_OOM, 0,
                       r->job->giant ? r->job->giant : size);
        return 0;
    }
    (void)!job_put(r, FRAG_ENTRY_ALLOC, addr, size);
    r->left[r->left_count] = addr;
    r->sizes[r->left_count++] = size;
    return addr;
}

static inline void job_free(struct job_run *r, unsigned i)
{
    if (r->dead || !r->left[i])
        return;
    (void)!job_put(r, FRAG_ENTRY_FREE_REQUESTED, r->left[i], r->sizes[i]);
    (void)!job_put(r, FRAG_ENTRY_FREE_COMPLETED, r->left[i], r->sizes[i]);
    r->left[i] = 0;
}

static inline void job_keep(struct job_run *r)
{
    r->left_count--;
}

/* A step: activations forward, for each layer a gradient of its input and one
 * of its weights backward, logits whose size is a linear function of the
 * shape. */
static inline void job_step(struct job_run *r)
{
    const frag_size shape = job_shape(r->job, r->step);
    unsigned weights;

    r->left_count = 0;
    r->requests = 0;
    for (unsigned k = 0; k < JOB_LAYERS; k++)
        job_alloc(r, (k + 1) * shape << 20);
    job_alloc(r, (64 << 10) + (shape * 5 << 20)); /* logits and a workspace */
    for (unsigned k = JOB_LAYERS; k-- > 0;) {
        const unsigned at = r->left_count;

        job_alloc(r, (k + 1) * shape << 20);
        job_alloc(r, (k + 1) << 18); /* the gradient of the weights */
        job_free(r, at);
        job_free(r, k);
    }
    job_free(r, JOB_LAYERS);
    weights = JOB_LAYERS + 2;
    for (unsigned k = 0; k < JOB_LAYERS; k++)
        job_free(r, weights + 2 * k);
    if (r->job->leaks) {
        job_alloc(r, 256 << 10);
        job_keep(r);
    }
    if (r->job->marks && !r->dead) {
        static const char name[] = "Optimizer.step#7";

        (void)!frag_build_mark(r->build, 0, FRAG_MARK_BEGIN, r->time + 1, name,
                               sizeof(name) - 1, NULL);
        (void)!frag_build_mark(r->build, 0, FRAG_MARK_END, r->time + 2, name,
                               sizeof(name) - 1, NULL);
    }
}

/* The trace of the job; after its death the program frees what it holds. NULL
 * if the builder refuses it. */
static inline struct frag_trace *job_trace(const struct job *j)
{
    struct job_run r = {.job = j, .build = frag_build_open("job", "test")};
    struct frag_trace *trace = NULL;

    r.step = UINT64_MAX - 1;
    for (unsigned k = 0; k < JOB_LAYERS; k++) {
        job_alloc(&r, (k + 1) << 18); /* weights */
        job_keep(&r);
    }
    for (r.step = 0; r.step < j->steps && !r.dead; r.step++) {
        job_step(&r);
        if (!r.dead)
            continue;
        r.dead = false;
        for (unsigned k = r.left_count; k-- > 0;)
            job_free(&r, k);
        r.dead = !j->goes_on;
    }
    if (frag_build_finish(r.build, NULL, &trace, NULL) != FRAG_OK)
        trace = NULL;
    frag_build_close(r.build);
    return trace;
}

#endif
