/* unpack.c - gzip, xz, zstd and zip as stages over the bytes below them. */
#include <assert.h>
#include <inttypes.h>
#include <lzma.h>
#include <stdlib.h>
#include <string.h>
#define ZLIB_CONST /* so that inflate takes const input */
#include <zlib.h>
#include <zstd.h>

#include "traces/stage.h"

/* No honest xz file asks for more: preset 9 needs 65 MiB. */
#define XZ_MEMORY ((uint64_t)1 << 30)

static enum frag_err broken(const struct stage *s, const char *what,
                            struct frag_error *e)
{
    return frag_fail(e, FRAG_CORRUPT, "%s:%" PRIu64 ": broken %s data: %s",
                     s->name, s->below->used, s->ops->name, what);
}

static enum frag_err no_memory(const struct stage *s, struct frag_error *e)
{
    return frag_fail(e, FRAG_NOMEM, "%s: no memory to unpack %s", s->name,
                     s->ops->name);
}

static bool starts_with(const unsigned char *bytes, size_t count,
                        const char *magic, size_t length)
{
    return count >= length && !memcmp(bytes, magic, length);
}

/* Inflating, for gzip and for zip. */

static enum frag_err inflate_start(struct stage *s, z_stream *z, int window,
                                   struct frag_error *e)
{
    memset(z, 0, sizeof(*z));
    return inflateInit2(z, window) == Z_OK ? FRAG_OK : no_memory(s, e);
}

/* One step; *done at the end of the deflated stream. */
static enum frag_err inflate_step(struct stage *s, z_stream *z,
                                  unsigned char *to, size_t room, size_t *made,
                                  bool *done, struct frag_error *e)
{
    int answer;

    FRAG_TRY(stage_peek(s->below, 1, e));
    if (!s->below->count)
        return broken(s, "the file ends inside it", e);
    z->next_in = s->below->at;
    z->avail_in =
        (uInt)(s->below->count < STAGE_BUFFER ? s->below->count : STAGE_BUFFER);
    z->next_out = to;
    z->avail_out = (uInt)room;
    const uInt given = z->avail_in;
    answer = inflate(z, Z_NO_FLUSH);
    stage_skip(s->below, given - z->avail_in);
    *made = room - z->avail_out;
    *done = answer == Z_STREAM_END;
    if (answer == Z_MEM_ERROR)
        return no_memory(s, e);
    if (answer == Z_OK || answer == Z_STREAM_END || answer == Z_BUF_ERROR)
        return FRAG_OK;
    return broken(s, z->msg ? z->msg : "not deflated", e);
}

static void inflate_fini(struct stage *s)
{
    if (s->state)
        inflateEnd(s->state);
    free(s->state);
}

/* gzip, of one member or several */

static bool gzip_recognize(const unsigned char *bytes, size_t count)
{
    return starts_with(bytes, count, "\x1f\x8b\x08", 3);
}

static enum frag_err gzip_init(struct stage *s, struct frag_error *e)
{
    z_stream *z = malloc(sizeof(*z));
    enum frag_err err;

    if (!z)
        return no_memory(s, e);
    err = inflate_start(s, z, 16 + MAX_WBITS, e);
    if (err != FRAG_OK) {
        free(z);
        return err;
    }
    s->state = z;
    return FRAG_OK;
}

/* What may follow a member: another one, or the zeros of a tape. */
static enum frag_err gzip_next_member(struct stage *s, struct frag_error *e)
{
    struct stage *below = s->below;

    FRAG_TRY(stage_peek(below, 3, e));
    if (gzip_recognize(below->at, below->count)) {
        inflateReset(s->state);
        return FRAG_OK;
    }
    while (below->count && !*below->at) {
        stage_skip(below, 1);
        FRAG_TRY(stage_peek(below, 1, e));
    }
    s->ended = true;
    return below->count ? broken(s, "bytes after its end", e) : FRAG_OK;
}

static enum frag_err gzip_fill(struct stage *s, unsigned char *to, size_t room,
                               size_t *made, struct frag_error *e)
{
    bool done = false;

    for (*made = 0; !*made && !s->ended;) {
        FRAG_TRY(inflate_step(s, s->state, to, room, made, &done, e));
        if (done)
            FRAG_TRY(gzip_next_member(s, e));
    }
    return FRAG_OK;
}

