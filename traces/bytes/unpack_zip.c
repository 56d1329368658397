/* unpack_zip.c - a stage that unpacks zip: the first entry whose name ends like
 * that of a pickle or a text. The other entries are not read.
 *
 * The stage walks the local headers, because the directory is at the end of the
 * file and a pipe cannot seek there. PyTorch writes data.pkl first, without
 * compression, and its size is only in a descriptor behind it; the pickle marks
 * its own end. */
#include "traces/bytes/unpack.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    ZIP_HEADER = 30,
    ZIP_STORED = 0,
    ZIP_DEFLATED = 8,
    ZIP_DESCRIPTOR = 8, /* flag: sizes and checksum follow the data */
    ZIP_ENCRYPTED = 1,
    ZIP64_FIELD = 1,
};

struct unzip {
    z_stream z;
    bool found, inflating;
    bool sized;    /* `left` is known */
    uint64_t left; /* packed bytes of the entry not yet read */
    uint32_t method, flags, check, check_wanted;
    char first[64]; /* the name of the first entry, or as much as has room */
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
    return unpack_starts_with(bytes, count, "PK\3\4", 4);
}

static void zip_fini(struct stage *s)
{
    struct unzip *z = s->state;

    if (z->inflating)
        inflateEnd(&z->z);
}

static enum frag_err need(struct stage *s, size_t count, struct frag_error *e)
{
    FRAG_TRY(stage_peek(s->below, count, e));
    if (s->below->count < count)
        return unpack_cut_short(s, e);
    return FRAG_OK;
}

/* Reads the packed size from a zip64 field, which holds the sizes that need 64
 * bits: first the unpacked size, if the header lacks it, then the packed size.
 * Returns false if there is none. */
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

/* torch.save writes data.pkl, users pack a snapshot or a log. */
static bool is_wanted(const unsigned char *name, size_t length)
{
    static const char *const ends[] = {".pkl", ".pickle", ".txt"};

    for (size_t i = 0; i < sizeof(ends) / sizeof(*ends); i++) {
        const size_t count = strlen(ends[i]);

        if (length >= count && !memcmp(name + length - count, ends[i], count))
            return true;
    }
    return false;
}

/* A zip archive of other files. Programs that write a zip to a pipe leave the
 * sizes out, and then the entries after the first cannot be found. */
static enum frag_err is_other_zip(const struct stage *s, struct frag_error *e)
{
    const struct unzip *z = s->state;

    return frag_fail(
        e, FRAG_CORRUPT,
        "%s:0: expected a trace, found a zip archive without a "
        ".pickle or .pkl file (of a snapshot) or a .txt file (of a "
        "log); its first file is %s; unpack it with unzip, and "
        "pass the trace in it",
        s->name, z->first);
}

/* Reads one local header, up to the entry's data, and sets *wanted if the stage
 * unpacks this entry. */
static enum frag_err zip_header(struct stage *s, bool *wanted,
                                struct frag_error *e)
{
    struct unzip *z = s->state;
    const unsigned char *h;
    size_t name, extra;

    FRAG_TRY(stage_peek(s->below, 4, e));
    if (!zip_recognize(s->below->at, s->below->count))
        return is_other_zip(s, e);
    FRAG_TRY(need(s, ZIP_HEADER, e));
    name = little(s->below->at + 26, 2);
    extra = little(s->below->at + 28, 2);
    FRAG_TRY(need(s, ZIP_HEADER + name, e));
    h = s->below->at;
    if (!*z->first)
        snprintf(z->first, sizeof(z->first), "%.*s", (int)name,
                 (const char *)h + ZIP_HEADER);
    *wanted = is_wanted(h + ZIP_HEADER, name);
    z->flags = (uint32_t)little(h + 6, 2);
    z->method = (uint32_t)little(h + 8, 2);
    z->check_wanted = (uint32_t)little(h + 14, 4);
    z->left = little(h + 18, 4);
    z->sized = !(z->flags & ZIP_DESCRIPTOR);
    s->open_ended = !z->sized;

    unsigned char sizes[ZIP_HEADER];
    memcpy(sizes, h, sizeof(sizes));
    stage_skip(s->below, ZIP_HEADER + name);
    FRAG_TRY(need(s, extra, e));
    if (z->sized && z->left == UINT32_MAX &&
        !zip64_size(s->below->at, extra, sizes, &z->left))
        return unpack_broken(s, "an entry lacks its 64-bit size", e);
    stage_skip(s->below, extra);
    if (z->flags & ZIP_ENCRYPTED)
        return unpack_broken(s, "an entry is encrypted", e);
    if (z->method != ZIP_STORED && z->method != ZIP_DEFLATED)
        return unpack_broken(s, "an entry is neither stored nor deflated", e);
    return FRAG_OK;
}

static enum frag_err zip_read_stored(struct stage *s, unsigned char *to,
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
        return unpack_cut_short(s, e);
    *made = s->below->count < room ? s->below->count : room;
    memcpy(to, s->below->at, *made);
    stage_skip(s->below, *made);
    z->left -= z->sized ? *made : 0;
    return FRAG_OK;
}

static enum frag_err zip_read_deflated(struct stage *s, unsigned char *to,
                                       size_t room, size_t *made,
                                       struct frag_error *e)
{
    struct unzip *z = s->state;
    bool done = false;

    if (!z->inflating)
        FRAG_TRY(unpack_inflate_start(s, &z->z, -MAX_WBITS, e));
    z->inflating = true;
    for (*made = 0; !*made && !done;)
        FRAG_TRY(unpack_inflate_step(s, &z->z, to, room, made, &done, e));
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
            return unpack_cut_short(s, e);
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
            return is_other_zip(s, e);
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
        FRAG_TRY(zip_read_deflated(s, to, room, made, e));
    } else {
        FRAG_TRY(zip_read_stored(s, to, room, made, e));
        s->ended = !*made;
    }
    z->check = (uint32_t)crc32(z->check, to, (uInt)*made);
    if (s->ended && z->sized && z->check != z->check_wanted)
        return unpack_broken(s, "the checksum of the entry does not match", e);
    return FRAG_OK;
}

const struct stage_ops unpack_zip = {
    .name = "zip",
    .recognize = zip_recognize,
    .size = sizeof(struct unzip),
    .fini = zip_fini,
    .fill = zip_fill,
};
