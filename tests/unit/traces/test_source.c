/* test_source.c - tests inputs: packed once or twice, in several parts, or cut
 * off; each of them read by one thread and by two. */
#define _GNU_SOURCE /* RTLD_NEXT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dlfcn.h>
#include <errno.h>
#include <lzma.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include "traces/bytes/processors.h"
#include "traces/bytes/sha256.h"
#include "traces/bytes/source.h"
#include "traces/trace.h"

enum { TEXT = 700000, ROOM = 2 * TEXT };

struct bytes {
    unsigned char *at;
    size_t count;
};

/* Threads */

/* Stands before the function of the C library: counts the threads that are
 * started, and refuses them if `refused` is set. */
static int started;
static bool refused;

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                   void *(*run)(void *), void *user)
{
    static int (*create)(pthread_t *, const pthread_attr_t *, void *(*)(void *),
                         void *);
    void *symbol;

    if (!create) {
        symbol = dlsym(RTLD_NEXT, "pthread_create");
        memcpy(&create, &symbol, sizeof(create));
    }
    if (refused)
        return EAGAIN;
    started++;
    return create(thread, attributes, run, user);
}

/* One thread where there are two processors, else none. */
static int one_if_possible(void)
{
    return processors() > 1;
}

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

/* What a reader receives of an input. */
struct reading {
    enum frag_err err;
    struct bytes bytes; /* up to the error */
    struct frag_error e;
    char hex[SHA256_HEX];
};

static struct reading read_by(struct bytes in, bool by_two_threads)
{
    struct reading r = {.hex = ""};
    struct frag_source *s;
    const unsigned char *at;

    r.err = frag_source_open_memory("it", in.at, in.count, &s, &r.e);
    if (r.err != FRAG_OK)
        return r;
    frag_source_peek(s, FRAG_SOURCE_WINDOW, &at, &r.err, &r.e);
    if (r.err == FRAG_OK && by_two_threads)
        frag_source_read_ahead(s);
    if (r.err == FRAG_OK)
        r.err = read_all(s, &r.bytes, &r.e);
    if (r.err == FRAG_OK)
        r.err = frag_source_sha256(s, r.hex, &r.e);
    frag_source_close(s);
    return r;
}

/* Reads an input by one thread and by two, which must not differ. */
static enum frag_err unpack(struct bytes in, struct bytes *out,
                            struct frag_error *e)
{
    struct reading one = read_by(in, false), two = read_by(in, true);

    assert_int_equal(one.err, two.err);
    assert_string_equal(one.e.text, two.e.text);
    assert_string_equal(one.hex, two.hex);
    assert_int_equal(one.bytes.count, two.bytes.count);
    if (one.bytes.count)
        assert_memory_equal(one.bytes.at, two.bytes.at, one.bytes.count);
    free(two.bytes.at);
    *out = one.bytes;
    *e = one.e;
    return one.err;
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

/* Cut and damaged at many places: unpack() compares both readings. */
static void two_threads_meet_the_error_of_one(void **state)
{
    struct bytes text = text_of(TEXT);
    int found = 0;

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        struct bytes packed = packers[i](text);

        for (size_t k = 1; k < 24; k++) {
            const size_t at = packed.count / 24 * k;
            struct bytes cut = {packed.at, at}, out;
            struct frag_error e;

            assert_int_equal(unpack(cut, &out, &e), FRAG_CORRUPT);
            free(out.at);
            packed.at[at] ^= 0x55;
            found += unpack(packed, &out, &e) != FRAG_OK;
            packed.at[at] ^= 0x55;
            free(out.at);
        }
        free(packed.at);
    }
    assert_true(found > 40);
    free(text.at);
}

/* Opens an input and looks at its start, as the import does. */
static struct frag_source *open_bytes(struct bytes in)
{
    struct frag_source *s;
    struct frag_error e;
    enum frag_err err;
    const unsigned char *at;

