/* batch_job.h - a training program whose requests at every batch size are known
 * in closed form. */
#ifndef FRAG_TESTS_SUPPORT_BATCH_JOB_H
#define FRAG_TESTS_SUPPORT_BATCH_JOB_H

#include <string.h>

#include "traces/trace.h"

enum { BATCH_LAYERS = 4, BATCH_STEPS = 3, BATCH_EVENTS = 400 };

struct batch_job {
    uint64_t batch;
    bool squares;   /* a matrix of batch * batch elements */
    bool extra;     /* a copy that smaller batch sizes do not make */
    bool algorithm; /* another algorithm for the workspace */
};

struct batch_trace {
    uint8_t op[BATCH_EVENTS];
    uint32_t id[BATCH_EVENTS];
    uint64_t bytes[BATCH_EVENTS];
    frag_stream stream[BATCH_EVENTS];
    frag_pool pool[BATCH_EVENTS];
    uint64_t streams[1];
    struct frag_pool_id pools[1];
    struct frag_device_trace d;
};

static inline void batch_put(struct batch_trace *t, enum frag_op op,
                             uint32_t slot, frag_size bytes)
{
    const uint64_t i = t->d.count++;

    t->op[i] = (uint8_t)op;
    t->id[i] = slot;
    t->bytes[i] = bytes;
    if (slot >= t->d.slots)
        t->d.slots = slot + 1;
}

/* The sizes. */
static inline frag_size batch_weight(unsigned k)
{
    return (k + 1) * FRAG_MIB;
}

static inline frag_size batch_activation(unsigned k, uint64_t batch)
{
    return 4000 + (k + 2) * batch * 100000;
}

static inline frag_size batch_workspace(const struct batch_job *j)
{
    return j->algorithm ? 700001 * j->batch : 3000 + j->batch * 300032;
}

static inline frag_size batch_square(uint64_t batch)
{
    return batch * batch * 40000;
}

static inline void batch_step(struct batch_trace *t, const struct batch_job *j)
{
    enum { FIRST = BATCH_LAYERS, SCRATCH = 2 * BATCH_LAYERS };

    for (unsigned k = 0; k < BATCH_LAYERS; k++) {
        batch_put(t, FRAG_ALLOC, FIRST + k, batch_activation(k, j->batch));
        batch_put(t, FRAG_ALLOC, SCRATCH, batch_workspace(j));
        batch_put(t, FRAG_FREE, SCRATCH, 0);
    }
    if (j->squares)
        batch_put(t, FRAG_ALLOC, SCRATCH + 1, batch_square(j->batch));
    if (j->extra)
        batch_put(t, FRAG_ALLOC, SCRATCH + 2, 50001 * j->batch);
    for (unsigned k = BATCH_LAYERS; k-- > 0;)
        batch_put(t, FRAG_FREE, FIRST + k, 0);
    if (j->extra)
        batch_put(t, FRAG_FREE, SCRATCH + 2, 0);
    if (j->squares)
        batch_put(t, FRAG_FREE, SCRATCH + 1, 0);
}

static inline const struct frag_device_trace *
batch_trace(struct batch_trace *t, const struct batch_job *j)
{
    memset(t, 0, sizeof(*t));
    t->d = (struct frag_device_trace){
        .op = t->op,
        .id = t->id,
        .bytes = t->bytes,
        .stream = t->stream,
        .pool = t->pool,
        .stream_count = 1,
        .pool_count = 1,
        .streams = t->streams,
        .pools = t->pools,
    };
    for (unsigned k = 0; k < BATCH_LAYERS; k++)
        batch_put(t, FRAG_ALLOC, k, batch_weight(k));
    for (unsigned s = 0; s < BATCH_STEPS; s++)
        batch_step(t, j);
    return &t->d;
}

#endif
