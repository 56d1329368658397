/* test_mutations.c - tests the import of snapshots that are cut off or have
 * flipped bits: each gives an error or a valid trace, never a crash, and the
 * sanitizers find no leak. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "traces/build/build.h"
#include "traces/bytes/source.h"
#include "traces/import/importers.h"

enum { ROOM = 1 << 20 };

struct bytes {
    unsigned char *at;
    size_t count;
};

/* The results of the mutations. */
struct tally {
    unsigned valid, refused;
};

static struct bytes read_whole(const char *name, bool unpacked)
{
    struct bytes b = {malloc(ROOM), 0};
    const unsigned char *at;
    struct frag_source *s;
    struct frag_error e;
    enum frag_err err;
    char path[1000];
    size_t count;

    snprintf(path, sizeof(path), "%s/traces/bundled/%s", FRAG_SOURCE_DIR, name);
    if (!unpacked) {
        FILE *f = fopen(path, "rb");

        assert_non_null(f);
        b.count = fread(b.at, 1, ROOM, f);
        fclose(f);
        return b;
    }
    assert_int_equal(frag_source_open(path, &s, &e), FRAG_OK);
    while ((count = frag_source_peek(s, 1, &at, &err, &e))) {
        assert_true(b.count + count <= ROOM);
        memcpy(b.at + b.count, at, count);
        b.count += count;
        frag_source_skip(s, count);
    }
    frag_source_close(s);
    return b;
}

static enum frag_err import(struct frag_source *s, struct frag_build *b,
                            struct frag_error *e)
{
    struct frag_trace *trace = NULL;
    char hex[65];

    FRAG_TRY(frag_importer_torch.read(s, b, NULL, e));
    FRAG_TRY(frag_source_sha256(s, hex, e));
    FRAG_TRY(frag_build_finish(b, NULL, &trace, e));
    for (uint32_t i = 0; i < trace->device_count; i++)
        assert_int_equal(frag_trace_check(&trace->devices[i], "it", e),
                         FRAG_OK);
    frag_trace_close(trace);
    return FRAG_OK;
}

static void try(struct bytes b, struct tally *tally)
{
    struct frag_error e = {""};
    struct frag_build *build = frag_build_open("it", "torch");
    struct frag_source *s = NULL;
    enum frag_err err = frag_source_open_memory("it", b.at, b.count, &s, &e);

    if (err == FRAG_OK)
        err = import(s, build, &e);
    if (err != FRAG_OK) {
        assert_int_equal(err, FRAG_CORRUPT);
        assert_memory_equal(e.text, "it:", 3);
    }
    tally->valid += err == FRAG_OK;
    tally->refused += err != FRAG_OK;
    frag_build_close(build);
    frag_source_close(s);
}

static uint32_t next_random(uint32_t *x)
{
    *x ^= *x << 13;
    *x ^= *x >> 17;
    *x ^= *x << 5;
    return *x;
}

/* Up to three bits, or a byte for another one of the file, which is more often
 * an opcode. */
static void mutate(struct bytes b, uint32_t *x)
{
    if (next_random(x) % 4 == 0) {
        unsigned char *at = &b.at[next_random(x) % b.count];
        const unsigned char other = b.at[next_random(x) % b.count];

        *at = *at == other ? *at ^ 1 : other;
        return;
    }
    for (uint32_t n = next_random(x) % 3 + 1; n; n--)
        b.at[next_random(x) % b.count] ^=
            (unsigned char)(1 << next_random(x) % 8);
}

static struct tally try_mutations(const char *name, bool unpacked,
                                  unsigned times)
{
    struct bytes whole = read_whole(name, unpacked);
    struct tally tally = {0, 0};
    uint32_t x = 12345;

    for (unsigned i = 0; i < times; i++) {
        /* In a buffer of exactly its size, so that the sanitizers detect each
         * access beyond. */
        struct bytes b = {malloc(whole.count), whole.count};

        memcpy(b.at, whole.at, whole.count);
        mutate(b, &x);
        try(b, &tally);
        free(b.at);
    }
    print_message("%s: %u valid, %u refused\n", name, tally.valid,
                  tally.refused);
    free(whole.at);
    return tally;
}

static void bits_flipped_in_a_snapshot_do_no_harm(void **state)
{
    static const char *const names[] = {"leak_cpp.pickle.xz",
                                        "leak_cpp.cpp.pickle.xz",
                                        "lstm_varlen__cap_tight_exp.pickle.xz"};

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        const struct tally t = try_mutations(names[i], true, 500);

        assert_true(t.valid > 0 && t.refused > 100);
    }
}

static void bits_flipped_in_a_packed_snapshot_are_found(void **state)
{
    (void)state;
    assert_int_equal(try_mutations("leak_cpp.pickle.xz", false, 300).valid, 0);
}

static void a_snapshot_cut_anywhere_is_refused(void **state)
{
    struct bytes whole = read_whole("leak_cpp.cpp.pickle.xz", true);
    struct tally tally = {0, 0};

    (void)state;
    for (size_t i = 0; i < 500; i++) {
        const size_t count = i < 100 ? i : whole.count * i / 500;
        struct bytes b = {malloc(count + 1), count};

        memcpy(b.at, whole.at, count);
        b.at = realloc(b.at, count ? count : 1);
        try(b, &tally);
        free(b.at);
    }
    assert_int_equal(tally.valid, 0);
    free(whole.at);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bits_flipped_in_a_snapshot_do_no_harm),
        cmocka_unit_test(bits_flipped_in_a_packed_snapshot_are_found),
        cmocka_unit_test(a_snapshot_cut_anywhere_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
