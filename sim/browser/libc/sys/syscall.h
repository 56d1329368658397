/* syscall.h - in place of the header of Linux: a page has no kernel, so each
 * call fails. Included by the code of commands that start programs. */
#ifndef FRAG_SIM_BROWSER_LIBC_SYS_SYSCALL_H
#define FRAG_SIM_BROWSER_LIBC_SYS_SYSCALL_H

#include <errno.h>

enum { SYS_pidfd_open, SYS_pidfd_getfd };

static inline long syscall(long number, ...)
{
    (void)number;
    errno = ENOSYS;
    return -1;
}

#endif
