/* recorder.c - records what a policy asks of the device, for each half of the
 * requests. */
#include <stdlib.h>

#include "sim/arena/arena.h"
#include "sim/experiments/tune/script.h"
#include "traces/grow.h"
#include "traces/torch_sizes.h"

/* A range of addresses and a handle, as long as the policy holds them. */
struct recorded_range {
    frag_addr addr;
    frag_size size; /* 0: returned */
    enum half half;
    uint32_t index; /* in the script of its half */
};

struct recorded_phys {
    frag_phys phys; /* 0: released */
    enum half half;
    uint32_t index;
};

static struct recorder *recorder_of(struct frag_backend *mem)
{
    return (struct recorder *)mem; /* base is the first member */
}

/* ---- the event ---- */

/* Whether the run returns its memory after the last event. */
static bool has_ended(const struct recorder *r)
{
    return *r->now >= r->trace->count;
}

static uint64_t event_of(const struct recorder *r)
{
    return r->event ? r->event[*r->now] : *r->now;
}

static bool is_request(const struct recorder *r)
{
    return r->trace->op[*r->now] == FRAG_ALLOC;
}

/* The half of the current request. */
static enum half half_now(const struct recorder *r)
{
    return r->trace->bytes[*r->now] > TORCH_SMALL_SIZE ? LARGE : SMALL;
}

/* ---- rows ---- */

static void add(struct recorder *r, enum half half, struct script_row row)
{
    struct script *s = &r->halves[half];

    row.event = event_of(r);
    if (GROW(s->rows, s->row_room, s->count + 1))
        s->rows[s->count++] = row;
    else
        r->failed = true;
}

/* Adds a range that was made for the current request. */
static void add_range(struct recorder *r, enum script_call call, frag_addr addr,
                      frag_size size)
{
    const enum half half = half_now(r);
    struct script *s = &r->halves[half];

    if (!GROW(r->ranges, r->range_room, r->range_count + 1) ||
        !GROW(s->addr, s->range_room, s->ranges + 1)) {
        r->failed = true;
        return;
    }
    r->ranges[r->range_count++] =
        (struct recorded_range){addr, size, half, (uint32_t)s->ranges};
    s->addr[s->ranges++] = addr;
    add(r, half, (struct script_row){.call = call, .size = size});
}

static struct recorded_range *range_at(const struct recorder *r, frag_addr addr)
{
    for (uint64_t i = r->range_count; i-- > 0;)
        if (addr - r->ranges[i].addr < r->ranges[i].size)
            return &r->ranges[i];
    return NULL;
}

static struct recorded_phys *phys_of(const struct recorder *r, frag_phys phys)
{
    for (uint64_t i = r->handle_count; i-- > 0;)
        if (r->handles[i].phys == phys)
            return &r->handles[i];
    return NULL;
}

static void add_in_range(struct recorder *r, enum script_call call,
                         frag_addr addr, frag_size size, uint32_t phys)
{
    const struct recorded_range *g = range_at(r, addr);

    if (!g) {
        r->failed = true;
        return;
    }
    add(r, g->half,
        (struct script_row){.call = call,
                            .range = g->index,
                            .at = addr - g->addr,
                            .size = size,
                            .phys = phys});
}

/* ---- the calls ---- */

/* Plays the other half up to the current event. A call that makes memory
 * belongs to a request, a call that returns memory to an empty_cache: with a
 * failure, a policy does otherwise, and its halves depend on each other. */
static bool begins(struct recorder *r, bool makes)
{
    if (has_ended(r))
        return false;
    r->failed |= is_request(r) != makes;
    if (r->other)
        r->failed |= player_play(r->other, r->under, event_of(r)) != FRAG_OK;
    return !r->failed;
}

/* Notes the answer of a call; whether the call is recorded. */
static bool served(struct recorder *r, bool recorded, enum frag_err err)
{
    r->failed |= err != FRAG_OK && !has_ended(r);
    return recorded && err == FRAG_OK;
}

static enum frag_err segment_alloc(struct frag_backend *mem, frag_size size,
                                   frag_addr *addr)
{
    struct recorder *r = recorder_of(mem);
    const bool recorded = begins(r, true);
    const enum frag_err err =
        r->under->ops->segment_alloc(r->under, size, addr);

    if (served(r, recorded, err))
        add_range(r, SCRIPT_SEGMENT_ALLOC, *addr, size);
    return err;
}

static void drop_range(struct recorder *r, enum script_call call,
                       frag_addr addr, frag_size size)
{
    add_in_range(r, call, addr, size, 0);
    if (!r->failed)
        range_at(r, addr)->size = 0;
}

static enum frag_err segment_free(struct frag_backend *mem, frag_addr addr,
                                  frag_size size)
{
    struct recorder *r = recorder_of(mem);
    const bool recorded = begins(r, false);
    const enum frag_err err = r->under->ops->segment_free(r->under, addr, size);

    if (served(r, recorded, err))
        drop_range(r, SCRIPT_SEGMENT_FREE, addr, size);
    return err;
}

static enum frag_err va_reserve(struct frag_backend *mem, frag_size size,
                                frag_addr *addr)
{
    struct recorder *r = recorder_of(mem);
    const bool recorded = begins(r, true);
    const enum frag_err err = r->under->ops->va_reserve(r->under, size, addr);

    if (served(r, recorded, err))
        add_range(r, SCRIPT_VA_RESERVE, *addr, size);
    return err;
}

