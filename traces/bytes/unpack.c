/* unpack.c - stages that unpack gzip, xz and zstd. Zip is in unpack_zip.c. */
#include "traces/bytes/unpack.h"

#include <inttypes.h>
#include <lzma.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

/* The largest memory for unpacking xz. The largest preset, 9, needs 65 MiB;
 * only a hostile file requests more than this limit. */
#define XZ_MEMORY ((uint64_t)1 << 30)

enum frag_err unpack_broken(const struct stage *s, const char *what,
                            struct frag_error *e)
{
    return frag_fail(e, FRAG_CORRUPT, "%s:%" PRIu64 ": broken %s data: %s",
                     s->name, s->below->used, s->ops->name, what);
}

enum frag_err unpack_cut_short(const struct stage *s, struct frag_error *e)
{
    const uint64_t end = s->below->used + s->below->count;

    return frag_fail(e, FRAG_CORRUPT,
                     "%s:%" PRIu64 ": the file ends at byte %" PRIu64
                     ", inside its %s data: it is incomplete; copy it again",
                     s->name, end, end, s->ops->name);
}

enum frag_err unpack_no_memory(const struct stage *s, struct frag_error *e)
{
    return frag_no_memory(e, "the unpacking of %s (%s)", s->name, s->ops->name);
}

bool unpack_starts_with(const unsigned char *bytes, size_t count,
                        const char *magic, size_t length)
{
    return count >= length && !memcmp(bytes, magic, length);
}

/* Inflating */

enum frag_err unpack_inflate_start(struct stage *s, z_stream *z, int window,
                                   struct frag_error *e)
{
    memset(z, 0, sizeof(*z));
    return inflateInit2(z, window) == Z_OK ? FRAG_OK : unpack_no_memory(s, e);
}

enum frag_err unpack_inflate_step(struct stage *s, z_stream *z,
                                  unsigned char *to, size_t room, size_t *made,
                                  bool *done, struct frag_error *e)
{
    int answer;

    FRAG_TRY(stage_peek(s->below, 1, e));
    if (!s->below->count)
        return unpack_cut_short(s, e);
    z->next_in = s->below->at;
    z->avail_in =
        (uInt)(s->below->count < STAGE_BUFFER ? s->below->count : STAGE_BUFFER);
    z->next_out = to;
    z->avail_out = (uInt)room;
    const uInt offered = z->avail_in;
    answer = inflate(z, Z_NO_FLUSH);
    stage_skip(s->below, offered - z->avail_in);
    *made = room - z->avail_out;
    *done = answer == Z_STREAM_END;
    if (answer == Z_MEM_ERROR)
        return unpack_no_memory(s, e);
    if (answer == Z_OK || answer == Z_STREAM_END || answer == Z_BUF_ERROR)
        return FRAG_OK;
    return unpack_broken(s, z->msg ? z->msg : "it is not deflated", e);
}

/* gzip, of one member or several */

static bool gzip_recognize(const unsigned char *bytes, size_t count)
{
    return unpack_starts_with(bytes, count, "\x1f\x8b\x08", 3);
}

static enum frag_err gzip_init(struct stage *s, struct frag_error *e)
{
    return unpack_inflate_start(s, s->state, 16 + MAX_WBITS, e);
}

static void gzip_fini(struct stage *s)
{
    inflateEnd(s->state);
}

/* Another member may follow a member, or zeros, as tapes have them. */
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
    return below->count ? unpack_broken(s, "bytes follow its end", e) : FRAG_OK;
}

static enum frag_err gzip_fill(struct stage *s, unsigned char *to, size_t room,
                               size_t *made, struct frag_error *e)
{
    bool done = false;

    for (*made = 0; !*made && !s->ended;) {
        FRAG_TRY(unpack_inflate_step(s, s->state, to, room, made, &done, e));
        if (done)
            FRAG_TRY(gzip_next_member(s, e));
    }
    return FRAG_OK;
}

const struct stage_ops unpack_gzip = {
    .name = "gzip",
    .recognize = gzip_recognize,
    .size = sizeof(z_stream),
    .init = gzip_init,
    .fini = gzip_fini,
    .fill = gzip_fill,
};

/* xz */

static bool xz_recognize(const unsigned char *bytes, size_t count)
{
    return unpack_starts_with(bytes, count, "\xfd\x37zXZ\0", 6);
}

static enum frag_err xz_init(struct stage *s, struct frag_error *e)
{
    static const lzma_stream fresh = LZMA_STREAM_INIT;
    lzma_stream *xz = s->state;

    *xz = fresh;
    return lzma_stream_decoder(xz, XZ_MEMORY, LZMA_CONCATENATED) == LZMA_OK
               ? FRAG_OK
               : unpack_no_memory(s, e);
}

static void xz_fini(struct stage *s)
{
    lzma_end(s->state);
}

static const char *xz_words(lzma_ret answer)
{
    switch (answer) {
    case LZMA_MEMLIMIT_ERROR:
        return "it needs more than 1 GiB of memory";
    case LZMA_OPTIONS_ERROR:
        return "its options are unknown";
    default:
        return "its checksum does not match";
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
        const size_t offered = s->below->count;

        xz->next_in = s->below->at;
        xz->avail_in = offered;
        answer = lzma_code(xz, offered ? LZMA_RUN : LZMA_FINISH);
        stage_skip(s->below, offered - xz->avail_in);
    }
    *made = room - xz->avail_out;
    s->ended = answer == LZMA_STREAM_END;
    if (answer == LZMA_OK || answer == LZMA_STREAM_END)
        return FRAG_OK;
    if (answer == LZMA_MEM_ERROR)
        return unpack_no_memory(s, e);
    if (answer == LZMA_BUF_ERROR)
        return unpack_cut_short(s, e);
    return unpack_broken(s, xz_words(answer), e);
}

const struct stage_ops unpack_xz = {
    .name = "xz",
    .recognize = xz_recognize,
    .size = sizeof(lzma_stream),
    .init = xz_init,
    .fini = xz_fini,
    .fill = xz_fill,
};

/* zstd */

struct unzstd {
    ZSTD_DStream *stream;
    bool between; /* between two frames: the file may end here */
};

static bool zstd_recognize(const unsigned char *bytes, size_t count)
{
    return unpack_starts_with(bytes, count, "\x28\xb5\x2f\xfd", 4);
}

static enum frag_err zstd_init(struct stage *s, struct frag_error *e)
{
    struct unzstd *z = s->state;

    z->stream = ZSTD_createDStream();
    return z->stream ? FRAG_OK : unpack_no_memory(s, e);
}

static void zstd_fini(struct stage *s)
{
    struct unzstd *z = s->state;

    ZSTD_freeDStream(z->stream);
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
        *made = out.pos;
        if (ZSTD_isError(answer))
            return unpack_broken(s, ZSTD_getErrorName(answer), e);
        if (!in.size && !out.pos) {
            if (!z->between)
                return unpack_cut_short(s, e);
            s->ended = true;
        }
        if (in.size || out.pos)
            z->between = !answer;
    }
    return FRAG_OK;
}

/* After an error, zstd reports no position inside the call. */
const struct stage_ops unpack_zstd = {
    .name = "zstd",
    .needs_reader = true,
    .recognize = zstd_recognize,
    .size = sizeof(struct unzstd),
    .init = zstd_init,
    .fini = zstd_fini,
    .fill = zstd_fill,
};
