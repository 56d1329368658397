/* comm.c - finds the buffers of the communication between ranks. */
#include "sim/answers/ranks/comm.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "sim/answers/moment.h"
#include "sim/answers/sites.h"
#include "traces/facts.h"

static const char *const words[] = {
    "nccl",       "c10d",       "distributed",    "fsdp",
    "all_reduce", "all_gather", "reduce_scatter", "reducer"};

/* The functions that run a module. */
static const char *const runners[] = {"forward", "_call_impl",
                                      "_wrapped_call_impl"};

static bool contains(const char *text, const char *word)
{
    const size_t length = strlen(word);

    for (; *text; text++)
        if (!strncasecmp(text, word, length))
            return true;
    return false;
}

static bool is_named(const char *text)
{
    for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
        if (contains(text, words[i]))
            return true;
    return false;
}

static bool runs_module(const char *function)
{
    for (size_t i = 0; i < sizeof(runners) / sizeof(*runners); i++)
        if (!strcmp(function, runners[i]))
            return true;
    return false;
}

bool comm_is_stack(const struct frag_trace *t, uint32_t stack)
{
    if (stack >= t->stack_count)
        return false;
    for (uint64_t i = t->stack_first[stack]; i < t->stack_first[stack + 1];
         i++) {
        const struct frag_frame *f = &t->frames[i];

        if (runs_module(t->strings[f->function]))
            return false;
        if (is_named(t->strings[f->function]))
            return true;
        if (!site_is_library(t, f))
            return false;
        if (is_named(t->strings[f->file]))
            return true;
    }
    return false;
}

static bool has_stacks(const struct frag_device_trace *d)
{
    for (uint64_t i = 0; d->stack && i < d->count; i++)
        if (d->stack[i])
            return true;
    return false;
}

/* The stream with the most requested bytes; the first one of several. */
static enum frag_err find_main(const struct frag_device_trace *d,
                               frag_stream *main, struct frag_error *e)
{
    double *sums = calloc((size_t)d->stream_count + 1, sizeof(*sums));

    if (!sums)
        return frag_no_memory(e, "the streams");
    for (uint64_t i = 0; i < d->count; i++)
        if (d->op[i] == FRAG_ALLOC && !facts_has_failed(d, i))
            sums[d->stream[i]] += (double)d->bytes[i];
    *main = 0;
    for (uint32_t i = 1; i < d->stream_count; i++)
        if (sums[i] > sums[*main])
            *main = (frag_stream)i;
    free(sums);
    return FRAG_OK;
}

static void add(const struct frag_trace *t, const struct moment_block *b,
                struct comm *c)
{
    if (b->pending)
        return;
    c->of += b->bytes;
    if (b->stream == c->main && !comm_is_stack(t, b->stack))
        return;
    c->blocks++;
    c->bytes += b->bytes;
}

enum frag_err comm_measure(const struct frag_trace *t,
                           const struct frag_device_trace *d, struct comm *out,
                           struct frag_error *e)
{
    struct comm c = {.basis = has_stacks(d)         ? COMM_STACKS
                              : d->stream_count > 1 ? COMM_STREAMS
                                                    : COMM_UNKNOWN};
    struct moment m;
    uint64_t event;

    FRAG_TRY(find_main(d, &c.main, e));
    FRAG_TRY(moment_read(t, d, "peak", &event, e));
    FRAG_TRY(moment_open(d, event, &m, e));
    for (uint64_t i = 0; i < m.count; i++)
        add(t, &m.blocks[i], &c);
    moment_close(&m);
    *out = c;
    return FRAG_OK;
}
