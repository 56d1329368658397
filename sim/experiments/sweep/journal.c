/* journal.c - a file of entries with checksums, locked by its writer. */
#include "sim/experiments/sweep/journal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

enum {
    MAGIC = 0x4a475246, /* "FRGJ" where the lowest byte comes first */
    IDENTITY = 0,       /* kind of the first entry */
};

struct head {
    uint32_t magic, kind;
    uint64_t size;     /* of the bytes that follow */
    uint32_t checksum; /* CRC-32 of the bytes */
    uint32_t head_sum; /* of the head up to here */
};

struct journal {
    bool may_lack_lock;
    char *path;
    int fd;
    /* Of the last complete entry; another thread may read entries. */
    _Atomic uint64_t end;
    uint64_t synced; /* the end at the last sync */
    uint64_t dropped;
};

static uint32_t checksum(const void *bytes, size_t size)
{
    return (uint32_t)crc32_z(0, bytes, size);
}

static enum frag_err failed(const struct journal *j, const char *what,
                            struct frag_error *e)
{
    return frag_fail(e, FRAG_IO, "%s: cannot %s it: %s", j->path, what,
                     strerror(errno));
}

/* -- entries ------------------------------------------------------------- */

/* Whether all bytes were read; at the end of the file errno is 0. */
static bool read_at(int fd, void *bytes, size_t size, uint64_t offset)
{
    char *at = bytes;

    while (size) {
        ssize_t n = pread(fd, at, size, (off_t)offset);

        if (n < 0 && errno == EINTR) {
            errno = 0;
            continue;
        }
        if (n == 0)
            errno = 0;
        if (n <= 0)
            return false;
        at += n;
        size -= (size_t)n;
        offset += (uint64_t)n;
    }
    return true;
}

static bool write_at(int fd, const void *bytes, size_t size, uint64_t offset)
{
    const char *at = bytes;

    while (size) {
        ssize_t n = pwrite(fd, at, size, (off_t)offset);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        at += n;
        size -= (size_t)n;
        offset += (uint64_t)n;
    }
    return true;
}

/* Reads the head of an entry. Whether a complete entry begins there, in a file
 * of `size` bytes. */
static bool head_at(const struct journal *j, uint64_t offset, uint64_t size,
                    struct head *h)
{
    if (size - offset < sizeof(*h) || !read_at(j->fd, h, sizeof(*h), offset) ||
        h->magic != MAGIC ||
        h->head_sum != checksum(h, offsetof(struct head, head_sum)))
        return false;
    return h->size <= size - offset - sizeof(*h);
}

/* Reads the bytes of an entry; the caller frees them. Without a message:
 * CORRUPT if the checksum is wrong, IO, NOMEM. */
static enum frag_err body_at(const struct journal *j, uint64_t offset,
                             const struct head *h, void **bytes)
{
    void *body = malloc(h->size + 1);

    if (!body)
        return FRAG_NOMEM;
    if (read_at(j->fd, body, h->size, offset + sizeof(*h)) &&
        checksum(body, h->size) == h->checksum) {
        *bytes = body;
        return FRAG_OK;
    }
    free(body);
    return errno ? FRAG_IO : FRAG_CORRUPT;
}

enum frag_err journal_put(struct journal *j, uint32_t kind, const void *bytes,
                          size_t size, uint64_t *offset, struct frag_error *e)
{
    struct head h = {MAGIC, kind, size, checksum(bytes, size), 0};

    h.head_sum = checksum(&h, offsetof(struct head, head_sum));
    if (!write_at(j->fd, &h, sizeof(h), j->end) ||
        !write_at(j->fd, bytes, size, j->end + sizeof(h))) {
        enum frag_err err = failed(j, "write", e);

        (void)!ftruncate(
            j->fd, (off_t)j->end); /* or the next opening removes the rest */
        return err;
    }
    if (offset)
        *offset = j->end;
    j->end += sizeof(h) + size;
    return FRAG_OK;
}

enum frag_err journal_sync(struct journal *j, struct frag_error *e)
{
    const uint64_t end = j->end;

