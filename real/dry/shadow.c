/* shadow.c - the known bytes of device memory (shadow.h). */
#include "real/dry/shadow.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "real/dry/notes.h"

/* Ranges that are known, the newest first; they do not overlap. */
static struct shadow {
    struct shadow *next;
    uint64_t at;
    size_t size;
    unsigned char bytes[];
} * shadows;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static frag_dry_reader *told;

/* Forgets the ranges that overlap [at, at + size). */
static void forget(uint64_t at, uint64_t size)
{
    for (struct shadow **where = &shadows; *where;) {
        struct shadow *s = *where;

        if (s->at >= at + size || at >= s->at + s->size) {
            where = &s->next;
            continue;
        }
        *where = s->next;
        free(s);
    }
}

static const struct shadow *around(uint64_t at, size_t size)
{
    const struct shadow *s = shadows;

    while (s && (at < s->at || at + size > s->at + s->size))
        s = s->next;
    return s;
}

static void remember(uint64_t at, const void *bytes, size_t size)
{
    struct shadow *s;

    forget(at, size);
    s = size <= FRAG_DRY_SHADOW_MOST ? malloc(sizeof(*s) + size) : NULL;
    if (!s)
        return;
    s->at = at;
    s->size = size;
    memcpy(s->bytes, bytes, size);
    s->next = shadows;
    shadows = s;
}

void frag_dry_wrote(uint64_t at, const void *bytes, size_t size)
{
    pthread_mutex_lock(&lock);
    remember(at, bytes, size);
    pthread_mutex_unlock(&lock);
}

void frag_dry_copied(uint64_t to, uint64_t from, size_t size)
{
    static unsigned char bytes[FRAG_DRY_SHADOW_MOST];
    const struct shadow *s;

    pthread_mutex_lock(&lock);
    s = size <= FRAG_DRY_SHADOW_MOST ? around(from, size) : NULL;
    if (s) {
        memcpy(bytes, s->bytes + (from - s->at), size);
        remember(to, bytes, size);
    } else {
        forget(to, size);
    }
    pthread_mutex_unlock(&lock);
}

void frag_dry_launched(void)
{
    if (!__atomic_load_n(&shadows, __ATOMIC_RELAXED))
        return;
    pthread_mutex_lock(&lock);
    while (shadows) {
        struct shadow *next = shadows->next;

        free(shadows);
        shadows = next;
    }
    pthread_mutex_unlock(&lock);
}

/* Whether the bytes were known. */
static int get(void *to, uint64_t at, size_t size)
{
    const struct shadow *s;

    pthread_mutex_lock(&lock);
    s = around(at, size);
    if (s)
        memcpy(to, s->bytes + (at - s->at), size);
    pthread_mutex_unlock(&lock);
    return s != NULL;
}

void frag_dry_read(void *to, uint64_t at, size_t size)
{
    if (get(to, at, size))
        return;
    if (told)
        told(to, size);
    else
        frag_dry_note(DRY_READ, "a copy from the device");
}

void frag_dry_on_read(frag_dry_reader *reader)
{
    told = reader;
}