    assert_int_equal(frag_source_open_memory("it", in.at, in.count, &s, &e),
                     FRAG_OK);
    frag_source_peek(s, FRAG_SOURCE_WINDOW, &at, &err, &e);
    assert_int_equal(err, FRAG_OK);
    return s;
}

static void a_second_thread_starts_where_it_helps(void **state)
{
    struct bytes text = text_of(TEXT), small = text_of(1000);
    struct bytes long_text = text_of(4 * TEXT);
    const struct {
        struct bytes in;
        int threads;
    } rows[] = {
        {pack_xz(text), one_if_possible()},
        {long_text, one_if_possible()},
        {pack_zstd(text), 0},
        {pack_xz(small), 0},
        {small, 0},
    };

    (void)state;
    for (size_t i = 0; i < 5; i++)
        for (int pass = 0; pass < 2; pass++) {
            struct frag_source *s = open_bytes(rows[i].in);

            started = 0;
            refused = pass;
            frag_source_read_ahead(s);
            frag_source_read_ahead(s); /* a second call adds no thread */
            refused = false;
            assert_int_equal(started, pass ? 0 : rows[i].threads);
            frag_source_close(s); /* joins the thread, which has work left */
        }
    free(rows[0].in.at);
    free(rows[2].in.at);
    free(rows[3].in.at);
    free(text.at);
    free(small.at);
    free(long_text.at);
}

static void a_refused_thread_changes_nothing(void **state)
{
    struct bytes text = text_of(TEXT), packed = pack_xz(text);

    (void)state;
    refused = true;
    expect_unpacked(packed, text);
    refused = false;
    free(packed.at);
    free(text.at);
}

/* The window of a plain input stays the whole input. */
static void a_plain_input_is_hashed_ahead(void **state)
{
    enum { LONG = 40 << 20 };
    struct bytes text = text_of(LONG);
    struct frag_source *one = open_bytes(text), *two = open_bytes(text);
    char hex[2][SHA256_HEX];
    const unsigned char *at;
    struct frag_error e;
    enum frag_err err;

    (void)state;
    frag_source_read_ahead(two);
    for (size_t used = 0; used < LONG; used += 1 << 20) {
        assert_int_equal(frag_source_peek(two, 1, &at, &err, &e), LONG - used);
        assert_ptr_equal(at, text.at + used);
        assert_int_equal(frag_source_read(two), used);
        frag_source_skip(two, 1 << 20);
    }
    assert_int_equal(frag_source_sha256(one, hex[0], &e), FRAG_OK);
    assert_int_equal(frag_source_sha256(two, hex[1], &e), FRAG_OK);
    assert_string_equal(hex[0], hex[1]);
    frag_source_close(one);
    frag_source_close(two);
    free(text.at);
}

static pthread_t receiver;

static void on_signal(int number)
{
    (void)number;
    receiver = pthread_self();
}

/* A handler runs in the thread of the program, whose system calls it must
 * interrupt. */
static void signals_are_for_the_callers_thread(void **state)
{
    struct bytes text = text_of(TEXT), packed = pack_xz(text);
    struct frag_source *s = open_bytes(packed);
    struct sigaction action = {.sa_handler = on_signal}, before;
    sigset_t usr1, mask;

    (void)state;
    sigemptyset(&usr1);
    sigaddset(&usr1, SIGUSR1);
    sigaction(SIGUSR1, &action, &before);
    frag_source_read_ahead(s);
    pthread_sigmask(SIG_BLOCK, &usr1, &mask);
    assert_false(sigismember(&mask, SIGUSR1)); /* the caller's, as before */
    receiver = 0;
    kill(getpid(), SIGUSR1);
    usleep(1000);
    assert_true(receiver == 0); /* blocked here, so it waits */
    pthread_sigmask(SIG_SETMASK, &mask, NULL);
    assert_true(pthread_equal(receiver, pthread_self()));
    sigaction(SIGUSR1, &before, NULL);
    frag_source_close(s);
    free(packed.at);
    free(text.at);
}

