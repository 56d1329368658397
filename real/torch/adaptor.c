/* adaptor.c - the functions that PyTorch calls through
 * CUDAPluggableAllocator. */
#include "real/torch/adaptor.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include "traces/printable.h"

/* Several threads may end here at once; only one prints. */
static void die(const char *words)
{
    flockfile(stderr);
    printable_line(stderr, "fragsim: %s", words);
    abort();
}

/* ---- functions that PyTorch calls ---- */

/* c10::detail::torchCheckFail(function, file, line, message), which throws. */
typedef void check_fail(const char *, const char *, uint32_t, const char *);

/* Python loads libc10 into its own scope, so the global scope does not have the
 * function. */
static check_fail *find_check_fail(void)
{
    static const char name[] = "_ZN3c106detail14torchCheckFailEPKcS2_jS2_";
    void *library = dlopen("libc10.so", RTLD_LAZY | RTLD_NOLOAD);
    check_fail *fail = NULL;

    *(void **)&fail = dlsym(library ? library : RTLD_DEFAULT, name);
    return fail;
}

/* Programs recognize a full device by the first words of the message. */
static void refuse(enum frag_torch_answer answer, const char *why)
{
    check_fail *fail = find_check_fail();
    char words[FRAG_TORCH_WORDS + 64];

    snprintf(words, sizeof(words), "%sfragsim, %s",
             answer == FRAG_TORCH_OOM ? "CUDA out of memory. " : "", why);
    if (fail)
        fail("frag_torch_alloc", "fragsim", 0, words);
    die(words);
}

void *frag_torch_alloc(ssize_t size, int device, frag_torch_stream stream)
{
    struct frag_service_block block;
    char words[FRAG_TORCH_WORDS];
    enum frag_torch_answer answer;

    if (size <= 0)
        return NULL;
    answer = frag_torch_serve(device, (size_t)size, stream, &block, words);
    if (answer != FRAG_TORCH_OK)
        refuse(answer, words);
    return (void *)(uintptr_t)block.addr;
}

void frag_torch_free(void *ptr, ssize_t size, int device,
                     frag_torch_stream stream)
{
    char words[FRAG_TORCH_WORDS];

    (void)size;
    if (!ptr)
        return;
    if (frag_torch_end(device, (uintptr_t)ptr, stream, words) ==
        FRAG_TORCH_FAILED)
        die(words);
}

/* PyTorch does not pass the device of the block. */
void frag_torch_record_stream(void *ptr, frag_torch_stream stream)
{
    char words[FRAG_TORCH_WORDS];

    for (int i = 0; ptr && i < FRAG_TORCH_DEVICES; i++)
        if (frag_torch_use(i, (uintptr_t)ptr, stream, words) != FRAG_TORCH_OK)
            die(words);
}

void frag_torch_empty_cache(void)
{
    char words[FRAG_TORCH_WORDS];

    for (int i = 0; i < FRAG_TORCH_DEVICES; i++)
        if (frag_torch_trim(i, words) != FRAG_TORCH_OK)
            die(words);
}
