/* test_source.c - tests inputs: packed once or twice, in several parts, or cut
 * off. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <lzma.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include "traces/bytes/sha256.h"
#include "traces/bytes/source.h"
#include "traces/trace.h"

enum { TEXT = 700000, ROOM = 2 * TEXT };

struct bytes {
    unsigned char *at;
    size_t count;
};

/* Text that packs, but not to nothing. */
static struct bytes text_of(size_t count)
{
    struct bytes b = {malloc(count + 1), count};
    uint32_t x = 1;

    for (size_t i = 0; i < count; i++) {
        x = x * 1664525 + 1013904223;
        b.at[i] = (unsigned char)("abcdefgh"[x >> 29] + (i % 7 == 0));
    }
    return b;
}

static struct bytes pack_gzip(struct bytes in)
{
    struct bytes out = {malloc(ROOM), 0};
    z_stream z;

    memset(&z, 0, sizeof(z));
    assert_int_equal(deflateInit2(&z, 6, Z_DEFLATED, 31, 8, Z_DEFAULT_STRATEGY),
                     Z_OK);
    z.next_in = in.at;
    z.avail_in = (uInt)in.count;
    z.next_out = out.at;
    z.avail_out = ROOM;
    assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
    out.count = z.total_out;
    deflateEnd(&z);
    return out;
}

static struct bytes pack_xz(struct bytes in)
{
    struct bytes out = {malloc(ROOM), 0};

    assert_int_equal(lzma_easy_buffer_encode(1, LZMA_CHECK_CRC64, NULL, in.at,
                                             in.count, out.at, &out.count,
                                             ROOM),
                     LZMA_OK);
    return out;
}

static struct bytes pack_zstd(struct bytes in)
{
    struct bytes out = {malloc(ROOM), 0};

    out.count = ZSTD_compress(out.at, ROOM, in.at, in.count, 1);
    assert_false(ZSTD_isError(out.count));
    return out;
}

static void put(unsigned char **to, uint64_t n, int count)
{
    for (int i = 0; i < count; i++)
        *(*to)++ = (unsigned char)(n >> 8 * i);
}

/* A local entry: the header, the name, the data. method 0 or 8; a descriptor
 * instead of sizes if flags has bit 3. */
static struct bytes zip_entry(const char *name, struct bytes in, int method,
                              int flags)
{
    struct bytes out = {malloc(ROOM + 100), 0}, data = {malloc(ROOM), ROOM};
    unsigned char *to = out.at;
    const bool sized = !(flags & 8);
    const uint64_t check = crc32(0, in.at, (uInt)in.count);

    if (method) {
        uLongf count = ROOM;

        assert_int_equal(compress(data.at, &count, in.at, in.count), Z_OK);
        data.count = count - 6; /* without zlib's own header and check */
        memmove(data.at, data.at + 2, data.count);
    } else {
        memcpy(data.at, in.at, data.count = in.count);
    }
    put(&to, 0x04034b50, 4);
    put(&to, 20, 2);
    put(&to, (uint64_t)flags, 2);
    put(&to, (uint64_t)method, 2);
    put(&to, 0, 4);
    put(&to, sized ? check : 0, 4);
    put(&to, sized ? data.count : 0, 4);
    put(&to, sized ? in.count : 0, 4);
    put(&to, strlen(name), 2);
    put(&to, 5, 2);
    memcpy(to, name, strlen(name));
    to += strlen(name);
    memcpy(to, "FB\1\0Z", 5);
    to += 5;
    memcpy(to, data.at, data.count);
    out.count = (size_t)(to - out.at) + data.count;
    free(data.at);
    return out;
}

static struct bytes join(struct bytes a, struct bytes b)
{
    struct bytes out = {malloc(a.count + b.count), a.count + b.count};

    memcpy(out.at, a.at, a.count);
    memcpy(out.at + a.count, b.at, b.count);
    return out;
}

/* Reads all, in uneven steps; the error of the first call that has one. */
static enum frag_err read_all(struct frag_source *s, struct bytes *out,
                              struct frag_error *e)
{
    const unsigned char *at;
    enum frag_err err = FRAG_OK;
    size_t step = 1, count;

