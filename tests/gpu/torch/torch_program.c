/* torch_program.c - makes PyTorch's calls to libfragsim_torch.so, without
 * PyTorch. usage: program LIBRARY
 *
 * Four threads, each with its own stream, request blocks, write each block
 * fully, verify the bytes before they free it, and pass some blocks to another
 * stream. "Device" memory is that of the stand-in, so the host can write to it.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "real/torch/adaptor.h"

enum { THREADS = 4, BLOCKS = 24, STEPS = 600 };

static struct {
    void *(*alloc)(ssize_t, int, frag_torch_stream);
    void (*free)(void *, ssize_t, int, frag_torch_stream);
    void (*record_stream)(void *, frag_torch_stream);
    void (*empty_cache)(void);
    size_t (*reserved)(int);
    size_t (*peak_reserved)(int);
    size_t (*peak_allocated)(int);
    size_t (*driver_calls)(int);
    size_t (*driver_ns)(int);
} torch;

static atomic_size_t requests; /* and frees */

struct block {
    unsigned char *at;
    size_t size;
    unsigned char mark;
};

static void fail(const char *words)
{
    fprintf(stderr, "program: %s\n", words);
    _Exit(1);
}

static void load(const char *path)
{
    void *library = dlopen(path, RTLD_NOW);

    if (!library)
        fail(dlerror());
#define LOAD(name)                                               \
    *(void **)&torch.name = dlsym(library, "frag_torch_" #name); \
    if (!torch.name)                                             \
        fail("it lacks " #name);
    LOAD(alloc)
    LOAD(free)
    LOAD(record_stream)
    LOAD(empty_cache)
    LOAD(reserved)
    LOAD(peak_reserved)
    LOAD(peak_allocated)
    LOAD(driver_calls)
    LOAD(driver_ns)
#undef LOAD
}

static unsigned next(unsigned *seed)
{
    *seed = *seed * 1664525u + 1013904223u;
    return *seed >> 8;
}

static void take(struct block *b, frag_torch_stream stream, unsigned *seed)
{
    b->size = 1 + next(seed) % (next(seed) % 4 ? 20000 : 3000000);
    b->mark = (unsigned char)next(seed);
    b->at = torch.alloc((ssize_t)b->size, 0, stream);
    if (!b->at)
        fail("no memory");
    requests++;
    memset(b->at, b->mark, b->size);
}

static void give(struct block *b, frag_torch_stream stream)
{
    for (size_t i = 0; i<b->size; i += b->size> 4096 ? 509 : 1)
        if (b->at[i] != b->mark)
            fail("a block was written by another");
    torch.free(b->at, (ssize_t)b->size, 0, stream);
    requests++;
    b->at = NULL;
}

static void *work(void *argument)
{
    unsigned seed = (unsigned)(uintptr_t)argument;
    const uintptr_t number = (uintptr_t)argument;
    frag_torch_stream stream = (frag_torch_stream)(number * 16);
    frag_torch_stream other = (frag_torch_stream)((number + 1) * 16);
    struct block blocks[BLOCKS] = {{0}};

    for (int step = 0; step < STEPS; step++) {
        struct block *b = &blocks[next(&seed) % BLOCKS];

        if (!b->at)
            take(b, stream, &seed);
        else
            give(b, stream);
        if (b->at && next(&seed) % 5 == 0)
            torch.record_stream(b->at, other);
        if (next(&seed) % 200 == 0)
            torch.empty_cache();
    }
    for (int i = 0; i < BLOCKS; i++)
        if (blocks[i].at)
            give(&blocks[i], stream);
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t threads[THREADS];

    if (argc < 2)
        fail("expected the library's path");
    load(argv[1]);
    if (torch.alloc(0, 0, NULL))
        fail("a request for nothing was served");
    torch.free(NULL, 0, 0, NULL);
    if (argc > 2) /* a single request of that size, which may be refused */
        return !torch.alloc((ssize_t)strtoll(argv[2], NULL, 10), 0, NULL);
    for (uintptr_t i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, work, (void *)i))
            fail("no thread");
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    torch.empty_cache(); /* frees that waited for streams are complete now */
    if (torch.peak_reserved(0) < torch.peak_allocated(0) ||
        !torch.peak_allocated(0) || torch.reserved(1) ||
        torch.driver_calls(1) || !torch.driver_ns(0))
        fail("numbers that cannot be");
    printf("%zu %zu %zu\n", torch.peak_reserved(0), torch.driver_calls(0),
           (size_t)requests);
    return 0;
}
