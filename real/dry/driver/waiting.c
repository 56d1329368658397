/* waiting.c - streams, events and captures: work finishes at once, or lazily.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "real/dry/driver/capture.h"
#include "real/dry/driver/dry_driver.h"
#include "real/dry/driver/places.h"
#include "real/dry/dry_notes.h"
#include "real/dry/dry_shadow.h"
#include "real/dry/stubs.h"

enum { THREAD_NAME = 16, PATIENCE = 16 /* waits */, IDLE = 10 /* looks */ };

static void *made(size_t size)
{
    void *it = calloc(1, size);

    if (!it)
        abort();
    return it;
}

static struct dry_stream *stream_of(cu_stream name)
{
    struct dry_stream *s = dry.streams;

    while (s && s->name != name)
        s = s->next;
    if (s)
        return s;
    s = made(sizeof(*s));
    s->name = name;
    s->next = dry.streams;
    return dry.streams = s;
}

/* Bytes that the first stream takes beside the default one: measured on an
 * H200. */
enum { STREAMS = 70 << 20 };

static void hold(int device, int64_t bytes)
{
    struct gpu *gpu = &dry.gpus[device];

    gpu->used += (uint64_t)bytes;
    gpu->held += (uint64_t)bytes;
    if (gpu->held_most < gpu->held)
        gpu->held_most = gpu->held;
}

cu_result cuStreamCreate(cu_stream *stream, unsigned flags)
{
    (void)flags;
    ENTER();
    NEEDS_CONTEXT();
    /* PyTorch keeps marks in the low bits of a stream. */
    *stream = (cu_stream)(uintptr_t)(++dry.handles << 4);
    stream_of(*stream);
    if (dry.is_empty && !dry_current()->has_streams)
        hold(dry_current_device(), STREAMS);
    dry_current()->has_streams = true;
    if (dry.is_empty)
        place_stream(dry_current_device(), dry.gpu_count, dry.capacity);
    LEAVE(CU_SUCCESS);
}

cu_result cuStreamDestroy_v2(cu_stream stream)
{
    pthread_mutex_lock(&dry.lock);
    stream_of(stream)->destroyed = true;
    pthread_mutex_unlock(&dry.lock);
    return CU_SUCCESS;
}

static struct dry_event *event_of(cu_event event)
{
    return (struct dry_event *)(void *)event;
}

static void count_wait(cu_stream stream, cu_stream other)
{
    struct wait *w = dry.waits;

    while (w && (w->stream != stream || w->other != other))
        w = w->next;
    if (!w) {
        w = made(sizeof(*w));
        *w = (struct wait){.next = dry.waits, .stream = stream, .other = other};
        dry.waits = w;
    }
    w->count++;
}

static void note_wait(struct dry_stream *s, const struct dry_event *e)
{
    struct need *n;

    if (!e->stream)
        return;
    if (e->when >= e->stream->queued) /* the stream has no later work */
        count_wait(s->name, e->stream->name);
    if (e->stream == s || e->when <= e->stream->done)
        return;
    n = made(sizeof(*n));
    *n = (struct need){s->needs, s->queued + 1, e->stream, e->when};
    s->needs = n;
}

cu_result cuStreamWaitEvent(cu_stream stream, cu_event event, unsigned flags)
{
    ENTER();
    if (flags)
        LEAVE(dry_blame("cuStreamWaitEvent with flags"));
    if (stream_of(stream)->destroyed)
        LEAVE(INVALID_HANDLE);
    if (event_of(event)->captured)
        capture_joins(stream, event_of(event)->stream->name);
    else if (capture_has(stream))
        LEAVE(capture_refuses("cuStreamWaitEvent")); /* needs work outside */
    note_wait(stream_of(stream), event_of(event));
    LEAVE(CU_SUCCESS);
}

cu_result cuEventCreate(cu_event *event, unsigned flags)
{
    (void)flags;
    ENTER();
    *event = made(sizeof(struct dry_event));
    dry.events++;
    LEAVE(CU_SUCCESS);
}

cu_result cuEventRecord(cu_event event, cu_stream stream)
{
    struct dry_event *e = event_of(event);

    ENTER();
    if (stream_of(stream)->destroyed)
        LEAVE(INVALID_HANDLE);
    e->stream = stream_of(stream);
    e->captured = capture_has(stream);
    e->when = ++e->stream->queued;
    e->waits = dry.waits_of_host;
    if (!dry.lazy)
        e->stream->done = e->when;
    LEAVE(CU_SUCCESS);
}

/* Whether work that has ended may still count as running for the thread that
 * asks: NCCL's, which looks every 100 ms and frees what collectives used when
 * it finds them ended. How often the program waits for the device in that time,
 * on a GPU, is not known. With FRAGSIM_DRY_PROMPT no work is late. */
static bool is_late(struct dry_event *e)
{
    static __thread char name[THREAD_NAME];
    const uint64_t launches = frag_dry_launches();

    e->idle = e->launches == launches ? e->idle + 1 : 0;
    e->launches = launches;
    if (dry.prompt || dry.waits_of_host > e->waits + PATIENCE ||
        e->idle >= IDLE)
        return false;
    if (!*name && pthread_getname_np(pthread_self(), name, sizeof(name)))
        *name = ' ';
    return strcmp(name, "pt_nccl_watchdg") == 0;
}

