/* window.c - passes the events of a script on in windows. The columns then hold
 * at most one window, so the builder's memory does not grow with the events. */
#include "traces/build/build_device.h"

void frag_build_in_windows(struct frag_build *b,
                           const struct frag_windows *windows)
{
    b->windows = windows;
}

/* The first window sorts the streams, and no later stream is out of order. */
bool build_stream_is_in_order(const struct device_build *d, uint32_t index)
{
    return !d->passed || !index || d->streams[index] > d->streams[index - 1];
}

enum frag_err build_pass(const struct frag_build *b, struct device_build *d,
                         struct frag_error *e)
{
    const struct columns *c = &d->events;

    if (!c->count)
        return FRAG_OK;
    if (!d->passed)
        FRAG_TRY(build_streams(d));
    FRAG_TRY(b->windows->each(b->windows->user,
                              &(const struct frag_device_trace){
                                  .device = d->device,
                                  .slots = d->slots,
                                  .count = c->count,
                                  .op = c->op,
                                  .id = c->id,
                                  .bytes = c->bytes,
                                  .stream = c->stream,
                                  .pool = c->pool,
                                  .stream_count = (uint32_t)d->stream_count,
                                  .pool_count = (uint32_t)d->pool_count,
                                  .streams = d->streams,
                                  .pools = d->pools,
                              },
                              e));
    d->passed += c->count;
    d->events.count = 0;
    return FRAG_OK;
}
