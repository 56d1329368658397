/* place.c - the table of places in shared memory. */
#define _GNU_SOURCE
#include "sim/replay/place.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PLACES = 256, POLICIES = 32, ROOM = 1 << 14, NAME = 128 };

struct place {
    atomic_bool is_taken;
    char what[NAME];
    const char *part;      /* a literal, which lies at the same address in the
                              parent; NULL: the events */
    const uint64_t *event; /* in `room`; NULL: the place is no run */
    _Alignas(64) unsigned char room[ROOM];
};

struct places {
    atomic_ulong ended;  /* places that were left */
    bool has_stderr;     /* at the beginning */
    atomic_bool is_mute; /* the policy closed stderr */
    atomic_uint known;
    struct {
        const struct frag_policy *policy;
        char what[NAME];
    } policies[POLICIES];
    struct place all[PLACES];
};

/* A global, because runs below every command report to the one parent of the
 * process. NULL: nobody watches. */
static struct places *shared;

static bool is_open(int file)
{
    return fcntl(file, F_GETFD) >= 0;
}

bool place_share(void)
{
    void *memory = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    if (memory == MAP_FAILED)
        return false;
    shared = memory;
    shared->has_stderr = is_open(STDERR_FILENO);
    return true;
}

static const char *watched(const struct frag_policy *policy)
{
    for (unsigned i = 0; shared && i < shared->known; i++)
        if (shared->policies[i].policy == policy)
            return shared->policies[i].what;
    return NULL;
}

void place_watch(const struct frag_policy *policy, const char *file)
{
    const unsigned i = shared ? shared->known : POLICIES;

    if (i >= POLICIES || watched(policy))
        return;
    shared->policies[i].policy = policy;
    snprintf(shared->policies[i].what, NAME, "%.40s (%.80s)", policy->name,
             file);
    shared->known = i + 1;
}

struct place *place_enter(const char *what)
{
    for (size_t i = 0; shared && i < PLACES; i++) {
        struct place *p = &shared->all[i];

        if (atomic_exchange(&p->is_taken, true))
            continue;
        snprintf(p->what, NAME, "%s", what);
        p->part = NULL;
        p->event = NULL;
        return p;
    }
    return NULL;
}

struct place *place_of_run(const struct frag_policy *policy, size_t bytes,
                           size_t event)
{
    const char *what = watched(policy);
    struct place *p = what && bytes <= ROOM ? place_enter(what) : NULL;

    if (!p)
        return NULL;
    p->event = (const uint64_t *)(const void *)(p->room + event);
    return p;
}

void *place_memory(struct place *p)
{
    return p->room;
}

void place_step(struct place *p, uint64_t step)
{
    if (p)
        memcpy(p->room, &step, sizeof(step));
}

void place_part(struct place *p, const char *part)
{
    if (p)
        p->part = part;
}

void place_leave(struct place *p)
{
    if (!p)
        return;
    if (shared->has_stderr && !is_open(STDERR_FILENO))
        shared->is_mute = true;
    p->is_taken = false;
    shared->ended++;
}

static bool is_busy(const struct place *p)
{
    return p->is_taken && !(p->part && !*p->part);
}

bool place_is_mute(void)
{
    return shared->is_mute;
}

bool place_is_taken(uint64_t *progress)
{
    bool is_taken = false;

    *progress = shared->ended;
    for (const struct place *p = shared->all; p < shared->all + PLACES; p++) {
        is_taken |= is_busy(p);
        if (is_busy(p))
            *progress += (p->event ? *p->event : 0) + (uintptr_t)p->part;
    }
    return is_taken;
}

/* Adds the place to the text, after the one before it. A place that is no run
 * encloses it. */
static void put(char text[PLACE_TEXT], const struct place *before,
                const struct place *p)
{
    const bool encloses = before && !before->event && !before->part;
    size_t n = strlen(text);

    n += (size_t)snprintf(text + n, PLACE_TEXT - n, "%s%s",
                          encloses ? ": "
                          : before ? " or "
                                   : "",
                          p->what);
    if (n >= PLACE_TEXT)
        return;
    if (p->part)
        snprintf(text + n, PLACE_TEXT - n, ": %s", p->part);
    else if (p->event)
        snprintf(text + n, PLACE_TEXT - n, ": event %" PRIu64, *p->event);
}

const char *place_words(char text[PLACE_TEXT])
{
    const struct place *before = NULL;

    *text = '\0';
    for (const struct place *p = shared->all; p < shared->all + PLACES; p++)
        if (is_busy(p)) {
            put(text, before, p);
            before = p;
        }
    for (unsigned i = 0; !*text && i < shared->known; i++)
        snprintf(text, PLACE_TEXT, "after a run of %s",
                 shared->policies[i].what);
    return text;
}
