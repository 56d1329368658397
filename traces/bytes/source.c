/* source.c - reads or maps the file of an importer and stacks the stages that
 * unpack it; a second thread may unpack and hash ahead of the reader. The
 * packed forms are in unpack.c and unpack_zip.c, the thread in ahead.c. */
#include "traces/bytes/source.h"

#include <assert.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "traces/bytes/ahead.h"
#include "traces/bytes/input.h"
#include "traces/bytes/processors.h"
#include "traces/bytes/sha256.h"
#include "traces/bytes/unpack.h"
#include "traces/storage.h"

enum { LAYERS_MAX = 4 };

/* After every DROP_BYTES, the pages of a mapped file that the reader has passed
 * are released, so that the file does not count as memory of the process. */
#define DROP_BYTES ((uint64_t)8 << 20)

/* The work of the second thread. */
enum {
    STEP_BYTES = STAGE_BUFFER, /* unpacked or hashed in one step */
    RING = 4,                  /* unpacked pieces that wait for the reader */
    HASH_LEAD = 16,            /* steps of the hash before the reader */
    PLAIN_LEAST = 1 << 20, /* bytes; a smaller file needs no second thread */
};

/* The bytes that one step of the second thread unpacked. */
struct piece {
    unsigned char *bytes; /* STEP_BYTES */
    size_t count;         /* fewer than STEP_BYTES where the unpacker paused */
    size_t taken;         /* bytes that have left the ring */
    bool last;
};

/* A file is either read and hashed in parts, or mapped as a whole. A mapped
 * file is hashed by the second thread, and what it left by frag_source_sha256.
 *
 * While the second thread runs, it alone uses the hash, and, if the file is
 * packed, `unpacker` and the stages below it. */
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
    uint64_t hashed; /* bytes of a mapped file that `sum` contains */

    struct ahead ahead;
    enum frag_err ahead_err; /* of the last step */
    struct frag_error ahead_e;
    struct stage *unpacker; /* of the thread */
    struct stage ready;     /* of a packed file: what the thread unpacked */
    struct piece ring[RING];
    uint64_t taken;             /* pieces that have left the ring */
    _Atomic uint64_t unpacking; /* the thread's position in the file */
};

/* The file */

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
    sha256_add(&s->sum, to, *made);
    return FRAG_OK;
}

static const struct stage_ops plain_file = {.name = "file", .fill = read_file};

/* Releases the pages from byte s->dropped to byte `to`, a multiple of
 * DROP_BYTES or the size of the file. */
static void drop_pages(struct frag_source *s, uint64_t to)
{
    if (!s->map || to <= s->dropped)
        return;
    /* This is only advice: if the system refuses, memory is used longer. */
    (void)madvise((char *)s->map + s->dropped, to - s->dropped, MADV_DONTNEED);
    s->dropped = to;
}

static uint64_t whole_drops(uint64_t bytes)
{
    return bytes & ~(DROP_BYTES - 1);
}

/* Hashes a mapped file up to byte `to`. */
static void hash_to(struct frag_source *s, uint64_t to)
{
    const uint64_t from = s->hashed;

    s->hashed = to;
    sha256_add(&s->sum, s->whole + from, (size_t)(to - from));
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
    void *map = storage_map(s->fd, (size_t)s->size, s->name);

    if (!map)
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

    s->fd = STDIN_FILENO;
    if (!is_stdin)
        FRAG_TRY(input_fd(path, &s->fd, e));
    if (fstat(s->fd, &st) < 0)
        return frag_fail(e, FRAG_IO, "%s: %s", path, strerror(errno));
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
        s->layers[i].state = calloc(1, ops->size);
        if (!s->layers[i].state)
            return unpack_no_memory(&s->layers[i], e);
        if (ops->init)
            FRAG_TRY(ops->init(&s->layers[i], e));
        s->top = &s->layers[i];
    }
}

/* The second thread */

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* A step of the thread for a plain file: hashes the next bytes, which also
 * brings them into memory before the reader needs them. */
static bool hash_step(void *user, uint64_t k)
{
    struct frag_source *s = user;

    hash_to(s, least(s->size, (k + 1) * STEP_BYTES));
    return s->hashed == s->size;
}

/* Unpacks the next piece, and hashes the packed bytes that were used. */
static enum frag_err unpack_piece(struct frag_source *s, struct piece *piece,
                                  struct frag_error *e)
{
    piece->count = piece->taken = 0;
    FRAG_TRY(
        stage_fill(s->unpacker, piece->bytes, STEP_BYTES, &piece->count, e));
    piece->last = s->unpacker->ended;
    atomic_store(&s->unpacking, s->file.used);
    hash_to(s, s->file.used);
    drop_pages(s, whole_drops(s->file.used));
    return FRAG_OK;
}

/* A step of the thread for a packed file. */
static bool unpack_step(void *user, uint64_t k)
{
    struct frag_source *s = user;
    struct piece *piece = &s->ring[k % RING];

    s->ahead_err = unpack_piece(s, piece, &s->ahead_e);
    piece->last = piece->last || s->ahead_err != FRAG_OK;
    return piece->last;
}

static enum frag_err ahead_error(const struct frag_source *s,
                                 struct frag_error *e)
{
    if (s->ahead_err != FRAG_OK && e)
        *e = s->ahead_e;
    return s->ahead_err;
}

/* Copies the next bytes of the ring. As an unpacker, this stops where the
 * unpacker paused, and fails if an error lies before the next pause and within
 * `room` bytes. Therefore the reader receives the same bytes before an error
 * as without the thread. */