    *out = (struct bytes){malloc(ROOM), 0};
    while ((count = frag_source_peek(s, step, &at, &err, e)) && !err) {
        size_t used = count < step ? count : step;

        assert_int_equal(frag_source_offset(s), out->count);
        assert_true(out->count + used <= ROOM);
        memcpy(out->at + out->count, at, used);
        out->count += used;
        frag_source_skip(s, used);
        step = step * 7 % FRAG_SOURCE_WINDOW + 1;
    }
    return err;
}

static enum frag_err unpack(struct bytes in, struct bytes *out,
                            struct frag_error *e)
{
    struct frag_source *s;
    char hex[65];
    enum frag_err err;

    *out = (struct bytes){0};
    FRAG_TRY(frag_source_open_memory("it", in.at, in.count, &s, e));
    err = read_all(s, out, e);
    if (err == FRAG_OK)
        err = frag_source_sha256(s, hex, e);
    frag_source_close(s);
    return err;
}

static void expect_unpacked(struct bytes in, struct bytes text)
{
    struct frag_error e = {""};
    struct bytes out;

    if (unpack(in, &out, &e) != FRAG_OK)
        fail_msg("%s", e.text);
    assert_int_equal(out.count, text.count);
    assert_memory_equal(out.at, text.at, text.count);
    free(out.at);
}

static struct bytes (*const packers[])(struct bytes) = {pack_gzip, pack_xz,
                                                        pack_zstd};

static void what_was_packed_comes_out_again(void **state)
{
    struct bytes text = text_of(TEXT);

    (void)state;
    expect_unpacked(text, text);
    for (size_t i = 0; i < 3; i++) {
        struct bytes packed = packers[i](text), again = packers[2 - i](packed);

        expect_unpacked(packed, text);
        expect_unpacked(again, text);
        free(packed.at);
        free(again.at);
    }
    free(text.at);
}

static void pieces_packed_one_by_one_come_out_as_one(void **state)
{
    struct bytes a = text_of(1000), b = text_of(90000), both = join(a, b);

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        struct bytes p = packers[i](a), q = packers[i](b), pq = join(p, q);

        expect_unpacked(pq, both);
        free(p.at);
        free(q.at);
        free(pq.at);
    }
    free(a.at);
    free(b.at);
    free(both.at);
}

static void a_cut_or_damaged_archive_is_named_with_its_offset(void **state)
{
    static const char *const names[] = {"gzip", "xz", "zstd"};
    struct bytes text = text_of(TEXT);

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        struct bytes packed = packers[i](text), cut = packed, out;
        struct frag_error e;
        char words[96];

        cut.count = packed.count / 2;
        snprintf(words, sizeof(words),
                 "the file ends at byte %zu, inside its %s data", cut.count,
                 names[i]);
        assert_int_equal(unpack(cut, &out, &e), FRAG_CORRUPT);
        assert_non_null(strstr(e.text, names[i]));
        assert_non_null(strstr(e.text, words));
        free(out.at);
        cut.count = packed.count - 1;
        assert_int_equal(unpack(cut, &out, &e), FRAG_CORRUPT);
        free(out.at);
        packed.at[packed.count / 2] ^= 0x10;
        /* zstd's simple call writes no check; its structure breaks, or the
         * text differs. */
        if (unpack(packed, &out, &e) == FRAG_OK)
            assert_true(i == 2);
        else
            assert_memory_equal(e.text, "it:", 3);
        free(out.at);
        free(packed.at);
    }
    free(text.at);
}

static void garbage_after_a_gzip_member_is_no_end(void **state)
{
    struct bytes text = text_of(99), packed = pack_gzip(text), out;
    struct bytes junk = {(unsigned char[]){0, 0, 7}, 3};
    struct bytes zeros = join(packed, (struct bytes){junk.at, 2});
    struct bytes more = join(packed, junk);
    struct frag_error e;

    (void)state;
    expect_unpacked(zeros, text);
    assert_int_equal(unpack(more, &out, &e), FRAG_CORRUPT);
    assert_non_null(strstr(e.text, "bytes follow its end"));
    free(out.at);
    free(text.at);
    free(packed.at);
    free(zeros.at);
    free(more.at);
}