    if (end == j->synced)
        return FRAG_OK;
    if (fdatasync(j->fd) < 0)
        return failed(j, "write", e);
    j->synced = end;
    return FRAG_OK;
}

enum frag_err journal_get(const struct journal *j, uint64_t offset,
                          void **bytes, size_t *size, struct frag_error *e)
{
    enum frag_err err = FRAG_CORRUPT;
    struct head h;

    errno = 0;
    if (offset < j->end && head_at(j, offset, j->end, &h))
        err = body_at(j, offset, &h, bytes);
    if (err == FRAG_IO || (err == FRAG_CORRUPT && errno))
        return failed(j, "read", e);
    if (err != FRAG_OK)
        return frag_fail(e, err, "%s: the entry at byte %llu: %s", j->path,
                         (unsigned long long)offset, frag_err_text(err));
    *size = h.size;
    return FRAG_OK;
}

/* -- opening ------------------------------------------------------------- */

/* Compares the identity in the first entry. */
static enum frag_err check_identity(const struct journal *j,
                                    const char *identity, uint64_t size,
                                    _Atomic uint64_t *next,
                                    struct frag_error *e)
{
    enum frag_err err = FRAG_CORRUPT;
    void *body = NULL;
    struct head h;
    char *found;
    bool same;

    errno = 0;
    if (head_at(j, 0, size, &h) && h.kind == IDENTITY)
        err = body_at(j, 0, &h, &body);
    if (err == FRAG_NOMEM || err == FRAG_IO || errno)
        return failed(j, "read", e);
    if (err != FRAG_OK)
        return frag_fail(e, err,
                         "%s: expected a journal of unfinished work, found "
                         "something else; remove the file or choose another "
                         "output",
                         j->path);
    found = body; /* body_at allocates one byte more */
    found[h.size] = '\0';
    same = strlen(identity) == h.size && !memcmp(identity, found, h.size);
    if (!same)
        frag_fail(e, FRAG_UNSUPPORTED,
                  "%s: the unfinished work is by %.150s, but this is %.150s, "
                  "and their results must not be mixed; -f without --resume "
                  "discards the unfinished work",
                  j->path, found, identity);
    free(found);
    *next = sizeof(h) + h.size;
    return same ? FRAG_OK : FRAG_UNSUPPORTED;
}

/* Reads all entries up to the first incomplete one. */
static enum frag_err scan(struct journal *j, uint64_t size, journal_seen seen,
                          void *user, struct frag_error *e)
{
    enum frag_err err = FRAG_OK;
    struct head h;

    errno = 0;
    while (err == FRAG_OK && head_at(j, j->end, size, &h)) {
        void *bytes = NULL;
        enum frag_err got = body_at(j, j->end, &h, &bytes);

        if (got == FRAG_CORRUPT)
            break;
        if (got != FRAG_OK)
            return failed(j, "read", e);
        err = seen(user,
                   &(const struct journal_entry){j->end, h.kind, bytes, h.size},
                   e);
        free(bytes);
        j->end += sizeof(h) + h.size;
        errno = 0;
    }
    /* Records that cannot be read are not dropped. */
    return err == FRAG_OK && errno ? failed(j, "read", e) : err;
}

static enum frag_err begin(struct journal *j, const char *identity,
                           struct frag_error *e)
{
    if (ftruncate(j->fd, 0) < 0)
        return failed(j, "empty", e);
    FRAG_TRY(journal_put(j, IDENTITY, identity, strlen(identity), NULL, e));
    return journal_sync(j, e);
}

/* Whether the file is the start of a first entry that a kill cut short. */
static bool is_cut_short(const struct journal *j, const char *identity,
                         uint64_t size)
{
    const size_t length = strlen(identity);
    struct head h = {MAGIC, IDENTITY, length, checksum(identity, length), 0};
    char found[sizeof(h)];
    size_t n = size < sizeof(h) ? (size_t)size : sizeof(h);

    h.head_sum = checksum(&h, offsetof(struct head, head_sum));
    return size < sizeof(h) + length && read_at(j->fd, found, n, 0) &&
           !memcmp(found, &h, n);
}

