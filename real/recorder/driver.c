#include "real/recorder/driver.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

typedef void *lookup(void *handle, const char *name);

EXPORTED void *dlsym(void *handle, const char *name);

/* The C library's dlsym, under the names of its versions: since 2.34, and the
 * first of x86-64 and of 64-bit Arm. */
static lookup *find_dlsym(void)
{
    static const char *const versions[] = {"GLIBC_2.34", "GLIBC_2.2.5",
                                           "GLIBC_2.17"};
    void *found = NULL;
    lookup *as_function;

    for (size_t i = 0; !found && i < sizeof(versions) / sizeof(*versions); i++)
        found = dlvsym(RTLD_NEXT, "dlsym", versions[i]);
    memcpy(&as_function, &found, sizeof(found));
    return as_function;
}

static lookup *real_dlsym(void)
{
    static _Atomic(lookup *) found;
    lookup *f = atomic_load_explicit(&found, memory_order_relaxed);

    if (!f) {
        f = find_dlsym();
        atomic_store_explicit(&found, f, memory_order_relaxed);
    }
    return f;
}

/* ---- the driver ---- */

_Atomic(const struct driver *) driver_loaded;

static void look_up(struct driver *driver, void *library)
{
    lookup *find = real_dlsym();

#define X(name, arguments) *(void **)&driver->name = find(library, #name);
    DRIVER_CALLS(X)
    DRIVER_QUESTIONS(X)
#undef X
}

/* The driver, NULL if it is not there; with load, it is loaded to be. Without a
 * lock: the loader has its own, which whoever is called from the constructor of
 * a library holds. Of several threads that look it up at once one is heard. */
static const struct driver *know(bool load)
{
    const struct driver *known = atomic_load(&driver_loaded);
    struct driver *found;
    void *library;

    if (known)
        return known;
    library = dlopen("libcuda.so.1", RTLD_LAZY | (load ? 0 : RTLD_NOLOAD));
    if (!library)
        return NULL;
    found = malloc(sizeof(*found));
    if (!found)
        return NULL;
    look_up(found, library);
    if (atomic_compare_exchange_strong(&driver_loaded, &known, found))
        return found;
    free(found);
    return known;
}

const struct driver *driver_load(void)
{
    static const struct driver none;
    const struct driver *d = know(true);

    return d ? d : &none;
}

void *driver_front(void *function)
{
    const struct driver *d = function ? know(false) : NULL;

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

/* Whether symbol is name, or a version of it. */
static bool is_version_of(const char *symbol, const char *name)
{
    const size_t length = strlen(name);
    const char *rest = symbol + length;

    return !strncmp(symbol, name, length) &&
           (!*rest || !strcmp(rest, "_v2") || !strcmp(rest, "_ptsz"));
}

bool driver_is_fronted(const char *name)
{
#define X(symbol, arguments)          \
    if (is_version_of(#symbol, name)) \
        return true;
    DRIVER_CALLS(X)
#undef X
    return false;
}

/* ---- the way through dlsym ---- */

static bool may_be_drivers(void *handle, const char *name)
{
    return handle != RTLD_NEXT && handle != RTLD_DEFAULT && name[0] == 'c' &&
           name[1] == 'u';
}

/* What is not the driver's is left to the C library with a jump, not a call:
 * RTLD_NEXT asks who called. tests/check_record.sh holds the compiler to it. */
void *dlsym(void *restrict handle, const char *restrict name)
{
    lookup *find = real_dlsym();
    void *found, *front;

    if (!may_be_drivers(handle, name))
        return find(handle, name);
    found = find(handle, name);
    front = driver_front(found);
    return front ? front : found;
}
