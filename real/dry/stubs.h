/* stubs.h - the functions of a library that need no code of their own. A list
 * (a file *.def) names every function that PyTorch links from the library, and
 * says what stands in for it:
 *
 *   WORK(f)     its work is done on the device: it succeeds and does nothing
 *   INFO(f, n)  the same, and it says 0, that its arguments are right, in the
 *               int of the host that argument n points to
 *   DONE(f)     it has no effect that a program could see
 *   MAKES(f)    it writes a handle through its first argument
 *   TAKES(f, n, m)  the same, and the library takes n MiB of the device, and m
 *               MiB more with its first handle there
 *   FREES(f)    it frees the handle of its first argument
 *   ZERO(f, n)  the real function decides a size (int) on the host and writes
 *               it through argument n: 0 is written, and counted as a size that
 *               is not known
 *   ZERO64(f, n)  the same for a size_t; ZEROS(f, n, m): for two of them
 *   LACKS(f)    it fails with the status DRY_LACKING, and is named and counted
 *   WORDS(f)    it returns the text of a status
 *   OWN(f)      the including file has it
 *
 * Arguments in floating-point registers do not count for n. The including file
 * defines DRY_LACKING. For the stand-ins only.
 */
#ifndef FRAG_REAL_DRY_STUBS_H
#define FRAG_REAL_DRY_STUBS_H

#include <stdint.h>
#include <stdlib.h>

#include "real/dry/control.h"
#include "real/dry/dry_notes.h"
#include "real/dry/dry_shadow.h"

#define DRY_EXPORT __attribute__((visibility("default")))
enum { DRY_HANDLE = 256 }; /* bytes of a handle, all zero */

#define DRY_ARGUMENTS                                                         \
    intptr_t a1, intptr_t a2, intptr_t a3, intptr_t a4, intptr_t a5,          \
        intptr_t a6, intptr_t a7, intptr_t a8, intptr_t a9, intptr_t a10,     \
        intptr_t a11, intptr_t a12, intptr_t a13, intptr_t a14, intptr_t a15, \
        intptr_t a16, intptr_t a17, intptr_t a18, intptr_t a19, intptr_t a20

#define DRY_UNUSED                                                        \
    (void)a1, (void)a2, (void)a3, (void)a4, (void)a5, (void)a6, (void)a7, \
        (void)a8, (void)a9, (void)a10, (void)a11, (void)a12, (void)a13,   \
        (void)a14, (void)a15, (void)a16, (void)a17, (void)a18, (void)a19, \
        (void)a20

#define WORK(f)              \
    DRY_EXPORT int f(void);  \
    int f(void)              \
    {                        \
        frag_dry_launched(); \
        return 0;            \
    }
#define INFO(f, n)                   \
    DRY_EXPORT int f(DRY_ARGUMENTS); \
    int f(DRY_ARGUMENTS)             \
    {                                \
        DRY_UNUSED;                  \
        frag_dry_launched();         \
        *(int *)a##n = 0;            \
        return 0;                    \
    }
#define DONE(f)             \
    DRY_EXPORT int f(void); \
    int f(void)             \
    {                       \
        return 0;           \
    }
#define MAKES(f)                       \
    DRY_EXPORT int f(void **out);      \
    int f(void **out)                  \
    {                                  \
        *out = calloc(1, DRY_HANDLE);  \
        return *out ? 0 : DRY_LACKING; \
    }
#define TAKES(f, each, first)              \
    DRY_EXPORT int f(void **out);          \
    int f(void **out)                      \
    {                                      \
        static uint64_t seen;              \
        frag_dry_take(&seen, each, first); \
        *out = calloc(1, DRY_HANDLE);      \
        return *out ? 0 : DRY_LACKING;     \
    }
#define FREES(f)                \
    DRY_EXPORT int f(void *it); \
    int f(void *it)             \
    {                           \
        free(it);               \
        return 0;               \
    }
#define DRY_ZERO(f, n, type)         \
    DRY_EXPORT int f(DRY_ARGUMENTS); \
    int f(DRY_ARGUMENTS)             \
    {                                \
        DRY_UNUSED;                  \
        frag_dry_note(DRY_SIZE, #f); \
        *(type *)a##n = 0;           \
        return 0;                    \
    }
#define ZERO(f, n)   DRY_ZERO(f, n, int)
#define ZERO64(f, n) DRY_ZERO(f, n, size_t)
#define ZEROS(f, n, m)                         \
    DRY_EXPORT int f(DRY_ARGUMENTS);           \
    int f(DRY_ARGUMENTS)                       \
    {                                          \
        DRY_UNUSED;                            \
        frag_dry_note(DRY_SIZE, #f);           \
        *(size_t *)a##n = *(size_t *)a##m = 0; \
        return 0;                              \
    }
#define LACKS(f)                      \
    DRY_EXPORT int f(void);           \
    int f(void)                       \
    {                                 \
        frag_dry_note(DRY_LACKS, #f); \
        return DRY_LACKING;           \
    }
#define WORDS(f)                                                    \
    DRY_EXPORT const char *f(int code);                             \
    const char *f(int code)                                         \
    {                                                               \
        return code ? "the stand-in of fragsim lacks this function" \
                    : "success";                                    \
    }
#define OWN(f)

#endif
