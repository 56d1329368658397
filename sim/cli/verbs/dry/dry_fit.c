/* dry_fit.c - what the runs need of a GPU, and whether it has that much. */
#include <string.h>

#include "sim/arena/arena.h"
#include "sim/cli/verbs/dry/dry_answer.h"

frag_size dry_need(const struct dry_answer *a, const struct dry_device *d,
                   size_t way)
{
    frag_size need = 0;

    for (size_t i = 0; i < a->count; i++) {
        const frag_size most = a->devices[i].need[way].most;

        if (a->devices[i].gpu != d->gpu)
            continue;
        if (most == FRAG_UNLIMITED)
            return FRAG_UNLIMITED;
        need += most;
    }
    return need;
}

frag_size dry_outside(const struct dry_answer *a, const struct dry_device *d,
                      const struct frag_gpu *g)
{
    frag_size outside = 0;

    for (size_t i = 0; i < a->count; i++)
        if (a->devices[i].gpu == d->gpu)
            outside += a->devices[i].outside - a->gpu->context + g->context +
                       (g->is_unified ? dry_host(a->devices[i].process) : 0);
    return outside;
}

frag_size dry_room(const struct dry_answer *a, const struct dry_device *d,
                   const struct frag_gpu *g)
{
    const frag_size outside = dry_outside(a, d, g);

    return g->total > outside ? frag_device_room(g->total - outside) : 0;
}

bool dry_fits(const struct dry_answer *a, const struct dry_device *d,
              const struct frag_gpu *g, size_t way)
{
    const frag_size need = dry_need(a, d, way);

    return need != FRAG_UNLIMITED && need <= dry_room(a, d, g);
}

frag_size dry_left(const struct dry_answer *a, const struct dry_device *d)
{
    return dry_fits(a, d, a->gpu, 0)
               ? dry_room(a, d, a->gpu) - dry_need(a, d, 0)
               : 0;
}

bool dry_all_fit(const struct dry_answer *a, const struct frag_gpu *g,
                 size_t way)
{
    bool fit = true;

    for (size_t i = 0; i < a->count; i++)
        fit = fit && dry_fits(a, &a->devices[i], g, way);
    return fit;
}

frag_size dry_least(const struct dry_answer *a, const struct dry_device *d,
                    size_t way)
{
    frag_size need = 0;

    for (size_t i = 0; i < a->count; i++)
        if (a->devices[i].gpu == d->gpu)
            need += a->devices[i].need[way].least;
    return need;
}

bool dry_may_fit(const struct dry_answer *a, const struct frag_gpu *g,
                 size_t way)
{
    for (size_t i = 0; i < a->count; i++)
        if (dry_least(a, &a->devices[i], way) > dry_room(a, &a->devices[i], g))
            return false;
    return true;
}

bool dry_has(const struct dry_answer *a, const char *kind)
{
    for (size_t i = 0; i < a->process_count; i++)
        if (dry_note_name(&a->processes[i], kind))
            return true;
    return false;
}

bool dry_tells(const struct dry_answer *a, const struct frag_gpu *g)
{
    return !strcmp(g->id, a->gpu->id) || !dry_has(a, "room");
}

size_t dry_sharers(const struct dry_answer *a, const struct dry_device *d)
{
    size_t n = 0;

    for (size_t i = 0; i < a->count; i++)
        n += a->devices[i].gpu == d->gpu;
    return n;
}

const struct frag_gpu *dry_smallest(const struct dry_answer *a, size_t way)
{
    const struct frag_gpu *smallest = NULL;

    for (const struct frag_gpu *g = frag_gpus; g->id; g++)
        if (dry_tells(a, g) && dry_all_fit(a, g, way))
            smallest = g;
    return smallest;
}

const struct dry_device *dry_largest(const struct dry_answer *a)
{
    const struct dry_device *largest = a->devices;

    for (size_t i = 1; i < a->count; i++)
        if (dry_need(a, &a->devices[i], 0) > dry_need(a, largest, 0))
            largest = &a->devices[i];
    return largest;
}

bool dry_died(const struct dry_answer *a)
{
    for (size_t i = 0; i < a->count; i++)
        if (a->devices[i].died)
            return true;
    return false;
}

/* A program that resets the counts has lower ones than its trace. */
bool dry_lacks_memory(const struct dry_device *d)
{
    return d->counted_reserved > d->traced_reserved ||
           d->counted_requested > d->peak.live;
}

bool dry_any_lacks_memory(const struct dry_answer *a)
{
    for (size_t i = 0; i < a->count; i++)
        if (dry_lacks_memory(&a->devices[i]))
            return true;
    for (size_t i = 0; i < a->process_count; i++)
        if (!a->processes[i].trace)
            return true;
    return false;
}

bool dry_is_whole(const struct dry_answer *a)
{
    return a->status == 0 && !dry_died(a) && !dry_any_lacks_memory(a);
}
