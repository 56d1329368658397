/* source.c - reads or maps the file of an importer and stacks the stages that
 * unpack it. The packed forms are in unpack.c and unpack_zip.c. */
#include "traces/bytes/source.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "traces/bytes/sha256.h"
#include "traces/bytes/stage.h"

enum { LAYERS_MAX = 4 };

/* After every DROP_BYTES, the pages of a mapped file that the reader has passed
 * are released, so that the file does not count as memory of the process. */
#define DROP_BYTES ((uint64_t)16 << 20)

/* A file is either read and hashed in parts, or mapped as a whole and hashed by
 * frag_source_sha256. */
struct frag_source {
    struct stage file;
    struct stage layers[LAYERS_MAX];
    struct stage *top;
    char *name;
    int fd;                     /* -1 for memory */
    const unsigned char *whole; /* NULL if the file is read */
    uint64_t size;              /* 0 if not known */
    uint64_t arrived;           /* bytes read from fd */
    void *map;                  /* NULL if not mapped */
    uint64_t dropped;           /* bytes whose pages are released */
    struct sha256 sum;
};

/* The file */

static enum frag_err hash_bytes(struct frag_source *s, const void *bytes,
                                size_t size, struct frag_error *e)
{
    if (!sha256_add(&s->sum, bytes, size))
        return frag_no_memory(e, "the SHA-256 of %s", s->name);
    return FRAG_OK;
}

static enum frag_err read_file(struct stage *file, unsigned char *to,
                               size_t room, size_t *made, struct frag_error *e)
{
    struct frag_source *s = file->state;
    /* A signal handler of a program cancels: a read() that it interrupts is not
     * repeated, because a FIFO may stay silent. */
    const ssize_t n = read(s->fd, to, room);

    if (n < 0)
        return frag_fail(e, FRAG_IO, "%s: cannot read it: %s", s->name,
                         strerror(errno));
    *made = (size_t)n;
    s->arrived += *made;
    file->ended = !n;
    return hash_bytes(s, to, *made, e);
}

static const struct stage_ops plain_file = {.name = "file", .fill = read_file};

static void drop_pages(struct frag_source *s)
{
    const uint64_t to = s->file.used & ~(DROP_BYTES - 1);

    if (!s->map || to <= s->dropped)
        return;
    /* This is only advice: if the system refuses, memory is used longer. */
    (void)madvise((char *)s->map + s->dropped, to - s->dropped, MADV_DONTNEED);
    s->dropped = to;
}

static void show_whole(struct frag_source *s, const unsigned char *bytes,
                       size_t size)
{
    s->whole = bytes;
    s->size = size;
    s->file.at = bytes;
    s->file.count = size;
    s->file.ended = true;
}

static void map_file(struct frag_source *s)
{
    void *map = mmap(NULL, (size_t)s->size, PROT_READ, MAP_PRIVATE, s->fd, 0);

    if (map == MAP_FAILED)
        return;
    (void)madvise(map, (size_t)s->size, MADV_SEQUENTIAL);
    s->map = map;
    show_whole(s, map, (size_t)s->size);
}

static enum frag_err open_file(struct frag_source *s, const char *path,
                               struct frag_error *e)
{
    const bool is_stdin = !strcmp(path, "-");
    struct stat st;

    s->fd = is_stdin ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
    if (s->fd < 0 || fstat(s->fd, &st))
        return frag_fail(e, FRAG_IO, "%s: cannot open it: %s", path,
                         strerror(errno));
    if (S_ISDIR(st.st_mode))
        return frag_fail(e, FRAG_IO, "%s: it is a directory", path);
    if (S_ISREG(st.st_mode))
        s->size = (uint64_t)st.st_size;
    if (s->size && !is_stdin)
        map_file(s);
    return FRAG_OK;
}

/* Layers */

static const struct stage_ops *packed_as(const unsigned char *bytes,
                                         size_t count)
{
    static const struct stage_ops *const forms[] = {&unpack_gzip, &unpack_xz,
                                                    &unpack_zstd, &unpack_zip};

    for (size_t i = 0; i < sizeof(forms) / sizeof(*forms); i++)
        if (forms[i]->recognize(bytes, count))
            return forms[i];
    return NULL;
}

bool frag_source_is_packed(const unsigned char *bytes, size_t count)
{
    return packed_as(bytes, count);
}

