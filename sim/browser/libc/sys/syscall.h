/* syscall.h - in place of the header of Linux: a page has no kernel, so all
 * calls but that which lists a folder fail. */
#ifndef FRAG_SIM_BROWSER_LIBC_SYS_SYSCALL_H
#define FRAG_SIM_BROWSER_LIBC_SYS_SYSCALL_H

#include <dirent.h>
#include <errno.h>
#include <stdarg.h>

enum { SYS_getdents64, SYS_pidfd_open, SYS_pidfd_getfd };

static inline long syscall(long number, ...)
{
    long done = -1;
    va_list list;

    va_start(list, number);
    if (number == SYS_getdents64) {
        const int folder = va_arg(list, int);
        struct dirent *entries = va_arg(list, void *);

        done = getdents(folder, entries, va_arg(list, size_t));
    } else {
        errno = ENOSYS;
    }
    va_end(list);
    return done;
}

#endif
