/* chunks.c - a folder of result files, locked by its writer. */
#include "sim/experiments/sweep/chunks.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "traces/grow.h"
#include "traces/text.h"

enum { DIGITS = 8 };

static enum frag_err failed(const struct chunks *c, const char *what,
                            struct frag_error *e)
{
    return frag_fail(e, FRAG_IO, "%s: cannot %s it: %s", c->folder, what,
                     strerror(errno));
}

/* -- the files of the folder --------------------------------------------- */

/* A chunk, or what a kill left of one that was being written. */
static int is_ours(const struct dirent *entry)
{
    return strspn(entry->d_name, "0123456789") == DIGITS &&
           !strncmp(entry->d_name + DIGITS, ".h5", 3);
}

static bool is_chunk(const char *path)
{
    const char *name = strrchr(path, '/') + 1;

    return !name[DIGITS + 3];
}

typedef enum frag_err visit(struct chunks *c, const char *path,
                            struct frag_error *e);

/* Visits our files in the order of their names, until an error. */
static enum frag_err each_file(struct chunks *c, visit *do_one,
                               struct frag_error *e)
{
    struct dirent **files;
    enum frag_err err = FRAG_OK;
    const int count = scandir(c->folder, &files, is_ours, alphasort);

    if (count < 0)
        return failed(c, "read", e);
    for (int i = 0; i < count; i++) {
        char *path = text_make("%s/%s", c->folder, files[i]->d_name);

        if (err == FRAG_OK)
            err = path ? do_one(c, path, e) : frag_no_memory(e, "a chunk");
        free(path);
        free(files[i]);
    }
    free(files);
    return err;
}

static enum frag_err refuse_chunk(struct chunks *c, const char *path,
                                  struct frag_error *e)
{
    return is_chunk(path)
               ? frag_fail(e, FRAG_IO,
                           "%s: it contains unfinished work; --resume "
                           "continues it, -f discards it",
                           c->folder)
               : FRAG_OK;
}

static enum frag_err remove_file(struct chunks *c, const char *path,
                                 struct frag_error *e)
{
    return unlink(path) == 0 ? FRAG_OK : failed(c, "empty", e);
}

/* Only the same build of fragsim, with the same settings, uses a chunk. */
static enum frag_err check_kin(const struct chunks *c,
                               const struct frag_loaded *l,
                               struct frag_error *e)
{
    const struct frag_provenance *by = c->by;
    const char *settings = l->settings ? l->settings : "";

    if (!strcmp(l->version, by->version) && !strcmp(l->commit, by->commit) &&
        !strcmp(settings, by->settings))
        return FRAG_OK;
    return frag_fail(e, FRAG_UNSUPPORTED,
                     "%s: the unfinished work is by fragsim %s (%s) %.150s, "
                     "but this is fragsim %s (%s) %.150s, and their results "
                     "must not be mixed; -f without --resume discards the "
                     "unfinished work",
                     c->folder, l->version, l->commit, settings, by->version,
                     by->commit, by->settings);
}

static enum frag_err load_chunk(struct chunks *c, const char *path,
                                struct frag_error *e)
{
    struct frag_error why;
    struct frag_loaded l;
    enum frag_err err;

    if (!is_chunk(path))
        return FRAG_OK;
    c->number = (unsigned)strtoul(strrchr(path, '/') + 1, NULL, 10) + 1;
    if (!GROW(c->loaded, c->room, c->count + 1))
        return frag_no_memory(e, "a chunk");
    err = frag_results_load(path, &l, &why);
    if (err == FRAG_CORRUPT) {
        c->damaged = why;
        return FRAG_OK;
    }
    if (err != FRAG_OK)
        return frag_fail(e, err, "%s", why.text);
    c->loaded[c->count++] = l;
    return check_kin(c, &l, e);
}

/* -- the lock ------------------------------------------------------------ */

/* Another process may remove the file while this one waits for the lock; the
 * open file then has no name. False in that case. */
static bool still_there(int fd, const char *path)
{
    struct stat held, named;

    return fd >= 0 && fstat(fd, &held) == 0 && lstat(path, &named) == 0 &&
           held.st_ino == named.st_ino && held.st_dev == named.st_dev;
}

static enum frag_err lock_once(struct chunks *c, const char *path,
                               bool may_lack_lock, struct frag_error *e)
{
    struct stat at;

    if (mkdir(c->folder, 0777) < 0 && errno != EEXIST)
        return failed(c, "create", e);
    if (lstat(c->folder, &at) == 0 && !S_ISDIR(at.st_mode))
        return frag_fail(e, FRAG_CORRUPT,
                         "%s: expected a folder of unfinished work, found "
                         "something else; remove it or choose another output",
                         c->folder);
    if (c->lock >= 0)
        close(c->lock);
    c->lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (c->lock < 0)
        return errno == ENOENT ? FRAG_OK : failed(c, "lock", e);
    if (flock(c->lock, LOCK_EX | LOCK_NB) == 0 || may_lack_lock)
        return FRAG_OK;
    if (errno != EWOULDBLOCK)
        return frag_fail(e, FRAG_IO,
                         "%s: its file system cannot lock it (%s); if no other "
                         "process writes it, set HDF5_USE_FILE_LOCKING=FALSE",
                         c->folder, strerror(errno));
    close(c->lock); /* the folder is the other's */
    c->lock = -1;
    return frag_fail(e, FRAG_IO,
                     "%s: another process is using it; wait until that process "
                     "ends or choose another output",
                     c->folder);
}

static char *lock_path(const struct chunks *c)
{
    return text_make("%s/lock", c->folder);
}

static enum frag_err lock(struct chunks *c, bool may_lack_lock,
                          struct frag_error *e)
{
    char *path = lock_path(c);
    enum frag_err err = path ? FRAG_OK : frag_no_memory(e, "%s", c->folder);

    while (err == FRAG_OK && !still_there(c->lock, path))
        err = lock_once(c, path, may_lack_lock, e);
    free(path);
    return err;
}

enum frag_err chunks_open(const char *folder, enum chunks_mode mode,
                          bool may_lack_lock, const struct frag_provenance *by,
                          struct chunks *out, struct frag_error *e)
{
    static visit *const visits[] = {
        [CHUNKS_NEW] = refuse_chunk,
        [CHUNKS_REPLACE] = remove_file,
        [CHUNKS_RESUME] = load_chunk,
    };

    *out = (struct chunks){.folder = strdup(folder), .by = by, .lock = -1};
    if (!out->folder)
        return frag_no_memory(e, "%s", folder);
    FRAG_TRY(lock(out, may_lack_lock, e));
    return each_file(out, visits[mode], e);
}

char *chunks_next(struct chunks *c)
{
    return text_make("%s/%0*u.h5", c->folder, DIGITS, c->number++);
}

void chunks_remove(struct chunks *c)
{
    (void)!each_file(c, remove_file, NULL);
}

void chunks_close(struct chunks *c)
{
    char *path = c->lock >= 0 ? lock_path(c) : NULL;

    for (size_t i = 0; i < c->count; i++)
        frag_results_unload(&c->loaded[i]);
    free(c->loaded);
    if (path) {
        unlink(path); /* before the lock is released */
        rmdir(c->folder);
        close(c->lock);
    }
    free(path);
    free(c->folder);
    *c = (struct chunks){.lock = -1};
}
