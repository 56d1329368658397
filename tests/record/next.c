/* next.c - a library loaded before a program, as profilers and allocators are:
 * its puts() goes on to the next one there is. If a dlsym in front of the C
 * library's were the caller, the next one would be this one, for ever. */
#include <dlfcn.h>
#include <stdio.h>

int puts(const char *text)
{
    int (*next)(const char *);

    *(void **)&next = dlsym(RTLD_NEXT, "puts");
    return fputs("next: ", stdout) < 0 ? EOF : next(text);
}
