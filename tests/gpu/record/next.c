/* next.c - a library that is loaded before a program, as profilers and
 * allocators are. Its puts() calls the next puts() in the search order, which
 * depends on the caller of dlsym. If the recorder's dlsym were that caller, the
 * next puts() would be this one again, without end. */
#include <dlfcn.h>
#include <stdio.h>

int puts(const char *text)
{
    int (*next)(const char *);

    *(void **)&next = dlsym(RTLD_NEXT, "puts");
    return fputs("next: ", stdout) < 0 ? EOF : next(text);
}
