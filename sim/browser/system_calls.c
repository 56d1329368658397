/* system_calls.c - the calls of Linux that emscripten's C library declares, but
 * lacks. They fail, as on a system without processes. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static int refuse(void)
{
    errno = ENOSYS;
    return -1;
}

int sched_getaffinity(pid_t process, size_t size, cpu_set_t *set)
{
    (void)process;
    (void)size;
    (void)set;
    return refuse();
}

int __sched_cpucount(size_t size, const cpu_set_t *set)
{
    (void)size;
    (void)set;
    return 1;
}

pid_t wait4(pid_t process, int *status, int options, struct rusage *used)
{
    (void)process;
    (void)status;
    (void)options;
    (void)used;
    return refuse();
}

int prctl(int option, ...)
{
    (void)option;
    return refuse();
}

ssize_t tee(int from, int to, size_t size, unsigned flags)
{
    (void)from;
    (void)to;
    (void)size;
    (void)flags;
    return refuse();
}

/* ---- shared libraries ---- */

void __dl_seterr(const char *format, ...); /* of the C library: for dlerror() */

void *dlopen(const char *path, int flags)
{
    (void)flags;
    __dl_seterr("%s: a page loads no library", path);
    return NULL;
}

void *dlsym(void *restrict library, const char *restrict name)
{
    (void)library;
    (void)name;
    return NULL;
}
