/* dry_shadow.c - the known bytes of device memory (dry_shadow.h). */
#include "real/dry/dry_shadow.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "real/dry/dry_notes.h"

/* Ranges that are known, the newest first; they do not overlap. */
static struct shadow {
    struct shadow *next;
    uint64_t at;
    size_t size;
    unsigned char bytes[];
} * shadows;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static frag_dry_reader *told;

/* What is kept at most, of all ranges: more is forgotten, all at once. */
enum { MOST_BYTES = 64 << 20, MOST_RANGES = 4096 };
static size_t kept_bytes;
static unsigned kept_ranges;

static void drop(struct shadow **where)
{
    struct shadow *s = *where;

    *where = s->next;
    kept_bytes -= s->size;
    kept_ranges--;
    free(s);
}

static void drop_all(void)
{
    while (shadows)
        drop(&shadows);
}

/* Forgets the ranges that overlap [at, at + size). */
static void forget(uint64_t at, uint64_t size)
{
    for (struct shadow **where = &shadows; *where;) {
        struct shadow *s = *where;

        if (s->at >= at + size || at >= s->at + s->size) {
            where = &s->next;
            continue;
        }
        drop(where);
    }
}

/* Writes the bytes of [at, at + size), which several ranges may have. False if
 * some of them are not known. */
static bool gather(uint64_t at, size_t size, unsigned char *out)
{
    while (size) {
        const struct shadow *s = shadows;
        size_t here;

        while (s && (at < s->at || at >= s->at + s->size))
            s = s->next;
        if (!s)
            return false;
        here = (size_t)(s->at + s->size - at);
        here = here < size ? here : size;
        memcpy(out, s->bytes + (at - s->at), here);
        at += here;
        out += here;
        size -= here;
    }
    return true;
}

static void remember(uint64_t at, const void *bytes, size_t size)
{
    struct shadow *s;

    forget(at, size);
    s = size <= FRAG_DRY_SHADOW_MOST ? malloc(sizeof(*s) + size) : NULL;
    if (!s)
        return;
    if (kept_bytes + size > MOST_BYTES || kept_ranges == MOST_RANGES) {
        drop_all();
        frag_dry_note(DRY_GUESS, "bytes of the host that the device had before "
                                 "its next kernel: more than are kept");
    }
    kept_bytes += size;
    kept_ranges++;
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

    pthread_mutex_lock(&lock);
    if (size <= FRAG_DRY_SHADOW_MOST && gather(from, size, bytes))
        remember(to, bytes, size);
    else
        forget(to, size);
    pthread_mutex_unlock(&lock);
}

void frag_dry_launched(void)
{
    if (!__atomic_load_n(&shadows, __ATOMIC_RELAXED))
        return;
    pthread_mutex_lock(&lock);
    drop_all();
    pthread_mutex_unlock(&lock);
}

/* Whether the bytes are known; then they are written. */
static bool get(unsigned char *to, uint64_t at, size_t size)
{
    unsigned char bytes[FRAG_DRY_SHADOW_MOST];
    bool known;

    if (size > FRAG_DRY_SHADOW_MOST)
        return false;
    pthread_mutex_lock(&lock);
    known = gather(at, size, bytes);
    pthread_mutex_unlock(&lock);
    if (known)
        memcpy(to, bytes, size);
    return known;
}

void frag_dry_read(void *to, uint64_t at, size_t size)
{
    if (get(to, at, size))
        return;
    if (told)
        told(to, at, size);
    else
        frag_dry_note(DRY_READ, "a copy from the device");
}

void frag_dry_on_read(frag_dry_reader *reader)
{
    told = reader;
}
