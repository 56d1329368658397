/* atomic_file.c - creates the partial file, synchronizes it to the disk with
 * fsync and renames it. */
#include "traces/bytes/atomic_file.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "traces/bytes/temporary.h"
#include "traces/text.h"

#define PARTIAL ".partial-"

static void release(struct atomic_file *f)
{
    free(f->path);
    *f = (struct atomic_file){0};
}

static enum frag_err failed(const struct atomic_file *f, const char *what,
                            struct frag_error *e)
{
    return frag_fail(e, FRAG_IO, "%s: cannot %s: %s", f->path, what,
                     strerror(errno));
}

bool atomic_file_can_replace(const char *path)
{
    struct stat at;

    return stat(path, &at) < 0 || S_ISREG(at.st_mode);
}

static enum frag_err create(struct atomic_file *f, const char *suffix,
                            struct frag_error *e)
{
    char *head;

    if (!atomic_file_can_replace(f->path))
        return frag_fail(e, FRAG_IO, "%s: it is no regular file", f->path);
    head = text_make("%s" PARTIAL, f->path);
    f->partial = head ? temporary_file(head, suffix) : NULL;
    if (f->partial) {
        free(head);
        return FRAG_OK;
    }
    free(head);
    return !head || errno == ENOMEM ? frag_no_memory(e, "%s", f->path)
                                    : failed(f, "create it", e);
}

enum frag_err atomic_file_begin(struct atomic_file *f, const char *path,
                                const char *suffix, struct frag_error *e)
{
    enum frag_err err;

    *f = (struct atomic_file){strdup(path), NULL};
    err = f->path ? create(f, suffix, e) : frag_no_memory(e, "%s", path);
    if (err != FRAG_OK)
        release(f);
    return err;
}

int atomic_file_open(const struct atomic_file *f)
{
    return open(f->partial, O_WRONLY | O_TRUNC | O_NOFOLLOW | O_CLOEXEC);
}

/* Opens the file again, because its writer may have replaced the file under the
 * name. Returns false with errno set. */
static bool put_on_disk(const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC), why;
    bool done = fd >= 0 && fsync(fd) == 0;

    why = errno;
    if (fd >= 0)
        close(fd);
    errno = why;
    return done;
}

enum frag_err atomic_file_commit(struct atomic_file *f, struct frag_error *e)
{
    enum frag_err err = FRAG_OK;

    if (!put_on_disk(f->partial))
        err = failed(f, "write it", e);
    else if (rename(f->partial, f->path) < 0)
        err = failed(f, "rename it into place", e);
    if (err != FRAG_OK) {
        atomic_file_abort(f);
        return err;
    }
    /* After this, the new name survives a crash of the machine. A file system
     * that cannot synchronize a folder is no error: the file is complete. */
    (void)put_on_disk(dirname(f->path));
    temporary_keep(f->partial);
    release(f);
    return FRAG_OK;
}

void atomic_file_abort(struct atomic_file *f)
{
    temporary_remove(f->partial);
    release(f);
}

void atomic_file_remove_dead(const char *path)
{
    char *head = text_make("%s" PARTIAL, path);

    if (head)
        temporary_remove_dead(head, "");
    free(head);
}
