/* operators.c - the operator of PyTorch that called (operators.h): each has
 * functions at::_ops::NAME::call and redispatch, which PyTorch exports. */
#define _GNU_SOURCE
#include "real/dry/operators.h"

#include <dlfcn.h>
#include <execinfo.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FRAMES = 64 };

void frag_dry_operator(char *name, size_t room)
{
    static const char prefix[] = "_ZN2at4_ops";
    void *frames[FRAMES];
    const int count = backtrace(frames, FRAMES);

    *name = '\0';
    for (int i = 0; i < count && !*name; i++) {
        Dl_info found;
        char *text;
        long length;

        if (!dladdr(frames[i], &found) || !found.dli_sname ||
            strncmp(found.dli_sname, prefix, sizeof(prefix) - 1) != 0)
            continue;
        length = strtol(found.dli_sname + sizeof(prefix) - 1, &text, 10);
        if (length > 0 && (size_t)length < room)
            snprintf(name, room, "%.*s", (int)length, text);
    }
}
