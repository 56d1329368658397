/* player.c - plays recorded calls of a policy on a backend. */
#include <stdlib.h>

#include "sim/experiments/tune/script.h"

void script_free(struct script *s)
{
    free(s->rows);
    free(s->addr);
    *s = (struct script){0};
}

enum frag_err player_open(struct player *p, const struct script *script)
{
    *p = (struct player){.script = script};
    p->addr = calloc(script->ranges + 1, sizeof(*p->addr));
    p->phys = calloc(script->handles + 1, sizeof(*p->phys));
    if (p->addr && p->phys)
        return FRAG_OK;
    player_close(p);
    return FRAG_NOMEM;
}

void player_close(struct player *p)
{
    free(p->addr);
    free(p->phys);
    *p = (struct player){0};
}

/* As the engine does, which tells the device and not the meter. */
static void use_stream(const struct player *p, struct frag_backend *mem,
                       frag_stream stream)
{
    struct frag_backend *device = p->device ? p->device : mem;

    if (device->ops->stream_used)
        device->ops->stream_used(device, stream);
}

static enum frag_err play(struct player *p, struct frag_backend *mem)
{
    const struct script_row *row = &p->script->rows[p->next++];
    const struct frag_backend_ops *ops = mem->ops;
    const frag_addr addr = p->addr[row->range] + row->at;

    switch ((enum script_call)row->call) {
    case SCRIPT_SEGMENT_ALLOC:
        return ops->segment_alloc(mem, row->size, &p->addr[p->ranges++]);
    case SCRIPT_SEGMENT_FREE:
        return ops->segment_free(mem, addr, row->size);
    case SCRIPT_VA_RESERVE:
        return ops->va_reserve(mem, row->size, &p->addr[p->ranges++]);
    case SCRIPT_VA_FREE:
        return ops->va_free(mem, addr, row->size);
    case SCRIPT_PHYS_CREATE:
        return ops->phys_create(mem, row->size, &p->phys[p->handles++]);
    case SCRIPT_PHYS_RELEASE:
        return ops->phys_release(mem, p->phys[row->phys], row->size);
    case SCRIPT_MAP:
        return ops->map(mem, addr, row->size, p->phys[row->phys]);
    case SCRIPT_UNMAP:
        return ops->unmap(mem, addr, row->size);
    case SCRIPT_SYNCHRONIZE:
        return ops->synchronize(mem);
    case SCRIPT_STREAM_USED:
        use_stream(p, mem, (frag_stream)row->size);
        return FRAG_OK;
    }
    return FRAG_INVALID;
}

/* The event of the next row; FRAG_NEVER: there is none. */
static uint64_t next_event(const struct player *p)
{
    return p->next < p->script->count ? p->script->rows[p->next].event
                                      : FRAG_NEVER;
}

enum frag_err player_play(struct player *p, struct frag_backend *mem,
                          uint64_t event)
{
    while (next_event(p) < event)
        FRAG_TRY(play(p, mem));
    return FRAG_OK;
}

enum frag_err players_play(struct player p[HALVES], struct frag_backend *mem,
                           uint64_t event)
{
    for (;;) {
        const uint64_t large = next_event(&p[LARGE]);
        const uint64_t small = next_event(&p[SMALL]);

        if ((large < small ? large : small) >= event)
            return FRAG_OK;
        FRAG_TRY(play(&p[large <= small ? LARGE : SMALL], mem));
    }
}

static int sign(frag_addr a, frag_addr b)
{
    return (a > b) - (a < b);
}

bool script_agrees(const struct script *s, const struct player *p)
{
    if (s->ranges < p->ranges)
        return false;
    for (uint64_t i = 0; i < p->ranges; i++)
        for (uint64_t k = 0; k < i; k++)
            if (sign(s->addr[i], s->addr[k]) != sign(p->addr[i], p->addr[k]))
                return false;
    return true;
}