static enum frag_err open_with(const char *path, size_t threads)
{
    const struct frag_read_options opts = {.threads = threads};
    struct frag_trace *trace = NULL;
    struct frag_error e;
    enum frag_err err = frag_trace_open(path, &opts, &trace, &e);

    frag_trace_close(trace);
    return err;
}

static void the_caller_may_forbid_the_thread(void **state)
{
    static const char path[] =
        FRAG_SOURCE_DIR "/traces/bundled/gpt2_train.pickle.xz";

    (void)state;
    started = 0;
    assert_int_equal(open_with(path, 1), FRAG_OK);
    assert_int_equal(started, 0);
    assert_int_equal(open_with(path, 0), FRAG_OK);
    assert_int_equal(started, one_if_possible());
}

/* Every form, and forms in forms, are bounded by what the file has on the disk.
 */
static void what_a_packed_file_may_hold_is_bounded(void **state)
{
    enum { MIB = 1 << 20 };
    struct bytes text = {calloc(1, MIB), MIB}, out;

    (void)state;
    assert_int_equal(frag_source_most(1), 256ull << 20);
    assert_int_equal(frag_source_most(1 << 20), 1000ull << 20);
    assert_int_equal(frag_source_most(UINT64_MAX), 256ull << 30);
    for (size_t i = 0; i < 7; i++) {
        struct bytes packed =
            i < 6 ? packers[i % 3](text) : zip_entry("data.pkl", text, 8, 0);
        struct bytes again =
            i / 3 == 1 ? packers[(i + 1) % 3](packed) : (struct bytes){NULL, 0};
        struct frag_error e = {""};

        setenv(SOURCE_MOST_VARIABLE, "1048575", 1);
        assert_int_equal(unpack(again.at ? again : packed, &out, &e),
                         FRAG_CORRUPT);
        assert_non_null(strstr(e.text, "--max-unpacked"));
        free(out.at);
        setenv(SOURCE_MOST_VARIABLE, "1MiB", 1);
        expect_unpacked(again.at ? again : packed, text);
        expect_unpacked(text, text);
        free(packed.at);
        free(again.at);
    }
    unsetenv(SOURCE_MOST_VARIABLE);
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

static void a_text_or_a_snapshot_in_a_zip_is_found(void **state)
{
    static const char *const names[] = {"surfaceflinger.txt", "oom.pickle",
                                        "job/rank0.pkl"};
    struct bytes text = text_of(TEXT), other = text_of(333);
    struct bytes first = zip_entry("oom.pickle.md5", other, 0, 0);

    (void)state;
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        struct bytes entry = zip_entry(names[i], text, 8, 0);
        struct bytes both = join(first, entry);

        expect_unpacked(both, text);
        free(entry.at);
        free(both.at);
    }
    free(first.at);
    free(text.at);
    free(other.at);
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
    assert_non_null(strstr(e.text, "found a zip archive without a .pickle"));
    free(out.at);
    wrong.at[wrong.count - 1] ^= 1;
    assert_int_equal(unpack(wrong, &out, &e), FRAG_CORRUPT);
    assert_non_null(strstr(e.text, "checksum of the entry does not match"));
    free(out.at);
    assert_int_equal(unpack(unsized, &out, &e), FRAG_CORRUPT);
    assert_non_null(strstr(e.text, "its first file is a/data.bin; unpack it"));
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
    assert_non_null(strstr(e.text, "s a directory"));
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
        cmocka_unit_test(two_threads_meet_the_error_of_one),
        cmocka_unit_test(a_second_thread_starts_where_it_helps),
        cmocka_unit_test(a_refused_thread_changes_nothing),
        cmocka_unit_test(a_plain_input_is_hashed_ahead),
        cmocka_unit_test(signals_are_for_the_callers_thread),
        cmocka_unit_test(the_caller_may_forbid_the_thread),
        cmocka_unit_test(what_a_packed_file_may_hold_is_bounded),
        cmocka_unit_test(garbage_after_a_gzip_member_is_no_end),
        cmocka_unit_test(a_text_or_a_snapshot_in_a_zip_is_found),
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
