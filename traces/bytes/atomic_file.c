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

static void release(struct atomic_file *f)
{
    free(f->partial);
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

static enum frag_err create(const struct atomic_file *f, struct frag_error *e)
{
    int fd;

    if (!atomic_file_can_replace(f->path))
        return frag_fail(e, FRAG_IO, "%s: it is no regular file", f->path);
    fd = open(f->partial, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (fd < 0)
        return failed(f, "create it", e);
    close(fd);
    return FRAG_OK;
}

enum frag_err atomic_file_begin(struct atomic_file *f, const char *path,
                                const char *suffix, struct frag_error *e)
{
    const size_t room = strlen(path) + strlen(suffix) + 40;
    enum frag_err err;

    *f = (struct atomic_file){strdup(path), malloc(room)};
    if (f->path && f->partial) {
        snprintf(f->partial, room, "%s.partial-%ld%s", path, (long)getpid(),
                 suffix);
        err = create(f, e);
    } else {
        err = frag_no_memory(e, "%s", path);
    }
    if (err != FRAG_OK)
        release(f);
    return err;
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
    release(f);
    return FRAG_OK;
}

void atomic_file_abort(struct atomic_file *f)
{
    if (f->partial)
        unlink(f->partial);
    release(f);
}
