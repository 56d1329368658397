/* Import when the host has no memory: at the first request for memory, at the
 * second, and so on until none fails. Nothing leaks (ASan), and the error is
 * that there is no memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/failing_malloc.h"
#include <stdio.h>

#include "traces/importer.h"

static enum frag_err build_from(struct frag_source *s, struct frag_build *b,
                                struct frag_trace **out, struct frag_error *e)
{
    char hex[65];

    FRAG_TRY(frag_importer_torch.read(s, b, NULL, e));
    FRAG_TRY(frag_source_sha256(s, hex, e));
    return frag_build_finish(b, NULL, out, e);
}

static enum frag_err import(const char *path, struct frag_trace **out,
                            struct frag_error *e)
{
    struct frag_source *s = NULL;
    struct frag_build *b = frag_build_open(path, "torch");
    enum frag_err err = b ? frag_source_open(path, &s, e) : FRAG_NOMEM;

    if (err == FRAG_OK)
        err = build_from(s, b, out, e);
    frag_source_close(s);
    frag_build_close(b);
    return err;
}

/* How many requests for memory there are. */
static uint64_t fail_each(const char *path)
{
    for (uint64_t k = 1;; k++) {
        struct frag_trace *trace = NULL;
        struct frag_error e = {""};
        enum frag_err err;
        bool met;

        calls_to_failure = k;
        err = import(path, &trace, &e);
        met = !calls_to_failure;
        calls_to_failure = 0;
        /* A page of the memo that cannot be packed stays as it is. */
        assert_true(err == FRAG_OK || err == FRAG_NOMEM);
        assert_true((err == FRAG_OK) == (trace != NULL));
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
        count = fail_each(path);
        print_message("%s: %u requests for memory\n", names[i],
                      (unsigned)count);
        assert_true(count > 20);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_memory_at_any_point_is_an_error_and_no_leak),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
