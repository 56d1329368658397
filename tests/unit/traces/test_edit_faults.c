/* test_edit_faults.c - applies edits when the host has no memory once: at the
 * first call, at the second, and so on, until a run meets no failure. ASan
 * detects leaks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "tests/support/failing_malloc.h"
#include "traces/build/build.h"
#include "traces/edit/edit.h"

enum { BLOCKS = 12 };

/* A job with stacks, marks and times, whose blocks are freed in turn. */
static enum frag_err build(struct frag_build *b, struct frag_error *e)
{
    const struct frag_frame frame = {frag_build_string(b, "model.py", 8),
                                     frag_build_string(b, "forward", 7), 3};
    const uint32_t stack = frag_build_stack(b, &frame, 1);

    if (frame.file == UINT32_MAX || frame.function == UINT32_MAX ||
        stack == UINT32_MAX)
        return FRAG_NOMEM;
    for (uint64_t i = 0; i < 2 * BLOCKS; i++) {
        const uint64_t block = i < BLOCKS ? i : i - BLOCKS;
        const struct frag_entry entry = {
            .kind = i < BLOCKS ? FRAG_ENTRY_ALLOC : FRAG_ENTRY_FREE_COMPLETED,
            .stack = stack,
            .addr = 0x1000 * (block + 1),
            .size = 512,
            .stream = block % 2,
            .time = 100 + i};

        FRAG_TRY(frag_build_entry(b, 0, &entry, i, e));
        FRAG_TRY(frag_build_mark(b, 0, FRAG_MARK_END, 100 + i, "step", 4, e));
    }
    return FRAG_OK;
}

static enum frag_err open_job(struct frag_trace **out, struct frag_error *e)
{
    struct frag_build *b = frag_build_open("job", "csv");
    enum frag_err err = b ? build(b, e) : FRAG_NOMEM;

    if (err == FRAG_OK)
        err = frag_build_finish(b, NULL, out, e);
    frag_build_close(b);
    return err == FRAG_NOMEM ? frag_no_memory(e, "a job") : err;
}

static enum frag_err edit(const char *text, struct frag_error *e)
{
    struct frag_edits *edits;
    struct frag_trace *in = NULL, *out = NULL;
    enum frag_err err;

    FRAG_TRY(frag_edits_read(&text, 1, &edits, e));
    err = open_job(&in, e);
    if (err == FRAG_OK)
        err = frag_edits_apply(edits, in, &out, e);
    frag_trace_close(out);
    frag_trace_close(in);
    frag_edits_free(edits);
    return err;
}

static void every_allocation_can_fail(void **state)
{
    static const char *const texts[] = {
        "keep:site=forward;scale:factor=2,stream=1;pool:to=0:9",
        "free:earlier=3;free:at=step-end,mark=step",
        "slice:steps=2..9,mark=step;empty-cache:every-steps=2,mark=step",
        "repeat:times=2"};

    (void)state;
    for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
        enum frag_err err = FRAG_NOMEM;
        uint64_t k;

        for (k = 1; err != FRAG_OK; k++) {
            struct frag_error e = {""};

            calls_to_failure = k;
            err = edit(texts[i], &e);
            if (calls_to_failure == 0) {
                assert_int_equal(err, FRAG_NOMEM);
                if (!strstr(e.text, "the host has no memory for"))
                    fail_msg("%s, call %u: \"%s\"", texts[i], (unsigned)k,
                             e.text);
            } else if (err != FRAG_OK) {
                fail_msg("%s: %s", texts[i], e.text);
            }
            calls_to_failure = 0;
        }
        assert_true(k > 60);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_allocation_can_fail),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