static void a_text_in_a_zip_is_found(void **state)
{
    struct bytes text = text_of(TEXT);
    struct bytes entry = zip_entry("surfaceflinger.txt", text, 8, 0);

    (void)state;
    expect_unpacked(entry, text);
    free(entry.at);
    free(text.at);
}

static void the_pickle_in_a_zip_is_found(void **state)
{
    struct bytes text = text_of(TEXT), other = text_of(333);
    struct bytes first = zip_entry("a/version", other, 0, 0);

    (void)state;
    for (int method = 0; method <= 8; method += 8) {
        struct bytes entry = zip_entry("a/data.pkl", text, method, 0);
        struct bytes both = join(first, entry), all = join(both, first);

        expect_unpacked(entry, text);
        expect_unpacked(all, text);
        free(entry.at);
        free(both.at);
        free(all.at);
    }
    /* As PyTorch writes it: stored, without a size in front. The bytes after it
     * are passed on too; the pickle knows its end. */
    struct bytes open = zip_entry("a/data.pkl", text, 0, 8);
    expect_unpacked(open, text);
    free(open.at);
    free(first.at);
    free(text.at);
    free(other.at);
}

static void
a_zip_without_a_pickle_or_with_a_wrong_check_is_refused(void **state)
{
    struct bytes text = text_of(999), out;
    struct bytes other = zip_entry("a/data.bin", text, 0, 0);
    struct bytes wrong = zip_entry("a/data.pkl", text, 0, 0);
    struct bytes unsized = zip_entry("a/data.bin", text, 8, 8);
    struct frag_error e;

    (void)state;
    assert_int_equal(unpack(other, &out, &e), FRAG_CORRUPT);
    assert_non_null(strstr(e.text, "no entry that ends in data.pkl"));
    free(out.at);
    wrong.at[wrong.count - 1] ^= 1;
    assert_int_equal(unpack(wrong, &out, &e), FRAG_CORRUPT);
    assert_non_null(strstr(e.text, "checksum of the entry does not match"));
    free(out.at);
    assert_int_equal(unpack(unsized, &out, &e), FRAG_CORRUPT);
    assert_non_null(strstr(e.text, "no known size"));
    free(out.at);
    free(text.at);
    free(other.at);
    free(wrong.at);
    free(unsized.at);
}

static void a_file_its_size_and_its_hash(void **state)
{
    char path[] = "/tmp/frag_source_XXXXXX", hex[65], again[SHA256_HEX];
    int fd = mkstemp(path);
    struct frag_source *s;
    struct frag_error e;
    struct bytes out;

    (void)state;
    assert_int_equal(write(fd, "abc", 3), 3);
    close(fd);
    assert_int_equal(frag_source_open(path, &s, &e), FRAG_OK);
    assert_int_equal(read_all(s, &out, &e), FRAG_OK);
    assert_int_equal(out.count, 3);
    assert_int_equal(frag_source_size(s), 3);
    assert_int_equal(frag_source_read(s), 3);
    assert_string_equal(frag_source_name(s), path);
    assert_int_equal(frag_source_sha256(s, hex, &e), FRAG_OK);
    /* FIPS 180-2, appendix B.1 */
    assert_string_equal(
        hex,
        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    assert_int_equal(sha256_file(path, again, &e), FRAG_OK);
    assert_string_equal(again, hex);
    frag_source_close(s);
    free(out.at);
    unlink(path);
    assert_int_equal(sha256_file(path, again, &e), FRAG_IO);
    assert_non_null(strstr(e.text, "No such file"));
}

static void a_large_file_has_one_hash(void **state)
{
    char path[] = "/tmp/frag_source_XXXXXX", hex[SHA256_HEX], again[SHA256_HEX];
    struct bytes text = text_of(TEXT);
    int fd = mkstemp(path);
    struct frag_source *s;
    struct frag_error e;

    (void)state;
    assert_int_equal(write(fd, text.at, text.count), text.count);
    close(fd);
    assert_int_equal(frag_source_open(path, &s, &e), FRAG_OK);
    assert_int_equal(frag_source_sha256(s, hex, &e), FRAG_OK);
    assert_int_equal(sha256_file(path, again, &e), FRAG_OK);
    assert_string_equal(again, hex);
    frag_source_close(s);
    unlink(path);
    free(text.at);
}

static enum frag_trace_form form_of(const void *bytes, size_t count)
{
    char path[] = "/tmp/frag_source_XXXXXX";
    int fd = mkstemp(path);
    enum frag_trace_form form;

    assert_int_equal(write(fd, bytes, count), count);
    close(fd);
    form = frag_trace_form(path);
    unlink(path);
    return form;
}

static void the_form_of_a_file_shows_in_its_first_bytes(void **state)
{
    static const char trace_file[] = "\x89HDF\r\n\x1a\n...";
    struct bytes text = text_of(100);

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        struct bytes packed = packers[i](text);

        assert_int_equal(form_of(packed.at, packed.count), FRAG_FORM_PACKED);
        free(packed.at);
    }
    free(text.at);
    assert_int_equal(form_of("PK\3\4", 4), FRAG_FORM_PACKED);
    assert_int_equal(form_of("PK\3", 3), FRAG_FORM_PLAIN);
    assert_int_equal(form_of("op,id\n", 6), FRAG_FORM_PLAIN);
    assert_int_equal(form_of("", 0), FRAG_FORM_PLAIN);
    assert_int_equal(form_of(trace_file, 11), FRAG_FORM_TRACE_FILE);
    assert_int_equal(form_of(trace_file, 7), FRAG_FORM_PLAIN);
    assert_int_equal(frag_trace_form("/nonexistent"), FRAG_FORM_PLAIN);
    assert_int_equal(frag_trace_form("-"), FRAG_FORM_PLAIN);
}

