/* operators.c - the operators of PyTorch that called (operators.h): each has
 * functions at::_ops::NAME::call and redispatch, which PyTorch exports. */
#define _GNU_SOURCE
#include "real/dry/operators.h"

#include <dlfcn.h>
#include <execinfo.h>
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

void frag_dry_operators(char *inner, char *outer, size_t room)
{
    void *frames[FRAMES];
    const int count = backtrace(frames, FRAMES);
    const char *name;

    *inner = *outer = '\0';
    for (int i = 0; i < count; i++) {
        const int length = operator_of(frames[i], &name);

        if (length && !*inner)
            snprintf(inner, room, "%.*s", length, name);
        if (length)
            snprintf(outer, room, "%.*s", length, name);
    }
}
