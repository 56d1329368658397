/* temporary.c - makes temporary files and folders, and removes them with calls
 * that a signal handler may use. getdents64 needs the GNU part of the C
 * library.
 */
#define _GNU_SOURCE
#include "traces/bytes/temporary.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { RANDOM = 8, TRIES = 100, LISTED = 64 };

/* -- the names of this process --------------------------------------------- */

enum { FREE, RESERVED, USED };

struct listed {
    atomic_int state;
    pid_t process; /* a child must not remove the files of its parent */
    char name[PATH_MAX];
};

/* A global, because a signal handler has no other access to state. A name that
 * finds no room is not removed by a signal. */
static struct listed own[LISTED], *listed = own;

static atomic_bool closed; /* no further file may be made */

static void list(const char *name)
{
    for (int i = 0; i < LISTED; i++) {
        int state = FREE;

        if (!atomic_compare_exchange_strong(&listed[i].state, &state, RESERVED))
            continue;
        listed[i].process = getpid();
        snprintf(listed[i].name, PATH_MAX, "%s", name);
        listed[i].state = USED;
        return;
    }
}

static void unlist(const char *name)
{
    for (int i = 0; i < LISTED; i++)
        if (listed[i].state == USED && !strcmp(listed[i].name, name))
            listed[i].state = FREE;
}

/* -- removal --------------------------------------------------------------- */

static void remove_at(int folder, const char *name);

static void remove_contents(int folder)
{
    _Alignas(struct dirent) char bytes[2048];
    long count;

    /* glibc before 2.30 has no function for this call. */
    while ((count = syscall(SYS_getdents64, folder, bytes, sizeof(bytes))) > 0)
        for (long at = 0; at < count;) {
            const struct dirent *entry = (const void *)(bytes + at);

            if (strcmp(entry->d_name, ".") && strcmp(entry->d_name, ".."))
                remove_at(folder, entry->d_name);
            at += entry->d_reclen;
        }
}

static void remove_at(int folder, const char *name)
{
    int inner;

    if (unlinkat(folder, name, 0) == 0 || errno == ENOENT)
        return;
    inner =
        openat(folder, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (inner < 0)
        return;
    remove_contents(inner);
    close(inner);
    unlinkat(folder, name, AT_REMOVEDIR);
}

void temporary_remove(char *name)
{
    if (!name)
        return;
    remove_at(AT_FDCWD, name);
    temporary_keep(name);
}

void temporary_keep(char *name)
{
    unlist(name);
    free(name);
}

void temporary_remove_of(pid_t process)
{
    const int error = errno;

    for (int i = 0; i < LISTED; i++)
        if (listed[i].state == USED && listed[i].process == process)
            remove_at(AT_FDCWD, listed[i].name);
    errno = error;
}

void temporary_remove_all(void)
{
    closed = true;
    temporary_remove_of(getpid());
}

bool temporary_share(void)
{
    void *shared = mmap(NULL, sizeof(own), PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    if (shared == MAP_FAILED)
        return false;
    listed = memcpy(shared, own, sizeof(own));
    return true;
}

/* -- creation -------------------------------------------------------------- */

/* The bytes of HEAD that a name has room for. */
static size_t head_length(const char *head, const char *tail)
{
    const char *slash = strrchr(head, '/'), *base = slash ? slash + 1 : head;
    const size_t most = NAME_MAX - RANDOM - strlen(tail), n = strlen(base);

    return (size_t)(base - head) + (n < most ? n : most);
}

static bool randomize(char *text)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz012345";
    unsigned char bytes[RANDOM];
    const int file = open("/dev/urandom", O_RDONLY | O_CLOEXEC);
    const bool is_full =
        file >= 0 && read(file, bytes, sizeof(bytes)) == (ssize_t)sizeof(bytes);

    if (file >= 0)
        close(file);
    if (!is_full) {
        errno = ENODEV; /* of the device, not of the name to be made */
        return false;
    }
    for (int i = 0; i < RANDOM; i++)
        text[i] = letters[bytes[i] % (sizeof(letters) - 1)];
    return true;
}

static bool create(const char *name, bool is_folder)
{
    int file;

    if (is_folder)
        return mkdir(name, 0700) == 0;
    file =
        open(name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
    return file >= 0 && close(file) == 0;
}

static char *make(const char *head, const char *tail, bool is_folder)
{
    const size_t length = head_length(head, tail);
    char *name = malloc(length + RANDOM + strlen(tail) + 1);

    if (!name) {
        errno = ENOMEM;
        return NULL;
    }
    sprintf(name, "%.*s%*s%s", (int)length, head, RANDOM, "", tail);
    for (int i = 0; i < TRIES && !closed && randomize(name + length); i++) {
        list(name); /* first: a signal may come between the two */
        if (create(name, is_folder))
            return name;
        unlist(name);
        if (errno != EEXIST)
            break;
    }
    if (closed)
        errno = EINTR;
    free(name);
    return NULL;
}

char *temporary_file(const char *head, const char *tail)
{
    return make(head, tail, false);
}

char *temporary_folder(const char *head, const char *tail)
{
    return make(head, tail, true);
}

/* -- what dead processes left ---------------------------------------------- */

static bool is_made_of(const char *name, const char *head, const char *tail)
{
    const size_t n = strlen(head);

    if (strlen(name) != n + RANDOM + strlen(tail) || strncmp(name, head, n))
        return false;
    for (int i = 0; i < RANDOM; i++)
        if (!islower((unsigned char)name[n + (size_t)i]) &&
            !isdigit((unsigned char)name[n + (size_t)i]))
            return false;
    return !strcmp(name + n + RANDOM, tail);
}

void temporary_remove_dead(const char *head, const char *tail)
{
    const char *slash = strrchr(head, '/'), *base = slash ? slash + 1 : head;
    char folder[PATH_MAX] = ".";
    const struct dirent *entry;
    DIR *all;

    if (head[head_length(head, tail)] || base - head >= PATH_MAX)
        return;
    if (slash)
        snprintf(folder, sizeof(folder), "%.*s", (int)(base - head), head);
    all = opendir(folder);
    while (all && (entry = readdir(all)) != NULL)
        if (is_made_of(entry->d_name, base, tail))
            unlinkat(dirfd(all), entry->d_name, 0);
    if (all)
        closedir(all);
}