static void a_pipe_is_hashed_while_it_is_read(void **state)
{
    struct frag_source *s;
    struct frag_error e;
    struct bytes out;
    char hex[65];
    int ends[2], kept = dup(STDIN_FILENO);

    (void)state;
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(write(ends[1], "abc", 3), 3);
    close(ends[1]);
    assert_true(dup2(ends[0], STDIN_FILENO) == STDIN_FILENO);
    close(ends[0]);
    assert_int_equal(frag_source_open("-", &s, &e), FRAG_OK);
    assert_int_equal(read_all(s, &out, &e), FRAG_OK);
    assert_int_equal(out.count, 3);
    assert_int_equal(frag_source_size(s), 0);
    assert_int_equal(frag_source_sha256(s, hex, &e), FRAG_OK);
    assert_memory_equal(hex, "ba7816bf", 8);
    frag_source_close(s);
    free(out.at);
    if (kept >= 0) {
        dup2(kept, STDIN_FILENO);
        close(kept);
    }
}

static void what_cannot_be_opened_is_said(void **state)
{
    struct frag_source *s = NULL;
    struct frag_error e;

    (void)state;
    assert_int_equal(frag_source_open("/nowhere/x", &s, &e), FRAG_IO);
    assert_non_null(strstr(e.text, "/nowhere/x"));
    assert_int_equal(frag_source_open("/tmp", &s, &e), FRAG_IO);
    assert_non_null(strstr(e.text, "is a directory"));
    assert_null(s);
}

static void an_empty_input_has_no_bytes(void **state)
{
    struct bytes none = {(unsigned char[]){0}, 0};

    (void)state;
    expect_unpacked(none, none);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_packed_comes_out_again),
        cmocka_unit_test(pieces_packed_one_by_one_come_out_as_one),
        cmocka_unit_test(a_cut_or_damaged_archive_is_named_with_its_offset),
        cmocka_unit_test(garbage_after_a_gzip_member_is_no_end),
        cmocka_unit_test(a_text_in_a_zip_is_found),
        cmocka_unit_test(the_pickle_in_a_zip_is_found),
        cmocka_unit_test(
            a_zip_without_a_pickle_or_with_a_wrong_check_is_refused),
        cmocka_unit_test(a_file_its_size_and_its_hash),
        cmocka_unit_test(a_large_file_has_one_hash),
        cmocka_unit_test(the_form_of_a_file_shows_in_its_first_bytes),
        cmocka_unit_test(a_pipe_is_hashed_while_it_is_read),
        cmocka_unit_test(what_cannot_be_opened_is_said),
        cmocka_unit_test(an_empty_input_has_no_bytes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