static enum frag_err resume(struct journal *j, const char *identity,
                            uint64_t size, journal_seen seen, void *user,
                            struct frag_error *e)
{
    if (is_cut_short(j, identity, size))
        return begin(j, identity, e);
    FRAG_TRY(check_identity(j, identity, size, &j->end, e));
    FRAG_TRY(scan(j, size, seen, user, e));
    j->dropped = size - j->end;
    if (j->dropped && ftruncate(j->fd, (off_t)j->end) < 0)
        return failed(j, "shorten", e);
    return FRAG_OK;
}

/* Another process may finish and remove the file while this one waits for the
 * lock; the open file then has no name. False in that case. */
static bool still_there(const struct journal *j)
{
    struct stat held, named;

    return fstat(j->fd, &held) == 0 && stat(j->path, &named) == 0 &&
           held.st_ino == named.st_ino && held.st_dev == named.st_dev;
}

static enum frag_err lock_once(struct journal *j, struct frag_error *e)
{
    if (j->fd >= 0)
        close(j->fd);
    j->fd = open(j->path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (j->fd < 0 && errno == ELOOP)
        return frag_fail(e, FRAG_IO,
                         "%s: expected a journal, found a symbolic link; "
                         "remove the link, or choose another output",
                         j->path);
    if (j->fd < 0)
        return failed(j, "create", e);
    if (flock(j->fd, LOCK_EX | LOCK_NB) == 0 || j->may_lack_lock)
        return FRAG_OK;
    if (errno == EWOULDBLOCK)
        return frag_fail(e, FRAG_IO,
                         "%s: another process is using it; wait until that "
                         "process ends or choose another output",
                         j->path);
    return frag_fail(e, FRAG_IO,
                     "%s: its file system cannot lock it (%s); if no other "
                     "process writes it, set HDF5_USE_FILE_LOCKING=FALSE",
                     j->path, strerror(errno));
}

static enum frag_err lock(struct journal *j, struct frag_error *e)
{
    do
        FRAG_TRY(lock_once(j, e));
    while (!still_there(j));
    return FRAG_OK;
}

static enum frag_err start(struct journal *j, enum journal_mode mode,
                           const char *identity, journal_seen seen, void *user,
                           struct frag_error *e)
{
    struct stat at;

    FRAG_TRY(lock(j, e));
    if (fstat(j->fd, &at) < 0)
        return failed(j, "read", e);
    if (!S_ISREG(at.st_mode) || at.st_nlink > 1)
        return frag_fail(e, FRAG_IO, "%s: %s", j->path,
                         S_ISREG(at.st_mode) ? "it has another name, too"
                                             : "it is no regular file");
    if (mode == JOURNAL_NEW && at.st_size > 0)
        return frag_fail(e, FRAG_IO,
                         "%s: it contains unfinished work; --resume continues "
                         "it, -f discards it",
                         j->path);
    if (mode == JOURNAL_RESUME && at.st_size > 0)
        return resume(j, identity, (uint64_t)at.st_size, seen, user, e);
    return begin(j, identity, e);
}

enum frag_err journal_open(const char *path, enum journal_mode mode,
                           bool may_lack_lock, const char *identity,
                           journal_seen seen, void *user, struct journal **out,
                           struct frag_error *e)
{
    struct journal *j = malloc(sizeof(*j));
    enum frag_err err;

    if (!j)
        return frag_no_memory(e, "%s", path);
    *j = (struct journal){
        .path = strdup(path), .may_lack_lock = may_lack_lock, .fd = -1};
    err = j->path ? start(j, mode, identity, seen, user, e)
                  : frag_no_memory(e, "%s", path);
    if (err != FRAG_OK) {
        journal_close(j);
        return err;
    }
    *out = j;
    return FRAG_OK;
}

uint64_t journal_dropped(const struct journal *j)
{
    return j->dropped;
}

void journal_remove(struct journal *j)
{
    unlink(j->path); /* before the lock is released */
    journal_close(j);
}

void journal_close(struct journal *j)
{
    if (!j)
        return;
    if (j->fd >= 0)
        close(j->fd);
    free(j->path);
    free(j);
}
