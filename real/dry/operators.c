/* operators.c - the operators of PyTorch that called (operators.h): each has
 * functions at::_ops::NAME::call and redispatch, which PyTorch exports. */
#define _GNU_SOURCE
#include "real/dry/operators.h"

#include <dlfcn.h>
#include <execinfo.h>
#include <link.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FRAMES = 64 };

/* The operator of a function; its length, or 0 if it is none. */
static int operator_of(void *address, const char **name)
{
    static const char prefix[] = "_ZN2at4_ops";
    Dl_info found;
    char *text;
    long length;

    if (!dladdr(address, &found) || !found.dli_sname ||
        strncmp(found.dli_sname, prefix, sizeof(prefix) - 1) != 0)
        return 0;
    length = strtol(found.dli_sname + sizeof(prefix) - 1, &text, 10);
    *name = text;
    return length > 0 && (size_t)length <= strlen(text) ? (int)length : 0;
}

/* The answer of operator_of for an address: the search goes through all symbols
 * of a library, and a program reads values at the same places again. */
static struct known {
    void *address;
    const char *name;
    int length;
} known[1 << 14];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static int known_operator(void *address, const char **name)
{
    const size_t room = sizeof(known) / sizeof(*known);
    struct known *k = &known[(uintptr_t)address * 2654435761u % room];
    int length;

    pthread_mutex_lock(&lock);
    if (k->address != address) {
        k->address = address;
        k->name = "";
        k->length = operator_of(address, &k->name);
    }
    *name = k->name;
    length = k->length;
    pthread_mutex_unlock(&lock);
    return length;
}

void frag_dry_operators(char *inner, char *outer, size_t room)
{
    void *frames[FRAMES];
    const int count = backtrace(frames, FRAMES);
    const char *name;

    *inner = *outer = '\0';
    for (int i = 0; i < count; i++) {
        const int length = known_operator(frames[i], &name);

        if (length && !*inner)
            snprintf(inner, room, "%.*s", length, name);
        if (length)
            snprintf(outer, room, "%.*s", length, name);
    }
}

/* ---- modes ---- */

static __thread int own_modes;

void frag_dry_own_modes(int count)
{
    own_modes = count;
}

/* A function of c10, PyTorch's base library. */
static void *c10(const char *name)
{
    void *library = dlopen("libc10.so", RTLD_LAZY | RTLD_NOLOAD);
    void *found = library ? dlsym(library, name) : NULL;

    if (!found) {
        fprintf(stderr, "fragsim dry: libc10.so has no %s\n", name);
        abort();
    }
    return found;
}

/* The addresses of libtorch_python.so, which asks whether to call the modes. */
static uintptr_t begins, ends;

static int find_python(struct dl_phdr_info *info, size_t size, void *unused)
{
    (void)size, (void)unused;
    if (!strstr(info->dlpi_name, "libtorch_python.so"))
        return 0;
    begins = info->dlpi_addr;
    for (int i = 0; i < info->dlpi_phnum; i++)
        if (begins + info->dlpi_phdr[i].p_vaddr + info->dlpi_phdr[i].p_memsz >
            ends)
            ends = begins + info->dlpi_phdr[i].p_vaddr +
                   info->dlpi_phdr[i].p_memsz;
    return 1;
}

static bool (*enabled)(void);
static int64_t (*modes)(void);

static void find_modes(void)
{
    *(void **)&modes = c10("_ZN3c104impl20TorchDispatchModeTLS9stack_lenEv");
    *(void **)&enabled = c10("_ZN3c104impl21dispatch_mode_enabledEv");
    dl_iterate_phdr(find_python, NULL);
}

bool _ZN3c104impl21dispatch_mode_enabledEv(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    const uintptr_t caller = (uintptr_t)__builtin_return_address(0);

    pthread_once(&once, find_modes);
    return enabled() &&
           (modes() > own_modes || (caller >= begins && caller < ends));
}
