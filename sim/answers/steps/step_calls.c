/* step_calls.c - the outermost Python frames that the stacks of all ALLOCs
 * between two of a site have in common. The frames of C++ are left out: the
 * recorder does not place them reliably among those of Python, and threads
 * without Python, such as that of the backward pass, say nothing about the
 * program. */
#include "sim/answers/steps/step_calls.h"

#include <string.h>

#include "sim/answers/sites.h"

/* Parts of the files whose functions do a piece of work that ends, and what
 * they do. */
enum work { NO_WORK, LOADS, CALLS, TRAINS };

static const struct worker {
    const char *file;
    enum work work;
} workers[] = {{"torch/nn/", CALLS},
               {"torch/optim/", TRAINS},
               {"torch/autograd/", CALLS},
               {"torch/_tensor.py", LOADS},
               {"torch/serialization.py", LOADS},
               {"transformers/", LOADS},
               {"diffusers/", LOADS},
               {"safetensors/", LOADS},
               {"accelerate/", LOADS}};

/* The file of those that run the whole program, the function that calls a
 * module, which is known without the folders of its file, and that of a worker
 * which starts the backward pass. */
static const char loop[] = "trainer.py", module_call[] = "_call_impl",
                  backward[] = "backward";

static enum work work_of(const struct step_calls *c, const struct frag_frame *f)
{
    const char *file = c->trace->strings[f->file];
    const char *function = c->trace->strings[f->function];

    if (!strcmp(function, module_call))
        return CALLS;
    if (strstr(file, loop))
        return NO_WORK;
    for (size_t i = 0; i < sizeof(workers) / sizeof(*workers); i++)
        if (strstr(file, workers[i].file))
            return strcmp(function, backward) ? workers[i].work : TRAINS;
    return NO_WORK;
}

static struct site_walk walk_of(const struct step_calls *c, uint64_t alloc)
{
    return site_walk(c->trace, c->device->stack ? c->device->stack[alloc] : 0);
}

/* The work for which an ALLOC was made. */
static enum work work_at(const struct step_calls *c, uint64_t alloc)
{
    struct site_walk w = walk_of(c, alloc);
    enum work most = NO_WORK;

    for (const struct frag_frame *f; (f = site_step_in(&w));) {
        const enum work work = work_of(c, f);

        most = work > most ? work : most;
    }
    return most;
}

/* Pairs between which the size changes: the parts of one piece of work ask for
 * the same again and again. */
enum { LEAST_VARIED = 4 };

/* Whether the call of a worker, among the `depth` outermost frames of the first
 * stack, is also one of the second; reduces *depth to what both share. */
static bool share_call(const struct step_calls *c, struct site_walk a,
                       struct site_walk b, uint64_t *depth)
{
    bool found = false;

    for (uint64_t i = 0; i < *depth; i++) {
        const struct frag_frame *x = site_step_in(&a);

        if (!site_same(x, site_step_in(&b))) {
            *depth = i;
            break;
        }
        found = found || work_of(c, x);
    }
    return found;
}

static bool has_python(const struct step_calls *c, uint64_t alloc)
{
    struct site_walk w = walk_of(c, alloc);

    return site_step_in(&w) != NULL;
}

/* What the program does between two ALLOCs of a site. */
struct interval {
    bool within;    /* one call of a worker */
    bool has_other; /* it allocates elsewhere */
    enum work work; /* for which it allocates */
};

static struct interval interval_of(const struct step_calls *c, uint64_t from,
                                   uint64_t to)
{
    const struct frag_device_trace *d = c->device;
    struct interval v = {.within = true};
    uint64_t depth = UINT64_MAX;

    for (uint64_t i = from + 1; i <= to; i++) {
        enum work work;

        if (d->op[i] != FRAG_ALLOC || !has_python(c, i))
            continue;
        v.within =
            v.within && share_call(c, walk_of(c, from), walk_of(c, i), &depth);
        v.has_other = v.has_other || d->stack[i] != d->stack[to];
        work = work_at(c, i);
        v.work = work > v.work ? work : v.work;
    }
    return v;
}

void calls_next(struct step_calls *c, uint64_t alloc)
{
    const struct frag_device_trace *d = c->device;
    const uint64_t from = c->last;
    struct interval v;

    if (!has_python(c, alloc))
        return;
    c->last = alloc;
    c->inside += work_at(c, alloc) != NO_WORK;
    if (!c->passed++)
        return;
    v = interval_of(c, from, alloc);
    *(v.within ? &c->within : &c->between) += 1;
    c->varied += !v.within && d->bytes[from] != d->bytes[alloc];
    c->rounds += !v.within && v.has_other;
    c->worked += !v.within && v.work >= CALLS;
    c->trained += !v.within && v.work >= TRAINS;
}

bool calls_are_one(const struct step_calls *c)
{
    return c->within >= c->between && c->varied < LEAST_VARIED;
}
