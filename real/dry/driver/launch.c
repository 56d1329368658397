/* launch.c - modules and launches. Memory with contents has the kernels of
 * real/device/pattern.c, by name; elsewhere a kernel does nothing. */
#include <string.h>

#include "real/dry/driver/dry_driver.h"
#include "real/dry/dry_notes.h"
#include "real/dry/dry_shadow.h"
#include "real/dry/stubs.h"

static cu_result fill(void **args)
{
    const cu_address address = *(cu_address *)args[0];
    const uint64_t pairs = *(uint64_t *)args[1], first = *(uint64_t *)args[2];
    const uint64_t factor = *(uint64_t *)args[3];
    uint64_t *word = memory_host(address);

    if (!memory_is_open(address, pairs * 16))
        return dry_blame("a kernel writes memory that is not there");
    for (uint64_t i = 0; i < 2 * pairs; i++)
        word[i] = (first + i) * factor;
    return CU_SUCCESS;
}

static cu_result verify(void **args)
{
    const cu_address address = *(cu_address *)args[0];
    const uint64_t pairs = *(uint64_t *)args[1], first = *(uint64_t *)args[2];
    const uint64_t factor = *(uint64_t *)args[3];
    const cu_address answer = *(cu_address *)args[4];
    const uint64_t *word = memory_host(address);

    if (!memory_is_open(address, pairs * 16) || !memory_is_open(answer, 8))
        return dry_blame("a kernel reads memory that is not there");
    for (uint64_t i = 0; i < 2 * pairs; i++)
        if (word[i] != (first + i) * factor) {
            *(uint64_t *)memory_host(answer) = i / 2 * 16;
            break;
        }
    return CU_SUCCESS;
}

static const struct {
    const char *name;
    cu_result (*run)(void **args);
} kernels[] = {{"frag_fill", fill}, {"frag_verify", verify}};

cu_result cuModuleLoadData(cu_module *module, const void *image)
{
    ENTER();
    NEEDS_CONTEXT();
    if (!dry.is_empty && !strstr(image, ".version"))
        LEAVE(dry_blame("a module that is no PTX"));
    *module = OPAQUE(cu_module);
    LEAVE(CU_SUCCESS);
}

/* Compiled code is not read. */
DRY_EXPORT cu_result cuModuleLoad(cu_module *module, const char *path)
{
    return cuModuleLoadData(module, path);
}

DRY_EXPORT cu_result cuModuleLoadDataEx(cu_module *module, const void *image,
                                        unsigned count, int *options,
                                        void **values)
{
    (void)count, (void)options, (void)values;
    return cuModuleLoadData(module, image);
}

/* As by default: a kernel is loaded at its first use. */
DRY_EXPORT cu_result cuModuleGetLoadingMode(int *mode)
{
    enum { LAZY = 2 }; /* CU_MODULE_LAZY_LOADING */

    *mode = LAZY;
    return CU_SUCCESS;
}

/* Registers, local and shared memory are in the compiled code. */
DRY_EXPORT cu_result cuFuncGetAttribute(int *value, int which, cu_function f)
{
    enum { MOST_THREADS = 0, REGISTERS = 4 };

    (void)f;
    frag_dry_note(DRY_GUESS, "registers and spills of compiled code: 64, 0");
    *value = which == MOST_THREADS ? 1024 : which == REGISTERS ? 64 : 0;
    return CU_SUCCESS;
}

/* One handle serves for a kernel and its function. */
DRY_EXPORT cu_result cuKernelGetFunction(cu_function *out, cu_function kernel)
{
    *out = kernel;
    return CU_SUCCESS;
}

DRY_EXPORT cu_result cuKernelGetAttribute(int *value, int which,
                                          cu_function kernel, cu_device device)
{
    (void)device;
    return cuFuncGetAttribute(value, which, kernel);
}

DRY_EXPORT cu_result cuOccupancyMaxActiveClusters(int *count, cu_function f,
                                                  void *config)
{
    (void)f, (void)config;
    frag_dry_note(DRY_GUESS,
                  "cuOccupancyMaxActiveClusters: 1 of each processor");
    *count = frag_dry_gpu()->processors;
    return CU_SUCCESS;
}

cu_result cuModuleUnload(cu_module module)
{
    (void)module;
    return CU_SUCCESS;
}

cu_result cuModuleGetFunction(cu_function *function, cu_module module,
                              const char *name)
{
    (void)module;
    ENTER();
    if (dry.is_empty) {
        *function = OPAQUE(cu_function);
        LEAVE(CU_SUCCESS);
    }
    for (size_t i = 0; i < sizeof(kernels) / sizeof(*kernels); i++)
        if (!strcmp(kernels[i].name, name)) {
            *function = (cu_function)(uintptr_t)(i + 1);
            LEAVE(CU_SUCCESS);
        }
    LEAVE(NOT_FOUND);
}

cu_result cuLaunchKernel(cu_function function, unsigned grid_x, unsigned grid_y,
                         unsigned grid_z, unsigned block_x, unsigned block_y,
                         unsigned block_z, unsigned shared, cu_stream stream,
                         void **args, void **extra)
{
    (void)stream;
    (void)extra;
    ENTER();
    NEEDS_CONTEXT();
    if (dry.is_empty) {
        frag_dry_launched();
        LEAVE(CU_SUCCESS);
    }
    if (!grid_x || grid_y != 1 || grid_z != 1 || !block_x || block_y != 1 ||
        block_z != 1 || shared)
        LEAVE(dry_blame("a launch of another shape"));
    LEAVE(kernels[(uintptr_t)function - 1].run(args));
}