static const struct stage_ops gzip = {
    .name = "gzip",
    .recognize = gzip_recognize,
    .init = gzip_init,
    .fini = inflate_fini,
    .fill = gzip_fill,
};

/* xz */

static bool xz_recognize(const unsigned char *bytes, size_t count)
{
    return starts_with(bytes, count, "\xfd\x37zXZ\0", 6);
}

static enum frag_err xz_init(struct stage *s, struct frag_error *e)
{
    static const lzma_stream fresh = LZMA_STREAM_INIT;
    lzma_stream *xz = malloc(sizeof(*xz));

    if (!xz)
        return no_memory(s, e);
    *xz = fresh;
    if (lzma_stream_decoder(xz, XZ_MEMORY, LZMA_CONCATENATED) != LZMA_OK) {
        free(xz);
        return no_memory(s, e);
    }
    s->state = xz;
    return FRAG_OK;
}

static void xz_fini(struct stage *s)
{
    if (s->state)
        lzma_end(s->state);
    free(s->state);
}

static const char *xz_words(lzma_ret answer)
{
    switch (answer) {
    case LZMA_BUF_ERROR:
        return "the file ends inside it";
    case LZMA_MEMLIMIT_ERROR:
        return "it wants more than 1 GiB of memory";
    case LZMA_OPTIONS_ERROR:
        return "unknown options";
    default:
        return "it does not match its check";
    }
}

static enum frag_err xz_fill(struct stage *s, unsigned char *to, size_t room,
                             size_t *made, struct frag_error *e)
{
    lzma_stream *xz = s->state;
    lzma_ret answer = LZMA_OK;

    xz->next_out = to;
    xz->avail_out = room;
    while (xz->avail_out == room && answer == LZMA_OK) {
        FRAG_TRY(stage_peek(s->below, 1, e));
        const size_t given = s->below->count;

        xz->next_in = s->below->at;
        xz->avail_in = given;
        answer = lzma_code(xz, given ? LZMA_RUN : LZMA_FINISH);
        stage_skip(s->below, given - xz->avail_in);
    }
    *made = room - xz->avail_out;
    s->ended = answer == LZMA_STREAM_END;
    if (answer == LZMA_OK || answer == LZMA_STREAM_END)
        return FRAG_OK;
    if (answer == LZMA_MEM_ERROR)
        return no_memory(s, e);
    return broken(s, xz_words(answer), e);
}

static const struct stage_ops xz = {
    .name = "xz",
    .recognize = xz_recognize,
    .init = xz_init,
    .fini = xz_fini,
    .fill = xz_fill,
};

/* zstd */

struct unzstd {
    ZSTD_DStream *stream;
    bool between; /* frames: the file may end here */
};

static bool zstd_recognize(const unsigned char *bytes, size_t count)
{
    return starts_with(bytes, count, "\x28\xb5\x2f\xfd", 4);
}

static enum frag_err zstd_init(struct stage *s, struct frag_error *e)
{
    struct unzstd *z = calloc(1, sizeof(*z));

    if (!z)
        return no_memory(s, e);
    z->stream = ZSTD_createDStream();
    if (!z->stream) {
        free(z);
        return no_memory(s, e);
    }
    s->state = z;
    return FRAG_OK;
}

static void zstd_fini(struct stage *s)
{
    struct unzstd *z = s->state;

    if (z)
        ZSTD_freeDStream(z->stream);
    free(z);
}

static enum frag_err zstd_fill(struct stage *s, unsigned char *to, size_t room,
                               size_t *made, struct frag_error *e)
{
    struct unzstd *z = s->state;
    ZSTD_outBuffer out = {to, room, 0};

    while (!out.pos && !s->ended) {
        FRAG_TRY(stage_peek(s->below, 1, e));
        ZSTD_inBuffer in = {s->below->at, s->below->count, 0};
        const size_t answer = ZSTD_decompressStream(z->stream, &out, &in);

        stage_skip(s->below, in.pos);
        if (ZSTD_isError(answer))
            return broken(s, ZSTD_getErrorName(answer), e);
        if (!in.size && !out.pos) {
            if (!z->between)
                return broken(s, "the file ends inside it", e);
            s->ended = true;
        }
        if (in.size || out.pos)
            z->between = !answer;
    }
    *made = out.pos;
    return FRAG_OK;
}

