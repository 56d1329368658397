/* record_host.c - a recorded program's pinned memory of the host: `host` and
 * `old_host` of record_program.c. */
#include <dlfcn.h>
#include <stdint.h>

#include "tests/gpu/record/record_program.h"

enum { PAGE = 4096, PORTABLE = 1, IO_MEMORY = 4 };
enum { INVALID = 1, NO_MEMORY = 2, REGISTERED = 712, NOT_REGISTERED = 713 };

#define FAILS(code, call)     \
    do {                      \
        if ((call) != (code)) \
            exit(9);          \
    } while (0)

static _Alignas(PAGE) char own[3][3 * PAGE];
static void *last;

static void free_at_exit(void)
{
    MUST(cu.cuMemFreeHost(last));
    expect_free(1);
}

/* The memory ends with the context. The range has a lower address than the
 * block, or a higher one. */
static void pin_in_context(void)
{
    int (*create)(void **, unsigned, int);
    void *here, *block;
    unsigned first, second;

    *(void **)&create = dlsym(dlopen("libcuda.so.1", RTLD_NOW), //
                              "cuCtxCreate_v2");
    MUST(create(&here, 0, 0));
    MUST(cu.cuMemHostAlloc(&block, 700, PORTABLE));
    first = expect_alloc(700, NULL);
    MUST(cu.cuMemHostRegister_v2(own[2], PAGE, PORTABLE));
    second = expect_alloc(PAGE, NULL);
    MUST(cu.cuCtxDestroy_v2(here));
    expect_free((char *)block < own[2] ? first : second);
    expect_free((char *)block < own[2] ? second : first);
    FAILS(NOT_REGISTERED, cu.cuMemHostUnregister(own[2]));
    start();
}

void run_host(void)
{
    void *block, *kept, *none = NULL;
    u64 at;

    MUST(cu.cuMemHostAlloc(&last, 5000, 0));
    expect_alloc(5000, NULL);
    MUST(cu.cuMemAllocHost_v2(&block, 1 << 20));
    expect_alloc(1 << 20, NULL);
    MUST(cu.cuMemAlloc_v2(&at, 4096)); /* of the device */
    MUST(cu.cuMemHostRegister_v2(own[0], sizeof(own[0]), PORTABLE));
    expect_alloc(sizeof(own[0]), NULL);
    FAILS(REGISTERED, cu.cuMemHostRegister_v2(own[0] + PAGE, PAGE, 0));
    FAILS(NO_MEMORY, cu.cuMemHostAlloc(&none, too_much, 0));
    expect_failure(too_much);
    FAILS(INVALID, cu.cuMemFreeHost(own[0]));
    FAILS(INVALID, cu.cuMemHostUnregister(block));
    FAILS(INVALID, cu.cuMemFree_v2((u64)(uintptr_t)block));
    MUST(cu.cuMemHostAlloc(&none, 0, 0)); /* is no request */
    MUST(cu.cuMemFreeHost(NULL));
    MUST(cu.cuMemFreeHost(block));
    expect_free(2);
    MUST(cu.cuMemHostUnregister(own[0]));
    expect_free(3);
    MUST(cu.cuMemHostRegister_v2(own[1], 2 * PAGE, 0)); /* is live at the end */
    expect_alloc(2 * PAGE, NULL);
    pin_in_context();
    MUST(cu.cuMemHostAlloc(&kept, 300, 0)); /* so is this */
    expect_alloc(300, NULL);
    atexit(free_at_exit);
}

/* The functions of CUDA 2.0 and 4.0, and memory of a device that is registered:
 * it is none of the host. */
void run_old_host(void)
{
    void *driver = dlopen("libcuda.so.1", RTLD_NOW), *block;
    int (*allocate)(void **, unsigned), (*enter)(void *, size_t, unsigned);

    *(void **)&allocate = dlsym(driver, "cuMemAllocHost");
    *(void **)&enter = dlsym(driver, "cuMemHostRegister");
    MUST(allocate(&block, 700));
    expect_alloc(700, NULL);
    MUST(enter(own[0], PAGE, 0));
    expect_alloc(PAGE, NULL);
    MUST(enter(own[1], PAGE, IO_MEMORY));
    MUST(cu.cuMemHostUnregister(own[1]));
    MUST(cu.cuMemHostUnregister(own[0]));
    expect_free(2);
}