cu_result cuEventQuery(cu_event event)
{
    struct dry_event *e = event_of(event);
    cu_result code = CU_NOT_READY;
    bool late = false;

    pthread_mutex_lock(&dry.lock);
    dry_count(__func__);
    if (e->captured || capture_forbids())
        code = capture_refuses("cuEventQuery");
    else if (!e->stream || e->when <= e->stream->done)
        late = e->stream && is_late(e), code = late ? code : CU_SUCCESS;
    pthread_mutex_unlock(&dry.lock);
    if (late)
        frag_dry_note(DRY_LATE, "collectives");
    return code;
}

cu_result cuEventDestroy_v2(cu_event event)
{
    pthread_mutex_lock(&dry.lock);
    dry.events--;
    pthread_mutex_unlock(&dry.lock);
    free(event_of(event));
    return CU_SUCCESS;
}

/* The work of the stream up to `when` ended, and with it what the work up to
 * `waiting` waited for. */
static void end_work(struct dry_stream *s, uint64_t when, uint64_t waiting)
{
    struct need **where = &s->needs;

    if (s->done < when)
        s->done = when;
    while (*where) {
        struct need *n = *where;

        if (n->before > waiting) {
            where = &n->next;
            continue;
        }
        *where = n->next;
        end_work(n->other, n->when, n->when);
        free(n);
        where = &s->needs;
    }
}

/* Waits for one stream, or for what an event marks. */
static cu_result finish(const char *name, struct dry_stream *s, uint64_t when,
                        uint64_t waiting)
{
    if (s && s->destroyed)
        return INVALID_HANDLE;
    if (s ? capture_has(s->name) : capture_forbids())
        return capture_refuses(name);
    dry.waits_of_host++;
    if (s)
        end_work(s, when, waiting);
    return CU_SUCCESS;
}

cu_result cuStreamSynchronize(cu_stream stream)
{
    struct dry_stream *s;

    ENTER();
    s = stream_of(stream);
    LEAVE(finish("cuStreamSynchronize", s, s->queued, s->queued + 1));
}

cu_result cuStreamQuery(cu_stream stream)
{
    const struct dry_stream *s;

    ENTER();
    s = stream_of(stream);
    if (s->destroyed)
        LEAVE(INVALID_HANDLE);
    if (capture_has(stream) || capture_forbids())
        LEAVE(capture_refuses("cuStreamQuery"));
    LEAVE(s->done < s->queued ? CU_NOT_READY : CU_SUCCESS);
}

cu_result cuEventSynchronize(cu_event event)
{
    const struct dry_event *e = event_of(event);

    ENTER();
    if (e->captured)
        LEAVE(capture_refuses("cuEventSynchronize"));
    LEAVE(finish("cuEventSynchronize", e->stream, e->when, e->when));
}

/* ---- captures ---- */

cu_result cuStreamBeginCapture_v2(cu_stream stream, int mode)
{
    ENTER();
    LEAVE(capture_begin(stream, mode));
}

cu_result cuStreamEndCapture(cu_stream stream, void **graph)
{
    ENTER();
    LEAVE(capture_end(stream, graph));
}

cu_result cuStreamGetCaptureInfo(cu_stream stream, int *status, uint64_t *id)
{
    pthread_mutex_lock(&dry.lock);
    *status = capture_status(stream, id);
    pthread_mutex_unlock(&dry.lock);
    return CU_SUCCESS;
}

DRY_EXPORT cu_result cuStreamIsCapturing(cu_stream stream, int *status)
{
    uint64_t id;

    return cuStreamGetCaptureInfo(stream, status, &id);
}

cu_result cuThreadExchangeStreamCaptureMode(int *mode)
{
    capture_exchange(mode);
    return CU_SUCCESS;
}

void frag_dry_queue(cu_stream stream)
{
    pthread_mutex_lock(&dry.lock);
    stream_of(stream)->queued++;
    pthread_mutex_unlock(&dry.lock);
}

void frag_dry_finish(cu_stream stream)
{
    pthread_mutex_lock(&dry.lock);
    stream_of(stream)->done = stream_of(stream)->queued;
    pthread_mutex_unlock(&dry.lock);
}

uint64_t frag_dry_waits(cu_stream stream, cu_stream other)
{
    uint64_t count = 0;

    for (const struct wait *w = dry.waits; w; w = w->next)
        if (w->stream == stream && w->other == other)
            count += w->count;
    return count;
}

uint64_t frag_dry_synchronizes(void)
{
    return dry.synchronizes;
}

void frag_dry_hold(int device, int64_t bytes)
{
    pthread_mutex_lock(&dry.lock);
    hold(device, bytes);
    pthread_mutex_unlock(&dry.lock);
}

void frag_dry_take(uint64_t *seen, unsigned each, unsigned first)
{
    const int device = dry_current() ? dry_current_device() : 0;
    const uint64_t bit = UINT64_C(1) << device;
    const bool again = __atomic_fetch_or(seen, bit, __ATOMIC_RELAXED) & bit;

    frag_dry_hold(device, (int64_t)(each + (again ? 0 : first)) << 20);
}

uint64_t frag_dry_dropped(int device)
{
    return dry.gpus[device].held_most - dry.gpus[device].held;
}

uint64_t frag_dry_events(void)
{
    return dry.events;
}
