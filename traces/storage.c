/* storage.c - allocates the memory of a trace and releases it. */
#include "traces/storage.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "traces/grow.h"

/* -- mapped files -------------------------------------------------------- */

enum { MAPS = 256 };

/* A global, because a signal handler has no other access to state. A file that
 * finds no room is mapped all the same. */
static struct {
    _Atomic uintptr_t start; /* 0: free; 1: it is being filled in */
    uintptr_t end;
    const char *name;
} maps[MAPS];

void *storage_map(int fd, size_t size, const char *name)
{
    void *map = mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0);

    if (map == MAP_FAILED)
        return NULL;
    for (int i = 0; i < MAPS; i++) {
        uintptr_t none = 0;

        if (!atomic_compare_exchange_strong(&maps[i].start, &none, 1))
            continue;
        maps[i].end = (uintptr_t)map + size;
        maps[i].name = name;
        maps[i].start = (uintptr_t)map;
        break;
    }
    return map;
}

void storage_unmap(void *map, size_t size)
{
    for (int i = 0; i < MAPS; i++)
        if (maps[i].start == (uintptr_t)map)
            maps[i].start = 0;
    munmap(map, size);
}

const char *storage_mapped(const void *address)
{
    const uintptr_t at = (uintptr_t)address;

    for (int i = 0; i < MAPS; i++)
        if (maps[i].start > 1 && at >= maps[i].start && at < maps[i].end)
            return maps[i].name;
    return NULL;
}

/* -- the memory of a trace ----------------------------------------------- */

struct frag_trace *storage_trace(const char *path, const char *format)
{
    struct frag_trace *t = calloc(1, sizeof(*t));

    if (!t)
        return NULL;
    t->owner = calloc(1, sizeof(struct storage));
    t->path = strdup(path);
    t->format = format;
    if (t->owner && t->path)
        return t;
    frag_trace_close(t);
    return NULL;
}

bool storage_keep(struct frag_trace *t, void *array)
{
    struct storage *s = t->owner;

    if (!GROW(s->arrays, s->room, s->count + 1))
        return false;
    s->arrays[s->count++] = array;
    return true;
}

void *storage_array(struct frag_trace *t, uint64_t count, size_t item)
{
    void *array = calloc(count ? (size_t)count : 1, item);

    if (array && storage_keep(t, array))
        return array;
    free(array);
    return NULL;
}

char *storage_text(struct frag_trace *t, const char *text, size_t length)
{
    char *copy = storage_array(t, length + 1, 1);

    if (copy)
        memcpy(copy, text, length);
    return copy;
}

enum frag_err frag_trace_note(struct frag_trace *t, const char *text,
                              struct frag_error *e)
{
    const char **all = storage_array(t, t->note_count + 1, sizeof(*all));

    if (all && t->note_count)
        memcpy(all, t->notes, t->note_count * sizeof(*all));
    if (all)
        all[t->note_count] = storage_text(t, text, strlen(text));
    if (!all || !all[t->note_count])
        return frag_no_memory(e, "the notes");
    t->notes = all;
    t->note_count++;
    return FRAG_OK;
}

/* Releases the pages of the rows [from, to) of a column, if the column lies in
 * the map. */
static void release(const struct frag_device_trace *d, const void *column,
                    size_t item, uint64_t from, uint64_t to)
{
    const uintptr_t map = (uintptr_t)d->map, start = (uintptr_t)column;
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    const uintptr_t first = (start + from * item) / page * page;
    const uintptr_t end = (start + to * item) / page * page;

    if (start < map || start + d->count * item > map + d->map_size)
        return;
    /* If the system refuses, memory is used longer. */
    (void)madvise((void *)first, end - first, MADV_DONTNEED);
}

void frag_trace_passed(const struct frag_device_trace *d, uint64_t from,
                       uint64_t to)
{
    const uint64_t window = FRAG_PASSED_EVENTS;
    const uint64_t first = from / window * window, end = to / window * window;

    if (!d->map_size || first >= end)
        return;
    release(d, d->op, sizeof(*d->op), first, end);
    release(d, d->id, sizeof(*d->id), first, end);
    release(d, d->bytes, sizeof(*d->bytes), first, end);
    release(d, d->stream, sizeof(*d->stream), first, end);
    release(d, d->pool, sizeof(*d->pool), first, end);
}

void frag_trace_close(struct frag_trace *t)
{
    struct storage *s;

    if (!t)
        return;
    s = t->owner;
    for (uint64_t i = 0; s && i < s->count; i++)
        free(s->arrays[i]);
    if (s && s->map)
        storage_unmap(s->map, s->map_size);
    if (s)
        free(s->arrays);
    free(s);
    free(t->path);
    free(t);
}

void storage_share_settings(struct frag_trace *t)
{
    for (uint32_t i = 0; i < t->device_count; i++) {
        t->devices[i].recorded.settings = t->settings;
        t->devices[i].strings = t->strings;
    }
}