static enum frag_err take_ready(struct stage *ready, unsigned char *to,
                                size_t room, size_t *made, struct frag_error *e)
{
    struct frag_source *s = ready->state;

    for (*made = 0; *made < room; s->taken++) {
        struct piece *piece = &s->ring[s->taken % RING];

        ahead_wait(&s->ahead, s->taken, s->taken + 1);
        const size_t n =
            (size_t)least(room - *made, piece->count - piece->taken);

        memcpy(to + *made, piece->bytes + piece->taken, n);
        *made += n;
        piece->taken += n;
        if (*made == room)
            break;
        ready->ended = piece->last;
        if (piece->last)
            return ahead_error(s, e);
        if (piece->count < STEP_BYTES && *made) {
            s->taken++;
            break;
        }
    }
    return FRAG_OK;
}

static const struct stage_ops ready_bytes = {.name = "unpacked bytes",
                                             .fill = take_ready};

static bool make_ring(struct frag_source *s)
{
    for (size_t i = 0; i < RING; i++) {
        s->ring[i].bytes = malloc(STEP_BYTES);
        if (!s->ring[i].bytes)
            return false;
    }
    return true;
}

static void free_ring(struct frag_source *s)
{
    for (size_t i = 0; i < RING; i++) {
        free(s->ring[i].bytes);
        s->ring[i].bytes = NULL;
    }
}

static void start_unpacking(struct frag_source *s)
{
    struct stage *top = s->top;

    s->ahead.step = unpack_step;
    s->ahead.lead = RING - 1;
    atomic_store(&s->unpacking, s->file.used);
    /* The reader has the window of the stage. Only the thread has the stages
     * below the window, and checks their bound. */
    s->ready = *top;
    s->ready.ops = &ready_bytes;
    s->ready.below = NULL;
    s->unpacker = top;
    s->ready.state = s;
    s->ready.buffer = NULL;
    if (make_ring(s) && ahead_start(&s->ahead))
        s->top = &s->ready;
    else
        free_ring(s);
}

static void start_hashing(struct frag_source *s)
{
    s->ahead.step = hash_step;
    s->ahead.lead = HASH_LEAD;
    (void)ahead_start(&s->ahead);
}

/* A stack of a thread would use a large part of a limited address space. */
static bool has_room_for_a_thread(void)
{
    struct rlimit limit;

    return processors() > 1 && getrlimit(RLIMIT_AS, &limit) == 0 &&
           limit.rlim_cur == RLIM_INFINITY;
}

static bool needs_reader(const struct frag_source *s)
{
    for (size_t i = 0; i < LAYERS_MAX && s->layers[i].ops; i++)
        if (s->layers[i].ops->needs_reader)
            return true;
    return false;
}

void frag_source_read_ahead(struct frag_source *s)
{
    const bool is_plain = s->top == &s->file;

    if (!s->whole || s->ahead.running || needs_reader(s) ||
        (is_plain ? s->size < PLAIN_LEAST : s->top->ended) ||
        !has_room_for_a_thread())
        return;
    s->ahead.user = s;
    if (is_plain)
        start_hashing(s);
    else
        start_unpacking(s);
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
    if (!s->name) {
        frag_source_close(s);
        return NULL;
    }
    sha256_begin(&s->sum);
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
    ahead_stop(&s->ahead);
    for (size_t i = 0; i < LAYERS_MAX && s->layers[i].ops; i++) {
        if (s->layers[i].state)
            s->layers[i].ops->fini(&s->layers[i]);
        free(s->layers[i].state);
        free(s->layers[i].buffer);
    }
    free(s->file.buffer);
    free(s->ready.buffer);
    free_ring(s);
    if (s->map)
        storage_unmap(s->map, (size_t)s->size);
    if (s->fd > STDIN_FILENO)
        close(s->fd);
    free(s->name);
    free(s);
}

static bool thread_unpacks(const struct frag_source *s)
{
    return s->ahead.running && s->top == &s->ready;
}

/* Releases the pages that were read. The thread does so for a packed file; for
 * a plain file, the reader first waits until the thread has hashed them. */
static void drop_read(struct frag_source *s)
{
    uint64_t to;

    if (thread_unpacks(s))
        return;
    to = whole_drops(s->file.used);
    if (s->ahead.running)
        ahead_wait(&s->ahead, s->file.used / STEP_BYTES, to / STEP_BYTES);
    drop_pages(s, to);
}

size_t frag_source_peek(struct frag_source *s, size_t want,
                        const unsigned char **bytes, enum frag_err *err,
                        struct frag_error *e)
{
    assert(want <= FRAG_SOURCE_WINDOW);
    drop_read(s);
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
    if (thread_unpacks(s))
        return atomic_load(&s->unpacking);
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
        drop_read(s);
        FRAG_TRY(stage_peek(stage, 1, e));
    } while (stage->count);
    return FRAG_OK;
}

/* Hashes what the thread has not hashed, and releases all pages. */
static void hash_rest(struct frag_source *s)
{
    s->dropped = whole_drops(s->hashed);
    while (s->hashed < s->size) {
        hash_to(s, least(s->size, s->hashed + DROP_BYTES));
        drop_pages(s, whole_drops(s->hashed));
    }
    drop_pages(s, s->size);
}

enum frag_err frag_source_sha256(struct frag_source *s, char hex[65],
                                 struct frag_error *e)
{
    FRAG_TRY(drain(s, s->top, e));
    ahead_stop(&s->ahead);
    FRAG_TRY(ahead_error(s, e));
    FRAG_TRY(drain(s, &s->file, e));
    if (s->whole)
        hash_rest(s);
    sha256_hex(&s->sum, hex);
    return FRAG_OK;
}
