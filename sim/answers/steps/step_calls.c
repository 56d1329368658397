/* step_calls.c - the outermost Python frames that the stacks of all ALLOCs
 * between two of a site have in common. The frames of C++ are left out: the
 * recorder does not place them reliably among those of Python, and threads
 * without Python, such as that of the backward pass, say nothing about the
 * program. */
#include "sim/answers/steps/step_calls.h"

#include <string.h>

/* Parts of the files whose functions do a piece of work that ends. */
static const char *const workers[] = {
    "torch/nn/",        "torch/optim/",           "torch/autograd/",
    "torch/_tensor.py", "torch/serialization.py", "transformers/",
    "diffusers/",       "safetensors/",           "accelerate/"};

/* The file of those that run the whole program, and the function that calls a
 * module, which is known without the folders of its file. */
static const char loop[] = "trainer.py", module_call[] = "_call_impl";

static const char *file_of(const struct step_calls *c,
                           const struct frag_frame *f)
{
    return c->trace->strings[f->file];
}

static bool is_python(const char *file)
{
    const size_t length = strlen(file);

    return (length >= 3 && !strcmp(file + length - 3, ".py")) || *file == '<';
}

static bool is_worker(const struct step_calls *c, const struct frag_frame *f)
{
    const char *file = file_of(c, f);

    if (!strcmp(c->trace->strings[f->function], module_call))
        return true;
    if (strstr(file, loop))
        return false;
    for (size_t i = 0; i < sizeof(workers) / sizeof(*workers); i++)
        if (strstr(file, workers[i]))
            return true;
    return false;
}

/* Pairs between which the size changes: the parts of one piece of work ask for
 * the same again and again. */
enum { LEAST_VARIED = 4 };

/* Frames of one stack from the outermost one inwards. */
struct call_walk {
    const struct frag_frame *first, *next; /* next: one after the frame */
};

static struct call_walk walk_of(const struct step_calls *c, uint64_t alloc)
{
    const uint32_t stack = c->device->stack ? c->device->stack[alloc] : 0;
    const uint64_t *first = c->trace->stack_first;

    if (!stack || stack >= c->trace->stack_count)
        return (struct call_walk){NULL, NULL};
    return (struct call_walk){c->trace->frames + first[stack],
                              c->trace->frames + first[stack + 1]};
}

static const struct frag_frame *step_in(const struct step_calls *c,
                                        struct call_walk *w)
{
    while (w->next > w->first)
        if (is_python(file_of(c, --w->next)))
            return w->next;
    return NULL;
}

/* Whether the call of a worker, among the `depth` outermost frames of the first
 * stack, is also one of the second; reduces *depth to what both share. */
static bool share_call(const struct step_calls *c, struct call_walk a,
                       struct call_walk b, uint64_t *depth)
{
    bool found = false;

    for (uint64_t i = 0; i < *depth; i++) {
        const struct frag_frame *x = step_in(c, &a), *y = step_in(c, &b);

        if (!x || !y || x->file != y->file || x->function != y->function ||
            x->line != y->line) {
            *depth = i;
            break;
        }
        found = found || is_worker(c, x);
    }
    return found;
}

static bool has_python(const struct step_calls *c, uint64_t alloc)
{
    struct call_walk w = walk_of(c, alloc);

    return step_in(c, &w) != NULL;
}

void calls_next(struct step_calls *c, uint64_t alloc)
{
    const struct frag_device_trace *d = c->device;
    const uint64_t from = c->last;
    uint64_t depth = UINT64_MAX;
    bool within = true;

    if (!has_python(c, alloc))
        return;
    c->last = alloc;
    if (!c->passed++)
        return;
    for (uint64_t i = from + 1; within && i <= alloc; i++)
        if (d->op[i] == FRAG_ALLOC && has_python(c, i))
            within = share_call(c, walk_of(c, from), walk_of(c, i), &depth);
    *(within ? &c->within : &c->between) += 1;
    c->varied += !within && d->bytes[from] != d->bytes[alloc];
}

bool calls_are_one(const struct step_calls *c)
{
    return c->within >= c->between && c->varied < LEAST_VARIED;
}
