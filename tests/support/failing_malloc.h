/* failing_malloc.h - simulates a host that has no memory at the k-th request.
 *
 * For programs named *_faults: they are linked so that every request for memory
 * comes through here (tests/CMakeLists.txt). Set calls_to_failure to k: the
 * k-th request from then on fails, once, and calls_to_failure is 0 again. With
 * 0, no request fails.
 */
#ifndef FRAG_TESTS_SUPPORT_FAILING_MALLOC_H
#define FRAG_TESTS_SUPPORT_FAILING_MALLOC_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

static atomic_uint_fast64_t calls_to_failure;

/* Fails the test if an error comes without its text. `e` is the struct
 * frag_error, which was empty before the call. */
#define assert_error_says(err, e)                               \
    do {                                                        \
        if ((err) != FRAG_OK && !*(e).text)                     \
            fail_msg("%s, without a text", frag_err_text(err)); \
    } while (0)

static bool host_fails(void)
{
    uint_fast64_t left = calls_to_failure;

    while (left &&
           !atomic_compare_exchange_weak(&calls_to_failure, &left, left - 1))
        continue;
    return left == 1;
}

/* result, function, parameters, arguments */
#define FRAG_WRAPPED(X)                                           \
    X(void *, malloc, (size_t size), (size))                      \
    X(void *, calloc, (size_t count, size_t size), (count, size)) \
    X(void *, realloc, (void *old, size_t size), (old, size))     \
    X(void *, aligned_alloc, (size_t alignment, size_t size),     \
      (alignment, size))                                          \
    X(char *, strdup, (const char *text), (text))                 \
    X(char *, strndup, (const char *text, size_t length), (text, length))

#define X(result, name, parameters, arguments)                \
    result __real_##name parameters;                          \
    result __wrap_##name parameters;                          \
    result __wrap_##name parameters                           \
    {                                                         \
        return host_fails() ? NULL : __real_##name arguments; \
    }
FRAG_WRAPPED(X)
#undef X

#endif