static const struct stage_ops zstd = {
    .name = "zstd",
    .recognize = zstd_recognize,
    .init = zstd_init,
    .fini = zstd_fini,
    .fill = zstd_fill,
};

/* zip: the first entry whose name ends in data.pkl, found by walking the local
 * headers, since a pipe has no end to seek to. PyTorch writes that entry first,
 * stored, its size only in a descriptor behind it; the pickle ends itself. */

enum {
    ZIP_HEADER = 30,
    ZIP_STORED = 0,
    ZIP_DEFLATED = 8,
    ZIP_DESCRIPTOR = 8, /* flag: sizes and check come after the data */
    ZIP_ENCRYPTED = 1,
    ZIP64_FIELD = 1,
};

struct unzip {
    z_stream z;
    bool found, inflating;
    bool sized;    /* `left` is known */
    uint64_t left; /* packed bytes of the entry still to come */
    uint32_t method, flags, check, check_wanted;
};

static uint64_t little(const unsigned char *bytes, int count)
{
    uint64_t n = 0;

    while (count--)
        n = n << 8 | bytes[count];
    return n;
}

static bool zip_recognize(const unsigned char *bytes, size_t count)
{
    return starts_with(bytes, count, "PK\3\4", 4);
}

static enum frag_err zip_init(struct stage *s, struct frag_error *e)
{
    s->state = calloc(1, sizeof(struct unzip));
    return s->state ? FRAG_OK : no_memory(s, e);
}

static void zip_fini(struct stage *s)
{
    struct unzip *z = s->state;

    if (z && z->inflating)
        inflateEnd(&z->z);
    free(z);
}

static enum frag_err need(struct stage *s, size_t count, struct frag_error *e)
{
    FRAG_TRY(stage_peek(s->below, count, e));
    if (s->below->count < count)
        return broken(s, "the file ends inside a header", e);
    return FRAG_OK;
}

/* The packed size in a zip64 field, which holds the 64-bit sizes that the
 * header had no room for: first the plain one, then the packed one. */
static bool zip64_size(const unsigned char *extra, size_t length,
                       const unsigned char *header, uint64_t *size)
{
    const size_t skip = little(header + 22, 4) == UINT32_MAX ? 8 : 0;

    while (length >= 4) {
        const size_t field = little(extra + 2, 2);

        if (field > length - 4)
            return false;
        if (little(extra, 2) == ZIP64_FIELD && field >= skip + 8) {
            *size = little(extra + 4 + skip, 8);
            return true;
        }
        extra += 4 + field;
        length -= 4 + field;
    }
    return false;
}

/* Reads one local header, up to the entry's data. */
static enum frag_err zip_header(struct stage *s, bool *wanted,
                                struct frag_error *e)
{
    static const char suffix[] = "data.pkl";
    struct unzip *z = s->state;
    const unsigned char *h;
    size_t name, extra;

    FRAG_TRY(stage_peek(s->below, 4, e));
    if (!zip_recognize(s->below->at, s->below->count))
        return broken(s, "it has no entry that ends in data.pkl", e);
    FRAG_TRY(need(s, ZIP_HEADER, e));
    name = little(s->below->at + 26, 2);
    extra = little(s->below->at + 28, 2);
    FRAG_TRY(need(s, ZIP_HEADER + name, e));
    h = s->below->at;
    *wanted =
        name >= strlen(suffix) &&
        !memcmp(h + ZIP_HEADER + name - strlen(suffix), suffix, strlen(suffix));
    z->flags = (uint32_t)little(h + 6, 2);
    z->method = (uint32_t)little(h + 8, 2);
    z->check_wanted = (uint32_t)little(h + 14, 4);
    z->left = little(h + 18, 4);
    z->sized = !(z->flags & ZIP_DESCRIPTOR);

