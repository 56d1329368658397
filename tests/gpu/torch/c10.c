/* c10.c - a libc10.so with the one function that real/torch/adaptor.c looks up
 * in PyTorch's. It does not throw: it calls the test. */
#include <stdint.h>
#include <stdlib.h>

#define EXPORT __attribute__((visibility("default")))

EXPORT void c10_on_throw(void (*wanted)(const char *));
EXPORT void torch_check_fail(
    const char *, const char *, uint32_t,
    const char *) __asm__("_ZN3c106detail14torchCheckFailEPKcS2_jS2_")
    __attribute__((noreturn));

static void (*on_throw)(const char *);

void c10_on_throw(void (*wanted)(const char *))
{
    on_throw = wanted;
}

void torch_check_fail(const char *function, const char *file, uint32_t line,
                      const char *words)
{
    (void)function;
    (void)file;
    (void)line;
    on_throw(words);
    abort();
}
