/* torch_streams.c - tests for which work libfragsim_torch.so makes streams
 * wait, and when a block that several streams use is free. usage: streams
 * LIBRARY
 *
 * Each scene runs in its own process with the stand-in for the driver, whose
 * streams do their work only when the test says so. Messages on stderr describe
 * a fault.
 */
#include <dlfcn.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "real/dry/control.h"
#include "real/torch/adaptor.h"

#define MIB ((ssize_t)1 << 20)

static struct {
    void *(*alloc)(ssize_t, int, frag_torch_stream);
    void (*free)(void *, ssize_t, int, frag_torch_stream);
    void (*record_stream)(void *, frag_torch_stream);
    void (*empty_cache)(void);
    size_t (*reserved)(int);
    size_t (*peak_reserved)(int);
    size_t (*peak_allocated)(int);
} torch;

static struct {
    void (*queue)(cu_stream);
    void (*finish)(cu_stream);
    uint64_t (*waits)(cu_stream, cu_stream);
    uint64_t (*synchronizes)(void);
    uint64_t (*events)(void);
    void (*fail)(const char *);
} standin;

static const char *scene;

static void need(bool good, const char *what, int line)
{
    if (good)
        return;
    fprintf(stderr, "streams.c:%d: %s: not so: %s\n", line, scene, what);
    _exit(1);
}

#define NEED(what) need(what, #what, __LINE__)

static void *symbol(void *library, const char *prefix, const char *name)
{
    char whole[64];
    void *found;

    snprintf(whole, sizeof(whole), "%s%s", prefix, name);
    found = library ? dlsym(library, whole) : NULL;
    if (found)
        return found;
    fprintf(stderr, "streams: %s\n", dlerror());
    _exit(1);
}

