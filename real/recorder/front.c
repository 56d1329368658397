/* front.c - the table of the intercepted functions, and the two lookups through
 * which a program gets them: dlsym and cuGetProcAddress. It refers to the
 * functions of all other files of the recorder; no other file calls it. */
#include <dlfcn.h>
#include <string.h>

#include "real/recorder/watch.h"

/* ---- the table ---- */

/* The function of the recorder that intercepts this function of the driver;
 * NULL if there is none. */
static void *front_of(void *function)
{
    const struct driver *d = function ? driver_if_loaded() : NULL;

    if (!d)
        return NULL;
#define X(name, arguments)                      \
    if (function == *(void *const *)&d->name || \
        function == (void *)(uintptr_t)name)    \
        return (void *)(uintptr_t)name;
    DRIVER_CALLS(X)
#undef X
    return NULL;
}

/* Whether symbol is `name` or a version of it. */
static bool is_version_of(const char *symbol, const char *name)
{
    const size_t length = strlen(name);
    const char *rest = symbol + length;

    return !strncmp(symbol, name, length) &&
           (!*rest || !strcmp(rest, "_v2") || !strcmp(rest, "_ptsz"));
}

/* Whether the recorder intercepts some version of the function of that name. */
static bool is_fronted(const char *name)
{
#define X(symbol, arguments)          \
    if (is_version_of(#symbol, name)) \
        return true;
    DRIVER_CALLS(X)
#undef X
    return false;
}

/* ---- the way through dlsym ---- */

EXPORTED void *dlsym(void *handle, const char *name);

static bool may_be_drivers(void *handle, const char *name)
{
    return handle != RTLD_NEXT && handle != RTLD_DEFAULT && name[0] == 'c' &&
           name[1] == 'u';
}

/* Lookups that cannot concern the driver are left to the C library with a jump,
 * not a call, because RTLD_NEXT depends on the caller's address.
 * tests/gpu/check_record.sh verifies that the compiler emits a jump. */
void *dlsym(void *restrict handle, const char *restrict name)
{
    driver_lookup *find = driver_dlsym();
    void *found, *front;

    if (!may_be_drivers(handle, name))
        return find(handle, name);
    found = find(handle, name);
    front = front_of(found);
    return front ? front : found;
}

/* ---- the way through the driver ---- */

/* The function that the program gets for a function that the driver returned.
 * If the driver returned an unknown version of an intercepted function, its
 * name is logged. */
static void *answer(const char *name, void *function)
{
    void *const front = front_of(function);
    struct watch w;

    if (front)
        return front;
    if (is_fronted(name)) {
        w = watch_begin_unread(name);
        watch_end(&w, DRIVER_SUCCESS);
    }
    return function;
}

driver_result cuGetProcAddress(const char *name, void **function, int version,
                               uint64_t flags)
{
    const driver_result result =
        DRIVER_PASS_ON(cuGetProcAddress, name, function, version, flags);

    if (result == DRIVER_SUCCESS && function && *function)
        *function = answer(name, *function);
    return result;
}

driver_result cuGetProcAddress_v2(const char *name, void **function,
                                  int version, uint64_t flags, int *status)
{
    const driver_result result = DRIVER_PASS_ON(
        cuGetProcAddress_v2, name, function, version, flags, status);

    if (result == DRIVER_SUCCESS && function && *function)
        *function = answer(name, *function);
    return result;
}