    unsigned char sizes[ZIP_HEADER];
    memcpy(sizes, h, sizeof(sizes));
    stage_skip(s->below, ZIP_HEADER + name);
    FRAG_TRY(need(s, extra, e));
    if (z->sized && z->left == UINT32_MAX &&
        !zip64_size(s->below->at, extra, sizes, &z->left))
        return broken(s, "an entry lacks its 64-bit size", e);
    stage_skip(s->below, extra);
    if (z->flags & ZIP_ENCRYPTED)
        return broken(s, "an entry is encrypted", e);
    if (z->method != ZIP_STORED && z->method != ZIP_DEFLATED)
        return broken(s, "an entry is neither stored nor deflated", e);
    return FRAG_OK;
}

static enum frag_err zip_take_stored(struct stage *s, unsigned char *to,
                                     size_t room, size_t *made,
                                     struct frag_error *e)
{
    struct unzip *z = s->state;

    if (z->sized && z->left < room)
        room = (size_t)z->left;
    *made = 0;
    if (!room)
        return FRAG_OK;
    FRAG_TRY(stage_peek(s->below, 1, e));
    if (z->sized && !s->below->count)
        return broken(s, "the file ends inside an entry", e);
    *made = s->below->count < room ? s->below->count : room;
    memcpy(to, s->below->at, *made);
    stage_skip(s->below, *made);
    z->left -= z->sized ? *made : 0;
    return FRAG_OK;
}

static enum frag_err zip_take_deflated(struct stage *s, unsigned char *to,
                                       size_t room, size_t *made,
                                       struct frag_error *e)
{
    struct unzip *z = s->state;
    bool done = false;

    if (!z->inflating)
        FRAG_TRY(inflate_start(s, &z->z, -MAX_WBITS, e));
    z->inflating = true;
    for (*made = 0; !*made && !done;)
        FRAG_TRY(inflate_step(s, &z->z, to, room, made, &done, e));
    if (done) {
        inflateEnd(&z->z);
        z->inflating = false;
        s->ended = true;
    }
    return FRAG_OK;
}

static enum frag_err zip_pass_over(struct stage *s, struct frag_error *e)
{
    struct unzip *z = s->state;

    while (z->left) {
        FRAG_TRY(stage_peek(s->below, 1, e));
        if (!s->below->count)
            return broken(s, "the file ends inside an entry", e);
        const size_t step =
            s->below->count < z->left ? s->below->count : (size_t)z->left;
        stage_skip(s->below, step);
        z->left -= step;
    }
    return FRAG_OK;
}

static enum frag_err zip_find(struct stage *s, struct frag_error *e)
{
    struct unzip *z = s->state;
    bool wanted = false;

    FRAG_TRY(zip_header(s, &wanted, e));
    while (!wanted) {
        if (!z->sized)
            return broken(s, "an entry of unknown size before data.pkl", e);
        FRAG_TRY(zip_pass_over(s, e));
        FRAG_TRY(zip_header(s, &wanted, e));
    }
    z->found = true;
    return FRAG_OK;
}

static enum frag_err zip_fill(struct stage *s, unsigned char *to, size_t room,
                              size_t *made, struct frag_error *e)
{
    struct unzip *z = s->state;

    if (!z->found)
        FRAG_TRY(zip_find(s, e));
    if (z->method == ZIP_DEFLATED) {
        FRAG_TRY(zip_take_deflated(s, to, room, made, e));
    } else {
        FRAG_TRY(zip_take_stored(s, to, room, made, e));
        s->ended = !*made;
    }
    z->check = (uint32_t)crc32(z->check, to, (uInt)*made);
    if (s->ended && z->sized && z->check != z->check_wanted)
        return broken(s, "data.pkl does not match its check", e);
    return FRAG_OK;
}

static const struct stage_ops zip = {
    .name = "zip",
    .recognize = zip_recognize,
    .init = zip_init,
    .fini = zip_fini,
    .fill = zip_fill,
};

const struct stage_ops *const unpackers[] = {&gzip, &xz, &zstd, &zip, NULL};