static enum frag_err add_layers(struct frag_source *s, struct frag_error *e)
{
    for (size_t i = 0;; i++) {
        const struct stage_ops *ops;

        FRAG_TRY(stage_peek(s->top, 6, e));
        ops = packed_as(s->top->at, s->top->count);
        if (!ops)
            return FRAG_OK;
        if (i == LAYERS_MAX)
            return frag_fail(e, FRAG_CORRUPT, "%s: packed more than %d times",
                             s->name, LAYERS_MAX);
        s->layers[i] =
            (struct stage){.ops = ops, .below = s->top, .name = s->name};
        FRAG_TRY(ops->init(&s->layers[i], e));
        s->top = &s->layers[i];
    }
}

/* The source */

static struct frag_source *make(const char *name)
{
    struct frag_source *s = calloc(1, sizeof(*s));

    if (!s)
        return NULL;
    s->fd = -1;
    s->top = &s->file;
    s->name = strdup(name);
    if (!s->name || !sha256_open(&s->sum)) {
        frag_source_close(s);
        return NULL;
    }
    s->file.ops = &plain_file;
    s->file.name = s->name;
    s->file.state = s;
    return s;
}

static enum frag_err finish_open(struct frag_source *s, enum frag_err err,
                                 struct frag_source **out, struct frag_error *e)
{
    if (err == FRAG_OK)
        err = add_layers(s, e);
    if (err == FRAG_OK)
        *out = s;
    else
        frag_source_close(s);
    return err;
}

enum frag_err frag_source_open(const char *path, struct frag_source **out,
                               struct frag_error *e)
{
    struct frag_source *s = make(path);

    if (!s)
        return frag_no_memory(e, "%s", path);
    return finish_open(s, open_file(s, path, e), out, e);
}

enum frag_err frag_source_open_memory(const char *name, const void *bytes,
                                      size_t size, struct frag_source **out,
                                      struct frag_error *e)
{
    struct frag_source *s = make(name);

    if (!s)
        return frag_no_memory(e, "%s", name);
    show_whole(s, bytes, size);
    return finish_open(s, FRAG_OK, out, e);
}

void frag_source_close(struct frag_source *s)
{
    if (!s)
        return;
    for (size_t i = 0; i < LAYERS_MAX && s->layers[i].ops; i++) {
        s->layers[i].ops->fini(&s->layers[i]);
        free(s->layers[i].buffer);
    }
    free(s->file.buffer);
    if (s->map)
        munmap(s->map, (size_t)s->size);
    if (s->fd > STDIN_FILENO)
        close(s->fd);
    sha256_close(&s->sum);
    free(s->name);
    free(s);
}

size_t frag_source_peek(struct frag_source *s, size_t want,
                        const unsigned char **bytes, enum frag_err *err,
                        struct frag_error *e)
{
    assert(want <= FRAG_SOURCE_WINDOW);
    drop_pages(s);
    *err = stage_peek(s->top, want, e);
    *bytes = s->top->at;
    return s->top->count;
}

void frag_source_skip(struct frag_source *s, size_t used)
{
    stage_skip(s->top, used);
}

uint64_t frag_source_offset(const struct frag_source *s)
{
    return s->top->used;
}

uint64_t frag_source_read(const struct frag_source *s)
{
    return s->whole ? s->file.used : s->arrived;
}

uint64_t frag_source_size(const struct frag_source *s)
{
    return s->size;
}

bool frag_source_knows_end(const struct frag_source *s)
{
    return !s->top->open_ended;
}

const char *frag_source_name(const struct frag_source *s)
{
    return s->name;
}

/* Reads the rest of a stage, so that its checksums are verified. */
static enum frag_err drain(struct frag_source *s, struct stage *stage,
                           struct frag_error *e)
{
    do {
        stage_skip(stage, stage->count);
        drop_pages(s);
        FRAG_TRY(stage_peek(stage, 1, e));
    } while (stage->count);
    return FRAG_OK;
}

static enum frag_err hash_whole(struct frag_source *s, struct frag_error *e)
{
    s->dropped = 0;
    for (uint64_t at = 0; at < s->size; at += DROP_BYTES) {
        const uint64_t left = s->size - at;
        const size_t step = (size_t)(left < DROP_BYTES ? left : DROP_BYTES);

        FRAG_TRY(hash_bytes(s, s->whole + at, step, e));
        if (s->map)
            (void)madvise((char *)s->map + at, step, MADV_DONTNEED);
    }
    return FRAG_OK;
}

enum frag_err frag_source_sha256(struct frag_source *s, char hex[65],
                                 struct frag_error *e)
{
    FRAG_TRY(drain(s, s->top, e));
    FRAG_TRY(drain(s, &s->file, e));
    if (s->whole)
        FRAG_TRY(hash_whole(s, e));
    if (!sha256_hex(&s->sum, hex))
        return frag_no_memory(e, "the SHA-256 of %s", s->name);
    return FRAG_OK;
}
