/* recorder_driver.c - loads the driver and looks up its functions. It does not
 * know the functions that intercept them. */
#include "real/recorder/recorder_driver.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

/* Finds the C library's dlsym by its symbol versions: that of glibc 2.34 and
 * later, and the first ones of x86-64 and of 64-bit Arm. */
static driver_lookup *find_dlsym(void)
{
    static const char *const versions[] = {"GLIBC_2.34", "GLIBC_2.2.5",
                                           "GLIBC_2.17"};
    void *found = NULL;
    driver_lookup *as_function;

    for (size_t i = 0; !found && i < sizeof(versions) / sizeof(*versions); i++)
        found = dlvsym(RTLD_NEXT, "dlsym", versions[i]);
    memcpy(&as_function, &found, sizeof(found));
    return as_function;
}

driver_lookup *driver_dlsym(void)
{
    static _Atomic(driver_lookup *) found;
    driver_lookup *f = atomic_load_explicit(&found, memory_order_relaxed);

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
    driver_lookup *find = driver_dlsym();

#define X(name, arguments) *(void **)&driver->name = find(library, #name);
    DRIVER_CALLS(X)
    DRIVER_QUESTIONS(X)
#undef X
}

/* The driver, or NULL if it is absent. With `load`, the driver is loaded if
 * necessary. The function takes no lock: the dynamic loader has its own lock,
 * which the caller holds if it runs in a library's constructor. If several
 * threads look the driver up at once, one result is kept. */
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

const struct driver *driver_if_loaded(void)
{
    return know(false);
}

const struct driver *driver_load(void)
{
    static const struct driver none;
    const struct driver *d = know(true);

    return d ? d : &none;
}
