/* pinned.c - pinned host memory (pinned.h). */
#define _GNU_SOURCE
#include "real/dry/driver/pinned.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "real/dry/control.h"

static struct pinned {
    struct pinned *next;
    char *at;
    size_t size;
    bool is_allocated;
} * list;
static uint64_t now, most; /* bytes */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static bool add(void *at, size_t size, bool is_allocated)
{
    struct pinned *p = malloc(sizeof(*p));

    if (!p)
        return false;
    *p = (struct pinned){NULL, at, size, is_allocated};
    pthread_mutex_lock(&lock);
    p->next = list;
    list = p;
    now += size;
    most = most < now ? now : most;
    pthread_mutex_unlock(&lock);
    return true;
}

bool frag_dry_pinned_new(void **out, size_t size)
{
    *out = mmap(NULL, size ? size : 1, PROT_READ | PROT_WRITE,
                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return *out != MAP_FAILED && add(*out, size, true);
}

bool frag_dry_pinned_add(void *at, size_t size)
{
    return add(at, size, false);
}

bool frag_dry_pinned_drop(void *at, bool is_allocated)
{
    struct pinned **where = &list, *found;

    pthread_mutex_lock(&lock);
    while (*where &&
           ((*where)->at != at || (*where)->is_allocated != is_allocated))
        where = &(*where)->next;
    found = *where;
    if (found) {
        *where = found->next;
        now -= found->size;
    }
    pthread_mutex_unlock(&lock);
    if (!found)
        return false;
    if (is_allocated)
        munmap(at, found->size ? found->size : 1);
    free(found);
    return true;
}

/* The range that contains all of [at, at + size). */
static struct pinned *around(const void *at, size_t size)
{
    const char *from = at;
    struct pinned *p;

    pthread_mutex_lock(&lock);
    p = list;
    while (p && (from < p->at || from + size > p->at + p->size))
        p = p->next;
    pthread_mutex_unlock(&lock);
    return p;
}

bool frag_dry_pinned_range(uint64_t at, uint64_t *start, size_t *size)
{
    const struct pinned *p = around((const void *)(uintptr_t)at, 1);

    if (p) {
        *start = (uintptr_t)p->at;
        *size = p->size;
    }
    return p != NULL;
}

bool frag_dry_pinned_clear(void *at, size_t size)
{
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    const uintptr_t from = (uintptr_t)at, to = from + size;
    const uintptr_t first = (from + page - 1) / page * page;
    const uintptr_t last = to / page * page;
    const struct pinned *p = around(at, size);

    if (!p || !p->is_allocated)
        return false;
    if (first >= last) {
        memset(at, 0, size);
        return true;
    }
    memset(at, 0, first - from);
    madvise((void *)first, last - first, MADV_DONTNEED);
    memset((void *)last, 0, to - last);
    return true;
}

uint64_t frag_dry_pinned_most(void)
{
    return most;
}
