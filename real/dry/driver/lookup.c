/* lookup.c - functions of the driver by name. A program that asked for one may
 * call it without a look at the result, so one that the stand-in lacks is never
 * NULL: it is a function that says its name and fails. */
#define _GNU_SOURCE
#include <ctype.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "real/dry/driver/dry_driver.h"
#include "real/dry/dry_notes.h"
#include "real/dry/stubs.h"

/* X(0000), ... X(0777): octal numbers. A driver has about 500 functions. */
#define EIGHT(X, n) \
    X(n##0) X(n##1) X(n##2) X(n##3) X(n##4) X(n##5) X(n##6) X(n##7)
#define SIXTY_FOUR(X, n) \
    EIGHT(X, n##0)       \
    EIGHT(X, n##1)       \
    EIGHT(X, n##2)       \
    EIGHT(X, n##3) EIGHT(X, n##4) EIGHT(X, n##5) EIGHT(X, n##6) EIGHT(X, n##7)
#define SLOTS(X)      \
    SIXTY_FOUR(X, 00) \
    SIXTY_FOUR(X, 01) \
    SIXTY_FOUR(X, 02) \
    SIXTY_FOUR(X, 03) \
    SIXTY_FOUR(X, 04) SIXTY_FOUR(X, 05) SIXTY_FOUR(X, 06) SIXTY_FOUR(X, 07)
enum { MOST_SLOTS = 512 };

static const char *lacking[MOST_SLOTS]; /* their names; NULL from the first
                                           free one */

#define X(slot)                                  \
    static cu_result refuses_##slot(void)        \
    {                                            \
        frag_dry_note(DRY_LACKS, lacking[slot]); \
        return NOT_SUPPORTED;                    \
    }
SLOTS(X)
#undef X

static cu_result refuses(void)
{
    frag_dry_note(DRY_LACKS, "further functions of the driver");
    return NOT_SUPPORTED;
}

static void *refusal(const char *name)
{
    static cu_result (*const refusals[])(void) = {
#define X(slot) refuses_##slot,
        SLOTS(X)
#undef X
            refuses,
    };
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    int slot = 0;
    void *found;

    pthread_mutex_lock(&lock);
    while (slot < MOST_SLOTS && lacking[slot] && strcmp(lacking[slot], name))
        slot++;
    if (slot < MOST_SLOTS && !lacking[slot] && !(lacking[slot] = strdup(name)))
        abort();
    pthread_mutex_unlock(&lock);
    memcpy(&found, &refusals[slot], sizeof(found));
    return found;
}

/* The newer form of a function has a number behind its name. */
static void *find(const char *name)
{
    char newer[128];
    void *found = NULL;

    if (snprintf(newer, sizeof(newer), "%s_v2", name) < (int)sizeof(newer))
        found = dlsym(RTLD_DEFAULT, newer);
    return found ? found : dlsym(RTLD_DEFAULT, name);
}

/* Whether a driver may have a function of that name. */
static bool is_driver(const char *name)
{
    return !strncmp(name, "cu", 2) && isupper((unsigned char)name[2]);
}

cu_result cuGetProcAddress_v2(const char *name, void **out, int version,
                              unsigned long long flags, int *status)
{
    enum { FOUND = 0, UNKNOWN_NAME = 1 }; /* CUdriverProcAddressQueryResult */

    (void)version;
    (void)flags;
    *out = NULL;
    if (status)
        *status = is_driver(name) ? FOUND : UNKNOWN_NAME;
    if (!is_driver(name))
        return NOT_FOUND;
    *out = find(name);
    if (!*out)
        *out = refusal(name);
    return CU_SUCCESS;
}

/* The form before CUDA 12. */
DRY_EXPORT cu_result cuGetProcAddress(const char *name, void **out, int version,
                                      unsigned long long flags)
{
    return cuGetProcAddress_v2(name, out, version, flags, NULL);
}

static cu_result undescribed(void)
{
    frag_dry_note(DRY_GUESS,
                  "the runtime inside of cuDNN does not start: plans "
                  "that need it are left out");
    return NOT_SUPPORTED;
}

/* Tables of functions that no header describes; the runtime inside of cuDNN
 * asks for them and calls without a look at the result. A table begins with its
 * size in bytes. */
DRY_EXPORT cu_result cuGetExportTable(const void **out, const void *id)
{
    enum { ENTRIES = 128 };
    static union {
        size_t size;
        cu_result (*function)(void);
    } table[ENTRIES];

    (void)id;
    for (int i = 1; i < ENTRIES; i++)
        table[i].function = undescribed;
    table[0].size = sizeof(size_t);
    *out = table;
    return CU_SUCCESS;
}
