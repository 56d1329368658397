/* dry_notes.c - the list of dry_notes.h. */
#include "real/dry/dry_notes.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "real/dry/dry_live.h"

static struct note {
    struct note *next;
    enum dry_note kind;
    unsigned long long count;
    char name[];
} * notes;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static const char *const words[] = {
#define X(name, word) word,
    DRY_NOTES(X)
#undef X
};

static struct note *find(enum dry_note kind, const char *name)
{
    struct note **at = &notes;

    while (*at && ((*at)->kind != kind || strcmp((*at)->name, name) != 0))
        at = &(*at)->next;
    if (!*at) {
        *at = calloc(1, sizeof(struct note) + strlen(name) + 1);
        if (!*at)
            abort();
        (*at)->kind = kind;
        strcpy((*at)->name, name);
    }
    return *at;
}

void frag_dry_note(enum dry_note kind, const char *name)
{
    pthread_mutex_lock(&lock);
    if (++find(kind, name)->count == 1 && kind == DRY_LACKS)
        fprintf(stderr, "fragsim dry: the stand-in has no %s\n", name);
    if (kind == DRY_LACKS)
        dry_live_lacks(name);
    pthread_mutex_unlock(&lock);
}

static void (*say_room)(void);

void frag_dry_on_room(void (*on_room)(void))
{
    say_room = on_room;
}

void frag_dry_room_read(void)
{
    if (say_room)
        say_room();
}

int frag_dry_notes_write(const char *path)
{
    FILE *file = fopen(path, "w");

    if (!file)
        return -1;
    pthread_mutex_lock(&lock);
    for (const struct note *n = notes; n; n = n->next)
        fprintf(file, "%s\t%llu\t%s\n", words[n->kind], n->count, n->name);
    pthread_mutex_unlock(&lock);
    return fclose(file);
}
