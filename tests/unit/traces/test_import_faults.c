/* test_import_faults.c - tests imports when the host has no memory: at the
 * first request for memory, at the second, and so on, until none fails. Each
 * failed import returns FRAG_NOMEM, and nothing leaks (ASan). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/support/failing_malloc.h"
#include <stdio.h>
#include <string.h>

#include "traces/build/build.h"
#include "traces/bytes/source.h"
#include "traces/import/importers.h"

enum { LINES = 300, MOST = 300 };

/* The input of an import: a file, or a text. */
struct input {
    const struct frag_importer *importer;
    const char *path, *text;
};

static enum frag_err open_source(const struct input *in, struct frag_source **s,
                                 struct frag_error *e)
{
    if (in->path)
        return frag_source_open(in->path, s, e);
    return frag_source_open_memory("text", (const unsigned char *)in->text,
                                   strlen(in->text), s, e);
}

static enum frag_err build_from(const struct input *in, struct frag_source *s,
                                struct frag_build *b, struct frag_trace **out,
                                struct frag_error *e)
{
    char hex[65];

    FRAG_TRY(in->importer->read(s, b, NULL, e));
    FRAG_TRY(frag_source_sha256(s, hex, e));
    return frag_build_finish(b, NULL, out, e);
}

static enum frag_err import(const struct input *in, struct frag_trace **out,
                            struct frag_error *e)
{
    struct frag_source *s = NULL;
    struct frag_build *b = frag_build_open("input", in->importer->name);
    enum frag_err err = b ? open_source(in, &s, e) : FRAG_NOMEM;

    if (err == FRAG_OK)
        err = build_from(in, s, b, out, e);
    frag_source_close(s);
    frag_build_close(b);
    return err;
}

/* How many requests for memory there are. */
static uint64_t fail_each(const struct input *in)
{
    for (uint64_t k = 1;; k++) {
        struct frag_trace *trace = NULL;
        struct frag_error e = {""};
        enum frag_err err;
        bool met;

        calls_to_failure = k;
        err = import(in, &trace, &e);
        met = !calls_to_failure;
        calls_to_failure = 0;
        /* A page of the memo that cannot be packed stays as it is. */
        assert_true(err == FRAG_OK || err == FRAG_NOMEM);
        assert_true((err == FRAG_OK) == (trace != NULL));
        if (in->text && met)
            assert_int_equal(err, FRAG_NOMEM);
        frag_trace_close(trace);
        if (!met)
            return k - 1;
    }
}

static void no_memory_at_any_point_is_an_error_and_no_leak(void **state)
{
    static const char *const names[] = {"leak_cpp.pickle.xz",
                                        "leak_cpp.cpp.pickle.xz"};

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        char path[1000];
        uint64_t count;

        snprintf(path, sizeof(path), "%s/traces/bundled/%s", FRAG_SOURCE_DIR,
                 names[i]);
        count = fail_each(&(struct input){&frag_importer_torch, path, NULL});
        print_message("%s: %u requests for memory\n", names[i],
                      (unsigned)count);
        assert_true(count > 20);
    }
}

/* LINES lines after a header, each with its number twice. */
static void write_lines(char *text, const char *header, const char *line,
                        const char *end)
{
    text += sprintf(text, "%s", header);
    for (int i = 1; i <= LINES; i++)
        text += snprintf(text, MOST, line, i, i);
    strcpy(text, end);
}

static void nor_is_it_in_a_text(void **state)
{
    static const struct {
        const struct frag_importer *importer;
        const char *header, *line, *end;
    } rows[] = {
        {&frag_importer_csv, "op,id,bytes,stream\n", "alloc,%d,%d,0\n", ""},
        /* Every pointer is live already, which a note counts. */
        {&frag_importer_rmm, "",
         "7,05:50:42.600000,allocate,0x%d,%d,0\n"
         "7,05:50:42.600000,allocate,0x1,1,0x7\n",
         ""},
        /* With odd sizes, which a note mentions. */
        {&frag_importer_static, "id,lower,upper,size\n", "%d,0,9,%d\n", ""},
        {&frag_importer_kineto,
         "{\"traceEvents\":[{\"name\":\"ProfilerStep#1\","
         "\"cat\":\"user_annotation\",\"ts\":1,\"dur\":2}",
         ",{\"name\":\"[memory]\",\"ts\":1,\"args\":{\"Device Type\":1,"
         "\"Device Id\":0,\"Addr\":%d,\"Bytes\":%d,"
         "\"Total Allocated\":999999}}",
         "]}"},
    };
    static char text[(LINES + 2) * MOST];

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        const struct input in = {rows[i].importer, NULL, text};

        write_lines(text, rows[i].header, rows[i].line, rows[i].end);
        assert_true(fail_each(&in) > 10);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_memory_at_any_point_is_an_error_and_no_leak),
        cmocka_unit_test(nor_is_it_in_a_text),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
