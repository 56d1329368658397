#include "real/record_driver.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
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

static struct driver driver;
static atomic_bool known;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void look_up(void *library)
{
    lookup *find = real_dlsym();

#define X(name, arguments) *(void **)&driver.name = find(library, #name);
    DRIVER_CALLS(X)
    DRIVER_QUESTIONS(X)
#undef X
}

/* Whether the driver is known; with load, it is loaded to be. */
static bool know(bool load)
{
    void *library;

    if (atomic_load(&known))
        return true;
    library = dlopen("libcuda.so.1", RTLD_LAZY | (load ? 0 : RTLD_NOLOAD));
    if (!library)
        return false;
    pthread_mutex_lock(&lock);
    if (!atomic_load(&known))
        look_up(library);
    atomic_store(&known, true);
    pthread_mutex_unlock(&lock);
    return true;
}

const struct driver *driver_get(void)
{
    know(true);
    return &driver;
}

void *driver_front(void *function)
{
    if (!function || !know(false))
        return function;
#define X(name, arguments)                  \
    if (function == *(void **)&driver.name) \
        return (void *)(uintptr_t)name;
    DRIVER_CALLS(X)
#undef X
    return function;
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

    if (!may_be_drivers(handle, name))
        return find(handle, name);
    return driver_front(find(handle, name));
}
