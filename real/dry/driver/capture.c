/* capture.c - stream captures of the fake driver (capture.h): which streams a
 * capture has, and which calls it forbids. cudart.c keeps the copies of a
 * graph. */
#include "real/dry/driver/capture.h"

#include <pthread.h>
#include <stdio.h>

enum { GLOBAL, THREAD_LOCAL, RELAXED }; /* CUstreamCaptureMode */
enum { NONE, ACTIVE, INVALIDATED };     /* CUstreamCaptureStatus */
enum { UNSUPPORTED = 900, INVALID = 901, UNMATCHED = 903 };
enum { MOST_CAPTURES = 8, MOST_STREAMS = 32 };

static struct capture {
    uint64_t id; /* 0: an unused row */
    pthread_t thread;
    int mode;
    bool invalid;
    cu_stream streams[MOST_STREAMS]; /* the first began it */
    int count;
} captures[MOST_CAPTURES];

static uint64_t last_id;
static __thread int thread_mode = GLOBAL;

static struct capture *of_stream(cu_stream stream)
{
    for (struct capture *c = captures; c < captures + MOST_CAPTURES; c++)
        for (int i = 0; c->id && i < c->count; i++)
            if (c->streams[i] == stream)
                return c;
    return NULL;
}

cu_result capture_begin(cu_stream stream, int mode)
{
    if (!stream ||
        of_stream(stream)) /* the default stream cannot be captured */
        return UNSUPPORTED;
    for (struct capture *c = captures; c < captures + MOST_CAPTURES; c++)
        if (!c->id) {
            *c = (struct capture){.id = ++last_id,
                                  .thread = pthread_self(),
                                  .mode = mode,
                                  .streams = {stream},
                                  .count = 1};
            return CU_SUCCESS;
        }
    return UNSUPPORTED;
}

cu_result capture_end(cu_stream stream, void **graph)
{
    struct capture *c = of_stream(stream);

    *graph = NULL;
    if (!c || c->streams[0] != stream)
        return UNMATCHED;
    if (!c->invalid)
        *graph = (void *)(uintptr_t)(c->id << 4);
    c->id = 0;
    return *graph ? CU_SUCCESS : INVALID;
}

int capture_status(cu_stream stream, uint64_t *id)
{
    const struct capture *c = of_stream(stream);

    if (c)
        *id = c->id;
    return !c ? NONE : c->invalid ? INVALIDATED : ACTIVE;
}

bool capture_has(cu_stream stream)
{
    return of_stream(stream) != NULL;
}

bool capture_is_active(void)
{
    for (int i = 0; i < MOST_CAPTURES; i++)
        if (captures[i].id)
            return true;
    return false;
}

void capture_joins(cu_stream stream, cu_stream captured)
{
    struct capture *c = of_stream(captured);

    if (c && !of_stream(stream) && c->count < MOST_STREAMS)
        c->streams[c->count++] = stream;
}

bool capture_forbids(void)
{
    if (thread_mode == RELAXED)
        return false;
    for (int i = 0; i < MOST_CAPTURES; i++) {
        const struct capture *c = &captures[i];
        const bool mine = c->id && pthread_equal(c->thread, pthread_self());

        if (c->id && c->mode != RELAXED &&
            (mine || (thread_mode == GLOBAL && c->mode == GLOBAL)))
            return true;
    }
    return false;
}

cu_result capture_refuses(const char *name)
{
    fprintf(stderr, "fragsim dry: %s during a capture\n", name);
    for (int i = 0; i < MOST_CAPTURES; i++)
        captures[i].invalid = true;
    return UNSUPPORTED;
}

void capture_exchange(int *mode)
{
    const int before = thread_mode;

    thread_mode = *mode;
    *mode = before;
}