static void load(const char *path)
{
    void *library = dlopen(path, RTLD_NOW);
    void *driver = dlopen("libcuda.so.1", RTLD_NOW);

#define TORCH(name) \
    *(void **)&torch.name = symbol(library, "frag_torch_", #name);
#define STANDIN(name) \
    *(void **)&standin.name = symbol(driver, "frag_dry_", #name);
    TORCH(alloc)
    TORCH(free)
    TORCH(record_stream)
    TORCH(empty_cache)
    TORCH(reserved)
    TORCH(peak_reserved)
    TORCH(peak_allocated)
    STANDIN(queue)
    STANDIN(finish)
    STANDIN(waits)
    STANDIN(synchronizes)
    STANDIN(events)
    STANDIN(fail)
#undef TORCH
#undef STANDIN
}

/* The n-th stream, from 1: PyTorch's default one is NULL. */
static frag_torch_stream at(int n)
{
    return (frag_torch_stream)((uintptr_t)n * 16);
}

static void *take(int stream, ssize_t size)
{
    void *block = torch.alloc(size, 0, at(stream));

    NEED(block);
    return block;
}

static void give(int stream, void *block)
{
    standin.queue(at(stream));
    torch.free(block, 0, 0, at(stream));
}

/* Streams 1 to n, all known and used. */
static void meet(int n)
{
    for (int i = 1; i <= n; i++)
        give(i, take(i, MIB));
    for (int i = 1; i <= n; i++)
        take(i, MIB);
}

/* ---- symbols of PyTorch ---- */

static jmp_buf caught;
static bool is_caught;
static char message[256];

/* PyTorch's function throws; that of torch/c10.c calls this one. */
static void thrown(const char *words)
{
    snprintf(message, sizeof(message), "%s", words);
    NEED(is_caught);
    longjmp(caught, 1);
}

/* As Python does, which loads PyTorch's libraries outside of the global
 * scope. */
static void load_c10(void)
{
    void *library = dlopen("libc10.so", RTLD_NOW | RTLD_LOCAL);
    void (*on_throw)(void (*)(const char *));

    *(void **)&on_throw = symbol(library, "c10_", "on_throw");
    on_throw(thrown);
}

/* The request must fail with a message that begins with these words. */
static void refused(int stream, ssize_t size, const char *words)
{
    is_caught = true;
    if (!setjmp(caught)) {
        torch.alloc(size, 0, at(stream));
        NEED(false);
    }
    is_caught = false;
    if (strncmp(message, words, strlen(words)))
        need(false, message, __LINE__);
}

/* ---- order ---- */

static void memory_of_another_stream_is_waited_for(void)
{
    void *a = take(1, MIB), *b, *c;

    give(1, a);
    NEED(take(1, MIB) == a);
    give(1, a);
    b = take(2, MIB); /* stream 2 is new: it runs after all work so far */
    NEED(b == a);
    NEED(standin.waits(at(2), at(1)) == 1);
    give(2, b);
    NEED(take(2, MIB) == a);
    NEED(standin.waits(at(2), at(1)) == 1);
    give(2, a);
    NEED(take(1, MIB) == a);
    NEED(standin.waits(at(1), at(2)) == 1);
    c = take(1, MIB);
    give(1, a);
    NEED(take(2, MIB) == a);
    NEED(standin.waits(at(2), at(1)) == 2);
    NEED(standin.waits(at(1), at(1)) + standin.waits(at(2), at(2)) == 0);
    give(1, c);
    NEED(take(2, MIB) == c);
    NEED(standin.waits(at(2), at(1)) == 3);
    NEED(standin.synchronizes() == 0);
    NEED(torch.peak_allocated(0) == 2 * MIB);
    NEED(torch.reserved(0) == torch.peak_reserved(0));
    NEED(torch.reserved(0) > torch.peak_allocated(0));
}

/* If a stream cannot be made to wait, the library waits for the device
 * instead. */
static void a_wait_that_fails_is_one_for_the_device(void)
{
    static const char *const calls[] = {"cuEventCreate", "cuEventRecord",
                                        "cuStreamWaitEvent"};

    meet(2);
    for (int i = 0; i < 3; i++) {
        const int from = 1 + i % 2, to = 3 - from;
        void *a = take(from, 4 * MIB);
        const uint64_t before = standin.synchronizes();

        give(from, a);
        if (i == 0) /* a stream for which no other has waited has no event */
            give(3, take(3, MIB));
        standin.fail(calls[i]);
        NEED(take(i == 0 ? 4 : to, 4 * MIB) == a);
        NEED(standin.synchronizes() == before + 1);
    }
}

/* The policy makes one block of the memory of two free blocks, at new
 * addresses. From then on, addresses do not identify memory. */
static void aliases_make_a_stream_wait_for_all(void)
{
    void *a, *b, *c, *d;
    uint64_t before;

    meet(2);
    a = take(1, 2 * MIB), b = take(1, 2 * MIB), c = take(1, 2 * MIB);
    d = take(2, 2 * MIB);
    give(1, a);
    give(1, c);
    NEED(take(1, 4 * MIB) != b);
    give(2, d);
    give(1, take(1, MIB));
    before = standin.waits(at(2), at(1));
    NEED(take(2, 2 * MIB) == d);
    NEED(standin.waits(at(2), at(1)) == before + 1);
}

static void streams_beyond_the_table_wait_for_the_device(void)
{
    enum { TABLE = 256 };
    void *a;

    for (int i = 1; i <= TABLE; i++)
        give(i, take(i, MIB));
    NEED(standin.synchronizes() == 0);
    a = take(TABLE + 1, MIB);
    NEED(standin.synchronizes() == 1);
    give(TABLE + 1, a);
    NEED(standin.synchronizes() == 2);
    NEED(take(TABLE, MIB) == a);
    standin.fail("cuCtxSynchronize");
    refused(TABLE + 2, MIB,
            "fragsim, the device failed: it cannot wait for a stream");
}

/* ---- late frees ---- */

static void a_block_is_free_when_its_streams_are_done(void)
{
    uint64_t events;
    void *a, *b;

    meet(3);
    events = standin.events();
    a = take(1, MIB);
    torch.record_stream(a, at(2));
    torch.record_stream(a, at(2));
    torch.record_stream(a, at(3));
    standin.queue(at(2));
    standin.queue(at(3));
    give(1, a);
    NEED(standin.events() == events + 2);
    b = take(1, MIB);
    NEED(b != a);
    standin.finish(at(3));
    NEED(take(1, MIB) != a);
    standin.finish(at(1));
    NEED(take(1, MIB) != a);
    standin.finish(at(2));
    NEED(take(1, MIB) == a);
    give(1, a); /* its notes were removed with it */
    NEED(take(1, MIB) == a);
    torch.record_stream(a, at(2));
    torch.record_stream(a, at(3));
    give(1, a);
    standin.finish(at(2));
    NEED(take(1, MIB) != a);
    standin.finish(at(3));
    NEED(take(1, MIB) == a);
    NEED(standin.events() == events + 2); /* which were used again */
    torch.empty_cache();
    NEED(standin.events() == events);
}

/* Then it is memory last used by its own stream. */
static void a_late_block_is_of_its_own_stream(void)
{
    uint64_t before;
    void *a;

    meet(3);
    a = take(1, MIB);
    torch.record_stream(a, at(2));
    give(1, a);
    before = standin.waits(at(3), at(1));
    standin.finish(at(2));
    NEED(take(3, MIB) == a);
    NEED(standin.waits(at(3), at(1)) == before + 1);
}

static void late_frees_are_done_in_their_order(void)
{
    void *a, *b;

    meet(3);
    a = take(1, MIB);
    b = take(1, MIB);
    torch.record_stream(a, at(2));
    torch.record_stream(b, at(3));
    give(1, a);
    give(1, b);
    standin.finish(at(3));
    take(1, MIB);
    standin.finish(at(2));
    NEED(take(1, MIB) == a);
    NEED(take(1, MIB) == b);
}

/* 48 MiB in all, of which what was met has 20. */
static void a_full_device_waits_for_late_frees(void)
{
    uint64_t waits, before;
    void *a;

    meet(2);
    a = take(1, 20 * MIB);
    torch.record_stream(a, at(2));
    give(1, a);
    before = standin.synchronizes();
    waits = standin.waits(at(2), at(1));
    NEED(take(2, 20 * MIB) == a);
    NEED(standin.synchronizes() == before + 1);
    NEED(standin.waits(at(2), at(1)) == waits);
}

/* If a policy waits for the device, late frees complete. */
static void a_wait_of_the_policy_is_one_for_streams(void)
{
    uint64_t events, waits;
    void *a;

    meet(3);
    events = standin.events();
    a = take(1, 8 * MIB);
    torch.record_stream(a, at(2));
    give(1, a);
    NEED(standin.events() == events + 1);
    give(1, take(1, MIB)); /* for which no other stream has waited */
    waits = standin.waits(at(3), at(1));
    take(3, 8 * MIB);
    NEED(standin.synchronizes() > 0);
    torch.empty_cache();
    NEED(standin.events() == events);
    NEED(standin.waits(at(3), at(1)) == waits);
    take(1, MIB);
}

/* Instead of the event, the library waits for the device. */
static void an_event_that_fails_is_a_wait_for_the_device(void)
{
    static const char *const calls[] = {"cuEventCreate", "cuEventRecord"};

    for (int i = 0; i < 2; i++) {
        void *a = take(1, MIB);
        const uint64_t before = standin.synchronizes();

        torch.record_stream(a, at(2));
        standin.fail(calls[i]);
        give(1, a);
        NEED(standin.synchronizes() == before + 1);
        NEED(take(1, MIB) == a);
        give(1, a);
    }
}

static void the_cache_is_emptied_of_late_frees_too(void)
{
    void *a = take(1, 4 * MIB);

    torch.record_stream(a, at(2));
    give(1, a);
    torch.empty_cache();
    NEED(torch.reserved(0) > 0);
    standin.finish(at(2));
    torch.empty_cache();
    NEED(torch.reserved(0) == 0);
    NEED(torch.peak_reserved(0) > 0);
    NEED(standin.events() == 0);
}

/* ---- the program ---- */

/* Pages with live blocks are not touched while it may use them: that a page's
 * memory serves two would save one of the four. */
static void live_memory_is_not_remapped(void)
{
    void *b, *c;

    take(1, MIB);
    b = take(1, MIB);
    c = take(1, MIB);
    take(1, MIB);
    give(1, b);
    give(1, c);
    take(1, 3 * MIB);
    NEED(torch.reserved(0) == 8 * MIB);
}

/* The next request is served. */
static void a_refusal_is_thrown_and_caught(void)
{
    refused(1, 64 * MIB, "CUDA out of memory. fragsim, best_fit: no room");
    take(1, MIB);
}

static void a_device_that_is_none_is_refused(void)
{
    is_caught = true;
    if (!setjmp(caught)) {
        torch.alloc(MIB, 64, at(1));
        NEED(false);
    }
    is_caught = false;
    NEED(!strcmp(message, "fragsim, PyTorch passed a device number outside "
                          "0 to 63"));
}

/* A forked child has no device: its frees are ignored, and it writes no
 * results. */
static void a_child_leaves_all_to_its_parent(void)
{
    void *a = take(1, MIB);
    int status;
    pid_t child = fork();

    NEED(child >= 0);
    if (!child) {
        torch.free(a, 0, 0, at(1));
        torch.free(a, 0, 0, at(1));
        exit(0);
    }
    NEED(waitpid(child, &status, 0) == child);
    NEED(status == 0);
    NEED(access(getenv("FRAGSIM_OUTPUT"), F_OK) != 0);
}

/* ---- the scenes ---- */

static const struct {
    void (*play)(void);
    const char *name, *policy, *capacity;
} scenes[] = {
#define SCENE(name) name, #name
    /* clang-format off */
    {SCENE(memory_of_another_stream_is_waited_for), "best_fit", ""},
    {SCENE(a_wait_that_fails_is_one_for_the_device), "best_fit", ""},
    {SCENE(aliases_make_a_stream_wait_for_all), "stitch:fragment=512", ""},
    {SCENE(streams_beyond_the_table_wait_for_the_device), "best_fit", ""},
    {SCENE(a_block_is_free_when_its_streams_are_done), "best_fit", ""},
    {SCENE(a_late_block_is_of_its_own_stream), "best_fit", ""},
    {SCENE(late_frees_are_done_in_their_order), "best_fit", ""},
    {SCENE(a_full_device_waits_for_late_frees), "best_fit", "48MiB"},
    {SCENE(a_wait_of_the_policy_is_one_for_streams), "remap", "inf"},
    {SCENE(an_event_that_fails_is_a_wait_for_the_device), "best_fit", ""},
    {SCENE(the_cache_is_emptied_of_late_frees_too), "best_fit", ""},
    {SCENE(live_memory_is_not_remapped), "remap:slack=1", ""},
    {SCENE(a_refusal_is_thrown_and_caught), "best_fit", "48MiB"},
    {SCENE(a_device_that_is_none_is_refused), "", ""},
    {SCENE(a_child_leaves_all_to_its_parent), "", ""},
    /* clang-format on */
};

static bool ended_well(size_t i, const char *library)
{
    int status;
    pid_t child = fork();

    if (!child) {
        scene = scenes[i].name;
        setenv("FRAGSIM_POLICY", scenes[i].policy, 1);
        setenv("FRAGSIM_CAPACITY", scenes[i].capacity, 1);
        load_c10();
        load(library);
        scenes[i].play();
        _exit(0);
    }
    if (child < 0 || waitpid(child, &status, 0) != child)
        return false;
    return WIFEXITED(status) && !WEXITSTATUS(status);
}

int main(int argc, char **argv)
{
    int wrong = 0;

    if (argc != 2)
        return 2;
    for (size_t i = 0; i < sizeof(scenes) / sizeof(*scenes); i++)
        if (!ended_well(i, argv[1])) {
            fprintf(stderr, "streams: %s\n", scenes[i].name);
            wrong = 1;
        }
    return wrong;
}
