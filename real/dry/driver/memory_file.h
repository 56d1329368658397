/* memory_file.h - a file in memory. Include after _GNU_SOURCE is defined. */
#ifndef FRAG_REAL_DRY_DRIVER_MEMORY_FILE_H
#define FRAG_REAL_DRY_DRIVER_MEMORY_FILE_H

#include <linux/memfd.h>
#include <sys/syscall.h>
#include <unistd.h>

/* A file without a path, of which no program that the process starts has a
 * part; -1 if the system has none. C libraries older than glibc 2.27 have no
 * function for this call. */
static inline int memory_file(const char *name)
{
    return (int)syscall(SYS_memfd_create, name, MFD_CLOEXEC);
}

#endif