static enum frag_err va_free(struct frag_backend *mem, frag_addr addr,
                             frag_size size)
{
    struct recorder *r = recorder_of(mem);
    const bool recorded = begins(r, false);
    const enum frag_err err = r->under->ops->va_free(r->under, addr, size);

    if (served(r, recorded, err))
        drop_range(r, SCRIPT_VA_FREE, addr, size);
    return err;
}

static void add_phys(struct recorder *r, frag_phys phys, frag_size size)
{
    const enum half half = half_now(r);

    if (!GROW(r->handles, r->handle_room, r->handle_count + 1)) {
        r->failed = true;
        return;
    }
    r->handles[r->handle_count++] =
        (struct recorded_phys){phys, half, (uint32_t)r->halves[half].handles++};
    add(r, half, (struct script_row){.call = SCRIPT_PHYS_CREATE, .size = size});
}

static enum frag_err phys_create(struct frag_backend *mem, frag_size size,
                                 frag_phys *phys)
{
    struct recorder *r = recorder_of(mem);
    const bool recorded = begins(r, true);
    const enum frag_err err = r->under->ops->phys_create(r->under, size, phys);

    if (served(r, recorded, err))
        add_phys(r, *phys, size);
    return err;
}

static void drop_phys(struct recorder *r, frag_phys phys, frag_size size)
{
    struct recorded_phys *p = phys_of(r, phys);

    if (!p) {
        r->failed = true;
        return;
    }
    add(r, p->half,
        (struct script_row){
            .call = SCRIPT_PHYS_RELEASE, .size = size, .phys = p->index});
    p->phys = 0;
}

static enum frag_err phys_release(struct frag_backend *mem, frag_phys phys,
                                  frag_size size)
{
    struct recorder *r = recorder_of(mem);
    const bool recorded = begins(r, false);
    const enum frag_err err = r->under->ops->phys_release(r->under, phys, size);

    if (served(r, recorded, err))
        drop_phys(r, phys, size);
    return err;
}

static enum frag_err map(struct frag_backend *mem, frag_addr addr,
                         frag_size size, frag_phys phys)
{
    struct recorder *r = recorder_of(mem);
    const bool recorded = begins(r, true);
    const enum frag_err err = r->under->ops->map(r->under, addr, size, phys);

    if (served(r, recorded, err)) {
        const struct recorded_phys *p = phys_of(r, phys);

        r->failed |= !p;
        add_in_range(r, SCRIPT_MAP, addr, size, p ? p->index : 0);
    }
    return err;
}

static enum frag_err unmap(struct frag_backend *mem, frag_addr addr,
                           frag_size size)
{
    struct recorder *r = recorder_of(mem);
    const bool recorded = begins(r, false);
    const enum frag_err err = r->under->ops->unmap(r->under, addr, size);

    if (served(r, recorded, err))
        add_in_range(r, SCRIPT_UNMAP, addr, size, 0);
    return err;
}

/* An empty_cache waits once, for both halves. */
static enum frag_err synchronize(struct frag_backend *mem)
{
    struct recorder *r = recorder_of(mem);
    const bool recorded = begins(r, false);
    const enum frag_err err = r->under->ops->synchronize(r->under);

    if (served(r, recorded, err))
        add(r, LARGE, (struct script_row){.call = SCRIPT_SYNCHRONIZE});
    return err;
}

static frag_time now(struct frag_backend *mem)
{
    struct recorder *r = recorder_of(mem);

    return r->under->ops->now(r->under);
}

/* Both halves tell it: the backend ignores all but the first. */
static void stream_used(struct frag_backend *mem, frag_stream stream)
{
    struct recorder *r = recorder_of(mem);

    if (begins(r, true))
        for (int half = 0; half < HALVES; half++)
            add(r, (enum half)half,
                (struct script_row){.call = SCRIPT_STREAM_USED,
                                    .size = stream});
    if (r->under->ops->stream_used)
        r->under->ops->stream_used(r->under, stream);
}

static const struct frag_backend_ops recorder_ops = {
    .name = "arena",
    .segment_alloc = segment_alloc,
    .segment_free = segment_free,
    .va_reserve = va_reserve,
    .va_free = va_free,
    .phys_create = phys_create,
    .phys_release = phys_release,
    .map = map,
    .unmap = unmap,
    .synchronize = synchronize,
    .now = now,
    .stream_used = stream_used,
};

/* ---- the backend of a cell ---- */

static enum frag_err open_recorder(const struct cell_settings *s,
                                   frag_size capacity, struct cell_memory *out,
                                   struct frag_error *e)
{
    struct recorder *r = ((const struct recording *)s)->recorder;

    *out = (struct cell_memory){.mem = &r->base, .parts = r};
    FRAG_TRY(cell_arena(s, capacity, s->total, &r->under, e));
    r->base = *r->under;
    r->base.ops = &recorder_ops;
    return FRAG_OK;
}

static void close_recorder(struct cell_memory *m)
{
    struct recorder *r = m->parts;

    frag_arena_close(r->under);
    r->under = NULL;
}

static const uint64_t before_the_run;

static const struct cell_backend recorder_backend = {
    .name = "arena", .open = open_recorder, .close = close_recorder};

struct recording recording_of(const struct cell_settings *settings,
                              struct recorder *r)
{
    struct recording out = {*settings, r};

    out.settings.backend = &recorder_backend;
    out.settings.at = &r->now;
    r->now = &before_the_run;
    return out;
}

void recorder_close(struct recorder *r)
{
    for (int half = 0; half < HALVES; half++)
        script_free(&r->halves[half]);
    free(r->ranges);
    free(r->handles);
}
