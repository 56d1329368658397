/* memory_classes.c - the rules of memory_classes.h. */
#include "sim/answers/held/memory_classes.h"

#include <stdlib.h>
#include <string.h>

#include "sim/answers/sites.h"
#include "traces/facts.h"

const char *const memory_class_names[CLASS_COUNT] = {
#define X(name, text) text,
    MEMORY_CLASSES(X)
#undef X
};

/* A frame of that file, "" for any, and function, "" for any; of both a part is
 * enough. The first rule that fits is taken. */
static const struct rule {
    enum memory_class class;
    const char *file, *function;
} rules[] = {
    {CLASS_OPTIMIZER, "torch/optim/", ""},
    {CLASS_OPTIMIZER, "bitsandbytes/optim/", ""},
    {CLASS_WORKSPACES, "", "Workspace"},
    {CLASS_COMMUNICATION, "torch/distributed/", ""},
    {CLASS_COMMUNICATION, "distributed/device_communicators/", ""},
    {CLASS_CACHE, "transformers/cache_utils.py", ""},
    {CLASS_CACHE, "generation/continuous_batching/cache.py", ""},
    {CLASS_CACHE, "sglang/srt/mem_cache/", ""},
    {CLASS_CACHE, "", "allocate_kv_cache"},
    {CLASS_CACHE, "", "initialize_kv_cache"},
    {CLASS_WEIGHTS, "torch/nn/modules/module.py", "_apply"},
    {CLASS_WEIGHTS, "torch/nn/modules/", "__init__"},
    {CLASS_WEIGHTS, "torch/nn/modules/", "reset_parameters"},
    {CLASS_WEIGHTS, "", "create_weights"},
    {CLASS_WEIGHTS, "", "load_weights"},
    {CLASS_WEIGHTS, "", "load_model"},
    {CLASS_WEIGHTS, "", "from_pretrained"},
    {CLASS_ACTIVATIONS, "torch/nn/modules/module.py", "_call_impl"},
    {CLASS_ACTIVATIONS, "", "profile_run"},
    {CLASS_ACTIVATIONS, "", "execute_model"},
    {CLASS_ACTIVATIONS, "", "forward"},
    {CLASS_ACTIVATIONS, "torch/autograd/", ""},
};

static enum memory_class class_of_frame(const struct frag_trace *t,
                                        const struct frag_frame *f)
{
    for (size_t i = 0; i < sizeof(rules) / sizeof(*rules); i++)
        if (strstr(t->strings[f->file], rules[i].file) &&
            strstr(t->strings[f->function], rules[i].function))
            return rules[i].class;
    return CLASS_UNTOLD;
}

/* The class of a stack. GRADIENTS: of a thread of PyTorch, in which the
 * backward pass runs, so that it has no frame of Python. */
static enum memory_class class_of_stack(const struct frag_trace *t,
                                        uint32_t stack)
{
    enum memory_class class = CLASS_UNTOLD;
    struct site_walk python = site_walk(t, stack);

    for (uint64_t i = t->stack_first[stack];
         class == CLASS_UNTOLD && i < t->stack_first[stack + 1]; i++)
        class = class_of_frame(t, &t->frames[i]);
    return class == CLASS_UNTOLD && !site_step_in(&python) ? CLASS_GRADIENTS
                                                           : class;
}

/* The classes of all stacks, in bytes that the caller frees. */
static uint8_t *classes_of_stacks(const struct frag_trace *t)
{
    uint8_t *classes = calloc(t->stack_count + 1, 1);

    for (uint32_t k = 0; classes && k < t->stack_count; k++)
        classes[k] = (uint8_t)class_of_stack(t, k);
    return classes;
}

/* The number of slots. */
static uint64_t slots_of(const struct frag_device_trace *d)
{
    uint64_t count = 0;

    for (uint64_t i = 0; i < d->count; i++)
        if (d->op[i] == FRAG_ALLOC && d->id[i] >= count)
            count = (uint64_t)d->id[i] + 1;
    return count;
}

/* Blocks of the backward pass that are free before the optimizer next requests
 * memory are no gradients: goes from the end to the start. */
static bool find_gradients(const struct frag_device_trace *d, uint8_t *classes)
{
    const uint64_t slots = slots_of(d);
    uint64_t *freed = malloc((slots + 1) * sizeof(*freed));
    uint64_t step = d->count; /* the next request of the optimizer */

    for (uint64_t k = 0; freed && k < slots; k++)
        freed[k] = d->count;
    for (uint64_t i = d->count; freed && i-- > 0;) {
        if (d->op[i] == FRAG_FREE)
            freed[d->id[i]] = i;
        if (d->op[i] != FRAG_ALLOC)
            continue;
        if (classes[i] == CLASS_GRADIENTS && freed[d->id[i]] < step)
            classes[i] = CLASS_ACTIVATIONS;
        if (classes[i] == CLASS_OPTIMIZER)
            step = i;
    }
    free(freed);
    return freed != NULL;
}

/* The class of the block of an ALLOC. */
static uint8_t class_of(const struct frag_device_trace *d,
                        const uint8_t *stacks, uint64_t event)
{
    if (d->pools[d->pool[event]].owner || d->pools[d->pool[event]].number)
        return CLASS_GRAPHS;
    if (!d->stack || (event < d->initial && !d->stack[event]))
        return CLASS_UNTOLD;
    return stacks[d->stack[event]];
}

uint8_t *classes_find(const struct frag_trace *t,
                      const struct frag_device_trace *d)
{
    uint8_t *stacks = classes_of_stacks(t), *classes = calloc(d->count + 1, 1);
    bool done = stacks && classes;

    for (uint64_t i = 0; done && i < d->count; i++)
        if (d->op[i] == FRAG_ALLOC)
            classes[i] = class_of(d, stacks, i);
    done = done && find_gradients(d, classes);
    free(stacks);
    if (!done)
        free(classes);
    return done ? classes : NULL;
}

/* Sums of the live blocks. */
struct sums {
    frag_size live, most, of[CLASS_COUNT];
};

static void add(struct sums *s, uint8_t class, frag_size bytes,
                struct class_row *rows)
{
    s->of[class] += bytes;
    s->live += bytes;
    if (s->of[class] > rows[class].most)
        rows[class].most = s->of[class];
    if (s->live <= s->most)
        return;
    s->most = s->live;
    for (int k = 0; k < CLASS_COUNT; k++)
        rows[k].at_peak = s->of[k];
}

static void take(struct sums *s, uint8_t class, frag_size bytes)
{
    s->of[class] -= bytes;
    s->live -= bytes;
}

enum frag_err classes_sum(const struct frag_trace *t,
                          const struct frag_device_trace *d,
                          struct class_row rows[CLASS_COUNT],
                          struct frag_error *e)
{
    uint8_t *classes = classes_find(t, d);
    uint64_t *born = classes ? malloc((slots_of(d) + 1) * sizeof(*born)) : NULL;
    struct sums s = {0};

    memset(rows, 0, CLASS_COUNT * sizeof(*rows));
    for (uint64_t i = 0; born && i < d->count; i++) {
        const uint64_t slot = d->id[i];

        if (d->op[i] == FRAG_ALLOC)
            born[slot] = i;
        if (d->op[i] == FRAG_ALLOC && !facts_has_failed(d, i))
            add(&s, classes[i], d->bytes[i], rows);
        else if (d->op[i] == FRAG_FREE && !facts_has_failed(d, born[slot]))
            take(&s, classes[born[slot]], d->bytes[born[slot]]);
    }
    free(classes);
    free(born);
    return born ? FRAG_OK : frag_no_memory(e, "the classes of blocks");
}
