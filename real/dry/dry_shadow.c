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
    frag_dry_fetch *fetch; /* NULL: the bytes are here; else bytes has the text
                              that it gets */
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

static struct shadow *around(uint64_t at)
{
    struct shadow *s = shadows;

    while (s && (at < s->at || at >= s->at + s->size))
        s = s->next;
    return s;
}

/* Writes the bytes of [at, at + size), which several ranges may have. False if
 * some of them are not known. */
static bool gather(uint64_t at, size_t size, unsigned char *out)
{
    while (size) {
        const struct shadow *s = around(at);
        size_t here;

        if (!s || s->fetch)
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

static void remember(uint64_t at, size_t size, frag_dry_fetch *fetch,
                     const void *bytes, size_t length)
{
    struct shadow *s;

    forget(at, size);
    s = size <= FRAG_DRY_SHADOW_MOST ? malloc(sizeof(*s) + length) : NULL;
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
    s->fetch = fetch;
    memcpy(s->bytes, bytes, length);
    s->next = shadows;
    shadows = s;
}

void frag_dry_wrote(uint64_t at, const void *bytes, size_t size)
{
    pthread_mutex_lock(&lock);
    remember(at, size, NULL, bytes, size);
    pthread_mutex_unlock(&lock);
}

void frag_dry_awaits(uint64_t at, size_t size, frag_dry_fetch *fetch,
                     const char *from)
{
    pthread_mutex_lock(&lock);
    remember(at, size, fetch, from, strlen(from) + 1);
    pthread_mutex_unlock(&lock);
}

/* Takes a range that is awaited out of [at, at + size). */
static struct shadow *take_awaited(uint64_t at, size_t size)
{
    struct shadow **where = &shadows, *s;

    while (*where && (!(*where)->fetch || (*where)->at >= at + size ||
                      at >= (*where)->at + (*where)->size))
        where = &(*where)->next;
    s = *where;
    if (s) {
        *where = s->next;
        kept_bytes -= s->size;
        kept_ranges--;
    }
    return s;
}

struct shadow *frag_dry_awaited(uint64_t at, size_t size)
{
    struct shadow *s;

    pthread_mutex_lock(&lock);
    s = take_awaited(at, size);
    pthread_mutex_unlock(&lock);
    if (s && (s->at != at || s->size != size)) {
        free(s);
        return NULL;
    }
    return s;
}

bool frag_dry_fetched(struct shadow *awaited, void *to)
{
    const bool known =
        awaited->fetch(to, awaited->size, (const char *)awaited->bytes);

    free(awaited);
    return known;
}

/* Waits for the ranges that are awaited, without the lock: other threads may
 * have to send first. */
static void fetch_all(uint64_t at, size_t size)
{
    static unsigned char bytes[FRAG_DRY_SHADOW_MOST];
    static pthread_mutex_t one = PTHREAD_MUTEX_INITIALIZER;
    struct shadow *s;

    pthread_mutex_lock(&one);
    for (;;) {
        uint64_t there;
        size_t length;

        pthread_mutex_lock(&lock);
        s = take_awaited(at, size);
        pthread_mutex_unlock(&lock);
        if (!s)
            break;
        there = s->at;
        length = s->size;
        if (frag_dry_fetched(s, bytes))
            frag_dry_wrote(there, bytes, length);
    }
    pthread_mutex_unlock(&one);
}

void frag_dry_copied(uint64_t to, uint64_t from, size_t size)
{
    static unsigned char bytes[FRAG_DRY_SHADOW_MOST];

    if (size <= FRAG_DRY_SHADOW_MOST)
        fetch_all(from, size);
    pthread_mutex_lock(&lock);
    if (size <= FRAG_DRY_SHADOW_MOST && gather(from, size, bytes))
        remember(to, size, NULL, bytes, size);
    else
        forget(to, size);
    pthread_mutex_unlock(&lock);
}

static uint64_t launches;

uint64_t frag_dry_launches(void)
{
    return __atomic_load_n(&launches, __ATOMIC_RELAXED);
}

void frag_dry_launched(void)
{
    __atomic_fetch_add(&launches, 1, __ATOMIC_RELAXED);
    if (!__atomic_load_n(&shadows, __ATOMIC_RELAXED))
        return;
    pthread_mutex_lock(&lock);
    drop_all();
    pthread_mutex_unlock(&lock);
}

bool frag_dry_known(void *to, uint64_t at, size_t size)
{
    unsigned char bytes[FRAG_DRY_SHADOW_MOST];
    bool known;

    if (size > FRAG_DRY_SHADOW_MOST)
        return false;
    fetch_all(at, size);
    pthread_mutex_lock(&lock);
    known = gather(at, size, bytes);
    pthread_mutex_unlock(&lock);
    if (known)
        memcpy(to, bytes, size);
    return known;
}

bool frag_dry_sends(void *to, uint64_t at, size_t size)
{
    return frag_dry_known(to, at, size) || (told && told(to, at, size, true));
}

void frag_dry_read(void *to, uint64_t at, size_t size)
{
    if (frag_dry_known(to, at, size))
        return;
    if (told)
        told(to, at, size, false);
    else
        frag_dry_note(DRY_READ, "a copy from the device");
}

void frag_dry_on_read(frag_dry_reader *reader)
{
    told = reader;
}
